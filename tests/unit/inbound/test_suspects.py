"""Messages that the broker says were delivered, and that no handler of this process had."""

from dataclasses import replace
from queue import SimpleQueue
from threading import Event

import pytest

from jmsjca import Message, Queue, spi
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound.listeners import PATIENCE

NAMES = "abcde"


@pytest.fixture
def link(connected):
    """A connection to a broker whose counts include prefetched messages."""
    link = connected()
    link.capabilities = replace(link.capabilities, counts_handovers=False, redelivery_delay=False)
    return link


def fail_elsewhere(link, skip=0):
    """Let another process take all messages and fail on them, except the first ones."""
    consumer, unit = link.consumer(Queue("q"), order=spi.Order.ANY), link.unit()
    deliveries = consumer.receive(len(NAMES), PATIENCE)
    unit.take(deliveries[skip:])
    unit.rollback()
    consumer.close()


def settings(mode, text, **changes):
    return terms(mode, redelivery=RedeliveryPolicy.parse(text), **changes)


@pytest.mark.parametrize(
    ("text", "failures"),
    [("1:delete", 1), ("1:60000; 2:delete", 1), pytest.param("1:move(queue:dlq)", 3, id="unmovable")],
)
@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_suspects_are_delivered_alone_and_at_once(link, mode, text, failures):
    put(link, *NAMES)
    link._context.message_bytes = 0  # no copy can be sent
    for _ in range(failures):
        fail_elsewhere(link)
    seen, held, go = SimpleQueue(), [], Event()

    def handle(message):
        seen.put(message.body)
        go.wait(PATIENCE)

    performance = Performance(endpoint_of(handle, settings(mode, text)), link)
    names = [seen.get(timeout=PATIENCE)]
    until(lambda: depth(link).ready == len(NAMES) - 1)
    held.append(depth(link).held)
    go.set()
    names += [seen.get(timeout=PATIENCE) for _ in NAMES[1:]]
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert (sorted(names), held) == (list(NAMES), [1])


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_suspect_ends_a_batch_of_others(link, mode):
    put(link, *NAMES)
    fail_elsewhere(link, skip=2)
    batches = SimpleQueue()

    def handle(messages: list[Message]):
        until(lambda: depth(link).held <= len("ab"))  # what was received with these is released
        batches.put(([message.body for message in messages], depth(link).held))

    performance = Performance(endpoint_of(handle, settings(mode, "1:delete", batch_size=5, pool_size=1)), link)
    until(lambda: depth(link).total == 0)
    performance.stop()
    found = [batches.get_nowait() for _ in range(batches.qsize())]
    suspects = [(names, held) for names, held in found if names[0] > "b"]
    assert sorted(name for names, _ in found for name in names) == list(NAMES)
    assert suspects == [(["c"], 1), (["d"], 1), (["e"], 1)]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize(("counted", "failures", "calls"), [(True, 2, 1), (True, 3, 0), (False, 5, 1)])
def test_one_redelivery_of_a_count_proves_nothing_and_a_flag_never_does(link, mode, counted, failures, calls):
    link.capabilities = replace(link.capabilities, delivery_count=counted)
    put(link, "a")
    for _ in range(failures):
        fail_elsewhere(link)
    seen = []
    performance = Performance(endpoint_of(seen.append, settings(mode, "2:delete")), link)
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert len(seen) == calls


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_the_calls_of_this_process_are_counted_exactly(link, mode, counted):
    link.capabilities = replace(link.capabilities, delivery_count=counted)
    put(link, *NAMES)
    seen = []

    def fail(message):
        seen.append(message.body)
        raise ValueError

    performance = Performance(endpoint_of(fail, settings(mode, "3:delete")), link)
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert sorted(seen) == sorted(NAMES * 3)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_messages_without_suspicion_are_prefetched_after_suspects(link, mode):
    put(link, "a")
    fail_elsewhere(link)
    put(link, *"bcde")
    seen = []
    performance = Performance(endpoint_of(lambda message: seen.append(message.body), settings(mode, "1:delete")), link)
    until(lambda: depth(link).total == 0)
    performance.stop()
    assert sorted(seen) == list(NAMES)
