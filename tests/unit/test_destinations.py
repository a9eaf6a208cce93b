"""Names of destinations, subscriptions and connections: blank ones, and members of an ``Enum`` of texts."""

import copy
from enum import Enum

import pytest

from jmsjca import ActivationSpec, ConnectionFactory, Queue, ResourceAdapter, Topic
from jmsjca.connector.queue_uris import destination_of
from jmsjca.destinations import Subscription, TemporaryQueue, destination
from jmsjca.errors import InvalidActivationSpecError
from jmsjca.management.presentation import parse_destination
from jmsjca.providers.amqp.codec.addresses import ReceiveContext, received_destination
from jmsjca.providers.common.codec import destination_from_json, destination_to_json


class Name(str, Enum):  # noqa: UP042  # StrEnum has the text as its format
    """Names whose format is ``Name.ORDERS``, and whose hash is not the hash of their texts."""

    ORDERS = "orders"
    CLIENT = "client-1"


def test_a_destination_has_the_value_as_its_name():
    for kind in (Queue, Topic, TemporaryQueue):
        named = kind(Name.ORDERS)
        assert (type(named.name), f"{named.name}", f"{named}") == (str, "orders", f"{named.kind}:orders")
        assert len({named, kind("orders")}) == 1


def test_a_subscription_has_the_values_as_its_names():
    named = Subscription(Topic("t"), Name.ORDERS, Name.CLIENT)
    assert (f"{named.name}", f"{named.client_id}") == ("orders", "client-1")
    assert {named} == {Subscription(Topic("t"), "orders", "client-1")}
    assert Subscription(Topic("t")).name is None


def test_a_factory_has_the_value_as_its_client_id():
    factory = ConnectionFactory("embedded:///:memory:", client_id=Name.CLIENT)
    assert f"{factory.client_id}" == "client-1"


def test_a_listener_has_the_values_as_its_names():
    names = {"client_id": Name.CLIENT, "subscription_name": Name.ORDERS, "subscription_durability": "Durable"}
    spec = ActivationSpec(destination=Name.ORDERS, destination_type="topic", **names)
    shown = spec.destination, spec.client_id, spec.subscription_name
    assert tuple(f"{each}" for each in shown) == ("orders", "client-1", "orders")


def test_a_peer_may_name_a_destination_that_is_blank():
    """What another client has sent can be read, although `Queue` refuses the name."""
    for kind in ("queue", "topic"):
        for temporary in (False, True):
            named = destination(" ", kind, temporary=temporary)
            assert (named.name, named.kind, named.temporary) == (" ", kind, temporary)
            assert destination_from_json(destination_to_json(named)) == named
            assert copy.deepcopy(named) == named
    assert received_destination(" ", {}, "x-opt-jms-reply-to", ReceiveContext(Queue("q"))) == destination(" ", "queue")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("news", Queue("news")),
        ("topic:news", Topic("news")),
        ("queue:news", Queue("news")),
        ("queue:topic:news", Queue("topic:news")),
        ("topic:queue:news", Topic("queue:news")),
        ("other:news", Queue("other:news")),
    ],
)
def test_one_rule_for_prefixes_of_names(text, wanted):
    adapter = ResourceAdapter("embedded://prefixes")
    spec = ActivationSpec(destination=text)
    assert (spec.destination, spec.destination_type) == (wanted.name, wanted.kind)
    assert adapter.send(text, "x").destination == wanted
    assert adapter.publisher(text, str).destination == wanted
    assert parse_destination(text) == destination_of(text) == wanted
    adapter.stop()


def test_prefix_is_literal_in_an_object_and_beside_a_type():
    spec = ActivationSpec(destination="topic:news", destination_type="queue")
    assert spec.destination == ActivationSpec(destination=Queue("topic:news")).destination == "topic:news"


def test_prefix_without_a_name_is_refused():
    with pytest.raises(InvalidActivationSpecError, match="A Topic needs a name"):
        ActivationSpec(destination="topic:")
