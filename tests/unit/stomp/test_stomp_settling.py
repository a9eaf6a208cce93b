"""What is written to settle: one acknowledgement for many where the broker allows it, and no receipt too many."""

import pytest

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.spi import Order
from tests.unit.stomp.letters import read

RECENT = "ActiveMQ/6.3.1"
QUEUE = Queue("q")


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
        ("RabbitMQ/6.3.1", Order.PREFIX, "client-individual"),
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
