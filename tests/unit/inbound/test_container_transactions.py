"""Container-managed transactions: the handler's database work and the receipt commit together."""

import asyncio
import queue
import threading

import pytest
import sqlalchemy as sa
import transaction
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session as SqlSession
from zope.sqlalchemy import register

from jmsjca import Hooks, Outcome, Queue, Reject, ResourceAdapter, Retry
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidOptionError,
    TransactionRolledBackError,
)
from jmsjca.transactions import container_transaction, join, join_unit, joined_session, locators
from jmsjca.transactions.broker_data_manager import is_in_doubt
from jmsjca.transactions.container_transaction import ContainerTransaction
from tests.unit.inbound.listeners import PATIENCE, in_thread, send, waiting
from tests.unit.transactions.failures import leaves

METADATA = sa.MetaData()
ROWS = sa.Table("rows", METADATA, sa.Column("text", sa.String, primary_key=True))
_CHECKED_LATE = sa.ForeignKey("rows.text", deferrable=True, initially="DEFERRED")
LINES = sa.Table("lines", METADATA, sa.Column("of", sa.String, _CHECKED_LATE, primary_key=True))
MODES = ["serial", "sync", "cc"]
SPECS = [{"concurrency_mode": mode} for mode in MODES] + [{"concurrency_mode": "cc", "hold_until_ack": True}]


@pytest.fixture
def engine(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}", poolclass=sa.NullPool)
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


def insert(session, text):
    session.execute(ROWS.insert().values(text=text))


def rows(engine):
    with engine.connect() as connection:
        return sorted(connection.scalars(sa.select(ROWS.c.text)))


def left(adapter):
    """The messages at the source and at the destination."""
    return [[text for text, _ in waiting(adapter, name)] for name in ("q", "out")]


def listen(adapter, handler, **spec):
    adapter.listener("q", **{"transaction": "required", **spec})(handler)
    adapter.start()


def outcome(recorder):
    return recorder.outcomes.get(timeout=PATIENCE)[0]


