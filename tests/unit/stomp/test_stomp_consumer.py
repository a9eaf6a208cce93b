"""What a consumer takes ahead, and what it does when the broker sends no more."""

from dataclasses import fields

from jmsjca.destinations import Queue, Topic
from jmsjca.providers.stomp.brokers.registry import BROKERS
from jmsjca.spi import Order
from tests.unit.stomp.letters import read

QUEUE = Queue("q")
LARGE = b"large" * 100


def _subscriptions(line):
    return [dict(h) for command, h, _ in read(bytes(line.channel.written)) if command == "SUBSCRIBE"]


def _gather(consumer, count):
    chunk = []
    while len(chunk) < count:
        chunk.extend(consumer.receive(count - len(chunk), None))
    return chunk


def test_window_is_what_was_asked_for(line):
    line = line()
    line.connection.consumer(QUEUE, window=7)
    line.connection.consumer(QUEUE, window=0)
    line.connection.consumer(QUEUE, order=Order.ANY)
    line.connection.consumer(QUEUE)
    assert [s["activemq.prefetchSize"] for s in _subscriptions(line)] == ["7", "1", "10", "1000"]


def test_second_subscription_when_all_is_held_and_more_is_wanted(line):
    line = line()
    line.channel.reactions["SUBSCRIBE"] = lambda headers: line.message(headers["id"], 1)
    consumer = line.connection.consumer(QUEUE, window=1)
    first = _gather(consumer, 1)
    assert list(consumer.receive(5, 0)) == []
    assert len(_subscriptions(line)) == 1  # who does not wait does not want more
    second = _gather(consumer, 1)
    assert [d.sequence for d in (*first, *second)] == [0, 1]
    assert [s["activemq.prefetchSize"] for s in _subscriptions(line)] == ["1", "1"]


def test_topic_has_one_wide_subscription(line):
    line = line()
    line.connection.consumer(Topic("t"), window=1)
    assert [s["activemq.prefetchSize"] for s in _subscriptions(line)] == ["1000"]


def test_chunk_is_bounded_in_bytes(line):
    line = line()
    consumer = line.connection.consumer(QUEUE)
    consumer._max_bytes = 500
    subscription = _subscriptions(line)[0]["id"]
    line.channel.say("MESSAGE", LARGE, destination="/queue/q", message_id="1", subscription=subscription, ack="1")
    for number in range(9):
        line.message(subscription, number)
    line.channel.say("MESSAGE", LARGE, destination="/queue/q", message_id="2", subscription=subscription, ack="2")
    line.connection.consumer(Topic("t"))  # whose receipt is behind all of them
    got = []
    while sum(got) < 11:
        got.append(len(consumer.receive(11, 0)))
    assert got[0] == 1  # one is never too large
    assert got[-1] == 1
    assert 1 < max(got) < 9


def test_redelivered_header_is_a_lower_bound(line):
    line = line()
    consumer = line.connection.consumer(QUEUE)
    line.message(_subscriptions(line)[0]["id"], 1, redelivered="true")
    [delivery] = _gather(consumer, 1)
    assert (delivery.count, delivery.redelivered, delivery.message.redelivered) == (2, True, True)


def test_every_gap_names_what_is_lacking():
    for broker in BROKERS:
        values = {f.name: getattr(broker.capabilities, f.name) for f in fields(broker.capabilities)}
        assert {gap.capability for gap in broker.gaps} == {n for n, v in values.items() if v in {False, "local"}}
        assert all(gap.observed and gap.reference for gap in broker.gaps)
