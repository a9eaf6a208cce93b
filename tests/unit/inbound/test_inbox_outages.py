"""The inbox of a listener, when the commit of the broker fails after that of the database, or the database is away."""

import logging
import sqlite3
from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from jmsjca import Message, Outcome, Queue, ResourceAdapter, Session, TextMessage
from jmsjca.transactions import SqlInbox
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, send, waiting
from tests.unit.inbound.test_inbox import Broken, outcomes


@pytest.fixture
def engine(tmp_path):
    waits = {"timeout": PATIENCE}
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'rows.db'}", connect_args=waits, poolclass=sa.NullPool)
    yield engine
    engine.dispose()


@pytest.fixture(params=["before", "after"])
def inbox(request, engine):
    return SqlInbox(engine, insert=request.param)


def put_duplicate_ids(adapter, *ids):
    """Send messages as one unit, each with a duplicate id that is its body."""
    messages = [TextMessage(each, properties={"_AMQ_DUPL_ID": each}) for each in ids]
    adapter.send_many("q", messages)


def send_out(session, text):
    session.create_producer(Queue("out")).send(session.create_text_message(text))


def whole_batch(calls):
    def handler(messages: Sequence[Message], session: Session):
        calls.append([message.body for message in messages])
        for message in messages:
            send_out(session, f"out of {message.body}")

    return handler


def each_and_the_end(calls):
    def handler(message: Message, session: Session):
        calls.append(None if message.end_of_batch else message.body)
        send_out(session, f"end after {calls[-2]}" if message.end_of_batch else f"out of {message.body}")

    return handler


class TestSendsForSeveralMessages:
    """They are stored with a message of the batch that is new, also if others of it are not."""

    def redeliver(self, recorder, inbox, monkeypatch, handler, ids):
        """Handle a batch in which B is known, whose first commit fails at the broker; return what was sent."""
        for name, batch, failures in (("first", ["B"], 0), ("second", ids, 1)):
            broken = Broken(monkeypatch, failures)
            adapter = ResourceAdapter(f"embedded://inbox-outages-{name}-{id(recorder)}", hooks=[recorder])
            spec = {"transaction": "required", "concurrency_mode": "cc", "batch_size": 2}
            adapter.listener("q", inbox=inbox, **spec)(handler)
            put_duplicate_ids(adapter, *batch)
            with adapter:
                outcomes(recorder, len(batch))
                adapter.stop()
                assert broken.left == 0
                sent, left = (waiting(adapter, place) for place in ("out", "q"))
        assert left == []
        return sent

    @pytest.mark.parametrize("ids", [["A", "B"], ["B", "A"]])
    def test_of_a_whole_batch(self, recorder, inbox, monkeypatch, ids):
        calls = []
        sent = self.redeliver(recorder, inbox, monkeypatch, whole_batch(calls), ids)
        assert calls == [["B"], ["A"]]
        assert sent == [("out of A", 0)]

    @pytest.mark.parametrize("ids", [["A", "B"], ["B", "A"]])
    def test_of_the_end_of_a_batch(self, recorder, inbox, monkeypatch, ids):
        calls = []
        sent = self.redeliver(recorder, inbox, monkeypatch, each_and_the_end(calls), ids)
        assert calls == ["B", None, "A", None]
        assert sent == [("out of A", 0), ("end after A", 0)]