class TestOneHandler:
    @pytest.mark.parametrize("spec", SPECS)
    def test_all_commit_together(self, adapter, recorder, engine, spec):
        """JMSJCA: testContainerManaged."""
        send(adapter, "a")

        def handler(message, session, transaction):
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            assert rows(engine) == []
            message.acknowledge()

        listen(adapter, handler, **spec)
        assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], ["sent"]])

    @pytest.mark.parametrize("spec", SPECS)
    @leaves("the handler raises", "none", "redelivered, nothing sent")
    def test_an_error_rolls_all_back(self, adapter, recorder, engine, spec):
        send(adapter, "a")
        failures = [KeyError("once")]

        def handler(message, session, transaction):
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            if failures:
                raise failures.pop()
            message.acknowledge()

        listen(adapter, handler, **spec)
        outcomes = [outcome(recorder), outcome(recorder)]
        if spec["concurrency_mode"] != "serial":  # another thread may commit before this one tells its rollback
            outcomes.sort(key=[Outcome.ROLLED_BACK, Outcome.COMMITTED].index)
        assert outcomes == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], ["sent"]])

    @pytest.mark.parametrize("give_up", ["mark", "doom", "abort", "reject", "retry"])
    @leaves("the handler marks the unit for rollback", "none", "redelivered, nothing sent")
    def test_every_way_to_give_up_takes_the_row_back(self, adapter, recorder, engine, give_up):
        send(adapter, "a")
        reasons = []

        def handler(message, session, transaction):
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            reasons.append(message.redelivery_count)
            if len(reasons) > 1:
                return
            if give_up == "reject":
                raise Reject("no")
            if give_up == "retry":
                raise Retry(delay=0.01)
            {"mark": message.set_rollback_only, "doom": transaction.doom, "abort": transaction.abort}[give_up]()

        listen(adapter, handler, redelivery_handling="9:move(queue:dlq)")
        assert outcome(recorder) is Outcome.ROLLED_BACK
        if give_up == "reject":  # it is moved when it is redelivered, in a unit of its own
            with adapter.connection_factory().create_connection() as connection:
                consumer = connection.create_session().create_consumer(Queue("dlq"))
                assert consumer.receive(timeout=PATIENCE).body == "a"
        else:
            assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        done = give_up != "reject"
        assert (rows(engine), left(adapter)) == (["a"] if done else [], [[], ["sent"] if done else []])

    @leaves("the database alone rolls back: its commit fails", "none", "redelivered, nothing sent")
    def test_a_database_that_cannot_commit_rolls_the_message_back(self, adapter, recorder, engine):
        send(adapter, "a")

        def handler(message, session, transaction):
            database = joined_session(engine, transaction)
            insert(database, message.body)
            database.execute(LINES.insert().values(of="missing"))
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))

        listen(adapter, handler, redelivery_handling="2:move(queue:dlq)")
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK] * 2
        with adapter.connection_factory().create_connection() as connection:
            moved = connection.create_session().create_consumer(Queue("dlq")).receive(timeout=PATIENCE)
        adapter.stop()
        assert (rows(engine), left(adapter)) == ([], [[], []])
        assert any("FOREIGN KEY" in str(value).upper() for value in moved.properties.values())

    @pytest.mark.parametrize("end", ["rollback", "close"])
    @leaves("the handler rolls back or closes its session", "none", "redelivered, nothing sent")
    def test_a_session_that_the_handler_has_ended_rolls_all_back(self, adapter, recorder, engine, end):
        send(adapter, "a")
        attempts = []

        def handler(message, transaction):
            database = joined_session(engine, transaction)
            insert(database, message.body)
            attempts.append(1)
            if len(attempts) == 1:
                getattr(database, end)()

        listen(adapter, handler)
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], []])

    @leaves("the connection to the broker is lost before the commit", "none", "redelivered, nothing sent")
    def test_a_connection_that_is_closed_before_the_commit_leaves_no_row(self, adapter, recorder, engine):
        """The handler returns after the listener was stopped."""
        send(adapter, "a")
        inserted, go_on = threading.Event(), threading.Event()

        def handler(message, transaction):
            insert(joined_session(engine, transaction), message.body)
            inserted.set()
            go_on.wait(PATIENCE)

        listen(adapter, handler)
        assert inserted.wait(PATIENCE)
        assert not adapter.stop(0)
        go_on.set()
        assert outcome(recorder) is Outcome.LOST
        assert (rows(engine), left(adapter)) == ([], [["a"], []])

    def test_savepoints_of_the_database_work(self, adapter, recorder, engine):
        send(adapter, "a")

        def handler(message, transaction):
            database = joined_session(engine, transaction)
            insert(database, message.body)
            with pytest.raises(sa.exc.IntegrityError), database.begin_nested():
                insert(database, message.body)
            insert(database, "b")

        listen(adapter, handler)
        assert outcome(recorder) is Outcome.COMMITTED
        assert rows(engine) == ["a", "b"]

    def test_the_handler_cannot_commit(self, adapter, recorder, engine):
        send(adapter, "a")
        errors = []

        def handler(message, transaction):
            database = joined_session(engine, transaction)
            insert(database, message.body)
            if not errors:
                with pytest.raises(IllegalStateError, match="handler's return commits") as caught:
                    transaction.commit()
                errors.append(caught.value)

        listen(adapter, handler)
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        assert rows(engine) == ["a"]

    def test_a_second_broker_and_savepoints_are_refused(self, adapter, recorder, connected):
        send(adapter, "a")
        other, errors = connected(), queue.Queue()

        def handler(transaction):
            for act in (lambda: join_unit(other.unit(), other, transaction), transaction.savepoint):
                try:
                    act()
                except (IllegalStateError, TypeError) as error:
                    errors.put(str(error))

        listen(adapter, handler)
        outcome(recorder)
        assert "one broker connection" in errors.get(timeout=PATIENCE)
        assert "Savepoints unsupported" in errors.get(timeout=PATIENCE)

    @pytest.mark.parametrize("spec", SPECS, ids=str)
    def test_an_optimistic_savepoint_changes_nothing(self, adapter, recorder, engine, spec):
        send(adapter, "a")

        def handler(message, transaction):
            insert(joined_session(engine, transaction), message.body)
            transaction.savepoint(optimistic=True)
            message.acknowledge()

        listen(adapter, handler, **spec)
        assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], []])


