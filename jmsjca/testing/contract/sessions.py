"""Cases for what sessions do on threads of their own: sends that are pipelined, and message listeners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.messages import Message, TextMessage
from jmsjca.outbound import Connection, ConnectionFactory, Session
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = ["TestAsynchronousSends", "TestMessageListeners", "TestPipelinedSends"]


class TestPipelinedSends(Contract):
    """`Unit.start_commit`: many units in flight, in order, each with an outcome of its own."""

    def test_started_commits_take_effect_in_order(self, harness: Harness) -> None:
        """No unit waits for the one before it, and none overtakes it (JMS 3.1, section 7.3.3)."""
        queue, sent = harness.queue(), [str(number) for number in range(200)]
        waits = [_start(harness, queue, body) for body in sent]
        for wait in waits:
            wait()
        harness.expect(queue, *sent)

    def test_later_commit_does_not_overtake_them(self, harness: Harness) -> None:
        """A unit that is committed afterwards, in a transaction where there are some, comes behind them."""
        queue = harness.queue()
        waits = [_start(harness, queue, body) for body in "abcdefgh"]
        harness.send(queue, "i")
        for wait in waits:
            wait()
        harness.expect(queue, *"abcdefghi")

    def test_each_destination_gets_its_messages(self, harness: Harness) -> None:
        """Whatever a provider keeps for each destination, pipelining does not mix them up."""
        queues, topic = [harness.queue() for _ in range(3)], harness.topic()
        subscriber = harness.connect().consumer(topic)
        waits = [_start(harness, to, body) for body in "abc" for to in (*queues, topic)]
        for wait in waits:
            wait()
        for queue in queues:
            harness.expect(queue, *"abc")
        assert bodies(harness.gather(subscriber, 3)) == list("abc")

    def test_messages_are_written_although_nobody_waits(self, harness: Harness) -> None:
        """The outcome need not be asked for before the message is sent."""
        queue = harness.queue()
        consumer = harness.connect().consumer(queue)
        wait = _start(harness, queue, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        wait()

    def test_unit_with_deliveries_is_refused(self, harness: Harness) -> None:
        """It acknowledges, and stays open for `commit`."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        unit = harness.holding(harness.gather(consumer, 1))
        with pytest.raises(IllegalStateError):
            unit.start_commit()
        unit.commit()
        consumer.close()
        harness.expect(queue)


def _start(harness: Harness, to: Destination, body: str) -> Callable[[], None]:
    unit = harness.connection.unit(atomic=False)
    harness.record(unit, to, body)
    return unit.start_commit()


class _Sessions(Contract):
    @pytest.fixture
    def connection(self, harness: Harness) -> Iterator[Connection]:
        """Provide a started connection of the public API."""
        with ConnectionFactory(harness.url).create_connection() as connection:
            yield connection


class TestAsynchronousSends(_Sessions):
    """Asynchronous sends of sessions (JMS 3.1, section 7.3)."""

    def test_they_complete_in_order(self, harness: Harness, connection: Connection) -> None:
        """One listener call after the other, with synchronous sends among them."""
        queue, told = harness.queue(), list[tuple[str, JMSError | None]]()
        sent = [str(number) for number in range(100)]
        with connection.create_session() as session:
            producer = session.create_producer(queue)
            for number, body in enumerate(sent):
                if number % 10:
                    producer.send(
                        TextMessage(body), on_completion=lambda message, error: told.append((message.body, error))
                    )
                else:
                    producer.send(TextMessage(body))
        assert told == [(body, None) for number, body in enumerate(sent) if number % 10]
        harness.expect(queue, *sent)

    def test_future_is_done_when_the_broker_has_the_message(self, harness: Harness, connection: Connection) -> None:
        """With the message and its headers (section 7.3.6)."""
        queue = harness.queue()
        with connection.create_session() as session:
            message = TextMessage("a")
            assert session.create_producer(queue).send_async(message).result(PATIENCE) is message
            assert message.message_id
            harness.expect(queue, "a")

    def test_transaction_ends_after_them(self, harness: Harness, connection: Connection) -> None:
        """Commit and rollback wait for the listeners (section 7.3.4), and decide what is sent."""
        harness.require("atomic")
        queue, told = harness.queue(), list[object]()
        with connection.create_session(transacted=True) as session:
            producer = session.create_producer(queue)
            for body, end in (("a", session.commit), ("b", session.rollback), ("c", session.commit)):
                producer.send(TextMessage(body), on_completion=lambda message, _: told.append(message.body))
                end()
                assert told[-1] == body
        harness.expect(queue, "a", "c")


