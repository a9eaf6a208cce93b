"""Consumers: prefetch, settlement, and the release of messages."""

import threading
from dataclasses import fields

import pytest

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import ConnectionLostError, IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.provider import BROKERS
from jmsjca.spi import Order
from tests.support.evidence import gaps_of
from tests.unit.providers.stomp.reference_frames import read

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


def test_a_connection_that_is_lost_during_a_drain_has_not_nothing_in_flight(line):
    """Its last word was the receipt that ends the drain."""
    line = line()
    consumer = line.connection.consumer(QUEUE)
    line.message(_subscriptions(line)[0]["id"], 1)

    def lose(headers):
        line.channel.incoming.put(b"")
        line.lost.wait(30)

    line.channel.reactions["ABORT"] = lose
    with pytest.raises(ConnectionLostError):
        consumer.drain()


def test_redelivered_header_is_a_lower_bound(line):
    line = line()
    consumer = line.connection.consumer(QUEUE)
    line.message(_subscriptions(line)[0]["id"], 1, redelivered="true")
    [delivery] = _gather(consumer, 1)
    assert (delivery.count, delivery.redelivered, delivery.message.redelivered) == (2, True, True)


def test_every_gap_names_what_is_lacking():
    for broker in BROKERS:
        values = {f.name: getattr(broker.capabilities, f.name) for f in fields(broker.capabilities)}
        assert {gap.capability for gap in gaps_of(broker)} == {n for n, v in values.items() if v in {False, "local"}}
        assert all(gap.observed and gap.reference for gap in gaps_of(broker))


def _frames(line):
    return [(command, dict(headers)) for command, headers, _ in read(bytes(line.channel.written))]


def _consumer(line, **options):
    consumer = line.connection.consumer(QUEUE, **options)
    name = _frames(line)[-1][1]["id"]
    line.channel.written.clear()
    return consumer, name


def _nacked(line):
    return [headers["id"] for command, headers in _frames(line) if command == "NACK"]


def test_rabbitmq_exchanges_a_subscription_for_a_silent_one_in_one_write(line):
    line = line("RabbitMQ/3")
    consumer, name = _consumer(line)
    writes = []
    line.channel.reactions["SUBSCRIBE"] = lambda _: writes.append(line.channel.last)
    consumer.close()
    assert [command for command, *_ in read(writes[0])] == ["UNSUBSCRIBE", "SUBSCRIBE"]
    frames = _frames(line)
    assert {headers["id"] for command, headers in frames if command.endswith("SUBSCRIBE")} == {name}
    assert [command for command, _ in frames] == [
        *("BEGIN", "UNSUBSCRIBE", "SUBSCRIBE", "BEGIN", "ABORT", "UNSUBSCRIBE", "COMMIT")
    ]


@pytest.mark.parametrize("moment", ["UNSUBSCRIBE", "SUBSCRIBE", "ABORT"])
def test_rabbitmq_gets_back_what_comes_while_its_consumer_closes(line, moment):
    line = line("RabbitMQ/3")
    consumer, name = _consumer(line)
    line.message(name, 1)
    consumer.release(consumer.receive(1, None))
    late = iter([True])
    line.channel.early[moment] = lambda _: line.message(name, 2) if next(late, None) else None
    consumer.close()
    assert _nacked(line) == ["m1", "m2"]
    assert line.channel.frames()[-2:] == ["UNSUBSCRIBE", "COMMIT"]


def test_rabbitmq_gets_back_each_message_while_its_own_subscription_is_there(line):
    line = line("RabbitMQ/3")
    consumer, one = _consumer(line, window=1)
    line.message(one, 1)
    line.channel.reactions["SUBSCRIBE"] = lambda headers: line.message(headers["id"], 2)
    held = [*consumer.receive(1, None), *consumer.receive(1, None)]
    line.channel.reactions.clear()
    line.channel.written.clear()
    consumer.release(held)
    consumer.close()
    commands = [command for command, _ in _frames(line)]
    assert _nacked(line) == ["m1", "m2"]
    assert commands[commands.index("NACK") + 1] == "UNSUBSCRIBE"
    assert commands.count("COMMIT") == 1


