"""Delayed redelivery in the client, also for delays of more than five seconds."""

import queue
import threading
import time
from dataclasses import replace

import pytest

from jmsjca import Message, Topic
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.redelivery import Delay, RedeliveryPolicy
from jmsjca.spi import Order
from tests.unit.clocks import HandClock
from tests.unit.inbound.deliveries import Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound.listeners import PATIENCE

AN_HOUR = RedeliveryPolicy.parse("1:3600000")
MODES = ["sync", "cc"]


@pytest.fixture
def link(connected):
    """A connection whose broker holds no message back, and a queue of messages that were delivered before."""
    link = connected()
    link.capabilities = replace(link.capabilities, redelivery_delay=False)
    put(link, *map(str, range(200)))
    consumer, unit = link.consumer(terms().source, order=Order.ANY), link.unit()
    unit.take(consumer.receive(200, 0))
    unit.rollback()
    consumer.close()
    return link


@pytest.mark.parametrize("mode", MODES)
def test_no_more_wait_here_than_may_be_outstanding(link, mode):
    endpoint = endpoint_of(lambda message: None, terms(mode, redelivery=AN_HOUR, max_outstanding=10))
    performance = Performance(endpoint, link)
    until(lambda: depth(link).held >= 10)
    for _ in range(20):
        assert depth(link).held <= 10 + 3 * endpoint.limits.prefetch_messages
        time.sleep(0.002)
    performance.stop()
    assert (depth(link).ready, depth(link).held) == (200, 0)


@pytest.mark.parametrize("mode", MODES)
def test_what_waits_when_it_is_stopped_goes_back_uncounted(link, connected, mode):
    endpoint = endpoint_of(lambda message: None, terms(mode, redelivery=AN_HOUR, max_outstanding=10))
    performance = Performance(endpoint, link)
    until(lambda: depth(link).held >= 10)
    performance.stop()
    [first, *_] = next(iter(link.browse(terms().source)))
    assert first.count == 2
    before = endpoint.redelivery.find_encounter(first.message.message_id)
    assert before is None or before.count == 1


@pytest.mark.parametrize("mode", MODES)
def test_those_that_are_not_delayed_go_on(link, mode):
    """As long as there is room for them."""
    got = []

    def handler(message):
        got.append(message.body)

    endpoint = endpoint_of(handler, terms(mode, redelivery=AN_HOUR, max_outstanding=300))
    performance = Performance(endpoint, link)
    until(lambda: depth(link).held == 200)
    put(link, "new")
    until(lambda: got == ["new"])
    performance.stop()


def test_what_goes_to_another_receiver_does_not_wait_again(link):
    """Receivers share what is here when handlers are slow, also what has waited already."""
    slow, seen, delays = threading.Event(), queue.Queue(), []

    def handle(message):
        slow.wait(0.005)
        seen.put(message.body)

    policy = RedeliveryPolicy.parse("1:200")
    endpoint = endpoint_of(handle, terms("sync", redelivery=policy, pool_size=2, max_outstanding=1000))
    decide = endpoint.redelivery.decide

    def noticing(*args, **kwargs):
        decision = decide(*args, **kwargs)
        delays.append(isinstance(decision.action, Delay))
        return decision

    endpoint.redelivery.decide = noticing
    performance = Performance(endpoint, link)
    assert {seen.get(timeout=PATIENCE) for _ in range(200)} == {str(number) for number in range(200)}
    performance.stop()
    assert sum(delays) == 200


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("batch_size", [0, 5])
def test_a_receiver_that_waits_for_messages_reckons_with_its_delays(link, batch_size, exact):
    """Also where none is taken ahead of its use: for batches, and where others cannot have what is sent ahead."""
    link.capabilities = replace(link.capabilities, exact_credit=exact)
    seen, policy = queue.Queue(), RedeliveryPolicy.parse("1:100")
    sync = terms("sync", redelivery=policy, batch_size=batch_size, receive_timeout=3600, max_outstanding=1000)
    performance = Performance(endpoint_of(lambda m: m.end_of_batch or seen.put(m.body), sync), link)
    assert {seen.get(timeout=PATIENCE) for _ in range(200)} == {str(number) for number in range(200)}
    performance.stop()


def test_what_waits_for_a_blocked_handler_goes_to_another_one(link):
    """The receiver that holds the delayed ones may be at work when their time comes."""
    blocked, seen, go_on = queue.Queue(), queue.Queue(), threading.Event()

    def handle(message):
        if message.body.startswith("block"):
            blocked.put(message.body)
            go_on.wait(PATIENCE)
        seen.put(message.body)

    policy = RedeliveryPolicy.parse("1:300")
    terms_of = terms("sync", redelivery=policy, pool_size=3, max_outstanding=1000, receive_timeout=PATIENCE)
    clock = HandClock()
    performance = Performance(endpoint_of(handle, terms_of, clock=clock), link)
    until(lambda: depth(link).held == 200)
    put(link, "block 1", "block 2")
    assert {blocked.get(timeout=PATIENCE), blocked.get(timeout=PATIENCE)} == {"block 1", "block 2"}
    clock.time += 1
    assert {seen.get(timeout=PATIENCE) for _ in range(200)} == {str(number) for number in range(200)}
    go_on.set()
    performance.stop()


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_message_waits_as_long_and_then_is_moved(jms_broker_url, mode):
    """JMSJCA: testDlqMoveCCXALong."""
    clock = HandClock()
    link = connect(ConnectionSettings(jms_broker_url, clock=clock))
    moved = link.consumer(Topic("Topic2"))
    counts: queue.Queue[int | str] = queue.Queue()

    def handler(message: Message) -> None:
        counts.put("poke" if message.body == "poke" else message.redelivery_count)
        if message.body != "poke":
            message.set_rollback_only()

    policy = RedeliveryPolicy.parse("4:6000;5:move(topic:Topic2)")
    performance = Performance(endpoint_of(handler, terms(mode, redelivery=policy, pool_size=1), clock=clock), link)
    put(link, "a")
    assert [counts.get(timeout=PATIENCE) for _ in range(4)] == [0, 1, 2, 3]
    until(lambda: depth(link).scheduled == 1)
    clock.time += 5.9
    put(link, "poke")  # so that the broker looks at its clock
    assert counts.get(timeout=PATIENCE) == "poke"
    clock.time += 0.2
    put(link, "poke")
    assert {counts.get(timeout=PATIENCE) for _ in range(2)} == {"poke", 4}
    [copy] = moved.receive(1, None)
    performance.stop()
    assert copy.message.properties["JMS_Sun_JMSJCA_RedeliveryCount"] == 5
    assert depth(link).total == 0
    link.close()