class TestMessageListeners(_Sessions):
    """Message listeners of the consumers of a session (JMS 3.1, section 8.7)."""

    def test_all_messages_are_delivered_in_order(self, harness: Harness, connection: Connection) -> None:
        """And acknowledged: none is left."""
        queue, sent = harness.queue(), [str(number) for number in range(100)]
        received = SimpleQueue[Message]()
        session = connection.create_session()
        session.create_consumer(queue).set_message_listener(received.put)
        harness.send(queue, *sent)
        assert [received.get(timeout=PATIENCE).body for _ in sent] == sent
        session.close()
        harness.expect(queue)

    def test_one_thread_calls_the_listeners_of_a_session(self, harness: Harness, connection: Connection) -> None:
        """However many consumers it has (section 6.2.13)."""
        queues, threads, received = [harness.queue() for _ in range(3)], set[int](), SimpleQueue[Message]()

        def listen(message: Message) -> None:
            """Record the thread and the message."""
            threads.add(threading.get_ident())
            received.put(message)

        connection.stop()
        session = connection.create_session()
        for queue in queues:
            session.create_consumer(queue).set_message_listener(listen)
            harness.send(queue, *"ab")
        connection.start()
        assert sorted(received.get(timeout=PATIENCE).body for _ in range(6)) == list("aaabbb")
        assert len(threads) == 1

    @pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
    def test_failed_message_is_redelivered(
        self, harness: Harness, connection: Connection, mode: AcknowledgeMode
    ) -> None:
        """At once, before all others, and marked (section 8.7)."""
        queue, seen, done = harness.queue(), list[tuple[str, bool]](), threading.Event()

        def fail_once(message: Message) -> None:
            """Fail at the first delivery of one message."""
            seen.append((message.body, message.redelivered))
            if message.body == "b" and not message.redelivered:
                raise JMSError("The first delivery fails.")
            if message.body == "c":
                done.set()

        harness.send(queue, *"abc")
        session = connection.create_session(acknowledge_mode=mode)
        session.create_consumer(queue).set_message_listener(fail_once)
        assert done.wait(PATIENCE)
        session.close()
        assert [body for body, _ in seen] == ["a", "b", "b", "c"]
        assert seen[2] == ("b", True)
        harness.expect(queue)

    def test_client_acknowledges_and_recovers(self, harness: Harness, connection: Connection) -> None:
        """The session is the listener's (section 6.2.5)."""
        queue, seen, done = harness.queue(), list[str](), threading.Event()
        session = connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)

        def recover_once(message: Message) -> None:
            """Recover at the first delivery, acknowledge at the second."""
            seen.append(message.body)
            if message.redelivered:
                message.acknowledge()
                done.set()
            else:
                session.recover()

        harness.send(queue, "a")
        session.create_consumer(queue).set_message_listener(recover_once)
        assert done.wait(PATIENCE)
        session.close()
        assert seen == ["a", "a"]
        harness.expect(queue)

    def test_listener_commits_what_it_receives_and_sends(self, harness: Harness, connection: Connection) -> None:
        """In one transaction of the session (section 6.2.7)."""
        harness.require("atomic")
        queue, replies = harness.queue(), harness.queue()
        session, done = connection.create_session(transacted=True), threading.Event()

        def reply(message: Message) -> None:
            """Roll back at the first delivery, commit at the second."""
            _reply(session, replies, message)
            if not message.redelivered:
                session.rollback()
                return
            session.commit()
            done.set()

        harness.send(queue, "a")
        session.create_consumer(queue).set_message_listener(reply)
        assert done.wait(PATIENCE)
        session.close()
        harness.expect(queue)
        harness.expect(replies, "A")

    def test_stop_pauses_the_delivery(self, harness: Harness, connection: Connection) -> None:
        """After `stop` no listener is called until the next `start` (section 6.1.5)."""
        queue, received = harness.queue(), SimpleQueue[Message]()
        connection.create_session().create_consumer(queue).set_message_listener(received.put)
        harness.send(queue, "a")
        assert received.get(timeout=PATIENCE).body == "a"
        connection.stop()
        harness.send(queue, "b")
        assert received.empty()
        connection.start()
        assert received.get(timeout=PATIENCE).body == "b"

    def test_closed_consumer_gives_back_what_its_listener_has_not_seen(
        self, harness: Harness, connection: Connection
    ) -> None:
        """The listener's own message is acknowledged when it returns (section 8.8)."""
        queue, done = harness.queue(), threading.Event()
        harness.send(queue, *"abc")
        session = connection.create_session()
        consumer = session.create_consumer(queue)

        def close(_: Message) -> None:
            """Close the consumer that delivers the message."""
            consumer.close()
            done.set()

        consumer.set_message_listener(close)
        assert done.wait(PATIENCE)
        session.close()
        harness.expect(queue, "b", "c")


def _reply(session: Session, to: Destination, message: Message) -> None:
    session.create_producer(to).send(TextMessage(message.body.upper()))
