"""What a commit tells when the broker fails at each step of it: never more, never less than is known."""

from datetime import UTC, datetime, timedelta

import pytest
from proton import Message

from jmsjca.destinations import Queue
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import DUPLICATE_ID, TextMessage
from tests.unit.amqp.behaviour import end_connection, end_session, refuse_link, reject

QUEUE = Queue("q")
TARGET = Queue("target")
WHOLE = ["begin", "attach", "begin", "coordinator", "declare", "transfer", "transfer", "acknowledge", "discharge"]


def _unit(line, *, takes=1, sends=2):
    """A unit that is ready to commit; what the client did before is forgotten."""
    atomic = line.connection.capabilities.atomic
    unit = line.connection.unit(atomic=atomic)
    if takes:
        line.peer.stock.extend(Message(body=str(n)).encode() for n in range(takes))
        taken = []
        consumer = line.connection.consumer(QUEUE, window=takes)
        while len(taken) < takes:
            taken += consumer.receive(takes, None)
        line.peer.wait_for("flow", 2)  # it asks for more
        unit.take(taken)
    for number in range(sends):
        unit.send(TextMessage(str(number)), TARGET)
    line.peer.do(lambda: (line.peer.order.clear(), line.peer.seen.clear()))
    return unit


@pytest.fixture
def ready(line):
    """A unit of one delivery and two sends, and its broker."""

    def make(product="ActiveMQ", **what):
        each = line(product)
        each.open("reply_timeout=30")
        return each, _unit(each, **what)

    return make


def test_nothing_is_written_before_the_commit(ready):
    line, _ = ready()
    line.connection.check(QUEUE)  # a round trip
    assert line.peer.order == ["begin", "attach"]


def test_acknowledgements_are_written_with_the_discharge_when_the_sends_are_confirmed(ready):
    line, unit = ready()
    unit.commit()
    assert line.peer.order == WHOLE
    assert line.peer.sent == {"queue://target": ["0", "1"]}
    assert line.peer.settled == [("1", 0x34)]


# What a client may say when the step is the last that the broker takes.
OUTCOMES = {
    **dict.fromkeys(("begin", "attach", "coordinator", "declare", "transfer"), TransactionRolledBackError),
    "acknowledge": TransactionInDoubtError,
    "discharge": TransactionInDoubtError,
}


@pytest.mark.parametrize("step", OUTCOMES)
def test_connection_is_cut_at_each_step(ready, step):
    line, unit = ready()
    line.peer.reactions[step] = line.peer.cut
    with pytest.raises(OUTCOMES[step]):
        unit.commit()
    assert line.lost.wait(30)
    assert [type(error) for error in line.told] == [ConnectionLostError]


ANSWERED = [step for step in OUTCOMES if step != "acknowledge"]


@pytest.mark.parametrize("step", ANSWERED)
def test_broker_closes_at_each_step(ready, step):
    line, unit = ready()
    line.peer.reactions[step] = end_connection
    with pytest.raises(OUTCOMES[step], match="amqp:connection:forced: over"):
        unit.commit()


@pytest.mark.parametrize("step", ANSWERED)
def test_step_stays_unanswered(ready, impatient, step):
    line, unit = ready()
    impatient(line.peer)
    line.peer.silent(step)
    with pytest.raises(OUTCOMES[step], match="did not answer"):
        unit.commit(timeout=1)
    assert line.lost.wait(30)


@pytest.mark.parametrize("step", ["coordinator", "declare", "transfer", "discharge"])
def test_session_ends_at_each_step(ready, step):
    line, unit = ready()
    line.peer.reactions[step] = end_session
    with pytest.raises(OUTCOMES[step]):
        unit.commit()
    assert not line.told
    assert line.peer.seen["rollback"] == (step == "transfer")


def test_refused_discharge_did_not_happen(ready):
    line, unit = ready()
    line.peer.reactions["discharge"] = reject
    with pytest.raises(TransactionRolledBackError, match="amqp:transaction:rollback: no"):
        unit.commit()


def test_refused_message_rolls_the_transaction_back(ready):
    line, unit = ready()
    line.peer.reactions["transfer"] = reject
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.peer.order[-1] == "rollback"
    assert "discharge" not in line.peer.order


def test_refused_declaration_rolls_back(ready):
    line, unit = ready()
    line.peer.reactions["declare"] = reject
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert "transfer" not in line.peer.order


def test_rollback_that_stays_unanswered_does_not_hide_why(ready, impatient):
    line, unit = ready()
    impatient(line.peer)
    line.peer.reactions["transfer"] = reject
    line.peer.silent("rollback")
    with pytest.raises(TransactionRolledBackError, match="did not accept a message"):
        unit.commit()


@pytest.mark.parametrize(("step", "error"), [("attach", InvalidDestinationError), ("coordinator", NotSupportedError)])
def test_refused_link_is_the_cause(ready, step, error):
    line, unit = ready()
    line.peer.reactions[step] = refuse_link
    with pytest.raises(TransactionRolledBackError) as told:
        unit.commit()
    assert isinstance(told.value.__cause__, error)


