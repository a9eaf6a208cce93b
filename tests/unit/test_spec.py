"""The activation spec: what it takes, what it refuses, what it shows."""

import pytest

from jmsjca import ActivationSpec, Queue, Topic
from jmsjca.destinations import Subscription
from jmsjca.errors import InvalidActivationSpecError

HIDDEN = "s3cr3t"


def explanation(**fields: object) -> str:
    with pytest.raises(InvalidActivationSpecError) as caught:
        ActivationSpec(**fields)
    return str(caught.value)


def test_defaults():
    spec = ActivationSpec(destination="orders")
    assert (spec.destination, spec.destination_type, spec.source()) == ("orders", "queue", Queue("orders"))
    assert (spec.concurrency_mode, spec.transaction, spec.durable) == ("serial", "local", False)
    assert (spec.client_id, spec.effective_client_id, spec.connection_url) == (None, None, None)


def test_destination_object_gives_its_type():
    spec = ActivationSpec(destination=Topic("news"))
    assert (spec.destination, spec.destination_type, spec.source()) == ("news", "topic", Topic("news"))
    assert ActivationSpec(destination=Queue("q"), destination_type="queue").source() == Queue("q")


def test_durable_subscription():
    spec = ActivationSpec(
        destination="news", destination_type="topic", subscription_durability="Durable", subscription_name="s"
    )
    assert spec.source() == Subscription(Topic("news"), "s", "CLIENTID-s")
    given = spec.model_copy(update={"client_id": "mine"})
    assert given.source() == Subscription(Topic("news"), "s", "mine")


@pytest.mark.parametrize("mode", ["serial", "Serial", "SERIAL"])
def test_mode_is_read_in_any_case(mode):
    assert ActivationSpec(destination="q", concurrency_mode=mode).concurrency_mode == "serial"


def test_spec_cannot_be_changed():
    spec = ActivationSpec(destination="q")
    with pytest.raises(ValueError, match="frozen"):
        spec.destination = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "destination"),
        ({"destination": ""}, "destination"),
        ({"destination": None}, "destination"),
        ({"destination": "q", "destination_type": "table"}, "destination_type"),
        ({"destination": Queue("q"), "destination_type": "topic"}, "destination_type"),
        ({"destination": "q", "concurrency_mode": "parallel"}, "concurrency_mode"),
        ({"destination": "q", "transaction": "global"}, "transaction"),
        ({"destination": "q", "subscription_durability": "Maybe"}, "subscription_durability"),
        ({"destination": Topic("t"), "subscription_durability": "Durable"}, "subscription_name"),
        ({"destination": "q", "desination_type": "topic"}, "desination_type: there is no such field"),
        ({"destination": "q", "batch_size": 10}, "batch_size: is not available in this release"),
        ({"destination": "q", "redelivery_handling": "3:delete"}, "redelivery_handling: is not available"),
        ({"destination": "q", "concurrency_mode": "cc"}, "'cc' is not available in this release"),
        ({"destination": "q", "client_id": 5}, "client_id"),
    ],
)
def test_wrong_field_is_named(fields, told):
    assert told in explanation(**fields)


def test_every_wrong_field_is_reported_at_once():
    text = explanation(
        destination="",
        destination_type="table",
        concurrency_mode="parallel",
        transaction="global",
        client_id=5,
        wrong="x",
    )
    for name in ("destination", "destination_type", "concurrency_mode", "transaction", "client_id", "wrong"):
        assert f"{name}: " in text


def test_fields_that_do_not_fit_together_are_reported_with_the_others():
    text = explanation(
        destination=Topic("t"), destination_type="queue", subscription_durability="Durable", transaction="global"
    )
    for name in ("destination_type", "subscription_name", "transaction"):
        assert name in text


def test_wrong_value_is_shown_bounded():
    assert "'table'" in explanation(destination="q", destination_type="table")
    assert len(explanation(destination="q", destination_type="x" * 100_000)) < 500


@pytest.mark.parametrize(
    "fields",
    [
        {"destination": "", "password": HIDDEN},
        {"destination": "q", "password": [HIDDEN]},
        {"destination": "q", "pasword": HIDDEN},
        {"destination": "q", "connection_url": [f"amqp://ann:{HIDDEN}@host"]},
    ],
)
def test_no_error_shows_a_password(fields):
    assert HIDDEN not in explanation(**fields)


def test_text_form_shows_no_password():
    spec = ActivationSpec(destination="q", user_name="ann", password=HIDDEN, connection_url=f"amqp://ann:{HIDDEN}@host")
    assert HIDDEN not in f"{spec} {spec!r}"
    assert spec.password is not None
    assert spec.password.get_secret_value() == HIDDEN