class TestDatabaseIsAway:
    """The listener goes on, and handles its messages when the database is back."""

    @pytest.fixture
    def database(self, tmp_path):
        """A database whose next new connections fail with given errors, as some drivers of databases raise them."""
        errors = []

        def connect():
            if errors:
                error = errors.pop(0)
                raise error() if callable(error) else error
            return sqlite3.connect(tmp_path / "rows.db", timeout=PATIENCE, check_same_thread=False)

        return errors, sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)

    def listen(self, adapter, engine, handler, mode="cc", handling="1:move(queue:dlq)", **spec):
        spec |= {"transaction": "required", "redelivery_handling": handling, "concurrency_mode": mode}
        adapter.listener("q", inbox=SqlInbox(engine), **spec)(handler)
        adapter.start()

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_before_a_move(self, adapter, recorder, database, monkeypatch, caplog, mode):
        """It does not answer whether the message, which is to be moved, is known."""
        errors, engine = database
        calls = []

        def handler(message):
            calls.append(message.body)
            if message.body == "b":
                errors.append(ConnectionRefusedError("The database is away."))

        self.listen(adapter, engine, handler, mode)
        send(adapter, "a")
        outcomes(recorder, 1)
        Broken(monkeypatch, 1)
        send(adapter, "b")
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        assert (adapter.activations[0].status, calls, errors) == ("Up", ["a", "b"], [])
        assert "the inbox cannot be read, so that ID:" in caplog.text
        adapter.stop()
        assert waiting(adapter, "dlq") == waiting(adapter) == []

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_before_the_handler(self, adapter, recorder, database, caplog, mode):
        """A message that no handler has seen is not counted, and so it is not moved."""
        errors, engine = database
        calls = []
        self.listen(adapter, engine, lambda message: calls.append((message.body, message.redelivery_count)), mode)
        errors.append(ConnectionRefusedError("The database is away."))
        send(adapter, "a")
        assert outcomes(recorder, 1) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        assert (adapter.activations[0].status, calls) == ("Up", [("a", 0)])
        assert "does not reach its handler" in caplog.text
        adapter.stop()
        assert waiting(adapter, "dlq") == waiting(adapter) == []

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_before_the_handler_while_the_connection_is_lost(self, adapter, recorder, database, jms_faults, mode):
        """The broker may be away, too. No handler has seen the message either."""
        errors, engine = database
        calls = []

        def lose():
            jms_faults.restart_broker()
            endpoint = adapter.activations[0]._endpoint
            until(lambda: endpoint.abandoned_handlers)
            return ConnectionRefusedError("The database is away.")

        self.listen(adapter, engine, lambda message: calls.append(message.body), mode)
        errors.append(lose)
        send(adapter, "a")
        assert outcomes(recorder, 1) == [Outcome.LOST, Outcome.COMMITTED]
        adapter.stop()
        assert (calls, waiting(adapter, "dlq"), waiting(adapter)) == (["a"], [], [])

    def test_before_the_handler_of_a_whole_batch(self, adapter, recorder, database):
        errors, engine = database
        calls = []

        def handler(messages: Sequence[Message]):
            calls.append([(message.body, message.redelivery_count) for message in messages])

        self.listen(adapter, engine, handler, batch_size=2)
        errors.append(ConnectionRefusedError("The database is away."))
        adapter.send_many("q", ["a", "b"])
        assert outcomes(recorder, 2) == [Outcome.ROLLED_BACK, Outcome.COMMITTED]
        adapter.stop()
        assert calls == [[("a", 0), ("b", 0)]]
        assert waiting(adapter, "dlq") == waiting(adapter) == []

    def test_before_the_handler_and_a_failure_of_it(self, adapter, recorder, database):
        """Only the failure counts."""
        errors, engine = database
        calls = []

        def handler(message):
            calls.append(message.redelivery_count)
            raise RuntimeError("It always fails.")

        self.listen(adapter, engine, handler, handling="2:move(queue:dlq)")
        errors.append(ConnectionRefusedError("The database is away."))
        send(adapter, "a")
        assert [recorder.outcomes.get(timeout=PATIENCE)[0] for _ in range(3)] == [Outcome.ROLLED_BACK] * 3
        with adapter.connection_factory().create_connection() as connection:
            letter = connection.create_session().create_consumer(Queue("dlq")).receive(timeout=PATIENCE)
        assert letter.body == "a"
        assert calls == [0, 1]

    def test_while_expired_rows_are_deleted(self, adapter, recorder, database, caplog):
        caplog.set_level(logging.INFO, "jmsjca.transactions")
        errors, engine = database
        once = [ConnectionRefusedError("The database is away.")]
        self.listen(adapter, engine, lambda message: errors.append(once.pop()) if once else None, "serial")
        send(adapter, "a", "b")
        outcomes(recorder, 2)
        assert (adapter.activations[0].status, errors) == ("Up", [])
        assert "are deleted later: The database is away." in caplog.text