class TestTheThreadsManager:
    def test_it_is_that_of_the_unit_while_the_handler_runs_and_restored_after(self, jms_broker_url):
        settled, own = queue.Queue(), []

        class Watch(Hooks):
            def settled(self, endpoint, outcome, messages):
                settled.put((outcome, transaction.manager.manager))

        def handler(message, transaction):
            own.append((transaction, thread_manager()))
            if len(own) == 1:
                raise KeyError(message.body)

        adapter = ResourceAdapter(jms_broker_url, hooks=[Watch()])
        send(adapter, "a", "b")
        listen(adapter, handler)
        seen = [settled.get(timeout=PATIENCE) for _ in range(3)]
        adapter.stop()
        assert [outcome for outcome, _ in seen] == [Outcome.ROLLED_BACK, Outcome.COMMITTED, Outcome.COMMITTED]
        assert all(given is current for given, current in own)
        assert len({id(given) for given, _ in own}) == 3
        assert len({id(manager) for _, manager in seen}) == 1
        assert not {id(given) for given, _ in own} & {id(manager) for _, manager in seen}

    def test_a_locator_names_it(self, adapter, recorder, monkeypatch):
        own, seen = transaction.ThreadTransactionManager(), []
        monkeypatch.setattr(locators, "find_locator", {"shop": lambda: own}.__getitem__)
        send(adapter, "a")

        def handler(message, transaction):
            seen.append((own.manager is transaction, thread_manager() is transaction))

        listen(adapter, handler, options={"JMSJCA.LocatorClass": "shop"})
        assert outcome(recorder) is Outcome.COMMITTED
        assert seen == [(True, False)]

    def test_a_locator_without_managers_of_threads_is_refused(self, adapter, monkeypatch):
        monkeypatch.setattr(locators, "find_locator", {"one": transaction.TransactionManager}.__getitem__)
        with pytest.raises(InvalidOptionError, match="ThreadTransactionManager"):
            listen(adapter, lambda message: None, options={"JMSJCA.LocatorClass": "one"})
        monkeypatch.undo()
        with pytest.raises(InvalidOptionError, match="'nowhere'"):
            listen(adapter, lambda message: None, options={"JMSJCA.LocatorClass": "nowhere"})

    def test_zope_sqlalchemy_finds_it(self, adapter, recorder, engine):
        send(adapter, "a")

        def handler(message):
            database = SqlSession(engine)
            register(database, initial_state="changed")
            insert(database, message.body)

        listen(adapter, handler)
        assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], []])

    def test_a_data_manager_that_cannot_prepare_rolls_all_back(self, adapter, recorder, engine):
        send(adapter, "a")
        attempts = []

        def handler(message, transaction):
            insert(joined_session(engine, transaction), message.body)
            attempts.append(1)
            if len(attempts) == 1:
                thread_manager().get().addBeforeCommitHook(lambda: 1 / 0)

        listen(adapter, handler)
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], []])


def thread_manager():
    return transaction.manager.manager


class FailingManager:
    """A data manager of the application that fails in one step of a commit, and tells what the others are told."""

    transaction_manager = None

    def __init__(self, step, key, error=ValueError):
        self._step, self._key, self._error = step, key, error
        self.may_have_committed = []

    def sortKey(self):  # noqa: N802  # the name in the transaction package
        return self._key

    def _fail_in(self, step):
        if step == self._step:
            raise self._error("The database is gone.")

    def abort(self, _):
        self._fail_in("abort")

    def tpc_begin(self, _):
        pass

    def commit(self, _):
        self._fail_in("commit")

    def tpc_vote(self, _):
        self._fail_in("vote")

    def tpc_finish(self, _):
        self._fail_in("finish")

    def tpc_abort(self, joined):
        self.may_have_committed.append(is_in_doubt(joined))