def test_others_get_everything_back_by_the_unsubscribe(line):
    line = line()
    consumer, name = _consumer(line)
    line.message(name, 1)
    consumer.release(consumer.receive(1, None))
    consumer.close()
    assert line.channel.frames() == ["UNSUBSCRIBE"]


@pytest.mark.parametrize("server", ["ActiveMQ/6", "RabbitMQ/3"])
def test_connection_ends_when_the_broker_takes_nothing_back(line, server):
    line = line(server)
    consumer, _ = _consumer(line)
    line.channel.refused = {"UNSUBSCRIBE"}
    consumer.close()
    assert line.lost.wait(30)


RECENT = "ActiveMQ/6.3.1"


def _received(line, count, source=QUEUE, order=Order.PREFIX):
    """A consumer and so many deliveries of it; what was written is forgotten."""
    consumer = line.connection.consumer(source, order=order)
    subscription = dict(read(bytes(line.channel.written))[-1][1])["id"]
    for number in range(count):
        line.message(subscription, number)
    deliveries = []
    while len(deliveries) < count:
        deliveries.extend(consumer.receive(count - len(deliveries), None))
    line.channel.written.clear()
    return consumer, deliveries


def _unit(line, deliveries):
    unit = line.connection.unit()
    unit.take(deliveries)
    return unit


def _written(line, command):
    return [dict(headers) for name, headers, _ in read(bytes(line.channel.written)) if name == command]


@pytest.mark.parametrize(
    ("server", "order", "ack"),
    [
        (RECENT, Order.PREFIX, "client"),
        ("ActiveMQ/7.0", Order.PREFIX, "client"),
        (RECENT, Order.ANY, "client-individual"),
        ("ActiveMQ/6.2.9", Order.PREFIX, "client-individual"),
        ("ActiveMQ/5.18.3", Order.PREFIX, "client-individual"),
        ("ActiveMQ/latest", Order.PREFIX, "client-individual"),
        ("ActiveMQ-Artemis/6.3.1", Order.PREFIX, "client-individual"),
        (RECENT, Order.MIXED, "client-individual"),
        ("RabbitMQ/3.13.7", Order.PREFIX, "client-individual"),
        ("Eclipse OpenMQ(tm)", Order.PREFIX, "client"),
        ("Eclipse OpenMQ(tm)", Order.ANY, "client-individual"),
        ("Other/6.3.1", Order.PREFIX, "client-individual"),
    ],
)
def test_who_is_trusted_with_cumulative_acknowledgements(line, server, order, ack):
    line = line(server)
    line.connection.consumer(QUEUE, order=order)
    assert [headers["ack"] for headers in _written(line, "SUBSCRIBE")] == [ack]


def test_one_acknowledgement_settles_a_unit(line):
    line = line(RECENT)
    _, deliveries = _received(line, 5)
    _unit(line, reversed(deliveries)).commit()
    assert [headers["id"] for headers in _written(line, "ACK")] == ["a4"]
    assert line.channel.frames() == ["BEGIN", "ACK", "COMMIT", *["BEGIN", "ABORT"]]


def test_each_message_is_acknowledged_that_may_be_settled_in_any_order(line):
    line = line(RECENT)
    _, deliveries = _received(line, 3, order=Order.ANY)
    _unit(line, deliveries[1:]).commit()
    assert [headers["id"] for headers in _written(line, "ACK")] == ["a1", "a2"]


@pytest.mark.parametrize("source", [QUEUE, Topic("t")])
def test_commit_out_of_order_is_refused_and_changes_nothing(line, source):
    """The acknowledgement would settle what came before as well."""
    line = line(RECENT)
    _, (first, *later) = _received(line, 3, source)
    unit = _unit(line, later)
    with pytest.raises(IllegalStateError, match="earlier"):
        unit.commit()
    assert not line.channel.written
    _unit(line, [first]).commit()
    unit.commit()
    assert [headers["id"] for headers in _written(line, "ACK")] == ["a0", "a2"]


def test_what_was_given_back_comes_before_what_is_settled(line):
    line = line(RECENT)
    consumer, (first, second) = _received(line, 2)
    consumer.release([first])
    with pytest.raises(IllegalStateError, match="earlier"):
        _unit(line, [second]).commit()


