"""ActivationSpec: accepted and refused fields, and its text forms."""

import pickle

import pytest

from jmsjca import AcknowledgeMode, ActivationSpec, Queue, Topic
from jmsjca.config import DistributedSubscription
from jmsjca.config.activation_spec import resolve_spec
from jmsjca.destinations import Subscription
from jmsjca.errors import InvalidActivationSpecError
from jmsjca.redelivery import Deliver, Move, RedeliveryPolicy

HIDDEN = "s3cr3t"
DURABLE = {"destination": Topic("news"), "subscription_durability": "Durable"}
HELD = {"destination": "q", "concurrency_mode": "sync", "hold_until_ack": True}


def explanation(**fields: object) -> str:
    with pytest.raises(InvalidActivationSpecError) as caught:
        ActivationSpec(**fields)
    return str(caught.value)


def test_defaults():
    spec = ActivationSpec(destination="orders")
    assert (spec.destination, spec.destination_type, spec.source()) == ("orders", "queue", Queue("orders"))
    assert (spec.concurrency_mode, spec.transaction, spec.durable) == ("serial", "local", False)
    assert (spec.client_id, spec.effective_client_id, spec.connection_url) == (None, None, None)
    assert (spec.endpoint_pool_max_size, spec.max_outstanding) == (15, 150)
    assert (spec.batch_size, spec.hold_until_ack, spec.acknowledgement_timeout) == (0, False, None)
    assert spec.redelivery_handling == "3:25; 5:50; 10:100; 20:1000; 50:5000"
    assert (spec.acknowledge_mode, spec.options, spec.distributed) == (AcknowledgeMode.AUTO, {}, None)
    assert (spec.context_name, spec.mbean_name, spec.selector) == (None, None, None)


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


def test_client_id_that_is_given_stays():
    assert ActivationSpec(**DURABLE, subscription_name="s", client_id="mine").source().client_id == "mine"
    assert ActivationSpec(**DURABLE, subscription_name="s", client_id="").source().client_id == "CLIENTID-s"
    assert ActivationSpec(destination=Topic("news"), subscription_name="s").effective_client_id is None


def test_distributed_subscription_is_that_of_its_subscriber_name():
    spec = ActivationSpec(**DURABLE, subscription_name="jmsjca://?distribution=1&subscribername=s")
    assert spec.source() == Subscription(Topic("news"), "s", "CLIENTID-s")
    assert spec.distributed == DistributedSubscription("s")


def test_name_of_a_queues_subscription_means_nothing():
    spec = ActivationSpec(destination="q", subscription_name="jmsjca://?distribution=1")
    assert (spec.source(), spec.distributed) == (Queue("q"), None)


@pytest.mark.parametrize("mode", ["serial", "Serial", "SERIAL", "cc", "CC", "sync", "Sync"])
def test_mode_is_read_in_any_case(mode):
    assert ActivationSpec(destination="q", concurrency_mode=mode).concurrency_mode == mode.lower()


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_modes_with_batches_and_held_acknowledgement(mode):
    spec = ActivationSpec(destination="q", concurrency_mode=mode, batch_size=5, hold_until_ack=True)
    assert (spec.batch_size, spec.hold_until_ack) == (5, True)


@pytest.mark.parametrize("fields", [{"batch_size": 0}, {"batch_size": 1}, {"hold_until_ack": False}])
def test_serial_takes_what_asks_for_nothing(fields):
    assert ActivationSpec(destination="q", **fields).concurrency_mode == "serial"


@pytest.mark.parametrize(
    "fields",
    [
        {"options": "JMSJCA.concurrencymode=Sync"},
        {"connection_url": "p://h?jmsjca.CONCURRENCYMODE=cc"},
        {"connection_url": "p://h?JMSJCA.concurrencymode=cc", "options": "JMSJCA.concurrencymode=serial"},
    ],
)
def test_mode_of_options_has_batches(fields):
    assert ActivationSpec(destination="q", batch_size=2, **fields).batch_size == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"options": "JMSJCA.concurrencymode=SERIAL"},
        {"options": "JMSJCA.concurrencymode=cc", "connection_url": "p://h?JMSJCA.concurrencymode=serial"},
    ],
)
def test_mode_of_options_has_no_batches(fields):
    assert "mode 'serial'" in explanation(destination="q", concurrency_mode="cc", batch_size=2, **fields)


@pytest.mark.parametrize(
    ("value", "on"),
    [("1", True), ("true", True), ("TRUE", True), (True, True), ("0", False), ("", False), (None, False)],
)
def test_hold_until_ack(value, on):
    assert ActivationSpec(destination="q", concurrency_mode="cc", hold_until_ack=value).hold_until_ack is on


def test_anything_else_is_off_with_a_warning(caplog):
    assert ActivationSpec(destination="q", hold_until_ack="yes").hold_until_ack is False
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "hold_until_ack is 'yes'" in caplog.text
    ActivationSpec(destination="q", split_failed_batches="on")
    assert "split_failed_batches is 'on'" in caplog.text