class TestOtherDataManagers:
    @pytest.mark.parametrize("error", [ValueError, ConnectionLostError, TransactionRolledBackError])
    @pytest.mark.parametrize(("step", "key"), [("finish", "a"), ("finish", "~~~z"), ("vote", "~~~z")])
    def test_one_that_fails_after_the_broker_has_committed_is_logged(
        self, adapter, recorder, engine, caplog, step, key, error
    ):
        manager, calls = FailingManager(step, key, error), []

        def handler(message, session, transaction):
            calls.append(message.body)
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            if message.body == "a":
                transaction.get().join(manager)

        listen(adapter, handler)
        send(adapter, "a")
        assert outcome(recorder) is Outcome.COMMITTED
        send(adapter, "b")
        assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a", "b"], ["a", "b"], [[], ["sent", "sent"]])
        assert manager.may_have_committed == [True]  # so one that has prepared commits
        (record,) = [record for record in caplog.records if record.levelname == "ERROR" and "broker" in record.message]
        assert isinstance(record.exc_info[1], error)

    @pytest.mark.parametrize(("step", "key"), [("commit", "a"), ("vote", "a"), ("commit", "~~~z")])
    def test_a_data_manager_that_fails_before_the_broker_rolls_all_back(self, adapter, recorder, engine, step, key):
        managers = [FailingManager(step, key)]

        def handler(message, session, transaction):
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            if managers:
                transaction.get().join(managers.pop())

        listen(adapter, handler, concurrency_mode="serial")
        send(adapter, "a")
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a"], [[], ["sent"]])


class TestOtherTransactions:
    def test_bean_sends_at_once_and_acknowledges_by_the_return(self, adapter, recorder):
        send(adapter, "a")
        failures = [KeyError("once")]

        def handler(message, session):
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            if failures:
                raise failures.pop()

        listen(adapter, handler, transaction="bean")
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert left(adapter) == [[], ["sent", "sent"]]

    @pytest.mark.parametrize("option", ["JMSJCA.NoXA", "JMSJCA.ForceBMT"])
    def test_options_make_it_bean_managed(self, adapter, recorder, option):
        send(adapter, "a")
        failures = [KeyError("once")]

        def handler(message, session):
            session.create_producer(Queue("out")).send(session.create_text_message("sent"))
            if failures:
                raise failures.pop()

        listen(adapter, handler, options={option: "true"})
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert left(adapter) == [[], ["sent", "sent"]]

    def test_bean_leaves_the_threads_manager_to_the_handler(self, adapter, recorder, engine):
        send(adapter, "a")

        def handler(message):
            with transaction.manager as own:
                database = SqlSession(engine)
                join(database, own)
                insert(database, message.body)
            database.close()

        listen(adapter, handler, transaction="bean")
        assert outcome(recorder) is Outcome.COMMITTED
        assert rows(engine) == ["a"]

    def test_a_parameter_of_that_name_is_a_message_elsewhere(self, adapter, recorder):
        send(adapter, "a")
        bodies = []
        listen(adapter, lambda transaction: bodies.append(transaction.body), transaction="local")
        assert outcome(recorder) is Outcome.COMMITTED
        assert bodies == ["a"]

    def test_a_body_of_that_name_is_a_body_in_a_joined_transaction(self, adapter, recorder):
        send(adapter, "a")
        bodies = []

        def handler(transaction: str):
            bodies.append(transaction)

        listen(adapter, handler)
        assert outcome(recorder) is Outcome.COMMITTED
        assert bodies == ["a"]


class TestRedeliveryHandling:
    """Its actions for a joined listener: the rows of the failed handler are gone, and no handler sees the message."""

    @pytest.mark.parametrize(
        ("handling", "calls", "dead"),
        [("1:delete", 1, []), ("1:move(queue:dlq)", 1, ["a"]), ("1:20; 2:30; 3:move(queue:dlq)", 3, ["a"])],
        ids=["delete", "move", "delay and move"],
    )
    @pytest.mark.parametrize("spec", SPECS)
    def test_its_actions_leave_no_row(self, jms_broker_url, engine, handling, calls, dead, spec):
        given_up, good, seen = threading.Event(), threading.Event(), []

        class GivenUp(Hooks):
            def dead_lettered(self, endpoint, letter):
                given_up.set()

        def handler(message, session, transaction):
            insert(joined_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message(message.body))
            seen.append(message.body)
            if message.body == "a":
                raise KeyError("always")
            message.acknowledge()
            good.set()

        adapter = ResourceAdapter(jms_broker_url, hooks=[GivenUp()])
        send(adapter, "a", "good")
        listen(adapter, handler, redelivery_handling=handling, **spec)
        assert given_up.wait(PATIENCE)
        assert good.wait(PATIENCE)
        adapter.stop()
        assert (rows(engine), left(adapter), seen.count("a")) == (["good"], [[], ["good"]], calls)
        assert [text for text, _ in waiting(adapter, "dlq")] == dead


