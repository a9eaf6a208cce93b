"""Units of Java's clients are branches of XA: prepared, committed, rolled back, and found by another process."""

import base64
import json
import threading
import uuid

import pytest
import sqlalchemy as sa
import transaction

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.config import ConnectionURL, Limits
from jmsjca.config.clock import SYSTEM_CLOCK
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.management.commands import diagnose
from jmsjca.providers.java.connection import JavaProvider
from jmsjca.spi import Order
from jmsjca.transactions import LastResource, joined_session, two_phase_session
from jmsjca.transactions.last_resource import Decision

PAIRS = ("artemis-java",)
SECONDS = 30
WORK = sa.Table("work", sa.MetaData(), sa.Column("text", sa.String))


@pytest.fixture(scope="module", params=PAIRS)
def url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture
def decider():
    return uuid.uuid4().bytes


@pytest.fixture
def connect(url, decider):
    """Return a function that connects with XA, with options for the URL."""
    made = []

    def new(**options):
        address = ConnectionURL.parse(url + "".join(f"&{name}={value}" for name, value in options.items()))
        told = {"client_id": None, "limits": Limits(), "clock": SYSTEM_CLOCK, "on_lost": lambda error: None}
        made.append(JavaProvider().connect_two_phase(address, None, decider=decider, **told))
        return made[-1]

    yield new
    for connection in made:
        connection.close()


@pytest.fixture
def queue():
    return Queue(f"xa.{uuid.uuid4().hex}")


@pytest.fixture
def target():
    return Queue(f"xa.{uuid.uuid4().hex}")


def send(connection, queue, *bodies):
    unit = connection.unit()
    for body in bodies:
        unit.send(TextMessage(body), queue)
    unit.commit()


def received(connection, consumer, target):
    """Return a unit that has taken a message and sends it on."""
    [delivery] = consumer.receive(1, SECONDS)
    unit = connection.unit()
    unit.take([delivery])
    unit.send(TextMessage(delivery.message.body), target)
    return unit


def bodies(connection, queue):
    return [delivery.message.body for chunk in connection.browse(queue) for delivery in chunk]


def ours(connection, decider):
    return [xid for xid in connection.prepared() if xid.qualifier.startswith(decider)]


@pytest.mark.parametrize("order", [Order.PREFIX, Order.ANY])
def test_prepared_unit_is_committed_or_rolled_back(connect, decider, queue, target, order):
    connection = connect()
    send(connection, queue, "a", "b")
    consumer = connection.consumer(queue, order=order)
    unit = received(connection, consumer, target)
    xid = unit.prepare()
    assert ours(connection, decider) == [xid]
    assert bodies(connection, target) == []
    unit.rollback()
    unit = received(connection, consumer, target)
    unit.prepare()
    unit.commit()
    assert ours(connection, decider) == []
    assert bodies(connection, target) == ["a"]
    received(connection, consumer, target).commit()
    assert bodies(connection, target) == ["a", "b"]


def test_units_end_in_any_order(connect, queue, target):
    connection = connect()
    send(connection, queue, "a", "b", "c")
    consumer = connection.consumer(queue, order=Order.ANY)
    units = [received(connection, consumer, target) for _ in "abc"]
    for unit in units:
        unit.prepare()
    units[2].commit()
    units[0].rollback()
    units[1].commit()
    received(connection, consumer, target).commit()
    assert bodies(connection, target) == ["c", "b", "a"]


def test_unit_that_only_sends(connect, target):
    connection = connect()
    first, second, empty = (connection.unit() for _ in range(3))
    first.send(TextMessage("a"), target)
    second.send(TextMessage("b"), target)
    assert first.prepare() != second.prepare()
    assert empty.prepare() is None
    for unit in (second, empty):
        unit.commit()
    first.rollback()
    assert bodies(connection, target) == ["b"]


@pytest.mark.parametrize("commits", [True, False])
def test_prepared_unit_of_a_lost_connection_is_ended_by_another(connect, decider, queue, target, commits, caplog):
    owner = connect()
    send(owner, queue, "a")
    unit = received(owner, owner.consumer(queue), target)
    xid = unit.prepare()
    owner.close(0)
    recoverer = connect()
    assert ours(recoverer, decider) == [xid]
    for _ in range(2):  # a second time has no effect
        recoverer.end_prepared(xid, commits=commits)
    assert ours(recoverer, decider) == []
    assert bodies(recoverer, target) == ["a"] * commits
    assert bodies(recoverer, queue) == ["a"] * (not commits)
    unit.commit()  # it was decided: no error, whatever the connection does
    assert "is committed later, by recovery" in caplog.text


