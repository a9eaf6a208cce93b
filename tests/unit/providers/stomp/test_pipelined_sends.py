"""Units that are committed without waiting: what is written, and the outcome that each of them reports."""

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from tests.unit.providers.stomp.reference_frames import read

QUEUE = Queue("q")
SERVERS = ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1", "Eclipse OpenMQ(tm)/6.7"]


def _start(line, body):
    """Start to send a message; return the function that waits for its outcome."""
    unit = line.connection.unit(atomic=False)
    unit.send(TextMessage(body), QUEUE)
    return unit.start_commit()


def _outcomes(waits):
    """What each function says: None or the class of its error."""
    outcomes = []
    for wait in waits:
        try:
            outcomes.append(wait())
        except (TransactionInDoubtError, TransactionRolledBackError) as error:
            outcomes.append(type(error))
    return outcomes


@pytest.fixture
def held(line):
    """A connection whose SENDs get no receipt, and the receipts that they ask for."""

    def opened(server="ActiveMQ/6.3.1"):
        each = line(server)
        each.channel.silent = {"SEND"}
        receipts = []
        each.channel.early["SEND"] = lambda headers: receipts.append(headers["receipt"])
        return each, receipts

    return opened


@pytest.mark.parametrize("server", SERVERS)
def test_messages_are_written_before_the_first_receipt(held, server):
    line, receipts = held(server)
    waits = [_start(line, str(number)) for number in range(3)]
    assert line.channel.frames() == ["SEND"] * 3
    assert [body for _, _, body in read(bytes(line.channel.written))] == [b"0", b"1", b"2"]
    for receipt in receipts:
        line.channel.say("RECEIPT", receipt_id=receipt)
    assert _outcomes(waits) == [None, None, None]


def test_each_message_has_its_own_receipt(held):
    line, receipts = held()
    waits = [_start(line, str(number)) for number in range(3)]
    assert len(set(receipts)) == 3
    line.channel.say("RECEIPT", receipt_id=receipts[2])
    assert waits[2]() is None
    line.channel.say("RECEIPT", receipt_id=receipts[0])
    line.channel.say("RECEIPT", receipt_id=receipts[1])
    assert _outcomes(waits[:2]) == [None, None]


def test_only_the_refused_message_is_known_not_to_be_sent(held):
    line, receipts = held()
    waits = [_start(line, str(number)) for number in range(3)]
    line.channel.say("ERROR", message="no", receipt_id=receipts[1])
    assert _outcomes(waits) == [TransactionInDoubtError, TransactionRolledBackError, TransactionInDoubtError]
    assert line.lost.wait(30)


@pytest.mark.parametrize("server", SERVERS)
def test_refusal_that_names_no_message_leaves_all_in_doubt(held, server):
    line, _ = held(server)
    waits = [_start(line, str(number)) for number in range(2)]
    line.channel.say("ERROR", message="no")
    assert _outcomes(waits) == [TransactionInDoubtError] * 2


def test_lost_connection_leaves_all_in_doubt(held):
    line, _ = held()
    waits = [_start(line, str(number)) for number in range(3)]
    line.channel.shutdown()
    assert _outcomes(waits) == [TransactionInDoubtError] * 3


def test_silent_broker_leaves_the_message_in_doubt(held):
    line, _ = held()
    line.connection._session.reply_timeout = 0
    waits = [_start(line, "a")]
    assert _outcomes(waits) == [TransactionInDoubtError]
    assert line.lost.wait(30)


def test_message_of_which_no_byte_is_written_is_not_sent(line):
    each = line()
    each.channel.breaks_at = 0
    with pytest.raises(TransactionRolledBackError):
        _start(each, "a")


def test_message_that_is_written_in_part_is_in_doubt(line):
    each = line()
    each.channel.breaks_at = 5
    with pytest.raises(TransactionInDoubtError):
        _start(each, "a")


def test_unit_with_deliveries_is_refused_and_stays_open(line):
    each = line()
    consumer = each.connection.consumer(QUEUE)
    each.message(dict(read(bytes(each.channel.written))[0][1])["id"], 1)
    unit = each.connection.unit()
    unit.take(consumer.receive(1, None))
    with pytest.raises(IllegalStateError, match="without waiting"):
        unit.start_commit()
    unit.commit()


def test_unit_without_messages_has_nothing_to_wait_for(line):
    line().connection.unit(atomic=False).start_commit()()