def test_next_unit_attaches_again_what_was_ended(ready):
    line, unit = ready(takes=0)
    line.peer.reactions["transfer"] = end_session
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    line.peer.reactions.clear()
    again = _unit(line, takes=0)
    again.commit()
    assert line.peer.seen["discharge"] == 1


def test_next_unit_attaches_again_to_a_coordinator_that_was_ended(ready):
    line, unit = ready(takes=0)
    line.peer.reactions["discharge"] = end_session
    with pytest.raises(TransactionInDoubtError):
        unit.commit()
    line.peer.reactions.clear()
    again = _unit(line, takes=0)
    again.commit()
    assert line.peer.seen["coordinator"] == 1


# Without transactions: sends first, then acknowledgements, which a change of the credit confirms.

PLAIN_OUTCOMES = {
    "attach": TransactionRolledBackError,
    "transfer": TransactionInDoubtError,
    "acknowledge": TransactionInDoubtError,
    "flow": TransactionInDoubtError,
}


@pytest.mark.parametrize("step", PLAIN_OUTCOMES)
def test_connection_ends_at_each_step_without_transactions(ready, step):
    line, unit = ready("RabbitMQ")
    line.peer.reactions[step] = line.peer.cut
    with pytest.raises(PLAIN_OUTCOMES[step]):
        unit.commit()


@pytest.mark.parametrize("step", ["attach", "transfer", "flow"])
def test_step_stays_unanswered_without_transactions(ready, impatient, step):
    line, unit = ready("RabbitMQ")
    impatient(line.peer)
    line.peer.silent(step)
    with pytest.raises(PLAIN_OUTCOMES[step], match="did not answer"):
        unit.commit(timeout=1)


def test_refused_message_without_transactions_settles_nothing(ready):
    line, unit = ready("RabbitMQ")
    line.peer.reactions["transfer"] = reject
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    line.connection.check(QUEUE)
    assert not line.peer.settled


def test_known_ids_are_sent_before_the_transaction(ready):
    line, unit = ready("apache-activemq-artemis")
    unit.send(TextMessage("first", properties={DUPLICATE_ID: "1"}), TARGET)
    unit.commit()
    assert line.peer.order == ["begin", "attach", "transfer", *WHOLE[2:]]
    assert line.peer.sent == {"target": ["first", "0", "1"]}


@pytest.mark.parametrize(("step", "refuse"), [("coordinator", refuse_link), ("declare", reject), ("discharge", reject)])
def test_what_was_sent_before_a_transaction_that_fails_leaves_doubt(ready, step, refuse):
    """It is not true that nothing happened; sent again with the same id it does no harm."""
    line, unit = ready("apache-activemq-artemis")
    unit.send(TextMessage("first", properties={DUPLICATE_ID: "1"}), TARGET)
    line.peer.reactions[step] = refuse
    with pytest.raises(TransactionInDoubtError, match="were sent before"):
        unit.commit()
    assert line.peer.sent["target"][0] == "first"


@pytest.mark.parametrize("act", ["commit", "rollback", "take", "send"])
def test_unit_of_a_lost_connection(ready, act):
    line, unit = ready()
    line.peer.do(line.peer.cut)
    assert line.lost.wait(30)
    arguments = {"take": ([],), "send": (TextMessage("x"), TARGET)}.get(act, ())
    with pytest.raises(ConnectionLostError):
        getattr(unit, act)(*arguments)


def test_empty_unit_writes_nothing(ready):
    line, unit = ready(takes=0, sends=0)
    unit.commit()
    line.connection.close()
    assert line.peer.order == ["close"]


def test_cut_during_a_commit_keeps_no_delivery(ready):
    """What comes again on another connection must not be settled on this one."""
    line, unit = ready()
    line.peer.reactions["transfer"] = line.peer.cut
    with pytest.raises(JMSError):
        unit.commit()
    assert line.lost.wait(30)
    assert [consumer._buffer.unsettled for consumer in line.connection._consumers] == [{}]


def send_to(line, *names):
    unit = line.connection.unit()
    for name in names:
        unit.send(TextMessage("one"), Queue(name))
    unit.commit()


def test_a_unit_may_send_to_more_destinations_than_senders_are_kept(line):
    line = line("ActiveMQ")
    line.open("reply_timeout=30")
    send_to(line, *(f"before{number}" for number in range(64)))
    send_to(line, *(f"q{number}" for number in range(70)))
    assert line.peer.seen["transfer"] == 64 + 70
    line.peer.wait_for("detach", 64)
    send_to(line, "behind")
    line.peer.wait_for("detach", 64 + 7)


@pytest.mark.parametrize("product", ["ActiveMQ", "Apache Qpid Broker-J Core", "RabbitMQ"])
def test_a_delivery_time_is_refused_where_no_broker_keeps_it(line, product):
    message = TextMessage("tomorrow")
    message.delivery_time = datetime.now(UTC) + timedelta(days=1)
    line = line(product)
    unit = line.open().unit(atomic=False)
    with pytest.raises(NotSupportedError, match="delivery_delay"):
        unit.send(message, QUEUE)


def test_delay_is_refused_and_leaves_the_unit_open(line):
    unit = line("ActiveMQ").open().unit()
    with pytest.raises(NotSupportedError, match="redelivery_delay"):
        unit.rollback(delay=1)
    unit.commit()