def test_decision_that_was_carried_out_by_another(connect, queue, target):
    """The owner's commit and rollback of an unknown branch succeed: recovery was first."""
    owner, recoverer = connect(), connect()
    send(owner, queue, "a", "b")
    consumer = owner.consumer(queue)
    for commits in (False, True):
        unit = received(owner, consumer, target)
        recoverer.end_prepared(unit.prepare(), commits=commits)
        unit.commit() if commits else unit.rollback()
    assert bodies(owner, target) == ["a"]


def test_unit_of_a_lost_connection_is_not_prepared(connect, queue, target):
    connection = connect()
    send(connection, queue, "a")
    unit = received(connection, connection.consumer(queue), target)
    connection.close(0)
    with pytest.raises(ConnectionLostError):
        unit.prepare()
    [delivery] = connect().consumer(queue).receive(1, SECONDS)
    assert delivery.message.body == "a"


def test_xa_can_be_switched_off(connect, queue):
    connection = connect(xa="false")
    assert connection.qualifier is None
    send(connection, queue, "a")
    assert bodies(connection, queue) == ["a"]


def test_temporary_queue_and_check(connect):
    connection = connect()
    queue = connection.temporary("queue")
    connection.check(queue)
    consumer = connection.consumer(queue)
    send(connection, queue, "a")
    [delivery] = consumer.receive(1, SECONDS)
    assert delivery.message.body == "a"


def test_unit_of_two_receipts_is_refused(connect, queue, target):
    connection = connect()
    send(connection, queue, "a", "b")
    consumer = connection.consumer(queue, order=Order.ANY)
    unit = received(connection, consumer, target)
    unit.take(consumer.receive(1, SECONDS))
    with pytest.raises((TransactionRolledBackError, NotImplementedError)):
        unit.prepare()
    assert sorted(bodies(connection, queue)) == ["a", "b"]


@pytest.fixture
def engine(tmp_path):
    made = sa.create_engine(f"sqlite:///{tmp_path}/app.db", poolclass=sa.NullPool)
    WORK.metadata.create_all(made)
    yield made
    made.dispose()


def written(engine):
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(WORK.c.text)))


def decisions(last):
    with last.engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).where(last.table.c.commits))


def test_recovery_beside_a_living_owner(url, connect, engine, queue, target, monkeypatch):
    """It decides first, so the owner fails, and the message is redelivered: the work is done once."""
    last, done, attempts = LastResource(engine, interval=SECONDS), threading.Event(), []
    recoverer = connect()

    def make(decision, session, commit):
        attempts.append(decision)
        if len(attempts) == 1:
            for _ in range(2):
                last.recover(recoverer)
        original(decision, session, commit)

    original = Decision.make
    monkeypatch.setattr(Decision, "make", make)
    adapter = ResourceAdapter(url, last_resource=last)

    @adapter.listener(queue, transaction="required")
    def handle(message, session, transaction):
        if message.body == "last":
            done.set()
            return
        session.create_producer(target).send(session.create_text_message(message.body))
        joined_session(engine, transaction).execute(WORK.insert().values(text=message.body))

    with adapter:
        adapter.send(queue, "a")
        adapter.send(queue, "last")
        assert done.wait(SECONDS)
    assert len(attempts) == 2
    assert (written(engine), bodies(connect(), target)) == (["a"], ["a"])


def test_database_that_does_not_answer(url, connect, engine, queue, target, monkeypatch):
    """Recovery rolls the unit back, and the message is redelivered although its process lives."""
    last, done, attempts = LastResource(engine, interval=0.2), threading.Event(), []

    def make(decision, session, commit):
        attempts.append(decision)
        if len(attempts) == 1:
            decision.commits = None
            raise TransactionInDoubtError("no answer")
        original(decision, session, commit)
        done.set()

    original = Decision.make
    monkeypatch.setattr(Decision, "make", make)
    adapter = ResourceAdapter(url, last_resource=last)

    @adapter.listener(queue, transaction="required", concurrency_mode="cc")
    def handle(message, session, transaction):
        session.create_producer(target).send(session.create_text_message(message.body))
        joined_session(engine, transaction).execute(WORK.insert().values(text=message.body))

    with adapter:
        adapter.send(queue, "a")
        assert done.wait(SECONDS)
    assert (written(engine), bodies(connect(), target)) == (["a"], ["a"])