class TestBatches:
    def test_a_held_batch_is_one_transaction_that_other_threads_end(self, adapter, recorder, engine):
        send(adapter, *"ab")
        held = queue.Queue()

        def handler(message, transaction):
            if not message.end_of_batch:
                insert(joined_session(engine, transaction), message.body)
            held.put(message)

        fields = {"concurrency_mode": "sync", "endpoint_pool_max_size": 1, "batch_size": 2, "hold_until_ack": True}
        listen(adapter, handler, **fields)
        messages = [held.get(timeout=PATIENCE) for _ in range(3)]
        assert rows(engine) == []
        for message in messages:
            in_thread(message.acknowledge).join(PATIENCE)
        assert recorder.outcomes.get(timeout=PATIENCE) == (Outcome.COMMITTED, 2)
        adapter.stop()
        assert (rows(engine), left(adapter)) == (list("ab"), [[], []])

    @pytest.mark.parametrize("split", [False, True])
    def test_a_batch_is_one_transaction(self, adapter, recorder, engine, split):
        send(adapter, *"abc")
        sizes, failures = [], [KeyError("once")]

        def handler(messages, transaction):
            sizes.append(len(messages))
            for message in messages:
                insert(joined_session(engine, transaction), message.body)
            if failures:
                raise failures.pop()

        fields = {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "batch_size": 3}
        listen(adapter, handler, split_failed_batches=split, **fields)
        committed = 0
        while committed < 3:
            outcome, messages = recorder.outcomes.get(timeout=PATIENCE)
            committed += messages if outcome is Outcome.COMMITTED else 0
        adapter.stop()
        assert (rows(engine), left(adapter)) == (list("abc"), [[], []])
        if split:
            assert set(sizes[1:]) == {1}

    def test_a_bad_message_takes_the_rows_of_its_batch_back(self, adapter, recorder, engine):
        send(adapter, "a", "bad", "c")

        def handler(message, transaction):
            if not message.end_of_batch:
                insert(joined_session(engine, transaction), message.body)
                if message.body == "bad":
                    raise KeyError(message.body)

        fields = {"concurrency_mode": "sync", "endpoint_pool_max_size": 1, "batch_size": 3}
        listen(adapter, handler, split_failed_batches=True, redelivery_handling="3:move(queue:dlq)", **fields)
        with adapter.connection_factory().create_connection() as connection:
            consumer = connection.create_session().create_consumer(Queue("dlq"))
            assert consumer.receive(timeout=PATIENCE).body == "bad"
        committed = 0
        while committed < 2:
            outcome, messages = recorder.outcomes.get(timeout=PATIENCE)
            committed += messages if outcome is Outcome.COMMITTED else 0
        adapter.stop()
        assert (rows(engine), left(adapter)) == (["a", "c"], [[], []])


class Ledger:
    """Entries of data managers: written by a transaction, in the ledger after its commit."""

    def __init__(self):
        self.entries = []
        self.committed = threading.Event()

    def write(self, manager, text):
        manager.get().join(Entry(self, text))


class Entry:
    """A data manager of one entry."""

    transaction_manager = None

    def __init__(self, ledger, text):
        self._ledger, self._text = ledger, text

    def sortKey(self):  # noqa: N802
        return f"entry:{self._text}"

    def tpc_vote(self, _transaction):
        self._ledger.entries.append(self._text)
        self._ledger.committed.set()

    def ignore(self, _transaction):
        pass

    tpc_begin = commit = tpc_finish = tpc_abort = abort = ignore


class OneManagerForAll(ContainerTransaction):
    """The fault to prevent: handlers that run on one thread, or that others settle, share its manager."""

    shared = transaction.TransactionManager()

    def __init__(self, unit, connection, locator):
        super().__init__(unit, connection, locator)
        self.own, self.manager = self.manager, self.shared

    def commit(self):
        self.shared.commit()
        self.manager = self.own
        super().commit()

    def rollback(self, *, delay=0.0):
        self.shared.abort()
        self.manager = self.own
        super().rollback(delay=delay)


