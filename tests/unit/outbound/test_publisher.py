"""Publishers: declared sends of one type of body."""

import asyncio
from dataclasses import dataclass

import pytest

from jmsjca import Queue, ResourceAdapter, Topic
from jmsjca.errors import ArgumentTypeError, IllegalStateError, InvalidDestinationError
from jmsjca.management.asyncapi import document
from jmsjca.testing.idle import wait_until_idle

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


def test_results_of_a_handler_are_published_in_its_unit(jms_adapter, jms_recorder):
    attempts = []

    @jms_adapter.listener("orders", redelivery_handling="5:delete")
    @jms_adapter.publishes("topic:invoices")
    def handle(body: str, delivery_count: int) -> str | None:
        attempts.append(delivery_count)
        return None if body == "nothing" else f"invoice for {body}"

    @jms_adapter.listener("bills")
    @jms_adapter.publishes("invoices")
    async def handle_async(body: str) -> str:
        return f"bill for {body}"

    jms_adapter.listener("topic:invoices")(jms_recorder)
    jms_adapter.listener("invoices")(jms_recorder)
    jms_adapter.start(wait=60)
    jms_adapter.send_many("orders", ["nothing", "a pear"])
    jms_adapter.send("bills", "a fig")
    jms_recorder.assert_received("invoice for a pear", "bill for a fig")
    assert len(attempts) == 2
    assert handle("a plum", 0) == "invoice for a plum"
    assert [str(each.destination) for each in jms_adapter.publishers] == ["topic:invoices", "queue:invoices"]
    assert document(jms_adapter)


def test_publishes_above_the_listener_is_refused(jms_adapter):
    with pytest.raises(IllegalStateError, match=r"handle.* is a listener already.*below @adapter\.listener"):

        @jms_adapter.publishes("invoices")
        @jms_adapter.listener("orders")
        def handle(body: str) -> str:
            return body


def test_published_result_of_a_failed_delivery_is_not_sent(jms_adapter, jms_recorder):
    failures = [KeyError()]

    @jms_adapter.publishes("invoices")
    def price(body: str) -> str:
        return f"invoice for {body}"

    @jms_adapter.listener("orders")
    def handle(body: str) -> None:
        price(body)
        if failures:
            raise failures.pop()

    jms_adapter.listener("invoices")(jms_recorder)
    jms_adapter.start(wait=60)
    jms_adapter.send("orders", "a pear")
    jms_recorder.assert_received("invoice for a pear")
    wait_until_idle(jms_adapter)
    assert jms_recorder.bodies == ["invoice for a pear"]
