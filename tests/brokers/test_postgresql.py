"""Transactions, inbox and outbox on PostgreSQL: their unit tests again, and a listener that is killed."""
# ruff: noqa: F811  # parameters are fixtures

import asyncio
import itertools
import threading

import pytest
import sqlalchemy as sa
import transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from jmsjca import Outcome, Queue
from jmsjca.errors import NotSupportedError, TransactionInDoubtError
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.transactions import Relay, SqlInbox, joined_session, recover_prepared, two_phase_session
from jmsjca.transactions.outbox import NotificationListener
from tests.unit.conftest import adapter, connected, recorder  # noqa: F401  # fixtures
from tests.unit.inbound.listeners import PATIENCE, send
from tests.unit.inbound.test_container_transactions import (  # noqa: F401  # cases
    LINES,
    METADATA,
    ROWS,
    TestOneHandler,
    insert,
    left,
    outcome,
    rows,
)
from tests.unit.inbound.test_inbox import (  # noqa: F401  # a fixture, and cases
    Broken,
    TestAfterAFailedCommitOfTheBroker,
    TestHistory,
    TestInDoubt,
    TestNoDuplicate,
    inbox,
    listen,
)
from tests.unit.inbound.test_inbox_sources import TestAsynchronous  # noqa: F401  # cases
from tests.unit.transactions.failures import cases_of, leaves
from tests.unit.transactions.test_outbox import (  # noqa: F401  # fixtures
    TestAdd,
    TestRelay,
    broker,
    clock,
    factory,
    outbox,
    relay,
)
from tests.unit.transactions.two_resources import (
    Place,
    account_of_a_kill,
    chosen_steps,
    prepare,
    steps_of,
    verdict_on,
)

BODIES = ("a", "b")
_numbers = itertools.count()


class TestAddedOnPostgreSQL(TestAdd):
    test_an_asynchronous_session = None  # it has a file of SQLite


TestAdd = None  # the case above has them


@pytest.fixture
def engine(postgresql):
    """An engine whose tables are in a schema of their own."""
    schema = f"test{next(_numbers)}"
    whole = sa.create_engine(postgresql.url())
    with whole.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    whole.dispose()
    options = {"options": f"-csearch_path={schema}"}
    engine = sa.create_engine(postgresql.url(), connect_args=options, poolclass=sa.NullPool)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def source(engine):
    """An asynchronous engine of the same schema."""
    with engine.connect() as connection:
        schema = connection.scalar(sa.text("SHOW search_path"))
    options = {"options": f"-csearch_path={schema}"}
    return create_async_engine(engine.url, connect_args=options, poolclass=sa.NullPool)


@pytest.mark.parametrize("is_asynchronous", [False, True])
def test_a_commit_wakes_a_relay_before_it_polls(  # fixtures
    engine, outbox, factory, broker, monkeypatch, is_asynchronous
):
    waiting, wait = threading.Event(), NotificationListener.wait

    def waits(self, timeout, stopping):
        waiting.set()  # the relay has found the table empty
        wait(self, timeout, stopping)

    async def add():
        asynchronous = create_async_engine(engine.url, connect_args={"options": f"-csearch_path={schema}"})
        async with AsyncSession(asynchronous) as session, session.begin():
            await outbox.add(session, "orders", "a")
        await asynchronous.dispose()

    with engine.connect() as connection:
        schema = connection.scalar(sa.text("SHOW search_path"))
    monkeypatch.setattr(NotificationListener, "wait", waits)
    relay = Relay(outbox, factory, engine, poll_interval=100_000)
    running = threading.Thread(target=relay.run, daemon=True)
    running.start()
    assert waiting.wait(PATIENCE)
    if is_asynchronous:
        asyncio.run(add())
    else:
        with engine.begin() as connection:
            outbox.add(connection, "orders", "a")
    with broker.create_session() as session:
        received = session.create_consumer(Queue("orders")).receive(timeout=PATIENCE)
    relay.stop()
    running.join(PATIENCE)
    assert (received and received.body, running.is_alive()) == ("a", False)


async def recovered(source):
    return await recover_prepared(source, older_than=0)


def test_a_relay_that_cannot_listen_any_more_polls(engine, outbox, factory, broker):
    relay = Relay(outbox, factory, engine, poll_interval=0.01)
    running = threading.Thread(target=relay.run, daemon=True)
    running.start()
    listening = sa.text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND state = 'idle'"
    )
    with broker.create_session() as session:
        consumer = session.create_consumer(Queue("orders"))
        for body in "ab":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                ended = (connection.scalar(listening) or threading.Event().wait(0.01) for _ in range(100 * PATIENCE))
                assert any(ended)  # it listens before each look at the table
            with engine.begin() as connection:
                outbox.add(connection, "orders", body)
            assert consumer.receive(timeout=PATIENCE).body == body
    relay.stop()
    running.join(PATIENCE)
    assert not running.is_alive()


