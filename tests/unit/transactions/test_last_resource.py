"""The database that decides what a broker has prepared: its rows, and recovery by them."""

import logging
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import create_async_engine
from transaction import TransactionManager

from jmsjca import ConnectionFactory, ResourceAdapter
from jmsjca.errors import (
    ArgumentTypeError,
    ConnectionLostError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.spi import Capabilities, Xid
from jmsjca.transactions import LastResource, join_unit, joined_session
from jmsjca.transactions.last_resource import Decision

WORK = sa.Table("work", sa.MetaData(), sa.Column("text", sa.String))
PATIENCE = 30


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/app.db"


@pytest.fixture
def engine(url):
    made = sa.create_engine(url)
    WORK.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def last(engine):
    return LastResource(engine, interval=0.01)


class Branches:
    """A broker's connection with prepared units."""

    capabilities = Capabilities(atomic=True)
    decider = None
    broker = "a broker"

    def __init__(self, last):
        self.qualifier = last.identity() + b"host"
        self.open, self.ended, self.error = [], [], None

    def xid(self, number=b"1"):
        return Xid(number, self.qualifier)

    def prepared(self):
        if self.error:
            raise self.error
        return list(self.open)

    def end_prepared(self, xid, *, commits):
        self.ended.append((xid.number, commits))
        self.open.remove(xid)

    def consumer(self, *args, **options): ...

    browse = unit = check = temporary = remove = admin = close = consumer


class Unit:
    """A unit of it."""

    def __init__(self, connection, *, is_empty=False):
        self.connection, self.is_empty, self.calls = connection, is_empty, []

    def prepare(self):
        self.calls.append("prepare")
        if self.is_empty:
            return None
        self.connection.open.append(self.connection.xid())
        return self.connection.xid()

    def commit(self):
        self.calls.append("commit")

    def rollback(self, *, delay=0.0):
        self.calls.append("rollback")

    def abandon(self):
        self.calls.append("abandon")


@pytest.fixture
def broker(last):
    made = Branches(last)
    last.watch(made)
    made.error = ConnectionLostError("The thread is to end.")
    last._thread.join(PATIENCE)
    made.error = None
    return made


@pytest.fixture
def unit(broker):
    return Unit(broker)


@pytest.fixture
def manager(unit, broker):
    made = TransactionManager(explicit=True)
    made.begin()
    join_unit(unit, broker, made)
    return made


def written(engine):
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(WORK.c.text)))


def rows(last):
    with last.engine.connect() as connection:
        columns = last.table.c
        found = connection.execute(sa.select(columns.xid, columns.commits).where(columns.xid != "identity"))
        return dict(list(found))


def write(engine, manager):
    joined_session(engine, manager).execute(WORK.insert().values(text="a"))