@pytest.fixture(params=[False, True], ids=["one manager per unit", "one for all"])
def fault(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(container_transaction, "ContainerTransaction", OneManagerForAll)
    yield request.param
    OneManagerForAll.shared.abort()


GOOD, BAD = ["good 1", "good 2"], ["bad 1", "bad 2"]


class TestUnitsApart:
    """No unit commits the work of another. With one manager for all, each of these tests sees that it does."""

    def outcomes(self, recorder):
        return sorted(outcome(recorder).name for _ in GOOD + BAD)

    def check(self, ledger, recorder, fault):
        assert self.outcomes(recorder) == ["COMMITTED"] * 2 + ["ROLLED_BACK"] * 2
        assert (sorted(ledger.entries) == GOOD) is not fault

    def test_async_handlers_on_one_loop(self, adapter, recorder, fault):
        """All write; when a good one has committed, the bad ones fail."""
        ledger, written, all_written = Ledger(), [], asyncio.Event()
        send(adapter, "good 1", "bad 1", "good 2", "bad 2")

        async def handler(message, transaction):
            if message.redelivered:
                return
            ledger.write(transaction, message.body)
            written.append(message.body)
            if len(written) == 4:
                all_written.set()
            await all_written.wait()
            if message.body in BAD:
                await asyncio.to_thread(ledger.committed.wait, PATIENCE)
                raise KeyError(message.body)

        fields = {"concurrency_mode": "cc", "endpoint_pool_max_size": 4, "redelivery_handling": "1:delete"}
        listen(adapter, handler, **fields)
        self.check(ledger, recorder, fault)

    def test_four_threads(self, adapter, recorder, fault):
        ledger, all_there = Ledger(), threading.Barrier(4)
        send(adapter, *GOOD, *BAD)

        def handler(message, transaction):
            ledger.write(transaction, message.body)
            all_there.wait(PATIENCE)
            if message.body in BAD:
                ledger.committed.wait(PATIENCE)
                raise KeyError(message.body)

        fields = {"concurrency_mode": "sync", "endpoint_pool_max_size": 4, "redelivery_handling": "1:delete"}
        listen(adapter, handler, **fields)
        self.check(ledger, recorder, fault)

    def test_held_units_that_other_threads_settle(self, adapter, recorder, fault):
        """One thread delivers all; two others end the units, in another order."""
        ledger, delivered = Ledger(), queue.Queue()
        send(adapter, *GOOD, *BAD)

        def handler(message, transaction):
            if message.redelivered:
                message.acknowledge()
                return
            ledger.write(transaction, message.body)
            delivered.put(message)

        fields = {"concurrency_mode": "cc", "endpoint_pool_max_size": 1, "redelivery_handling": "1:delete"}
        listen(adapter, handler, hold_until_ack=True, **fields)
        messages = {message.body: message for message in (delivered.get(timeout=PATIENCE) for _ in range(4))}

        def end(bodies):
            for body in bodies:
                if body in BAD:
                    messages[body].set_rollback_only()
                messages[body].acknowledge().wait(PATIENCE)

        for bodies in (["good 2", "bad 1"], ["bad 2", "good 1"]):
            in_thread(lambda bodies=bodies: end(bodies)).join(PATIENCE)
        self.check(ledger, recorder, fault)


def test_asynchronous_sessions_commit_with_the_receipt(adapter, recorder, engine):
    """The delivering thread commits them on the loop of their handler."""
    path = engine.url.database
    asynchronous = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=sa.NullPool)
    send(adapter, "a", "b")
    failures = [KeyError("once")]

    async def handler(message, session, transaction):
        database = joined_session(asynchronous, transaction)
        assert joined_session(asynchronous, transaction) is database
        await database.execute(ROWS.insert().values(text=message.body))
        session.create_producer(Queue("out")).send(session.create_text_message(message.body))
        if failures:
            raise failures.pop()

    listen(adapter, handler)
    expected = [Outcome.ROLLED_BACK, Outcome.COMMITTED, Outcome.COMMITTED]
    assert [outcome(recorder) for _ in expected] == expected
    adapter.stop()
    assert (rows(engine), left(adapter)) == (["a", "b"], [[], ["a", "b"]])
    asyncio.run(asynchronous.dispose())
