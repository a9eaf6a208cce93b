"""Database work and a unit of the broker in one transaction of the `transaction` package."""

import asyncio
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
import transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from transaction.interfaces import AlreadyInTransaction
from zope.sqlalchemy import register

from jmsjca import Queue, TextMessage
from jmsjca.errors import IllegalStateError, NotSupportedError
from jmsjca.spi import Capabilities
from jmsjca.testing.contract.harness import prepare
from jmsjca.transactions import SqlInbox
from jmsjca.transactions.broker_data_manager import join_unit
from jmsjca.transactions.sql_data_manager import join
from tests.unit.transactions.failures import leaves

IN, OUT = Queue("in"), Queue("out")
METADATA = sa.MetaData()
ORDERS = sa.Table("orders", METADATA, sa.Column("id", sa.Integer, primary_key=True))
_REFERENCE = sa.ForeignKey("orders.id", deferrable=True, initially="DEFERRED")  # checked when the database commits
LINES = sa.Table("lines", METADATA, sa.Column("id", sa.Integer, primary_key=True), sa.Column("order", _REFERENCE))


@pytest.fixture
def engine(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'orders.db'}")
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(connected):
    connection = connected()
    put(connection, IN)
    return connection


def put(connection, queue):
    unit = connection.unit()
    unit.send(prepare(TextMessage("text"), queue), queue)
    unit.commit()


def received_unit(connection, current):
    """Return a unit, joined, that took the message and sends another."""
    (delivery,) = connection.consumer(IN).receive(1, 60)
    unit = connection.unit()
    unit.take([delivery])
    unit.send(prepare(TextMessage("sent"), OUT), OUT)
    join_unit(unit, connection, current)
    return unit


def count(connection, queue):
    return sum(len(chunk) for chunk in connection.browse(queue))


def state(connection, engine):
    """Return the messages at the source, those at the destination, and the rows."""
    with engine.connect() as sql:
        rows = sql.scalar(sa.select(sa.func.count()).select_from(ORDERS))
    return count(connection, IN), count(connection, OUT), rows


def joined_session(engine, current):
    session = Session(engine)
    join(session, current)
    session.execute(ORDERS.insert().values(id=1))
    return session


class Failing:
    """A data manager whose vote fails."""

    transaction_manager = None

    def __init__(self, key):
        self._key = key

    def sortKey(self):  # noqa: N802
        return self._key

    def tpc_vote(self, _transaction):
        raise OSError("disk full")

    def ignore(self, _transaction):
        pass

    tpc_begin = commit = tpc_finish = tpc_abort = abort = ignore


@pytest.mark.parametrize("is_broker_first", [True, False])
def test_commit_writes_rows_and_settles(connection, engine, is_broker_first):
    current = transaction.TransactionManager().begin()
    if is_broker_first:
        received_unit(connection, current)
    with joined_session(engine, current):
        if not is_broker_first:
            received_unit(connection, current)
        assert state(connection, engine)[1:] == (0, 0)
        current.commit()
    assert state(connection, engine) == (0, 1, 1)


def test_abort_releases_and_writes_nothing(connection, engine):
    current = transaction.TransactionManager().begin()
    received_unit(connection, current)
    with joined_session(engine, current):
        current.abort()
    assert state(connection, engine) == (1, 0, 0)


def test_database_that_fails_to_commit_rolls_the_unit_back(connection, engine):
    current = transaction.TransactionManager().begin()
    received_unit(connection, current)
    with Session(engine) as session:
        session.execute(sa.text("PRAGMA foreign_keys = ON"))
        join(session, current)
        session.execute(ORDERS.insert().values(id=1))
        session.execute(LINES.insert().values(id=1, order=7))
        with pytest.raises(sa.exc.IntegrityError, match="FOREIGN KEY"):
            current.commit()
    assert state(connection, engine) == (1, 0, 0)


@leaves("a vote before the database's fails", "none", "redelivered, nothing sent")
def test_failed_vote_before_the_database_rolls_both_back(connection, engine):
    current = transaction.TransactionManager().begin()
    received_unit(connection, current)
    current.join(Failing("a"))
    with joined_session(engine, current), pytest.raises(OSError, match="disk full"):
        current.commit()
    assert state(connection, engine) == (1, 0, 0)


@leaves("a vote after the database's fails", "committed", "redelivered, nothing sent")
def test_vote_that_fails_after_the_database_leaves_rows_and_message(connection, engine):
    current = transaction.TransactionManager().begin()
    received_unit(connection, current)
    current.join(Failing("~~a"))
    with joined_session(engine, current), pytest.raises(OSError, match="disk full"):
        current.commit()
    assert state(connection, engine) == (1, 0, 1)


def test_broker_that_fails_leaves_the_rows(connection, engine):
    current = transaction.TransactionManager().begin()
    unit = received_unit(connection, current)
    unit.rollback()
    with joined_session(engine, current), pytest.raises(IllegalStateError):
        current.commit()
    assert state(connection, engine) == (1, 0, 1)


@pytest.fixture
def other(tmp_path):
    """A second database."""
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


def failing_session(engine, current):
    """Join a session whose commit fails."""
    session = Session(engine)
    join(session, current)
    session.execute(LINES.insert().values(id=1, order=7))
    return session


