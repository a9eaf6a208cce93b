"""Redelivery counts where several processes consume a queue, each with its own cache."""

import queue
import threading
import uuid
from dataclasses import replace

import pytest

from jmsjca import Queue, ResourceAdapter
from jmsjca.inbound.message_mover import MessageMover
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound.listeners import PATIENCE, send, waiting

AN_HOUR = RedeliveryPolicy.parse("1:3600000")
FAILURES = 20


def fail_elsewhere(link):
    """Let another process take the message, and fail."""
    consumer, unit = link.consumer(Queue("q")), link.unit()
    unit.take(consumer.receive(1, PATIENCE))
    unit.rollback()
    consumer.close()


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_a_failure_elsewhere_is_counted_after_a_stop_during_a_delay(connected, mode):
    link = connected()
    link.capabilities = replace(link.capabilities, redelivery_delay=False)
    endpoint = endpoint_of(lambda message: None, terms(mode, redelivery=AN_HOUR))
    put(link, "a")
    counts = []
    for _ in range(4):
        fail_elsewhere(link)
        performance = Performance(endpoint, link)
        until(lambda: (known := endpoint.redelivery.find_encounter("ID:a")) and known.count not in counts)
        counts.append(endpoint.redelivery.find_encounter("ID:a").count)
        performance.stop()
        until(lambda: depth(link).ready == 1)
    assert counts == [1, 2, 3, 4]


def test_a_failure_elsewhere_is_counted_after_the_broker_held_the_message(connected):
    link = connected()
    endpoint = endpoint_of(lambda message: None, terms("sync", redelivery=AN_HOUR))
    put(link, "a")
    counts = []
    for _ in range(4):
        fail_elsewhere(link)
        consumer = link.consumer(Queue("q"))
        [delivery] = consumer.receive(1, PATIENCE)
        decision = endpoint.redelivery.decide("ID:a", redelivered=True, delivery_count=delivery.count)
        counts.append(decision.count)
        MessageMover(endpoint, link).delay_at_broker(delivery, 0.001)
        consumer.close()
    assert counts == [1, 2, 3, 4]


def test_a_failure_elsewhere_is_counted_before_the_return_of_the_message_is_confirmed(connected, monkeypatch):
    """Another receiver of this process may take the message before the thread that returned it goes on."""
    link = connected()
    endpoint = endpoint_of(lambda message: None, terms("sync", redelivery=AN_HOUR))
    put(link, "a")
    fail_elsewhere(link)
    consumer = link.consumer(Queue("q"))
    [delivery] = consumer.receive(1, PATIENCE)
    decisions = [endpoint.redelivery.decide("ID:a", redelivered=True, delivery_count=delivery.count)]
    unit = link.unit()
    roll_back = unit.rollback

    def roll_back_and_receive(**arguments):
        roll_back(**arguments)
        fail_elsewhere(link)
        [again] = consumer.receive(1, PATIENCE)
        decisions.append(endpoint.redelivery.decide("ID:a", redelivered=True, delivery_count=again.count))

    monkeypatch.setattr(unit, "rollback", roll_back_and_receive)
    monkeypatch.setattr(link, "unit", iter([unit, link.unit()]).__next__)
    MessageMover(endpoint, link).delay_at_broker(delivery, 0.001)
    consumer.close()
    assert [decision.count for decision in decisions] == [1, 2]


def test_of_two_adapters_on_a_file_both_count_as_the_broker_does(broker_file):
    """Whoever has the message: its count is that of the deliveries, less one."""
    got = queue.Queue()

    def handle(message):
        got.put((message.redelivery_count, message.delivery_count))
        if message.delivery_count <= FAILURES:
            raise ValueError("no")

    adapters = [ResourceAdapter(f"embedded://{broker_file}") for _ in range(2)]
    for adapter in adapters:
        adapter.listener("q", concurrency_mode="sync", redelivery_handling="1:1")(handle)
        adapter.start()
    send(adapters[0], *"abcd")
    counted = [got.get(timeout=PATIENCE) for _ in range(4 * (FAILURES + 1))]
    for adapter in adapters:
        adapter.stop()
    assert [n for n, deliveries in counted if n != deliveries - 1] == []


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize("held", [False, True])
def test_a_settled_message_keeps_its_count_and_failure(jms_adapter, mode, held):
    if held and mode == "serial":
        pytest.skip("Mode serial has no held acknowledgement.")
    got = queue.Queue()

    def handle(message):
        got.put(message)
        if held:
            message.set_rollback_only() if message.redelivery_count < FAILURES else None
            message.acknowledge()
        elif message.redelivery_count < FAILURES:
            raise ValueError(f"failure {message.redelivery_count}")

    jms_adapter.listener("q", concurrency_mode=mode, hold_until_ack=held, redelivery_handling="9:1")(handle)
    with jms_adapter:
        send(jms_adapter, "a")
        messages = [got.get(timeout=PATIENCE) for _ in range(FAILURES + 1)]
    assert [message.redelivery_count for message in messages] == list(range(FAILURES + 1))
    if not held:
        name = "JMS_Sun_JMSJCA_ExceptionMessage"
        failures = [None, *(f"failure {number}" for number in range(FAILURES))]
        assert [message.get_string_property(name) for message in messages] == failures


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency_mode": "serial"},
        {"concurrency_mode": "cc"},
        {"concurrency_mode": "sync"},
        {"concurrency_mode": "cc", "batch_size": 3},
        {"concurrency_mode": "sync", "batch_size": 3},
        {"concurrency_mode": "cc", "hold_until_ack": True, "max_outstanding": 1},
    ],
    ids=str,
)
def test_what_a_handler_got_counts_at_the_end_of_its_connection(options):
    """And what it did not get does not, whether it was prefetched or belongs to the same batch."""
    adapter, got, released = ResourceAdapter(f"embedded://{uuid.uuid4().hex}"), queue.Queue(), threading.Event()

    @adapter.listener("q", endpoint_pool_max_size=1, **options)
    def handle(message):
        got.put(message.body)
        if "hold_until_ack" not in options:
            released.wait(PATIENCE)

    send(adapter, *"abcd")
    adapter.start()
    assert got.get(timeout=PATIENCE) == "a"
    adapter.stop(0)
    assert sorted(waiting(adapter)) == [("a", 1), ("b", 0), ("c", 0), ("d", 0)]
    released.set()
