"""The sources of an inbox: asynchronous sessions, the file of an embedded broker; and when rows are inserted."""
# ruff: noqa: F811  # parameters are fixtures

import asyncio
import itertools
import threading

import pytest
import sqlalchemy as sa
import transaction
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

from jmsjca import ActivationSpec, ConnectionFactory, Outcome, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import ConfigurationError, IllegalStateError, InvalidArgumentError, JMSError
from jmsjca.transactions import SqlInbox, joined_session
from tests.unit.inbound.listeners import PATIENCE, send, waiting
from tests.unit.inbound.test_container_transactions import METADATA, ROWS, left, rows
from tests.unit.inbound.test_inbox import DAY, MODES, Broken, Clock, engine, listen, outcomes  # noqa: F401  # a fixture

INSERTIONS = ["before", "after"]


def forwarding(inbox, calls):
    """Return an asynchronous handler that writes a row and sends a message."""

    async def handler(message, session, transaction):
        if not message.end_of_batch:
            calls.append(message.body)
            await inbox.async_session(transaction).execute(ROWS.insert().values(text=message.body))
            session.create_producer(Queue("out")).send(session.create_text_message(message.body))
        message.acknowledge()

    return handler


@pytest.fixture
def source(engine):
    url, waits = f"sqlite+aiosqlite:///{engine.url.database}", {"timeout": PATIENCE}
    source = create_async_engine(url, connect_args=waits, poolclass=sa.NullPool)
    yield source
    asyncio.run(source.dispose())


class TestAsynchronous:
    @pytest.fixture(params=INSERTIONS)
    def insertion(self, request):
        return request.param

    @pytest.mark.parametrize("spec", MODES)
    def test_the_handler_is_not_called_again_and_its_messages_are_sent(
        self, adapter, recorder, engine, source, insertion, monkeypatch, spec
    ):
        Broken(monkeypatch, 2)
        calls, inbox = [], SqlInbox(source, insert=insertion)
        send(adapter, *"abcd")
        listen(adapter, forwarding(inbox, calls), inbox, **spec)
        found = outcomes(recorder, 4)
        adapter.stop()
        # A unit that was rolled back may report it after another thread has committed its messages.
        found += [recorder.outcomes.get()[0] for _ in range(recorder.outcomes.qsize())]
        assert found.count(Outcome.ROLLED_BACK) == 2
        assert (sorted(calls), rows(engine)) == (list("abcd"), list("abcd"))
        source_left, sent = left(adapter)
        assert (source_left, sorted(sent)) == ([], list("abcd"))

    def test_handlers_on_the_loop_of_the_application(self, jms_broker_url, recorder, engine, source, insertion):
        inbox, calls = SqlInbox(async_sessionmaker(source), insert=insertion), []
        adapter = ResourceAdapter(jms_broker_url, hooks=[recorder])
        send(adapter, "a", "b")

        async def run():
            listen(adapter, forwarding(inbox, calls), inbox, concurrency_mode="cc", endpoint_pool_max_size=1)
            async with adapter:
                return await asyncio.to_thread(outcomes, recorder, 2)

        assert asyncio.run(run()) == [Outcome.COMMITTED] * 2
        assert (sorted(calls), rows(engine), left(adapter)[0]) == (["a", "b"], ["a", "b"], [])

    def test_a_failed_handler_leaves_no_row(self, adapter, recorder, engine, source, insertion):
        inbox, calls, failures = SqlInbox(source, insert=insertion), [], [KeyError("once")]
        forward = forwarding(inbox, calls)

        async def handler(message, session, transaction):
            await forward(message, session, transaction)
            if failures:
                raise failures.pop()

        send(adapter, "a")
        listen(adapter, handler, inbox)
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, rows(engine), left(adapter)) == (["a", "a"], ["a"], [[], ["a"]])

    def test_it_is_settled_rather_than_moved(self, adapter, recorder, source, monkeypatch):
        Broken(monkeypatch, 1)
        inbox, calls = SqlInbox(source), []
        send(adapter, "a")
        listen(adapter, forwarding(inbox, calls), inbox, redelivery_handling="1:move(queue:dlq)")
        outcomes(recorder, 1)
        adapter.stop()
        assert (calls, left(adapter), waiting(adapter, "dlq")) == (["a"], [[], ["a"]], [])

    def test_expired_rows_are_deleted(self, adapter, recorder, engine, source):
        clock = Clock()
        inbox = SqlInbox(source, keep=DAY, clock=clock)

        async def handler(message):
            """Do nothing."""

        listen(adapter, handler, inbox)
        for day in range(3):
            clock.now = 2.0 * day * DAY
            send(adapter, "a")
            outcomes(recorder, 1)
        adapter.stop()
        with engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(inbox.table)) == 1

    def test_what_does_not_fit_is_refused(self, adapter, engine, source):
        spec = ActivationSpec(destination="q", transaction="required")
        with pytest.raises(ConfigurationError, match="async def"):
            adapter.activate(spec, print, inbox=SqlInbox(source))
        with pytest.raises(IllegalStateError, match="async_session"):
            SqlInbox(source).session(None)
        with pytest.raises(IllegalStateError, match="synchronous"):
            SqlInbox(engine).async_session(None)
        with pytest.raises(IllegalStateError, match="asynchronous"):
            SqlInbox(source).prune()
        with pytest.raises(JMSError, match="Engine"):
            SqlInbox(async_sessionmaker(source), two_phase=True)


