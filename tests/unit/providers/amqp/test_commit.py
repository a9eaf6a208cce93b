"""The outcome that a commit reports when the broker fails at any step."""

from datetime import UTC, datetime, timedelta

import pytest
from proton import Condition, Connection, Delivery, Message

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
from jmsjca.providers.amqp.engine.proton_ffi import DeliveryTags, ffi, lib, pointer_to, send
from tests.unit.providers.amqp.broker_behaviour import end_connection, end_session, refuse_link, reject

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


@pytest.fixture
def holding(line):
    """Give a function that opens a line whose unit holds one delivery, while a second one waits."""

    def make(product="ActiveMQ"):
        each = line(product)
        each.open("reply_timeout=30")
        links = []
        attach = each.peer.on_attach
        each.peer.reactions["attach"] = lambda event: (links.append(event.link), attach(event))
        each.peer.stock.extend(Message(body=body).encode() for body in ("first", "second"))
        consumer = each.connection.consumer(QUEUE, window=2)
        unit = each.connection.unit(atomic=each.connection.capabilities.atomic)
        unit.take(consumer.receive(1, None))
        each.peer.wait_until(lambda: getattr(links[0], "limit", 0) == 3)  # it has asked for all that it will
        return each, links[0], consumer, unit

    return make


def end_link(line, link):
    def end():
        link.condition = Condition("amqp:resource-deleted", "gone")
        link.close()

    line.peer.do(end)
    line.peer.wait_for("detach")  # the client has heard of it


@pytest.mark.parametrize("product", ["ActiveMQ", "RabbitMQ"])
def test_a_unit_whose_link_was_ended_does_not_commit(holding, product):
    """Its messages are somebody else's by now: an acknowledgement would go nowhere."""
    line, link, _, unit = holding(product)
    end_link(line, link)
    with pytest.raises((TransactionRolledBackError, TransactionInDoubtError, ConnectionLostError)):
        unit.commit()
    assert "acknowledge" not in line.peer.order


def test_a_unit_whose_link_was_ended_discharges_its_transaction(holding):
    line, link, _, unit = holding()
    end_link(line, link)
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.peer.order[-1] == "rollback"


def test_a_unit_whose_second_link_was_ended_settles_nothing_of_the_first(holding):
    """In a transaction that is rolled back it would come again behind what is here already."""
    line, _, consumer, unit = holding()
    attach, links = line.peer.reactions["attach"], []
    line.peer.reactions["attach"] = lambda event: (links.append(event.link), attach(event))
    line.peer.do(lambda: line.peer.stock.append(Message(body="third").encode()))  # when it has answered that flow
    other = line.connection.consumer(QUEUE, window=1)
    unit.take(other.receive(1, 30))
    end_link(line, links[0])
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.peer.order[-1] == "rollback"
    assert line.peer.settled == []
    assert [d.message.body for d in consumer.receive(9, 30)] == ["first", "second"]


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_link_that_was_ended_holds_up_the_acknowledgement_of_no_other(holding, confirmed):
    """Without transactions each is for itself, and the unit is in doubt."""
    line, link, _, unit = holding("RabbitMQ")
    line.peer.do(lambda: line.peer.stock.append(Message(body="third").encode()))
    other = line.connection.consumer(QUEUE, window=1)
    unit.take(other.receive(1, 30))
    end_link(line, link)
    with pytest.raises(TransactionInDoubtError):
        unit.commit(confirmed=confirmed)
    line.peer.wait_until(lambda: [state for _, state in line.peer.settled] == [Delivery.ACCEPTED])


def test_a_discharge_that_is_rejected_ends_the_connection(holding):
    """The broker has taken the messages of the unit back; only a new connection gets all of them in order."""
    line, _, _, unit = holding()
    line.peer.reactions["discharge"] = reject
    with pytest.raises(TransactionRolledBackError):
        unit.commit()
    assert line.lost.wait(30)


@pytest.mark.parametrize("product", ["ActiveMQ", "RabbitMQ"])
def test_a_link_that_ends_in_answer_to_the_stop_is_closed_all_the_same(line, product):
    """The broker has taken back what it had sent, so there is nothing left to wait for."""
    each = line(product)
    each.open("reply_timeout=30")
    consumer = each.connection.consumer(QUEUE, window=2)
    each.peer.wait_for("flow")

    def end(event):
        event.link.condition = Condition("amqp:resource-deleted", "gone")
        event.link.close()

    each.peer.reactions.update(flow=end, drain=end)
    consumer.close()
    assert not each.lost.is_set()


def tag_of(delivery):
    tag = lib.pn_delivery_tag(delivery)
    return bytes(ffi.buffer(tag.start, tag.size))


def test_each_message_of_a_link_has_a_tag_of_its_own():
    connection, tags = Connection(), DeliveryTags()
    link = connection.session().sender("link")
    sent = [delivery for _ in range(700) for delivery in send(pointer_to(link), tags, [b"message"] * 100)]
    found = {tag_of(delivery) for delivery in sent}
    assert len(found) == len(sent)
    assert max(map(len, found)) <= 32  # the longest that AMQP allows
