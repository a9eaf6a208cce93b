"""Percent-encoded addresses, as RabbitMQ 4 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.destinations import Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.amqp.codec.addresses import (
    DESTINATION_TYPE,
    ReceiveContext,
    address_of,
    destination_type_of,
    received_destination,
)

ENCODED = ReceiveContext(None, "encoded")


def received(address, annotations):
    return received_destination(address, annotations, DESTINATION_TYPE, ENCODED)


@pytest.mark.parametrize(
    ("what", "address"),
    [
        (Queue("orders"), "/queues/orders"),
        (Queue("a/b c%ü"), "/queues/a%2Fb%20c%25%C3%BC"),
        (Topic("news.eu"), "/exchanges/amq.topic/news.eu"),
        (TemporaryQueue("q/1"), "/queues/q%2F1"),
        (TemporaryTopic("t"), "/exchanges/t"),
    ],
)
def test_names_are_percent_encoded(what, address):
    assert address_of(what, "encoded").name == address


@given(st.text(min_size=1).filter(str.strip), st.sampled_from([Queue, Topic, TemporaryQueue, TemporaryTopic]))
def test_each_destination_is_read_as_it_was_written(name, kind):
    what = kind(name) if name.isascii() or not any("\ud800" <= c <= "\udfff" for c in name) else kind("x")
    address = address_of(what, "encoded").name
    assert address.isascii()
    assert received(address, {DESTINATION_TYPE: destination_type_of(what)}) == what


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("/queues/a%2Fb", Queue("a/b")),
        ("/exchanges/amq.topic/a", Topic("a")),
        ("/queue/a", Queue("a")),
        ("/topic/a", Topic("a")),
        ("/exchanges/other/a", Queue("/exchanges/other/a")),
    ],
)
def test_addresses_without_annotations_tell_their_kind_also_those_of_older_clients(address, what):
    assert received(address, {}) == what


@pytest.mark.parametrize("what", [Queue("."), Queue(".."), Topic("a.*"), Topic("#"), Queue("a\0"), Queue("\ud800")])
def test_names_are_refused_that_would_be_another(what):
    with pytest.raises(InvalidDestinationError):
        address_of(what, "encoded").check()


@pytest.mark.parametrize("what", [Queue("a.*"), Queue("..."), Topic("a*"), Queue("#")])
def test_names_that_mean_themselves_are_not_refused(what):
    address_of(what, "encoded").check()