@pytest.mark.parametrize(("insertion", "there"), [("before", 1), ("after", 0)])
def test_the_row_is_inserted_before_the_handler_or_after_it(adapter, recorder, engine, insertion, there):
    inbox, seen = SqlInbox(engine, insert=insertion), []
    count = sa.select(sa.func.count()).select_from(inbox.table)
    send(adapter, "a")
    listen(adapter, lambda message, transaction: seen.append(inbox.session(transaction).scalar(count)), inbox)
    outcomes(recorder, 1)
    adapter.stop()
    with engine.connect() as connection:
        assert (seen, connection.scalar(count)) == ([there], 1)


@pytest.mark.parametrize(("insertion", "handled"), [("before", 1), ("after", 2)])
def test_of_two_consumers_of_one_message_one_commits(adapter, recorder, engine, insertion, handled):
    """Before: the second one waits for the first. After: both handle it, and the second one is rolled back."""
    calls, both_there = itertools.count(), threading.Barrier(2)
    inbox = SqlInbox(engine, endpoint="one", insert=insertion)

    def handler(message, session, transaction):
        number = next(calls)
        if insertion == "after" and number < 2:
            both_there.wait(PATIENCE)
        joined_session(engine, transaction).execute(ROWS.insert().values(text=f"{number}"))
        session.create_producer(Queue("out")).send(session.create_text_message("a"))

    for place in ("q", "other"):
        adapter.listener(place, inbox=inbox, transaction="required")(handler)
    adapter.start(wait=PATIENCE)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        for place in ("q", "other"):
            session.create_producer(Queue(place)).send(TextMessage("a", properties={"_AMQ_DUPL_ID": "same"}))
    outcomes(recorder, 2)
    adapter.stop()
    assert next(calls) == handled
    assert (len(rows(engine)), left(adapter), waiting(adapter, "other")) == (1, [[], ["a"]], [])


@pytest.mark.parametrize("insertion", INSERTIONS)
def test_of_two_messages_of_one_key_in_a_batch_one_is_new(engine, insertion):
    """As brokers deliver them that do not detect the second send of a relay."""
    inbox, manager = SqlInbox(engine, insert=insertion), transaction.TransactionManager(explicit=True)
    inbox.prepare()
    manager.begin()
    unit = inbox.of_listener("batches", asyncio.new_event_loop).open(manager)
    messages = [TextMessage(text, properties={"_AMQ_DUPL_ID": "same"}) for text in "ab"]
    found = [unit.admit(message, f"ID:{message.body}", redelivered=False) for message in messages]
    manager.commit()
    assert found == [None, []]
    with engine.connect() as connection:
        assert connection.scalars(sa.select(inbox.table.c.message_id)).all() == ["ID:a"]


class TestEmbeddedFile:
    @pytest.fixture(params=["broker.db", "other.db"])
    def inbox(self, request, tmp_path):
        """An inbox in the file of the listener's broker, or in another one."""
        return SqlInbox(f"embedded://{tmp_path}/{request.param}")

    @pytest.fixture
    def file_adapter(self, tmp_path, recorder):
        adapter = ResourceAdapter(f"embedded://{tmp_path}/broker.db", hooks=[recorder])
        yield adapter
        adapter.stop()

    def test_the_handler_is_not_called_again_and_its_messages_are_sent(
        self, file_adapter, recorder, inbox, monkeypatch
    ):
        Broken(monkeypatch, 2)
        calls = []

        def handler(message, session):
            calls.append(message.body)
            session.create_producer(Queue("out")).send(session.create_text_message(message.body))

        send(file_adapter, *"abc")
        listen(file_adapter, handler, inbox)
        assert outcomes(recorder, 3).count(Outcome.ROLLED_BACK) == 2
        file_adapter.stop()
        assert (sorted(calls), left(file_adapter)[0]) == (list("abc"), [])
        assert sorted(left(file_adapter)[1]) == list("abc")

    def test_a_handler_may_send_to_its_broker_at_once(self, file_adapter, recorder, tmp_path):
        """No row that is not committed locks the file meanwhile."""
        inbox = SqlInbox(f"embedded://{tmp_path}/broker.db")
        send(file_adapter, "a")
        listen(file_adapter, lambda message: file_adapter.send("out", message.body), inbox)
        assert outcomes(recorder, 1) == [Outcome.COMMITTED]
        file_adapter.stop()
        assert left(file_adapter) == [[], ["a"]]

    def test_the_broker_still_reads_its_file(self, file_adapter, recorder, inbox, tmp_path):
        send(file_adapter, "a")
        listen(file_adapter, lambda message: None, inbox)
        outcomes(recorder, 1)
        file_adapter.stop()
        with inbox.source.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(inbox.table)) == 1
        for name in tmp_path.glob("*.db"):
            with ConnectionFactory(f"embedded://{name}").create_connection() as connection:
                connection.create_session().create_producer(Queue("q")).send(TextMessage("b"))

    def test_the_application_may_have_tables_beside_it(self, file_adapter, recorder, inbox):
        METADATA.create_all(inbox.source)
        send(file_adapter, "a")
        listen(
            file_adapter,
            lambda message, transaction: inbox.session(transaction).execute(ROWS.insert().values(text="a")),
            inbox,
        )
        assert outcomes(recorder, 1) == [Outcome.COMMITTED]
        file_adapter.stop()
        assert rows(inbox.source) == ["a"]

    @pytest.mark.parametrize(
        ("url", "options", "words"),
        [
            ("embedded://memory", {}, "names no file"),
            ("amqp://localhost", {}, "Engine"),
            ("embedded:///tmp/b.db", {"insert": "before"}, "would lock the file"),
        ],
    )
    def test_what_it_cannot_serve_is_refused(self, url, options, words):
        with pytest.raises(InvalidArgumentError, match=words):
            SqlInbox(url, **options)

    def test_an_unknown_time_is_refused(self, engine):
        with pytest.raises(InvalidArgumentError, match="'before' or 'after'"):
            SqlInbox(engine, insert="later")