class TestOneTransaction:
    def test_the_row_is_committed_between_the_phases(self, engine, last, broker, unit, manager):
        write(engine, manager)
        manager.commit()
        assert unit.calls == ["prepare", "commit"]
        assert (written(engine), rows(last)) == (["a"], {str(broker.xid()): True})

    def test_a_vote_that_fails_rolls_both_back(self, engine, last, unit, manager):
        write(engine, manager)
        manager.get().addBeforeCommitHook(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            manager.commit()
        manager.abort()
        assert (unit.calls, written(engine), rows(last)) == (["rollback"], [], {})

    def test_an_empty_unit_needs_no_row(self, engine, last, broker):
        empty, manager = Unit(broker, is_empty=True), TransactionManager(explicit=True)
        manager.begin()
        join_unit(empty, broker, manager)
        write(engine, manager)
        manager.commit()
        assert (empty.calls, written(engine), rows(last)) == (["prepare", "commit"], ["a"], {})

    def test_another_engine_of_the_same_database_decides_too(self, engine, url, last, broker, unit, manager):
        other = sa.create_engine(url)
        write(other, manager)
        manager.commit()
        assert (unit.calls, rows(last)) == (["prepare", "commit"], {str(broker.xid()): True})
        other.dispose()

    @pytest.mark.parametrize("has_table", [True, False])
    def test_another_database_commits_before_the_broker(self, tmp_path, last, unit, manager, has_table):
        other = sa.create_engine(f"sqlite:///{tmp_path}/other.db")
        WORK.metadata.create_all(other)
        if has_table:
            LastResource(other).identity()
        write(other, manager)
        manager.commit()
        assert (unit.calls, written(other), rows(last)) == (["commit"], ["a"], {})
        other.dispose()

    def test_without_a_database_the_broker_commits_at_once(self, unit, manager):
        manager.commit()
        assert unit.calls == ["commit"]

    def test_recovery_that_was_first_makes_the_owner_fail(self, engine, last, broker, unit, manager):
        assert last.decide(broker.xid()) is False
        write(engine, manager)
        with pytest.raises(IntegrityError):
            manager.commit()
        assert (unit.calls, written(engine)) == (["prepare", "rollback"], [])

    def test_a_failure_after_the_decision_does_not_undo_it(self, engine, unit, manager):
        class Late:
            transaction_manager = manager

            def sortKey(self):  # noqa: N802
                return "~~~~"

            def tpc_vote(self, transaction):
                raise OSError("too late")

            def nothing(self, transaction): ...

            tpc_begin = commit = tpc_finish = tpc_abort = abort = nothing

        write(engine, manager)
        manager.get().join(Late())
        with pytest.raises(OSError, match="too late"):
            manager.commit()
        assert (unit.calls, written(engine)) == (["prepare", "commit"], ["a"])


class TestLostReplyOfTheDatabase:
    @pytest.fixture
    def session(self, engine):
        with orm.Session(engine) as made:
            made.execute(WORK.insert().values(text="a"))
            yield made

    def test_the_row_tells_that_it_has_committed(self, engine, last, broker, session):
        def commit():
            session.commit()
            raise OperationalError("commit", {}, OSError("lost"))

        decision = Decision(last, broker.xid())
        decision.make(session, commit)
        assert decision.commits is True
        assert written(engine) == ["a"]

    def test_the_row_tells_that_it_has_not(self, engine, last, broker, session):
        def commit():
            raise OperationalError("commit", {}, OSError("lost"))

        decision = Decision(last, broker.xid())
        with pytest.raises(OperationalError):
            decision.make(session, commit)
        assert decision.commits is False
        assert (written(engine), rows(last)) == ([], {str(broker.xid()): False})

    def test_recovery_ends_it_if_the_database_is_gone(self, engine, last, broker, unit, manager, monkeypatch):
        def fail(xid):
            raise OperationalError("decide", {}, OSError("gone"))

        monkeypatch.setattr(last, "decide", fail)
        monkeypatch.setattr(orm.Session, "commit", lambda session: fail(None))
        write(engine, manager)
        with pytest.raises(TransactionInDoubtError, match="recovery ends the prepared unit"):
            manager.commit()
        assert unit.calls == ["prepare", "abandon"]
        monkeypatch.undo()
        for _ in range(2):
            last.recover(broker)
        assert (broker.ended, written(engine)) == ([(b"1", False)], [])


class TestRecovery:
    @pytest.mark.parametrize("commits", [True, False])
    def test_a_unit_that_two_looks_have_seen_is_ended(self, last, broker, commits, caplog):
        broker.open.append(broker.xid())
        if commits:
            with last.engine.begin() as connection:
                connection.execute(last.insert(broker.xid(), commits=True))
        assert (last.recover(broker), broker.ended, last.prepared) == (0, [], 1)
        assert (last.recover(broker), broker.ended) == (1, [(b"1", commits)])
        assert (
            f"Recovery has {'committed the prepared unit' if commits else 'rolled back'} {broker.xid()}" in caplog.text
        )
        last.recover(broker)
        assert rows(last) == ({} if commits else {str(broker.xid()): False})
        assert last.prepared == 0

    def test_units_of_another_database_are_left(self, last, broker):
        broker.open.append(Xid(b"1", b"another database"))
        for _ in range(3):
            assert last.recover(broker) == 0
        assert (broker.ended, last.prepared) == ([], 0)

    def test_a_row_is_deleted_when_the_broker_has_committed(self, last, broker):
        other = Xid(b"2", last.identity() + b"another broker")
        with last.engine.begin() as connection:
            for xid in (broker.xid(), other):
                connection.execute(last.insert(xid, commits=True))
        broker.open.append(broker.xid())
        last.recover(broker)
        assert rows(last) == {str(broker.xid()): True, str(other): True}
        broker.open.clear()
        last.recover(broker)
        assert rows(last) == {str(other): True}

    def test_expired_rows_of_rollbacks_are_deleted(self, engine):
        now = 0.0
        last = LastResource(engine, keep=10, clock=lambda: now)
        broker = Branches(last)
        last.decide(broker.xid())
        now = 9.0
        last.recover(broker)
        assert rows(last) == {str(broker.xid()): False}
        now = 11.0
        last.recover(broker)
        assert rows(last) == {}
        assert last.identity() == LastResource(engine).identity()

    def test_a_unit_that_was_ended_by_hand_is_reported(self, last, broker, caplog):
        def end(xid, *, commits):
            broker.open.remove(xid)
            raise TransactionRolledBackError("a heuristic decision")

        broker.open.append(broker.xid())
        broker.end_prepared = end
        for _ in range(3):
            last.recover(broker)
        assert caplog.text.count("Recovery has found a prepared unit that was ended by hand") == 1

    def test_a_thread_looks_while_the_connection_is_open(self, engine):
        last = LastResource(engine, interval=0.01)
        broker, ended = Branches(last), threading.Event()
        broker.open.append(broker.xid())
        broker.end_prepared = lambda xid, commits: (broker.open.clear(), ended.set())
        last.watch(broker)
        assert ended.wait(PATIENCE)
        thread = last._thread
        broker.error = ConnectionLostError("closed")
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def test_a_database_that_is_gone_for_a_while_is_logged(self, last, broker, monkeypatch, caplog):
        seen = threading.Event()

        def fail(connection):
            seen.set()
            broker.error = ConnectionLostError("closed")
            monkeypatch.undo()
            raise OperationalError("look", {}, OSError("gone"))

        monkeypatch.setattr(last, "recover", fail)
        with caplog.at_level(logging.WARNING):
            last.watch(broker)
            assert seen.wait(PATIENCE)
            last._thread.join(PATIENCE)
        assert "Recovery of prepared units goes on later" in caplog.text


def test_processes_agree_about_the_identity(engine, url):
    other = sa.create_engine(url)
    assert LastResource(engine).identity() == LastResource(other).identity()
    assert LastResource(engine).identity() != LastResource(engine, name="others").identity()
    other.dispose()


def test_a_database_that_cannot_be_reached(tmp_path):
    last = LastResource(sa.create_engine(f"sqlite:///{tmp_path}/missing/app.db"))
    with pytest.raises(ResourceAllocationError, match="jmsjca_decisions of decisions about prepared units cannot be"):
        last.identity()


def test_an_asynchronous_engine_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match="a synchronous Engine of SQLAlchemy"):
        LastResource(create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/app.db"))


@pytest.mark.parametrize("kind", [ConnectionFactory, ResourceAdapter])
def test_an_engine_is_no_last_resource(engine, kind):
    with pytest.raises(ArgumentTypeError, match="last_resource must be a LastResource"):
        kind("embedded://shop", last_resource=engine)