def prepare_and_die(engine, body):
    """Insert a row as a process that dies after the first phase, and return the name of its transaction."""
    manager = transaction.TransactionManager()
    insert(two_phase_session(engine, manager), body)
    (dying,) = manager.get()._resources
    dying.commit(manager.get())
    dying.tpc_vote(manager.get())
    dying.session._connection.invalidate()  # as its process dies
    dying.session._connection.close()
    return dying.session.xid


class TestTwoPhases:
    """The database prepares, the broker commits, the database commits."""

    @pytest.fixture(params=["synchronous", "asynchronous"])
    def forward(self, request, adapter, engine, source):
        """Return a function that has a message forwarded with a row, by a handler of each kind."""

        async def asynchronous(message, session, transaction):
            calls.append(message.body)
            await two_phase_session(source, transaction).execute(ROWS.insert().values(text=message.body))
            session.create_producer(Queue("out")).send(session.create_text_message(message.body))

        def synchronous(message, session, transaction):
            calls.append(message.body)
            insert(two_phase_session(engine, transaction), message.body)
            session.create_producer(Queue("out")).send(session.create_text_message(message.body))

        def begin():
            send(adapter, "a")
            listen(adapter, asynchronous if request.param == "asynchronous" else synchronous, None)
            return calls

        calls = []
        return begin

    def test_all_commit_together(self, adapter, recorder, engine, forward):
        calls = forward()
        assert outcome(recorder) is Outcome.COMMITTED
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a"], ["a"], [[], ["a"]])

    @leaves("the broker alone rolls back, with two phases", "none", "redelivered, nothing sent")
    def test_what_the_broker_rolls_back_the_database_rolls_back(self, adapter, recorder, engine, forward, monkeypatch):
        Broken(monkeypatch, 1)
        calls = forward()
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a", "a"], ["a"], [[], ["a"]])

    @leaves("the broker's reply is lost, with two phases", "committed", "in doubt: sent and settled, or redelivered")
    def test_what_the_broker_may_have_committed_the_database_commits(
        self, adapter, recorder, engine, forward, monkeypatch
    ):
        def in_doubt(unit, **options):
            commit(unit, **options)
            raise TransactionInDoubtError("The reply is lost.")

        commit = UnitOfWork.commit
        with monkeypatch.context() as patch:
            patch.setattr(UnitOfWork, "commit", in_doubt)
            calls = forward()
            recorder.outcomes.get(timeout=PATIENCE)
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a"], ["a"], [[], ["a"]])

    def test_a_handler_that_fails_leaves_nothing_prepared(self, adapter, recorder, engine):
        def handler(message, transaction):
            insert(two_phase_session(engine, transaction), message.body)
            raise KeyError(message.body)

        send(adapter, "a")
        listen(adapter, handler, None, redelivery_handling="1:delete")
        assert outcome(recorder) is Outcome.ROLLED_BACK
        adapter.stop()
        assert rows(engine) == []
        assert recover_prepared(engine, older_than=0) == 0

    def test_another_database_is_refused(self):
        with pytest.raises(NotSupportedError, match="only PostgreSQL"):
            two_phase_session(sa.create_engine("sqlite://"), transaction.TransactionManager())

    @pytest.mark.parametrize("is_two_phase_first", [True, False])
    def test_a_session_of_one_phase_votes_after_those_of_two(self, engine, tmp_path, is_two_phase_first):
        """Were it the other way round, its work would stay committed when the preparation fails."""
        other = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}", poolclass=sa.NullPool)
        METADATA.create_all(other)
        sessions = []  # kept, so that each has another place in the memory
        for number in range(10):
            manager = transaction.TransactionManager()
            if is_two_phase_first:
                two_phase_session(engine, manager)
            sessions.append(joined_session(other, manager))
            insert(sessions[-1], str(number))
            two_phase_session(engine, manager).execute(LINES.insert().values(of="missing"))  # checked by the vote
            with pytest.raises(sa.exc.IntegrityError):
                manager.commit()
        assert (rows(engine), rows(other)) == ([], [])

    def test_an_asynchronous_handler_that_fails_leaves_nothing_prepared(self, adapter, recorder, engine, source):
        async def handler(message, transaction):
            database = two_phase_session(source, transaction)
            assert two_phase_session(source, transaction) is database
            await database.execute(ROWS.insert().values(text=message.body))
            raise KeyError(message.body)

        send(adapter, "a")
        listen(adapter, handler, None, redelivery_handling="1:delete")
        assert outcome(recorder) is Outcome.ROLLED_BACK
        adapter.stop()
        assert rows(engine) == []
        assert asyncio.run(recovered(source)) == 0

    def test_an_inbox_commits_in_two_phases_on_the_loop(self, adapter, recorder, engine, source, monkeypatch):
        Broken(monkeypatch, 1)
        inbox, calls = SqlInbox(source, two_phase=True), []

        async def handler(message, transaction):
            calls.append(message.body)
            await inbox.async_session(transaction).execute(ROWS.insert().values(text=message.body))

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert [outcome(recorder), outcome(recorder)] == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, rows(engine)) == (["a", "a"], ["a"])  # the broker rolled back, and so did the database

    def test_a_handler_without_a_statement_prepares_nothing(self, adapter, recorder, engine):
        send(adapter, "a")
        listen(adapter, lambda message, transaction: two_phase_session(engine, transaction) and None, None)
        assert outcome(recorder) is Outcome.COMMITTED

    def test_prepared_transactions_are_committed_once_they_are_old(self, engine, source):
        manager = transaction.TransactionManager()
        insert(two_phase_session(engine, manager), "a")
        (dying,) = manager.get()._resources
        dying.commit(manager.get())
        dying.tpc_vote(manager.get())
        assert recover_prepared(engine) == 0
        assert rows(engine) == []
        assert asyncio.run(recovered(source)) == 1
        assert rows(engine) == ["a"]
        dying.session._connection.invalidate()  # as its process dies
        dying.session._connection.close()

    def test_two_processes_recover_at_once(self, engine):
        for body in BODIES:
            prepare_and_die(engine, body)
        other = []

        @sa.event.listens_for(engine, "before_cursor_execute")
        def commit_meanwhile(_connection, _cursor, statement, *_):
            if not other and statement.startswith("COMMIT PREPARED"):
                other.append(statement)
                with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                    connection.exec_driver_sql(statement)

        assert recover_prepared(engine, older_than=0) == 1
        assert rows(engine) == [*BODIES]

    def test_a_transaction_that_belongs_to_another_role_is_left_to_it_and_reported(self, engine, caplog):
        role = f"worker{next(_numbers)}"
        with engine.begin() as connection:
            schema = connection.scalar(sa.text("SHOW search_path"))
            connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN")
            connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
            connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
            connection.exec_driver_sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
        options = {"options": f"-csearch_path={schema}"}
        other = sa.create_engine(engine.url.set(username=role), connect_args=options, poolclass=sa.NullPool)
        ids = [prepare_and_die(each, body) for each, body in ((engine, "a"), (other, "b"), (engine, "c"))]
        assert recover_prepared(other, older_than=0) == 1
        assert rows(engine) == ["b"]
        for gid in (ids[0], ids[2]):
            assert f"{gid} was left: it belongs to the role 'jmsjca'" in caplog.text
        assert caplog.text.count("was left") == 2
        assert recover_prepared(engine, older_than=0) == 2
        assert sorted(rows(engine)) == ["a", "b", "c"]

    def test_a_transaction_that_another_process_is_committing_is_left_to_it(self, engine):
        gids = [prepare_and_die(engine, body) for body in BODIES]
        directly = engine.execution_options(isolation_level="AUTOCOMMIT")
        waits = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

        def replicate_to(standby):
            with directly.connect() as connection:
                connection.exec_driver_sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'")
                connection.exec_driver_sql("SELECT pg_reload_conf()")

        def commit():
            with directly.connect() as connection:
                connection.exec_driver_sql("SET synchronous_commit = on")
                connection.exec_driver_sql(f"COMMIT PREPARED '{gids[0]}'")

        committing = threading.Thread(target=commit, daemon=True)
        replicate_to("missing")  # so that its commit takes until the end of this test
        try:
            committing.start()
            with directly.connect() as connection:
                assert any(connection.scalar(waits) or threading.Event().wait(0.01) for _ in range(100 * PATIENCE))
            assert recover_prepared(engine, older_than=0) == 1
        finally:
            replicate_to("")
        committing.join(PATIENCE)
        assert sorted(rows(engine)) == [*BODIES]


def killed_listeners():
    """The cases of the documentation; those on a loop take the same steps, and are left to ``make torture``."""
    for case in cases_of("test_a_listener_killed_leaves_what_its_case_says"):
        marks = [pytest.mark.torture] if "asynchronous" in case.listener else []
        yield pytest.param(case, id=case.listener, marks=marks)


@pytest.mark.parametrize("case", [*killed_listeners()])
def test_a_listener_killed_leaves_what_its_case_says(postgresql, tmp_path, case, capsys):
    def place(name):
        (tmp_path / name).mkdir()
        url = f"embedded://{tmp_path}/{name}/broker.db"
        return Place(url, postgresql.url(), "q", BODIES, **case.fields)

    whole = place("whole")
    prepare(whole)
    kinds = steps_of(whole)
    visited = chosen_steps(kinds, 0)
    for last in visited:
        wrong = verdict_on(account_of_a_kill(place(str(last)), last), BODIES)
        assert case.fault(kinds[last - 1], wrong) == [], (last, kinds[last - 1])
    with capsys.disabled():
        print(f"\nkills of a listener with PostgreSQL: {len(visited)} of {len(kinds)} steps visited")