def test_outstanding_follows_the_pool_unless_it_is_given():
    assert ActivationSpec(destination="q", endpoint_pool_max_size=3).max_outstanding == 30
    assert ActivationSpec(destination="q", endpoint_pool_max_size=3, max_outstanding=5).max_outstanding == 5


@pytest.mark.parametrize("mode", [AcknowledgeMode.DUPS_OK, "dups_ok"])
def test_acknowledge_mode(mode):
    assert ActivationSpec(destination="q", acknowledge_mode=mode).acknowledge_mode is AcknowledgeMode.DUPS_OK


@pytest.mark.parametrize("transaction", ["local", "required", "bean", "none"])
def test_transaction(transaction):
    assert ActivationSpec(destination="q", transaction=transaction).transaction == transaction


def test_redelivery_policy_knows_the_destination():
    spec = ActivationSpec(destination=Topic("news"), redelivery_handling="2:move(same:dlq.$)")
    assert spec.redelivery_policy.action(2) == Move("topic", "dlq.news")
    assert ActivationSpec(destination="q", redelivery_handling="").redelivery_policy.action(99) == Deliver()


def test_options_from_text_or_mapping():
    expected = {"JMSJCA.selector": "a = 1", "other": "x"}
    text = "JMSJCA.sep=,jmsjca.selector=a \\= 1,other=x"
    assert ActivationSpec(destination="q", options=text).options == expected
    assert ActivationSpec(destination="q", options=expected).options == expected


def test_equal_specs_are_one_key():
    specs = {ActivationSpec(destination="q", options={"a": "b"}), ActivationSpec(destination="q", options="a=b")}
    assert len(specs) == 1
    assert len(specs | {ActivationSpec(destination="q")}) == 2


def test_spec_survives_pickling():
    spec = ActivationSpec(**HELD, options={"a": "b"}, password=HIDDEN)
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301  # our own


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
        ({"destination": "q", "concurency_mode": "cc"}, "(did you mean concurrency_mode?)"),
        ({"destination": "q", "batchSize": 9}, "(did you mean batch_size?)"),
        ({"destination": "q", "selector_variables": {"a": object()}}, "selector_variables"),
        ({"destination": "q", "selector_variables": {"a": float("nan")}}, "there is no JMS literal for it"),
        ({"destination": "q", "selector_variables": {"subscribername": "x"}}, "has a value already"),
        ({"destination": "q", "selector_variables": {"a}": "x"}}, "cannot be the name of a variable"),
        ({"destination": "q", "concurrency_mode": "multi-receiver"}, "concurrency_mode: 'multi-receiver'"),
        ({"destination": "q", "connection_url": "no url"}, "connection_url: 'no url'"),
        ({"destination": "q", "connection_url": "p://h?JMSJCA.colour=red"}, "connection_url: There is no option"),
        ({"destination": "q", "options": "JMSJCA.concurencymode=cc"}, "(did you mean JMSJCA.concurrencymode?)"),
        ({"destination": "q", "options": {"a": 5}}, "options"),
        ({"destination": "q", "endpoint_pool_max_size": 0}, "endpoint_pool_max_size"),
        ({"destination": "q", "endpoint_pool_max_size": 2**31}, "endpoint_pool_max_size"),
        ({"destination": "q", "batch_size": -1}, "batch_size"),
        ({"destination": "q", "concurrency_mode": "cc", "batch_size": 2**31}, "batch_size: Input should be less"),
        ({"destination": "q", "max_outstanding": 2**31}, "max_outstanding"),
        ({"destination": "q", "batch_size": 2}, "batch_size: mode 'serial' has neither"),
        ({"destination": "q", "hold_until_ack": True}, "hold_until_ack: mode 'serial' has neither"),
        ({"destination": "q", "hold_until_ack": 5}, "hold_until_ack"),
        ({"destination": "q", "acknowledgement_timeout": 1}, "set hold_until_ack as well"),
        ({**HELD, "acknowledgement_timeout": 0}, "acknowledgement_timeout"),
        ({**HELD, "acknowledgement_timeout": float("inf")}, "acknowledgement_timeout"),
        ({**HELD, "acknowledgement_timeout": True}, "acknowledgement_timeout: it must be a number, not True"),
        ({**HELD, "batch_size": True}, "batch_size: it must be a number, not True"),
        ({"destination": "q", "endpoint_pool_max_size": True}, "endpoint_pool_max_size: it must be a number"),
        ({"destination": "q", "max_outstanding": True}, "max_outstanding: it must be a number"),
        ({"destination": "q", "max_outstanding": 0}, "max_outstanding"),
        ({"destination": "q", "redelivery_handling": "3:forget"}, "redelivery_handling: The redelivery handling"),
        ({"destination": "q", "redelivery_handling": None}, "redelivery_handling"),
        ({"destination": "q", "acknowledge_mode": "client"}, "hold_until_ack=True lets the handler acknowledge"),
        ({"destination": "q", "acknowledge_mode": AcknowledgeMode.INDIVIDUAL}, "acknowledge_mode"),
        ({**DURABLE, "subscription_name": "jmsjca://?distribution=1"}, "subscription_name: A distributed"),
        (
            {"destination": Topic("t"), "subscription_name": "jmsjca://?distribution=1&subscribername=s"},
            "a distributed subscription must be durable",
        ),
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
        endpoint_pool_max_size=0,
        redelivery_handling="x",
        wrong="x",
    )
    assert "max_outstanding: " not in text  # it follows from the size of the pool
    for name in (
        "destination",
        "destination_type",
        "concurrency_mode",
        "transaction",
        "client_id",
        "endpoint_pool_max_size",
        "redelivery_handling",
        "wrong",
    ):
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
        {"destination": "q", "connection_url": f"amqp:ann:{HIDDEN}@host"},
        {"destination": "q", "options": {"password": [HIDDEN]}},
        {"destination": "q", "options": f"JMSJCA.colour={HIDDEN}"},
        {"destination": "q", "options": f"password={HIDDEN}\na=\\u12"},
    ],
)
def test_no_error_shows_a_password(fields):
    assert HIDDEN not in explanation(**fields)


