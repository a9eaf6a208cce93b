"""Held acknowledgement: requested timeouts, batches, and the registry of held messages."""

import queue
from types import SimpleNamespace

import pytest

from jmsjca import Limits, Outcome, Queue, TextMessage
from jmsjca.errors import IllegalStateError
from jmsjca.inbound.endpoint import AcknowledgementRegistry
from jmsjca.inbound.hold_until_ack import HeldDeliveryContext, requested_timeout
from jmsjca.messages import Double, Long
from jmsjca.redelivery.encounter import UnsettledMessages
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms
from tests.unit.inbound.listeners import PATIENCE

A_DAY = 86_400.0
UNIT = SimpleNamespace(endpoint=endpoint_of(lambda _: None, terms("sync")))


def asking(value):
    return TextMessage("a", properties={} if value is None else {"JBXAcknowledgmentTimeout": value})


def put_with_timeout(link, *values):
    unit = link.unit()
    for place, value in enumerate(values):
        message = asking(value)
        message.message_id = f"ID:{place}"
        unit.send(message, Queue("q"))
    unit.commit()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (30, 30.0),
        (Double(0.5), 0.5),
        ("30", 30.0),  # as it comes over STOMP from whoever sent a number
        ("0.5", 0.5),
        (Long(2**62), A_DAY),
        ("inf", A_DAY),
        (Double(float("inf")), A_DAY),
    ],
)
def test_so_many_seconds_but_a_day_at_most(connected, asked, seconds):
    link = connected()
    put_with_timeout(link, asked)
    [delivery] = link.consumer(Queue("q")).receive(1, PATIENCE)
    assert requested_timeout(delivery.message, A_DAY) == seconds


@pytest.mark.parametrize("asked", [None, 0, -1, True, "", "soon", "nan", "-1", Double(float("nan"))])
def test_anything_else_asks_for_nothing(connected, asked):
    link = connected()
    put_with_timeout(link, asked)
    [delivery] = link.consumer(Queue("q")).receive(1, PATIENCE)
    assert requested_timeout(delivery.message, A_DAY) is None


@pytest.mark.parametrize("asked", [(0.05, 500.0), (500.0, 0.05), (500.0, None)])
def test_the_shortest_time_counts_for_a_batch(connected, recorder, asked):
    link = connected()
    put_with_timeout(link, *asked)
    limit = 0.05 if None in asked else 500.0
    held = terms("sync", hold_until_ack=True, batch_size=2, pool_size=1, acknowledgement_timeout=limit)
    performance = Performance(endpoint_of(lambda message: None, held, recorder), link)
    assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.ROLLED_BACK, 2)
    performance.stop()


BATCH_PATIENCE = 30


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_handler_that_fails_at_the_end_of_a_batch_rolls_it_back(connected, recorder, mode):
    """Nobody can acknowledge the end of that batch any more; it must not wait for that."""
    link = connected()
    failures = [ValueError("at the end")]

    def handler(message):
        if message.end_of_batch and failures:
            raise failures.pop()
        message.acknowledge()

    performance = Performance(
        endpoint_of(handler, terms(mode, hold_until_ack=True, batch_size=2, pool_size=1), recorder), link
    )
    put(link, "a")
    recorder.await_outcome(Outcome.ROLLED_BACK)
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert depth(link).total == 0


REMEMBERED = 1000


def test_a_timeout_that_no_thread_can_wait_for_is_one(connected, recorder):
    """The thread that waits for it goes on to settle other units."""
    link, messages = connected(), queue.Queue()
    endpoint = endpoint_of(messages.put, terms(hold_until_ack=True), recorder)
    endpoint.limits = Limits(acknowledgement_timeout=float("inf"))
    put_with_timeout(link, "1e30")
    performance = Performance(endpoint, link)
    first = messages.get(timeout=PATIENCE)
    put_with_timeout(link, 1)
    messages.get(timeout=PATIENCE)
    recorder.await_outcome(Outcome.ROLLED_BACK)  # after a second, by the same thread
    messages.get(timeout=PATIENCE).acknowledge()
    recorder.await_outcome(Outcome.COMMITTED)
    first.acknowledge()
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()


def note(registry, message_id):
    message = TextMessage("a")
    message.message_id = message_id
    context = HeldDeliveryContext(message, UNIT, None)
    registry.register(context)
    return context


def refusal(registry, message_id):
    with pytest.raises(IllegalStateError) as refused:
        registry.settle(message_id, "JBXCommit")
    return str(refused.value)


@pytest.mark.parametrize("unit", [1, 7, 100, 3000])
def test_the_last_thousand_are_known_and_the_first_are_not(unit):
    registry = AcknowledgementRegistry()
    ids = [f"ID:{number}" for number in range(6000)]
    for begin in range(0, len(ids), unit):
        registry.unregister([note(registry, message_id) for message_id in ids[begin : begin + unit]], Outcome.COMMITTED)
    assert all("already: committed" in refusal(registry, message_id) for message_id in ids[-REMEMBERED:])
    assert "No message" in refusal(registry, ids[0]) or unit > REMEMBERED


def test_what_counts_is_how_it_ended_last():
    registry = AcknowledgementRegistry()
    registry.unregister([note(registry, "ID:1")], Outcome.ROLLED_BACK)
    registry.unregister([note(registry, f"ID:a{number}") for number in range(REMEMBERED)], Outcome.COMMITTED)
    assert "already: rolled back" in refusal(registry, "ID:1")
    registry.unregister([note(registry, "ID:1")], Outcome.COMMITTED)
    assert "already: committed" in refusal(registry, "ID:1")


def test_a_later_delivery_stays_known_when_the_earlier_one_ends():
    registry = AcknowledgementRegistry()
    earlier, later = note(registry, "ID:1"), note(registry, "ID:1")
    registry.unregister([earlier], Outcome.ROLLED_BACK)
    later.acknowledged = True
    assert "acknowledged already" in refusal(registry, later.delivery_id)
    assert "already: rolled back" in refusal(registry, earlier.delivery_id)
    assert "delivery_id" in refusal(registry, "ID:1")


def test_a_message_without_an_id_has_one_for_each_delivery():
    registry = AcknowledgementRegistry()
    earlier, later = note(registry, None), note(registry, None)
    registry.unregister([earlier], Outcome.ROLLED_BACK)
    assert (registry.is_held(earlier.delivery_id), registry.is_held(later.delivery_id)) == (False, True)


def test_a_delivery_that_was_not_committed_is_known_longer_than_others():
    unsettled = UnsettledMessages()
    registry = AcknowledgementRegistry(unsettled)
    unsettled.add(["ID:1"])
    registry.unregister([note(registry, "ID:1")], Outcome.ROLLED_BACK)
    registry.unregister([note(registry, f"ID:a{number}") for number in range(5 * REMEMBERED)], Outcome.COMMITTED)
    note(registry, "ID:1")
    assert "delivery_id" in refusal(registry, "ID:1")
