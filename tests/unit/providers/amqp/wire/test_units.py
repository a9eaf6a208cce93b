"""Units: ended, rolled back, in doubt, of several threads, and with several consumers."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import (
    SENDER,
    Attach,
    Close,
    Declare,
    Detach,
    Discharge,
    Disposition,
    End,
    Error,
    Flow,
    Rejected,
    Transactional,
    Transfer,
)
from amqp_peer.script import command_of

from jmsjca import ConnectionFactory
from jmsjca.destinations import Queue
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.engine import proton_ffi
from tests.unit.inbound.deliveries import until
from tests.unit.providers.amqp.wire.cut_account import body_of, encoded

GONE = Error(condition="amqp:resource-deleted", description="gone")
PREFIXES = {"apache-activemq-artemis": "", "ActiveMQ": "queue://", "RabbitMQ": "/queue/"}
NAMES = ("first", "second", "third")


class Held:
    """A unit that has taken a message of each of three queues, over links that ask for more."""

    def __init__(self, stage, product):
        self.broker, self._prefix = Broker(product), PREFIXES[product]
        self.here = stage(self.broker)
        self.connection = self.here.connect("reply_timeout=30")
        self.unit = self.connection.unit(atomic=self.connection.capabilities.atomic)
        self.consumers = {}
        for name in NAMES:
            self.broker.store.put(self._prefix + name, encoded(name))
            self.consumers[name] = self.connection.consumer(Queue(name), window=2)
            self.unit.take(self.consumers[name].receive(1, SECONDS))

    def end_at_flow(self, name, how):
        """Let the broker end this link when it is asked to stop, and in one of two ways."""

        def instead(service, frame):
            link = service.links.get((frame.channel, frame.body.handle))
            if link is None or link.attach.source.address != self._prefix + name:
                service.carry_out(frame)
            else:
                (service.detach if how is Detach else service.end)(frame, GONE)

        self.broker.instead[Flow] = instead

    def end(self, name, how):
        """End this link now."""
        self.end_at_flow(name, how)
        with pytest.raises(JMSError, match="gone"):
            self.consumers[name].drain()
        del self.broker.instead[Flow]

    def left(self):
        """What the broker has when the connection has ended."""
        self.here.close()
        return {body_of(kept.payload) for queue in self.broker.store.queues.values() for kept in queue}


@pytest.fixture
def held(stage):
    return lambda product: Held(stage, product)


@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("product", PREFIXES)
def test_a_rollback_reaches_the_consumers_behind_a_link_that_ends(held, product, name, how):
    here = held(product)
    here.end_at_flow(name, how)
    here.unit.rollback()
    others = [other for other in NAMES if other != name]
    assert [here.consumers[other].receive(1, SECONDS)[0].message.body for other in others] == others


@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("product", ["apache-activemq-artemis", "ActiveMQ"])
def test_a_commit_that_fails_reaches_the_consumers_behind_a_link_that_ends(held, product, name, how):
    here = held(product)
    here.end(name, how)
    with pytest.raises(TransactionRolledBackError, match="gone"):
        here.unit.commit()
    others = [other for other in NAMES if other != name]
    assert [here.consumers[other].receive(1, SECONDS)[0].message.body for other in others] == others


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("how", [Detach, End])
@pytest.mark.parametrize("name", NAMES)
def test_without_transactions_the_others_are_acknowledged(held, name, how, confirmed):
    """They were handled; were they forgotten, the broker would keep them for a link that never settles them."""
    here = held("RabbitMQ")
    here.end(name, how)
    with pytest.raises(TransactionInDoubtError, match="gone"):
        here.unit.commit(confirmed=confirmed)
    assert here.left() == {name}


@pytest.mark.parametrize("name", NAMES)
def test_without_transactions_all_are_confirmed(held, impatient, name):
    """A broker that has noted what came over two links may not have noted what came over the third."""
    here = held("RabbitMQ")

    def withhold(service, frame):
        link = service.links.get((frame.channel, frame.body.handle))
        if link is not None and link.attach.source.address == f"/queue/{name}":
            service.peer.leave_unanswered()
        else:
            service.carry_out(frame)

    here.broker.instead[Flow] = withhold
    impatient(here.here.peer)
    with pytest.raises(TransactionInDoubtError, match="did not answer"):
        here.unit.commit()


@pytest.mark.parametrize("product", PREFIXES)
def test_a_commit_stays_one_when_the_end_of_a_closed_consumer_fails(held, impatient, product):
    """Whoever is told that it failed does everything again."""
    here = held(product)
    for consumer in here.consumers.values():
        consumer.close()  # its link stays as long as the unit
    here.broker.instead[Detach] = lambda service, frame: service.peer.leave_unanswered()
    impatient(here.here.peer)
    here.unit.commit()
    assert here.here.lost.wait(SECONDS)
    assert here.left() == set()


@pytest.mark.parametrize("product", PREFIXES)
def test_a_fault_while_a_unit_is_written_is_in_doubt(held, product, monkeypatch, caplog):
    """Nobody knows how far it got: the connection is given up, and what was not committed comes again."""
    here = held(product)

    def fails(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(proton_ffi, "_update", fails)
    with pytest.raises(TransactionInDoubtError, match="out of order"):
        here.unit.commit()
    assert here.here.lost.wait(SECONDS)
    assert here.left() == set(NAMES)


IN, OUT = Queue("in"), Queue("out")
REASON = Error(condition="amqp:transaction:rollback", description="because")


@pytest.fixture
def rolling_back_broker():
    rolling_back_broker = Broker()
    for body in "abc":
        rolling_back_broker.store.put("in", encoded(body))
    return rolling_back_broker


def received(consumer, messages):
    found = []
    while len(found) < messages:
        found += consumer.receive(messages, SECONDS)
    return [(delivery.message.body, delivery.count) for delivery in found]


def commit(connection, taken=()):
    unit = connection.unit()
    unit.take(taken)
    unit.send(TextMessage("x"), OUT)
    unit.commit()


def test_a_coordinator_that_ends_before_the_discharge_settles_nothing(stage, rolling_back_broker):
    """What is settled in a transaction that is gone is lost to everybody until the connection ends."""
    declared = []

    def declare(service, frame):
        declared.append(frame)
        service.carry_out(frame)

    def end_coordinator(service, frame):
        service.detach(declared.pop(), REASON)
        service.carry_out(frame)
        service.store.end(frame.body.state.txn_id, fail=True)

    rolling_back_broker.instead.update({Declare: declare, Transfer: end_coordinator})
    connection = stage(rolling_back_broker).connect()
    consumer = connection.consumer(IN, window=0)
    with pytest.raises(TransactionRolledBackError, match=r"ended the link to the transaction coordinator.*because"):
        commit(connection, consumer.receive(1, SECONDS))
    assert received(consumer, 3) == [("a", 2), ("b", 1), ("c", 1)]
    rolling_back_broker.instead.clear()
    commit(connection)
    assert len(rolling_back_broker.store.queues["out"]) == 1


@pytest.mark.parametrize("messages", [0, 1])
def test_nothing_is_committed_over_the_end_of_the_connection_that_comes_with_the_last_answer(
    stage, rolling_back_broker, messages
):
    """So it is not in doubt."""

    def answer_and_close(service, frame):
        with service.line.together():
            service.carry_out(frame)
            service.line.write(Close())

    here = stage(rolling_back_broker)
    connection = here.connect()
    taken = connection.consumer(IN, window=0).receive(1, SECONDS) if messages else []
    rolling_back_broker.instead[Transfer] = answer_and_close
    with pytest.raises(TransactionRolledBackError):
        commit(connection, taken)
    here.close()
    assert not rolling_back_broker.seen[Discharge]


def refuse(service, frame):
    """Roll back, as the broker may instead of a commit."""
    service.store.end(command_of(frame).txn_id, fail=True)
    service.agree(frame, state=Rejected(error=REASON))


def test_what_a_refused_commit_took_comes_again_before_what_is_here_already(stage, rolling_back_broker):
    """Only a new connection gets it in order, so the old one is left."""
    rolling_back_broker.instead[Discharge] = refuse
    here = stage(rolling_back_broker)
    connection = here.connect()
    consumer = connection.consumer(IN)
    with pytest.raises(TransactionRolledBackError, match="because"):
        commit(connection, consumer.receive(1, SECONDS))
    assert here.lost.wait(SECONDS)
    assert "rolled a unit back" in str(here.told[0])
    connection.close()
    assert [body for body, _ in received(here.connect().consumer(IN), 3)] == ["a", "b", "c"]


def test_a_refused_commit_that_took_nothing_leaves_the_connection(stage, rolling_back_broker):
    rolling_back_broker.instead[Discharge] = refuse
    here = stage(rolling_back_broker)
    connection = here.connect()
    with pytest.raises(TransactionRolledBackError, match="because"):
        commit(connection)
    rolling_back_broker.instead.clear()
    commit(connection)
    assert not here.told


THREADS = 4
UNITS = 25  # of each thread
OVERLAP_OUT = Queue("out")


class Witness:
    """Sees each frame of a transaction when it comes to the broker, and notes what is out of turn.

    Attributes:
        wrong: What was out of turn.
        committed: How many transactions ended so.
        most: How many were open at a time, at most; the one that is declared ahead is one of them.
    """

    def __init__(self, broker):
        self.broker, self.wrong, self.committed, self.most = broker, [], 0, 0
        self._written = None  # the transaction that is not yet all here
        broker.instead.update(
            {Declare: self._declared, Discharge: self._discharged, Transfer: self._part, Disposition: self._part}
        )

    def _declared(self, service, frame):
        service.carry_out(frame)
        self.most = max(self.most, len(self.broker.store.transactions))

    def _part(self, service, frame):
        if isinstance(frame.body.state, Transactional):
            self._see(frame, frame.body.state.txn_id)
        else:
            self.wrong.append(f"in no transaction: {frame}")
        service.carry_out(frame)

    def _discharged(self, service, frame):
        command = command_of(frame)
        self._see(frame, command.txn_id)
        self._written = None
        self.committed += not command.fail
        service.carry_out(frame)

    def _see(self, frame, transaction):
        if self._written not in {None, transaction}:
            self.wrong.append(f"within {self._written}: {frame}")
        self._written = transaction


def move(connection, name, start):
    """Move each message of a queue in a unit of its own."""
    consumer = connection.consumer(Queue(name), window=UNITS)
    start.wait(SECONDS)
    for _ in range(UNITS):
        unit = connection.unit(atomic=True)
        (delivery,) = consumer.receive(1, SECONDS)
        unit.take([delivery])
        unit.send(TextMessage(delivery.message.body), OVERLAP_OUT)
        unit.commit()


def test_no_two_transactions_are_written_at_a_time(stage):
    broker, start = Broker(), threading.Barrier(THREADS)
    names = [f"in {number}" for number in range(THREADS)]
    sent = [f"{number} of {name}" for name in names for number in range(UNITS)]
    for body in sent:
        broker.store.put(body.partition(" of ")[2], encoded(body))
    witness, connection = Witness(broker), stage(broker).connect()
    with ThreadPoolExecutor(THREADS) as pool:
        for moved in [pool.submit(move, connection, name, start) for name in names]:
            moved.result(SECONDS)
    assert not witness.wrong
    assert witness.committed == THREADS * UNITS
    assert witness.most <= 2
    assert Counter(body_of(kept.payload) for kept in broker.store.queues["out"]) == Counter(sent)
    assert not any(broker.store.queues[name] for name in names)


SENT = list("abcdef")


def refuse_one(service, frame):
    if frame.body.role == SENDER and getattr(frame.body.target, "address", None) == "forbidden":
        service.agree(frame, target=None)
        error = Error(condition="amqp:not-found", description="no")
        service.line.write(Detach(handle=frame.body.handle, closed=True, error=error), frame.channel)
    else:
        service.carry_out(frame)


@pytest.fixture
def doubtful_broker():
    doubtful_broker = Broker()  # Artemis: what has a duplicate id is sent before the transaction
    doubtful_broker.instead[Attach] = refuse_one
    doubtful_broker.store.put("in", encoded("first"))
    return doubtful_broker


@pytest.fixture
def session(stage, doubtful_broker):
    with ConnectionFactory(f"amqp://{stage(doubtful_broker).peer.address}").create_connection() as connection:
        connection.start()
        yield connection.create_session(transacted=True)


def test_nothing_that_was_taken_ahead_is_in_the_way(doubtful_broker, session):
    consumer, producer = session.create_consumer(Queue("in")), session.create_producer()
    assert consumer.receive(SECONDS).body == "first"
    for body in SENT:
        doubtful_broker.store.put("in", encoded(body))
    session.commit()
    until(lambda: len(consumer._receiver._consumer._buffer.ready) == len(SENT))  # they are taken ahead together
    assert consumer.receive(SECONDS).body == "a"
    producer.send(session.create_text_message("1", properties={"_AMQ_DUPL_ID": "x"}), Queue("out"))
    producer.send(session.create_text_message("2"), Queue("forbidden"))
    with pytest.raises(TransactionInDoubtError):
        session.commit()
    assert [consumer.receive(SECONDS).body for _ in SENT] == SENT


QUEUE = Queue("q")


@pytest.fixture
def plain_connection(stage):
    return stage(Broker()).connect()


@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_finished_unit_takes_no_message(plain_connection, how, atomic):
    unit = plain_connection.unit(atomic=atomic)
    unit.send(TextMessage("a"), QUEUE)
    getattr(unit, how)()
    with pytest.raises(IllegalStateError, match="finished"):
        unit.send(TextMessage("b"), QUEUE)


def test_a_unit_of_a_closed_connection_takes_no_message(plain_connection):
    unit = plain_connection.unit()
    unit.send(TextMessage("a"), QUEUE)
    plain_connection.close()
    with pytest.raises(ConnectionLostError):
        unit.send(TextMessage("b"), QUEUE)