def test_text_form_shows_no_password():
    spec = ActivationSpec(destination="q", user_name="ann", password=HIDDEN, connection_url=f"amqp://ann:{HIDDEN}@host")
    spec = spec.model_copy(update={"options": {"token": HIDDEN}})
    assert HIDDEN not in f"{spec} {spec!r} {spec.dump()}"
    assert spec.password is not None
    assert spec.password.get_secret_value() == HIDDEN


def test_url_as_user_name_is_refused_without_being_shown():
    with pytest.raises(
        InvalidActivationSpecError, match="user_name: it is a URL: name the broker in connection_url"
    ) as told:
        ActivationSpec(destination="q", user_name="amqp://host?username=u&password=geheim")
    assert "geheim" not in str(told.value)


def test_policy_in_place_of_its_text_is_refused_with_the_remedy():
    with pytest.raises(InvalidActivationSpecError, match=r"redelivery_handling: it must be the text.*str\(policy\)"):
        ActivationSpec(destination="q", redelivery_handling=RedeliveryPolicy.parse("3:25"))


@pytest.mark.parametrize(
    ("fields", "mode", "size"),
    [
        ({"concurrency": 8}, "cc", 8),
        ({"concurrency": 1}, "serial", 1),
        ({"concurrency": 1, "batch_size": 5}, "cc", 1),
        ({"concurrency": 1, "hold_until_ack": True}, "cc", 1),
        ({"concurrency": 3, "concurrency_mode": "sync"}, "sync", 3),
        ({"concurrency": 8, "endpoint_pool_max_size": 8}, "cc", 8),
    ],
)
def test_concurrency_chooses_the_mode_and_the_pool(fields, mode, size):
    spec = ActivationSpec(destination="q", **fields)
    assert (spec.concurrency_mode, spec.endpoint_pool_max_size, spec.max_outstanding) == (mode, size, 10 * size)
    effective = resolve_spec(spec)
    assert (effective.concurrency_mode, effective.endpoint_pool_max_size) == (mode, size)


def test_option_overrides_the_mode_that_concurrency_chooses():
    spec = resolve_spec(ActivationSpec(destination="q", concurrency=8, options={"JMSJCA.concurrencymode": "sync"}))
    assert (spec.concurrency_mode, spec.endpoint_pool_max_size) == ("sync", 8)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"concurrency": 0}, "concurrency: "),
        ({"concurrency": True}, "concurrency: it must be a number"),
        ({"concurrency": 8, "concurrency_mode": "serial"}, "concurrency_mode: 'serial' has one handler"),
        ({"concurrency": 8, "endpoint_pool_max_size": 7}, "endpoint_pool_max_size: concurrency has another number"),
        ({"subscription_shared": True}, "subscription_shared: all consumers of a queue"),
        ({"destination": Topic("t"), "subscription_shared": True}, "subscription_name: it is missing"),
        ({"rate_limit": 0}, "rate_limit: "),
        (
            {**DURABLE, "subscription_durable": False, "subscription_name": "s"},
            "subscription_durable: it contradicts",
        ),
    ],
)
def test_fields_of_a_newcomer_that_contradict_others(fields, text):
    with pytest.raises(InvalidActivationSpecError, match=text):
        ActivationSpec(**{"destination": "q"} | fields)


def test_shared_and_durable_subscription():
    shared = {"destination": Topic("news"), "subscription_name": "s", "subscription_shared": True}
    assert ActivationSpec(**shared).source() == Subscription(Topic("news"), "s", shared=True, volatile=True)
    durable = ActivationSpec(**shared, subscription_durable=True)
    assert durable.durable
    assert durable.source() == Subscription(Topic("news"), "s", shared=True)
    assert resolve_spec(durable).source() == durable.source()
    alone = ActivationSpec(destination="topic:news", subscription_name="s", subscription_durable=True)
    assert alone.source() == Subscription(Topic("news"), "s", "CLIENTID-s")