@pytest.mark.parametrize("fails", [False, True])
def test_session_of_a_transaction_manager(url, connect, engine, target, fails):
    manager, last = transaction.TransactionManager(explicit=True), LastResource(engine, interval=SECONDS)
    factory = ConnectionFactory(url, transaction_locator=lambda: manager, last_resource=last)
    with factory.create_connection() as connection, connection.create_session() as session:
        with manager as current:
            joined_session(engine, current).execute(WORK.insert().values(text="a"))
            session.create_producer(target).send(session.create_text_message("a"))
            if fails:
                manager.doom()
                manager.abort()
                manager.begin()
        session.create_producer(target).send(session.create_text_message("outside"))
    assert (written(engine), bodies(connect(), target)) == (["a"] * (not fails), ["a"] * (not fails) + ["outside"])
    assert decisions(last) == (not fails)


def test_session_of_two_phases_decides(url, connect, postgresql, target):
    engine, manager = (
        sa.create_engine(postgresql.url(), poolclass=sa.NullPool),
        transaction.TransactionManager(explicit=True),
    )
    WORK.metadata.drop_all(engine)
    WORK.metadata.create_all(engine)
    last = LastResource(engine, interval=SECONDS)
    factory = ConnectionFactory(url, transaction_locator=lambda: manager, last_resource=last)
    before = last.identity() and decisions(last)
    with factory.create_connection() as connection, connection.create_session() as session, manager as current:
        two_phase_session(engine, current).execute(WORK.insert().values(text="a"))
        session.create_producer(target).send(session.create_text_message("a"))
    assert (written(engine), bodies(connect(), target), decisions(last)) == (["a"], ["a"], before + 1)
    engine.dispose()


def test_no_xa_commits_in_one_phase(url, connect, engine, target):
    manager, last = transaction.TransactionManager(explicit=True), LastResource(engine, interval=SECONDS)
    told = {"options": {"JMSJCA.NoXA": "true"}, "transaction_locator": lambda: manager, "last_resource": last}
    factory = ConnectionFactory(url, **told)
    with factory.create_connection() as connection, connection.create_session() as session, manager as current:
        joined_session(engine, current).execute(WORK.insert().values(text="a"))
        session.create_producer(target).send(session.create_text_message("a"))
    assert (written(engine), bodies(connect(), target)) == (["a"], ["a"])
    assert not sa.inspect(engine).has_table("jmsjca_decisions")


def test_doctor_lists_prepared_units(url, connect, target):
    connection = connect()
    unit = connection.unit()
    unit.send(TextMessage("a"), target)
    xid = unit.prepare()
    [finding] = [each for each in diagnose(url) if each.check == "prepared units"]
    assert str(xid) in finding.detail
    unit.rollback()


@pytest.fixture
def operate(broker_url, decider):
    """Return a function that lets an operator of Artemis end our prepared transactions, and returns their number."""
    with ConnectionFactory(broker_url("artemis-amqp")).create_connection() as connection:
        session = connection.create_session()
        replies = session.create_temporary_queue()
        consumer = session.create_consumer(replies)

        def call(operation, *arguments):
            told = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": operation}
            request = TextMessage(json.dumps(arguments), properties=told, reply_to=replies)
            session.create_producer(Queue("activemq.management")).send(request)
            [result] = json.loads(consumer.receive(timeout=SECONDS).body)
            return result

        def end(operation):
            named = [text.partition("base64: ")[2].split()[0] for text in call("listPreparedTransactions")]
            return sum(call(operation, name) for name in named if decider in base64.urlsafe_b64decode(name))

        yield end


@pytest.mark.parametrize("url", ["artemis-java"], indirect=True)
class TestHeuristicOutcomes:
    """An operator ends what is prepared."""

    @pytest.fixture
    def unit(self, connect, queue, target):
        connection = connect()
        send(connection, queue, "a")
        unit = received(connection, connection.consumer(queue), target)
        unit.prepare()
        return unit

    def test_what_was_rolled_back_cannot_be_committed(self, connect, decider, unit, operate, target):
        assert operate("rollbackPreparedTransaction") == 1
        with pytest.raises(TransactionRolledBackError, match="heuristic decision"):
            unit.commit()
        assert (ours(connect(), decider), bodies(connect(), target)) == ([], [])

    def test_what_was_committed_cannot_be_rolled_back(self, connect, decider, operate, target):
        connection = connect()
        unit = connection.unit()
        unit.send(TextMessage("a"), target)
        unit.prepare()
        assert operate("commitPreparedTransaction") == 1
        with pytest.raises(TransactionInDoubtError, match="heuristic decision"):
            unit.rollback()
        assert (ours(connect(), decider), bodies(connect(), target)) == ([], ["a"])

    def test_the_same_decision_is_no_error(self, connect, decider, unit, operate, target):
        assert operate("commitPreparedTransaction") == 1
        unit.commit()
        assert (ours(connect(), decider), bodies(connect(), target)) == ([], ["a"])
