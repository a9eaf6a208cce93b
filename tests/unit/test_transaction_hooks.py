"""Hooks around sends in transactions and their commits, and hooks of received messages."""

import asyncio
from contextlib import suppress

import pytest
import transaction
from poisoning import poison_embedded

from jmsjca import (
    ConnectionFactory,
    Hooks,
    JMSError,
    Message,
    Queue,
    Requestor,
    ResourceAdapter,
    Session,
    TextMessage,
    aio,
)
from jmsjca.errors import ConnectionLostError, IllegalStateError, MessageFormatError
from jmsjca.hooks import HookChain
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Recorder, send, waiting
from tests.unit.outbound.queues import QUEUE, shown


class Noting(Hooks):
    """Notes what is created, sent, committed and received."""

    def __init__(self):
        self.notes = []

    def around_create(self, message, destination, call_next):
        message.properties["created"] = True
        self.notes.append(f"create {message.body} to {destination}")
        call_next()

    def around_send(self, message, destination, call_next):
        self.notes.append(f"send {message.body} to {destination}")
        call_next()

    def around_commit(self, sends, call_next):
        sent = " ".join(f"{message.body} to {to}" for message, to in sends)
        self.notes.append(f"commit {sent}")
        call_next()
        self.notes.append("committed")

    def received(self, source, message, seconds, error=None):
        assert seconds >= 0
        self.notes.append(f"received {type(error).__name__ if error else message.body} from {source}")


@pytest.fixture
def noting():
    return Noting()


@pytest.fixture
def connection(jms_broker_url, noting):
    with ConnectionFactory(jms_broker_url, hooks=[noting]).create_connection() as connection:
        yield connection


def put(session, *bodies, to=QUEUE):
    producer = session.create_producer(to)
    for body in bodies:
        producer.send(TextMessage(body))


def test_messages_of_a_transaction_are_created_and_sent_by_its_commit(connection, noting):
    with connection.create_session(transacted=True) as session:
        put(session, "a", "b")
        assert (noting.notes, shown(connection)) == (["create a to queue:q", "create b to queue:q"], [])
        session.commit()
        assert noting.notes[2:] == ["commit a to queue:q b to queue:q", "committed"]
        put(session, "c")
        session.commit()
    assert noting.notes[4:] == ["create c to queue:q", "commit c to queue:q", "committed"]
    assert shown(connection) == ["a", "b", "c"]


def test_a_message_that_is_sent_twice_has_both_destinations(connection, noting):
    with connection.create_session(transacted=True) as session:
        message = TextMessage("a")
        for name in ("q", "p"):
            session.create_producer(Queue(name)).send(message)
        session.commit()
    assert noting.notes[2:] == ["commit a to queue:q a to queue:p", "committed"]


def test_a_rollback_commits_nothing(connection, noting):
    with connection.create_session(transacted=True) as session:
        put(session, "a")
        session.rollback()
        session.commit()
        put(session, "b")
    assert noting.notes == ["create a to queue:q", "create b to queue:q"]


def test_a_transaction_that_only_receives_is_not_told(connection, noting):
    with connection.create_session(transacted=True) as session:
        put(session, "a")
        session.commit()
        noting.notes.clear()
        assert session.create_consumer(QUEUE).receive(PATIENCE).properties["created"] is True
        session.commit()
    assert noting.notes == ["received a from queue:q"]


def test_other_sends_are_sent_at_once(connection, noting):
    with connection.create_session() as session:
        put(session, "a")
        session.create_producer(QUEUE).send_async(TextMessage("b")).result(PATIENCE)
    assert noting.notes == ["send a to queue:q", "send b to queue:q"]


def test_an_asynchronous_send_in_a_transaction_is_created(connection, noting):
    with connection.create_session(transacted=True) as session:
        session.create_producer(QUEUE).send_async(TextMessage("a")).result(PATIENCE)
        session.commit()
    assert noting.notes == ["create a to queue:q", "commit a to queue:q", "committed"]


def test_many_sends_are_one_commit(jms_broker_url, noting):
    with ResourceAdapter(jms_broker_url, hooks=[noting]) as adapter:
        adapter.send_many("q", ["a", "b"])
    assert noting.notes[2:] == ["commit a to queue:q b to queue:q", "committed"]


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
def test_what_a_handler_sends_is_sent_by_the_commit_of_its_unit(jms_broker_url, noting, mode):
    recorder = Recorder()
    adapter = ResourceAdapter(jms_broker_url, hooks=[noting, recorder])

    @adapter.listener("q", concurrency_mode=mode)
    def forward(message: Message, session: Session) -> None:
        put(session, f"{message.body}!", to=Queue("out"))
        if message.delivery_count == 1:
            raise ValueError("at first")

    send(adapter, "a")
    with adapter:
        until(lambda: recorder.outcomes.qsize() == 2)
    created = "create a! to queue:out"
    assert noting.notes == ["send a to queue:q", created, created, "commit a! to queue:out", "committed"]
    assert waiting(adapter, "out") == [("a!", 0)]


