"""Publishers: declared sends of one type of body."""

import asyncio
from dataclasses import dataclass

import pytest

from jmsjca import Queue, ResourceAdapter, Topic
from jmsjca.errors import ArgumentTypeError, InvalidDestinationError

PATIENCE = 60


@dataclass
class Order:
    fruit: str
    count: int = 1


def test_it_sends_bodies_with_options(jms_adapter, jms_recorder):
    jms_adapter.listener("orders")(jms_recorder)
    orders = jms_adapter.publisher("orders", Order)
    sent = orders.send(Order("pear"), priority=7)
    orders.send_many([Order("fig", 2), Order("plum")])
    asyncio.run(orders.send_async(Order("lime")))
    fruits = [message.body for message in jms_recorder.wait_for(4)]
    assert sorted(fruits) == sorted(
        [f'{{"fruit":"{name}","count":{count}}}' for name, count in [("pear", 1), ("fig", 2), ("plum", 1), ("lime", 1)]]
    )
    assert (sent.priority, sent.destination) == (7, Queue("orders"))


def test_it_sends_requests(jms_adapter):
    @jms_adapter.listener("quotes")
    def quote(order: Order) -> str:
        return f"{order.fruit} costs 1"

    assert jms_adapter.publisher("quotes", Order).request(Order("pear"), timeout=PATIENCE).body == "pear costs 1"


def test_the_adapter_knows_its_publishers():
    adapter = ResourceAdapter("embedded://x")
    assert adapter.publishers == ()
    publishers = (adapter.publisher("orders", Order, "An order."), adapter.publisher(Topic("news"), str))
    assert adapter.publishers == publishers
    assert [repr(each) for each in publishers] == [
        "<Publisher of Order to queue:orders>",
        "<Publisher of str to topic:news>",
    ]


def test_wrong_arguments_are_refused():
    adapter = ResourceAdapter("embedded://x")
    with pytest.raises(InvalidDestinationError):
        adapter.publisher("", str)
    with pytest.raises(InvalidDestinationError):
        adapter.publisher(3, str)
    with pytest.raises(ArgumentTypeError):
        adapter.publisher("orders", str, 3)
    assert adapter.publishers == ()