def test_a_consumer_hands_out_nothing_after_the_failed_commit_that_ends_its_connection(line):
    """What it prefetched is lost with the connection, even before the connection's own thread sees the end."""
    line = line(RECENT)
    consumer, (first, *_) = _received(line, 3)
    unit, goes_on = _unit(line, [first]), threading.Event()
    line.channel.incoming.put(lambda: goes_on.wait(30))
    line.channel.breaks_at = 0
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    with pytest.raises(ConnectionLostError):
        consumer.receive(1, 0)
    goes_on.set()
    assert line.lost.wait(30)


def test_a_commit_that_finds_no_time_for_its_transaction_redelivers_its_messages(line):
    """A later acknowledgement would settle them too, if they were forgotten."""
    line = line(RECENT)
    _, others = _received(line, 1)
    consumer, (first, _) = _received(line, 2)
    other, late = _unit(line, others), _unit(line, [first])
    refusals = []

    def commit_meanwhile(_):
        with pytest.raises(TransactionRolledBackError, match="took longer") as refusal:
            late.commit(timeout=0)
        refusals.append(refusal)

    line.channel.early["COMMIT"] = commit_meanwhile
    other.commit()
    assert len(refusals) == 1
    line.channel.early.clear()
    line.channel.written.clear()
    again = list(consumer.receive(5, 0))
    assert [d.sequence for d in again] == [0, 1]
    assert [d.message.delivery_count for d in again] == [2, 1]
    _unit(line, again[:1]).commit()
    _unit(line, again[1:]).commit()
    assert [headers["id"] for headers in _written(line, "ACK")] == ["a0", "a1"]


def test_only_the_last_send_asks_for_a_receipt_where_the_broker_works_in_order(line):
    for server, asked in (
        (RECENT, [False, False, True]),
        ("ActiveMQ-Artemis/2", [False, False, True]),
        ("RabbitMQ/3", [True] * 3),
        ("Other/1", [True] * 3),
    ):
        each = line(server)
        unit = each.connection.unit(atomic=False)
        for body in "abc":
            unit.send(TextMessage(body), QUEUE)
        unit.commit()
        assert ["receipt" in headers for headers in _written(each, "SEND")] == asked, server


def _refuse(line, *, first=(), then=()):
    """Answer COMMIT with these frames: errors, each with the receipt that it names."""

    def react(headers):
        for text, receipt in (*first, *then):
            named = {"receipt_id": headers["receipt"]} if receipt else {}
            line.channel.say("ERROR", message=text, **named)

    line.channel.silent.add("COMMIT")
    line.channel.reactions["COMMIT"] = react


def _two_sends(line):
    unit = line.connection.unit()
    for body in "ab":
        unit.send(TextMessage(body), QUEUE)
    return unit


def test_error_that_names_nothing_waits_for_the_answer_to_the_commit(line):
    """ActiveMQ tells twice of a refused SEND, in any order: only the other ERROR says what became of the unit."""
    line = line(RECENT)
    _refuse(line, first=[("a SEND was refused", False)], then=[("COMMIT FAILED", True)])
    unit = _two_sends(line)
    with pytest.raises(TransactionRolledBackError, match="COMMIT FAILED"):
        unit.commit()
    assert line.lost.wait(30)


def test_commit_that_is_confirmed_beside_an_error_is_in_doubt(line):
    line = line(RECENT)
    line.channel.early["COMMIT"] = lambda headers: line.channel.say("ERROR", message="something")
    unit = _two_sends(line)
    with pytest.raises(TransactionInDoubtError, match="something"):
        unit.commit()
    assert line.lost.wait(30)


def test_error_before_the_commit_is_known_to_have_prevented_it(line):
    line = line(RECENT)
    line.channel.silent.add("SEND")
    line.channel.reactions["SEND"] = lambda headers: line.channel.say("ERROR", message="refused")
    unit = _two_sends(line)
    with pytest.raises(TransactionRolledBackError, match="refused"):
        unit.commit()
    assert "COMMIT" not in line.channel.frames()