def test_sends_in_a_transaction_of_a_manager_are_sent_by_its_commit(jms_broker_url, noting):
    manager = transaction.TransactionManager()
    factory = ConnectionFactory(jms_broker_url, hooks=[noting], transaction_locator=lambda: manager)
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        with manager:
            put(session, "a")
            assert noting.notes == ["create a to queue:q"]
        assert noting.notes[1:] == ["commit a to queue:q", "committed"]


class Wrong(Hooks):
    """Does wrong around a commit."""

    def __init__(self, before=None, after=None, calls=1):
        self.before, self.after, self.calls = before, after, calls

    def around_commit(self, sends, call_next):
        if self.before:
            raise self.before
        for _ in range(self.calls):
            call_next()
        if self.after:
            raise self.after


@pytest.mark.parametrize("fault", [{"before": ValueError}, {"after": ValueError}, {"calls": 0}, {"calls": 2}], ids=str)
def test_a_hook_around_a_commit_changes_no_commit(jms_broker_url, fault, caplog):
    with ConnectionFactory(jms_broker_url, hooks=[Noting(), Wrong(**fault)]).create_connection() as connection:
        with connection.create_session(transacted=True) as session:
            put(session, "a")
            session.commit()
        assert shown(connection) == ["a"]
    assert ("A hook around a commit failed" in caplog.text) is ("calls" not in fault)


def test_the_error_of_a_commit_stays_the_error():
    class Hides(Hooks):
        def around_commit(self, sends, call_next):
            with suppress(JMSError):
                call_next()

    def lose():
        raise ConnectionLostError("pulled out")

    with pytest.raises(ConnectionLostError, match="pulled out"):
        HookChain([Hides()]).commit([], lose)


def test_a_hook_around_sends_alone_is_called_in_transactions_too(jms_broker_url, noting):
    class Sends(Hooks):
        def around_send(self, message, destination, call_next):
            noting.notes.append("around send")
            call_next()

    factory = ConnectionFactory(jms_broker_url, hooks=[Sends(), noting])
    with factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        put(session, "a")
        session.commit()
    assert noting.notes == ["around send", "create a to queue:q", "commit a to queue:q", "committed"]


def test_each_way_to_receive_is_told_and_an_empty_queue_is_not(connection, noting):
    with connection.create_session() as session:
        put(session, *"abcde")
        noting.notes.clear()
        consumer = session.create_consumer(QUEUE)
        assert consumer.receive(PATIENCE).body == "a"
        assert consumer.receive_no_wait().body == "b"
        assert consumer.receive_body(str, PATIENCE) == "c"
        assert next(iter(consumer)).body == "d"
        with pytest.raises(MessageFormatError):
            consumer.receive_body(bytes, PATIENCE)  # which leaves the message there
        assert consumer.receive(PATIENCE).body == "e"
        assert consumer.receive(0) is consumer.receive_no_wait() is None
    received = [f"received {each} from queue:q" for each in ["a", "b", "c", "d", "MessageFormatError", "e"]]
    assert noting.notes == received


def test_an_error_of_a_receive_is_told(connection, jms_broker_url, noting):
    poison_embedded(jms_broker_url, QUEUE)
    with connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        with pytest.raises(MessageFormatError):
            consumer.receive(PATIENCE)
        consumer.close()
        with pytest.raises(IllegalStateError):
            consumer.receive(PATIENCE)
    assert noting.notes == ["received MessageFormatError from queue:q", "received IllegalStateError from queue:q"]


def test_the_reply_to_a_request_is_told(jms_broker_url, noting):
    adapter = ResourceAdapter(jms_broker_url)
    adapter.listener("q")(lambda message: f"{message.body}!")
    with adapter, ConnectionFactory(jms_broker_url, hooks=[noting]).create_connection() as connection:
        connection.start()
        with connection.create_session() as session, Requestor(session, QUEUE) as requestor:
            assert requestor.request(TextMessage("a"), PATIENCE).body == "a!"
    assert noting.notes[1].startswith("received a! from queue:")


async def receive_all(factory, noting):
    async with (
        aio.connect(factory) as connection,
        connection.create_session() as session,
        session.create_consumer(QUEUE) as consumer,
    ):
        assert (await consumer.receive(PATIENCE)).body == "a"
        with pytest.raises(MessageFormatError):
            await consumer.receive(PATIENCE)


def test_receives_of_coroutines_are_told(jms_broker_url, noting):
    factory = ConnectionFactory(jms_broker_url, hooks=[noting])
    factory.send("q", "a")
    poison_embedded(jms_broker_url, QUEUE)
    noting.notes.clear()
    asyncio.run(asyncio.wait_for(receive_all(factory, noting), PATIENCE))
    assert noting.notes == ["received a from queue:q", "received MessageFormatError from queue:q"]


def test_a_hook_that_fails_changes_no_receive(jms_broker_url, caplog):
    class Failing(Hooks):
        def received(self, source, message, seconds, error=None):
            raise KeyError("received")

    factory = ConnectionFactory(jms_broker_url, hooks=[Failing()])
    with factory.create_connection() as connection, connection.create_session() as session:
        put(session, "a")
        assert session.create_consumer(QUEUE).receive(PATIENCE).body == "a"
    assert "Failing.received" in caplog.text
