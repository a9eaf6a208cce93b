"""The outcome that a commit reports when it is cut at any point."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import DUPLICATE_ID, TextMessage
from tests.unit.providers.stomp.reference_frames import read, write

QUEUE = Queue("q")
NAMING = ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1"]  # what they refuse
SERVERS = [*NAMING, "Eclipse OpenMQ(tm)/6.7"]


def _unit(line, *, acks=0, sends=0):
    """A unit that is ready to commit; what was written before is forgotten."""
    atomic = line.connection.capabilities.atomic
    unit = line.connection.unit(atomic=atomic)
    if acks:
        consumer = line.connection.consumer(QUEUE)
        subscription = dict(read(bytes(line.channel.written))[0][1])["id"]
        for number in range(acks):
            line.message(subscription, number)
        taken = []
        while len(taken) < acks:
            taken.extend(consumer.receive(acks - len(taken), None))
        unit.take(taken)
    for number in range(sends):
        unit.send(TextMessage(str(number)), QUEUE)
    line.channel.written.clear()
    return unit


def test_nothing_is_written_before_the_commit(line):
    line = line()
    _unit(line, acks=2, sends=2)
    assert not line.channel.written


def test_acknowledgements_are_one_write_with_their_commit(line):
    line = line()
    _unit(line, acks=2).commit()
    assert line.channel.frames() == ["BEGIN", "ACK", "ACK", "COMMIT", "BEGIN", "ABORT"]


def test_commit_follows_when_the_sends_are_confirmed(line):
    line = line()
    line.channel.silent = {"SEND"}
    with pytest.raises(TransactionRolledBackError):
        _unit(line, acks=1, sends=2).commit(timeout=0)
    assert line.channel.frames() == ["BEGIN", "ACK", "SEND", "SEND"]


def test_refused_send_rolls_everything_back(line):
    line = line()
    line.channel.refused = {"SEND"}
    with pytest.raises(TransactionRolledBackError):
        _unit(line, acks=1, sends=2).commit()
    assert "COMMIT" not in line.channel.frames()
    assert line.lost.wait(30)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("sends", [0, 2])
def test_every_cut_of_a_commit(line, server, sends):
    """Before the first byte of the frame that decides it did not happen; after it, it may have."""
    whole = line(server)
    _unit(whole, acks=2, sends=sends).commit()
    decides = b"COMMIT" if b"COMMIT" in whole.channel.written else b"ACK"
    begin = bytes(whole.channel.written).index(decides)
    for position in range(len(whole.channel.written)):
        cut = line(server)
        unit = _unit(cut, acks=2, sends=sends)
        cut.channel.room = position
        with pytest.raises((TransactionRolledBackError, TransactionInDoubtError)) as told:
            unit.commit()
        assert (told.type is TransactionRolledBackError) is (position <= begin), position


def test_cut_before_the_sends_are_confirmed(line):
    line = line()
    unit = _unit(line, acks=1, sends=1)
    line.channel.breaks_at = 10_000
    with pytest.raises(TransactionRolledBackError):
        unit.commit()


def test_withheld_receipt_is_in_doubt(line):
    line = line()
    line.channel.silent = {"COMMIT"}
    with pytest.raises(TransactionInDoubtError):
        _unit(line, acks=1).commit(timeout=0)
    assert line.lost.wait(30)


def test_receipt_in_front_of_garbage_counts(line):
    line = line()
    line.channel.silent = {"COMMIT"}
    line.channel.reactions["COMMIT"] = lambda headers: line.channel.incoming.put(
        write("RECEIPT", {"receipt-id": headers["receipt"]}) + b"HTTP/1.1 400 Bad Request\r\n\r\n"
    )
    _unit(line, acks=1).commit()
    assert line.lost.wait(30)
    assert "protocol" in str(line.told[0])


def test_refused_commit_did_not_happen(line):
    line = line()
    line.channel.refused = {"COMMIT"}
    with pytest.raises(TransactionRolledBackError):
        _unit(line, acks=1).commit()


def test_error_that_names_no_frame_is_in_doubt(line):
    line = line()
    line.channel.early["COMMIT"] = lambda _: line.channel.say("ERROR", message="something")
    with pytest.raises(TransactionInDoubtError, match="something"):
        _unit(line, acks=1).commit()


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2", "Other/1"])
def test_single_acknowledgements_are_in_doubt_when_cut(line, server):
    line = line(server)
    unit = _unit(line, acks=2)
    line.channel.breaks_at = 10_000
    with pytest.raises(TransactionInDoubtError):
        unit.commit()


def test_move_that_is_not_atomic_sends_first(line):
    line = line("ActiveMQ-Artemis/2")
    _unit(line, acks=1, sends=1).commit()
    assert line.channel.frames() == ["SEND", "ACK"]


@pytest.mark.parametrize("server", NAMING)
def test_a_message_alone_needs_no_transaction(line, server):
    line = line(server)
    _unit(line, sends=1).commit()
    [(command, headers, _)] = read(bytes(line.channel.written))
    assert command == "SEND"
    assert "receipt" in dict(headers)
    assert "transaction" not in dict(headers)


@pytest.mark.parametrize(
    ("server", "refusal"),
    [
        *((server, {"message": "no", "receipt_id": None}) for server in NAMING),
        ("RabbitMQ/3", {"message": "access_refused"}),
    ],
)
def test_a_message_alone_that_is_refused_was_not_sent(line, server, refusal):
    line = line(server)
    line.connection.consumer(QUEUE)  # what has been answered cannot be what is refused
    line.channel.silent = {"SEND"}
    line.channel.reactions["SEND"] = lambda headers: line.channel.say(
        "ERROR", **{name: value or headers["receipt"] for name, value in refusal.items()}
    )
    with pytest.raises(TransactionRolledBackError):
        _unit(line, sends=1).commit()


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
def test_refusal_of_what_another_thread_asks_for_says_nothing_of_a_message_alone(line, named):
    line = line("RabbitMQ/3")
    line.channel.silent = {"SEND", "SUBSCRIBE"}
    unit = _unit(line, sends=1)
    other = threading.Thread(target=_is_refused, args=[line.connection])

    def refuse(headers):
        receipt = {"receipt_id": headers["receipt"]} if named else {}
        line.channel.say("ERROR", message="access_refused", **receipt)

    line.channel.reactions = {"SEND": lambda _: other.start(), "SUBSCRIBE": refuse}
    with pytest.raises(TransactionInDoubtError):
        unit.commit()
    other.join()


def test_refusal_that_may_be_of_what_nobody_waits_for_any_more(line):
    """A request that was not answered in time may be refused later on."""
    line = line("RabbitMQ/3")
    line.channel.silent = {"SUBSCRIBE", "SEND"}
    line.channel.reactions["SEND"] = lambda _: line.channel.say("ERROR", message="access_refused")
    with pytest.raises(ConnectionLostError):
        line.connection._session.request("SUBSCRIBE", {}, 0)
    with pytest.raises(TransactionInDoubtError):
        _unit(line, sends=1).commit()


def _is_refused(connection):
    with pytest.raises(JMSError):
        connection.consumer(Queue("forbidden"))


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1"])
def test_a_message_alone_that_is_not_confirmed_is_in_doubt(line, server):
    line = line(server)
    line.channel.reactions["SEND"] = lambda _: line.channel.incoming.put(b"")
    line.channel.silent = {"SEND"}
    with pytest.raises(TransactionInDoubtError):
        _unit(line, sends=1).commit()


def test_move_that_is_cut_between_its_parts_is_in_doubt(line):
    line = line("ActiveMQ-Artemis/2")
    line.channel.refused = {"ACK"}
    with pytest.raises(TransactionInDoubtError):
        _unit(line, acks=1, sends=1).commit()


def test_rabbitmq_confirms_each_send_behind_the_commit(line):
    line = line("RabbitMQ/3")
    line.channel.silent = {"SEND"}
    with pytest.raises(TransactionInDoubtError):
        _unit(line, sends=2).commit(timeout=0)
    assert line.channel.frames() == ["BEGIN", "SEND", "SEND", "COMMIT"]


def test_lost_connection_is_told_before_anything_is_written(line):
    line = line()
    unit = _unit(line, sends=1)
    line.channel.incoming.put(b"")
    assert line.lost.wait(30)
    with pytest.raises(ConnectionLostError):
        unit.commit()
    assert not line.channel.written


def test_empty_unit_writes_nothing(line):
    line = line()
    _unit(line).commit()
    assert not line.channel.written


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "RabbitMQ/3.10.8"])
def test_a_delivery_time_is_refused_where_no_broker_keeps_it(line, server):
    message = TextMessage("tomorrow")
    message.delivery_time = datetime.now(UTC) + timedelta(days=1)
    unit = line(server).connection.unit(atomic=False)
    with pytest.raises(NotSupportedError, match="delivery_delay"):
        unit.send(message, QUEUE)


def test_a_delivery_belongs_to_one_unit(line):
    line = line()
    unit = _unit(line, acks=1)
    with pytest.raises(IllegalStateError, match="another unit"):
        line.connection.unit().take(unit._taken)


def test_a_unit_gets_all_deliveries_or_none(line):
    line = line()
    consumer = line.connection.consumer(QUEUE)
    line.message(dict(read(bytes(line.channel.written))[0][1])["id"], 0)
    (delivery,) = consumer.receive(1, None)
    with pytest.raises(IllegalStateError, match="another unit"):
        line.connection.unit().take([delivery, delivery])
    line.connection.unit().take([delivery])


def test_delay_is_refused_and_leaves_the_unit_open(line):
    line = line()
    unit = _unit(line, acks=1)
    with pytest.raises(NotSupportedError):
        unit.rollback(delay=1)
    unit.rollback()
    with pytest.raises(IllegalStateError):
        unit.rollback()


def test_rollback_writes_nothing_and_counts(line):
    line = line()
    consumer = line.connection.consumer(QUEUE)
    subscription = dict(read(bytes(line.channel.written))[0][1])["id"]
    line.channel.written.clear()
    for number in range(3):
        line.message(subscription, number)
    first = []
    while len(first) < 2:
        first.extend(consumer.receive(2 - len(first), None))
    unit = line.connection.unit()
    unit.take(first)
    unit.rollback(unused=first[1:])
    again = []
    while len(again) < 3:
        again.extend(consumer.receive(3 - len(again), None))
    assert [(d.raw, d.count, d.redelivered) for d in again] == [(b"0", 2, True), (b"1", 1, False), (b"2", 1, False)]
    assert not line.channel.written


def _named(line, *ids, others=0, acks=0):
    unit = _unit(line, acks=acks, sends=others)
    for name in ids:
        unit.send(TextMessage(name, properties={DUPLICATE_ID: name}), QUEUE)
    return unit


def test_artemis_gets_messages_with_duplicate_ids_before_the_transaction(line):
    line = line("ActiveMQ-Artemis/2")
    _named(line, "1", "2", others=2, acks=1).commit()
    frames = [(c, dict(h)) for c, h, _ in read(bytes(line.channel.written))]
    assert [c for c, _ in frames] == ["SEND", "SEND", "BEGIN", "SEND", "SEND", "COMMIT", "ACK"]
    assert [DUPLICATE_ID in h for c, h in frames if "transaction" not in h] == [True, True, False]


def test_activemq_gets_messages_with_duplicate_ids_in_the_transaction(line):
    line = line()
    _named(line, "1", "2").commit()
    assert line.channel.frames() == ["BEGIN", "SEND", "SEND", "COMMIT"]


@pytest.mark.parametrize(("ids", "told"), [("1", TransactionRolledBackError), ("12", TransactionInDoubtError)])
def test_refused_send_before_the_transaction(line, ids, told):
    """Of one it is known which one was refused; of several, others may have been taken."""
    line = line("ActiveMQ-Artemis/2")
    unit = _named(line, *ids, others=1)
    line.channel.refused = {"SEND"}
    with pytest.raises(told):
        unit.commit()
    assert "COMMIT" not in line.channel.frames()


@pytest.mark.parametrize("refused", ["COMMIT", "BEGIN"])
def test_failure_after_messages_with_duplicate_ids_is_in_doubt(line, refused):
    line = line("ActiveMQ-Artemis/2")
    unit = _named(line, "1", others=2)
    line.channel.early[refused] = lambda _: line.channel.incoming.put(b"")
    with pytest.raises(TransactionInDoubtError):
        unit.commit()


def test_cut_before_messages_with_duplicate_ids_is_known(line):
    line = line("ActiveMQ-Artemis/2")
    unit = _named(line, "1", others=1)
    line.channel.breaks_at = 0
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