@pytest.mark.parametrize("is_inbox_first", [True, False])
def test_an_inbox_commits_after_all_other_databases(engine, other, is_inbox_first):
    """Its row would make the redelivered message a duplicate, so that the work of the other database were lost."""
    inbox = SqlInbox(engine)
    sessions = []  # kept, so that each has another place in the memory
    for number in range(10):
        current = transaction.TransactionManager().begin()
        if is_inbox_first:
            sessions.append(inbox.session(current))
        sessions.append(failing_session(other, current))
        inbox.session(current).execute(ORDERS.insert().values(id=number))
        with pytest.raises(sa.exc.IntegrityError, match="FOREIGN KEY"):
            current.commit()
        sessions[-1].close()
    with engine.connect() as connection:
        assert connection.scalars(sa.select(ORDERS.c.id)).all() == []


def test_zope_sqlalchemy_commits_before_the_broker(connection, engine):
    manager = transaction.TransactionManager()
    current = manager.begin()
    received_unit(connection, current)
    with Session(engine) as session:
        register(session, transaction_manager=manager, initial_state="changed")
        session.execute(ORDERS.insert().values(id=1))
        manager.commit()
    assert state(connection, engine) == (0, 1, 1)


def test_session_of_its_own_commit_is_refused_while_joined(engine):
    current = transaction.TransactionManager().begin()
    with joined_session(engine, current) as session:
        join(session, current)
        with session.begin_nested():
            session.execute(ORDERS.insert().values(id=2))
        with pytest.raises(IllegalStateError, match="Commit the transaction"):
            session.commit()
        session.rollback()
        current.abort()
        session.execute(ORDERS.insert().values(id=3))
        session.commit()
        assert session.scalars(sa.select(ORDERS.c.id)).all() == [3]


def test_session_of_two_phases_is_refused(engine):
    with Session(engine, twophase=True) as session, pytest.raises(NotSupportedError, match="twophase"):
        join(session, transaction.TransactionManager().begin())


def test_second_unit_is_refused(connection):
    current = transaction.TransactionManager().begin()
    received_unit(connection, current)
    with pytest.raises(IllegalStateError, match="one broker unit"):
        join_unit(connection.unit(), connection, current)
    current.abort()


@pytest.mark.parametrize("joined", ["unit", "session", "both"])
def test_transaction_with_an_optimistic_savepoint_commits(connection, engine, joined):
    """As zope.sqlalchemy makes it, of a database without savepoints."""
    current = transaction.TransactionManager().begin()
    if joined != "session":
        received_unit(connection, current)
    if joined != "unit":
        joined_session(engine, current)
    current.savepoint(optimistic=True)
    current.commit()
    assert state(connection, engine)[1:] == (int(joined != "session"), int(joined != "unit"))


@pytest.mark.parametrize("joined", ["unit", "session"])
def test_savepoint_that_must_be_able_to_roll_back_is_refused(connection, engine, joined):
    current = transaction.TransactionManager().begin()
    if joined == "unit":
        received_unit(connection, current)
    else:
        joined_session(engine, current)
    with pytest.raises(TypeError, match="Savepoints unsupported"):
        current.savepoint()
    current.abort()


def test_explicit_manager_begins_again_after_a_failed_commit_and_an_abort(connection, engine):
    manager = transaction.TransactionManager(explicit=True)
    received_unit(connection, manager.begin())
    joined_session(engine, manager.get())
    manager.get().addBeforeCommitHook(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        manager.commit()  # as `with manager` does at its end
    with pytest.raises(AlreadyInTransaction), manager:
        pass
    manager.abort()
    with manager as current:
        joined_session(engine, current)
        received_unit(connection, current)
    assert state(connection, engine) == (0, 1, 1)


@dataclass
class WithoutTransactions:
    """A connection to a broker without atomic units."""

    capabilities: Capabilities


def test_broker_without_atomic_units_is_refused(connection):
    other = WithoutTransactions(Capabilities(transacted_receive=True, transacted_send=True))
    with pytest.raises(NotSupportedError, match="'atomic'"):
        join_unit(connection.unit(), other, transaction.TransactionManager().begin())


async def _two_handlers(engine, manager_of):
    """Run two handlers on one loop: the second commits while the first is at work, and the first aborts."""
    written, committed = asyncio.Event(), asyncio.Event()

    async def first():
        manager = manager_of()
        async with AsyncSession(engine) as session:
            join(session, manager.get())
            await session.execute(ORDERS.insert().values(id=1))
            written.set()
            await committed.wait()
            await session.run_sync(lambda _: manager.abort())

    async def second():
        manager = manager_of()
        await written.wait()
        async with AsyncSession(engine) as session:
            await session.run_sync(lambda _: manager.commit())
        committed.set()

    await asyncio.gather(first(), second())
    async with AsyncSession(engine) as session:
        return (await session.scalars(sa.select(ORDERS.c.id))).all()


@pytest.mark.parametrize(("has_own_manager", "rows"), [(True, []), (False, [1])])
def test_one_manager_per_unit_keeps_handlers_of_one_loop_apart(tmp_path, has_own_manager, rows):
    """With one manager for the thread, the second handler commits the row of the first: the fault to prevent."""
    shared = transaction.ThreadTransactionManager()

    async def run():
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'orders.db'}")
        async with engine.begin() as sql:
            await sql.run_sync(METADATA.create_all)
        found = await _two_handlers(engine, transaction.TransactionManager if has_own_manager else lambda: shared)
        await engine.dispose()
        return found

    assert asyncio.run(run()) == rows
