"""Cases for the pools of producers that sessions have with ``producer_pooling``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, JMSError, MessageFormatError
from jmsjca.messages import DeliveryMode, Message
from jmsjca.outbound import ConnectionFactory, ConnectionPool, MessageProducer, Session
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = ["TestPooledProducers"]

_MANY = 300
_THREADS = 4


def _send_and_wait(producer: MessageProducer, message: Message, to: Destination) -> None:
    producer.send(message, to)


def _begin_and_wait(producer: MessageProducer, message: Message, to: Destination) -> None:
    producer.send_async(message, to).result(PATIENCE)


class TestPooledProducers(Contract):
    """``producer_pooling``: the next producer of a session continues a closed one (JMSJCA manual, ProducerPooling)."""

    @pytest.fixture
    def pool(self, jms_broker_url: str) -> Iterator[ConnectionPool]:
        """Provide a pool of sessions that pool their producers.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The pool, which is closed after the case.
        """
        with ConnectionPool(ConnectionFactory(jms_broker_url, producer_pooling=True), timeout=PATIENCE) as pool:
            yield pool

    @pytest.fixture
    def session(self, pool: ConnectionPool) -> Iterator[Session]:
        """Provide a session of the pool.

        Args:
            pool: The pool.

        Yields:
            The session.
        """
        with pool.session() as session:
            yield session

    def test_closed_producer_is_continued(self, harness: Harness, session: Session) -> None:
        """The broker sees one producer: the message ids of the second object follow those of the first."""
        queue = harness.queue()
        ids = [_send_and_close(session, queue, body) for body in "abc"]
        assert len({_producer_of(each) for each in ids}) == 1
        assert len(set(ids)) == 3
        harness.expect(queue, *"abc")

    def test_without_pooling_each_producer_is_a_new_one(self, harness: Harness, jms_broker_url: str) -> None:
        """That is the default."""
        queue = harness.queue()
        with ConnectionPool(ConnectionFactory(jms_broker_url)) as pool, pool.session() as session:
            ids = [_send_and_close(session, queue, body) for body in "ab"]
        assert len({_producer_of(each) for each in ids}) == 2
        harness.expect(queue, *"ab")

    def test_options_of_a_closed_producer_are_reset(self, harness: Harness, session: Session) -> None:
        """The next one has the defaults, on itself and in the message that it sends (JMS 3.1, section 7.4)."""
        queue = harness.queue()
        producer = session.create_producer(queue)
        producer.delivery_mode, producer.priority = DeliveryMode.NON_PERSISTENT, 9
        producer.time_to_live, producer.delivery_delay = 1000, 0
        producer.disable_message_id = producer.disable_timestamp = True
        producer.send("changed")
        producer.close()
        producer = session.create_producer(queue)
        assert (producer.delivery_mode, producer.priority) == (DeliveryMode.PERSISTENT, 4)
        assert (producer.time_to_live, producer.delivery_delay) == (0, 0)
        assert (producer.disable_message_id, producer.disable_timestamp) == (False, False)
        message = session.create_text_message("plain")
        producer.send(message)
        assert message.message_id
        assert message.timestamp
        assert message.expiration is None
        received = {each.body: each for each in _receive(session, queue, 2)}
        assert (received["changed"].priority, received["plain"].priority) == (9, 4)

    def test_closed_object_refuses_use_although_its_producer_is_continued(
        self, harness: Harness, session: Session
    ) -> None:
        """It does not reach the object that continues its producer, and closing it again is no return."""
        queue = harness.queue()
        closed = session.create_producer(queue)
        closed.send("a")
        closed.close()
        open_one = session.create_producer(queue)
        closed.close()
        with pytest.raises(IllegalStateError):
            closed.send("never")
        with pytest.raises(IllegalStateError):
            closed.priority = 9
        open_one.send("b")
        third = session.create_producer(queue)
        assert _producer_of(_send(session, third, "c")) != _producer_of(_send(session, open_one, "d"))
        harness.expect(queue, *"abcd")

    def test_open_producers_of_one_destination_are_two(self, harness: Harness, session: Session) -> None:
        """Each has options of its own."""
        queue = harness.queue()
        first, second = session.create_producer(queue), session.create_producer(queue)
        first.priority = 9
        ids = {_send(session, first, "first"), _send(session, second, "second")}
        assert len({_producer_of(each) for each in ids}) == 2
        assert {each.body: each.priority for each in _receive(session, queue, 2)} == {"first": 9, "second": 4}

    def test_each_destination_has_a_producer(self, harness: Harness, session: Session) -> None:
        """So has each kind of destination, and the producer that names its destination in each send."""
        queue, other, topic = harness.queue(), harness.queue(), harness.topic()
        for _ in range(2):
            ids = {
                _send_and_close(session, queue, "a"),
                _send_and_close(session, other, "b"),
                _send_and_close(session, topic, "c"),
                _send_anywhere(session, queue, "d"),
            }
            assert len({_producer_of(each) for each in ids}) == 4
        harness.expect(queue, *"adad")
        harness.expect(other, *"bb")

    @pytest.mark.parametrize("sending", [_send_and_wait, _begin_and_wait], ids=["synchronous", "asynchronous"])
    def test_producer_whose_send_failed_is_not_continued(
        self, harness: Harness, session: Session, sending: Callable[[MessageProducer, Message, Destination], object]
    ) -> None:
        """Nor is one whose asynchronous send failed: its close waits for the outcome."""
        harness.require("temporary")
        temporary, queue = session.create_temporary_queue(), harness.queue()
        temporary.delete()
        producer, message = session.create_producer(), session.create_text_message("late")
        with pytest.raises(JMSError):
            sending(producer, message, temporary)
        producer.close()
        assert _producer_of(_send_anywhere(session, queue, "a")) != _producer_of(message.message_id or "")
        harness.expect(queue, "a")

    def test_refused_option_of_a_send_is_no_failure_of_the_producer(self, harness: Harness, session: Session) -> None:
        """Nothing was sent, so that the next one continues it."""
        queue = harness.queue()
        producer = session.create_producer(queue)
        first = _producer_of(_send(session, producer, "a"))
        with pytest.raises(MessageFormatError):
            producer.send("never", priority=10)
        producer.close()
        assert _producer_of(_send_and_close(session, queue, "b")) == first
        harness.expect(queue, *"ab")

    def test_producer_of_a_temporary_destination_is_not_continued(self, harness: Harness, session: Session) -> None:
        """The destination may be deleted, and one of the same name is another one."""
        harness.require("temporary")
        temporary = session.create_temporary_queue()
        ids = [_send_and_close(session, temporary, body) for body in "ab"]
        assert len({_producer_of(each) for each in ids}) == 2
        temporary.delete()
        with pytest.raises(InvalidDestinationError):
            session.create_producer(temporary).send("late")

    def test_producers_end_with_their_session(self, harness: Harness, pool: ConnectionPool) -> None:
        """The next session, of the same connection, begins without."""
        queue = harness.queue()
        with pool.session() as session:
            first = _send_and_close(session, queue, "a")
            left = session.create_producer()
        with pytest.raises(IllegalStateError):
            left.send("never", queue)
        left.close()
        assert not session._producers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        with pool.session() as session:
            second = _send_and_close(session, queue, "b")
        assert pool.get_stats()["connections_num"] == 1
        assert _producer_of(first) != _producer_of(second)
        harness.expect(queue, *"ab")

    def test_closed_producer_leaves_its_messages_in_the_transaction(
        self, harness: Harness, pool: ConnectionPool
    ) -> None:
        """A rollback discards them, and a commit sends them, whichever producer is continued meanwhile."""
        harness.require("atomic")
        queue = harness.queue()
        with pool.session(transacted=True) as session:
            _send_and_close(session, queue, "discarded")
            session.rollback()
            for body in "ab":
                _send_and_close(session, queue, body)
            session.commit()
        harness.expect(queue, *"ab")

    def test_close_waits_for_asynchronous_sends_of_a_producer(self, harness: Harness, session: Session) -> None:
        """They are complete when it returns to the pool (JMS 3.1, section 7.3.4)."""
        queue = harness.queue()
        producer = session.create_producer(queue)
        sent = producer.send_async("a")
        producer.close()
        assert sent.done()
        first = sent.result(PATIENCE).message_id or ""
        assert _producer_of(_send_and_close(session, queue, "b")) == _producer_of(first)
        harness.expect(queue, *"ab")

    def test_many_destinations_do_not_pile_up(self, harness: Harness, session: Session) -> None:
        """The session keeps a bounded number of producers; the one that was closed first is dropped first."""
        queues = [harness.queue() for _ in range(_MANY)]
        for queue in queues:
            session.create_producer(queue).close()
        kept = session._producers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API
        assert kept is not None
        assert 0 < len(kept) < _MANY
        assert kept.take(queues[0]) is None
        assert kept.take(queues[-1]) is not None

    def test_threads_do_not_share_producers(self, harness: Harness, pool: ConnectionPool) -> None:
        """Each has the producers of its session, and all messages arrive."""
        queue = harness.queue()

        def send(number: int) -> str:
            """Send over a borrowed connection, with a producer that is continued once."""
            with pool.session() as session:
                before, after = (_send_and_close(session, queue, f"{number}{half}") for half in "ab")
                assert _producer_of(before) == _producer_of(after)
                return _producer_of(before)

        with ThreadPoolExecutor(_THREADS) as threads:
            producers = list(threads.map(send, range(_THREADS * 5)))
        assert len(set(producers)) == _THREADS * 5
        bodies = [f"{number}{half}" for number in range(_THREADS * 5) for half in "ab"]
        harness.expect(queue, *sorted(bodies), ordered=False)


def _send(session: Session, producer: MessageProducer, body: str) -> str:
    """Send a message, and return its id."""
    message = session.create_text_message(body)
    producer.send(message)
    return message.message_id or ""


def _send_and_close(session: Session, to: Destination, body: str) -> str:
    producer = session.create_producer(to)
    try:
        return _send(session, producer, body)
    finally:
        producer.close()


def _send_anywhere(session: Session, to: Destination, body: str) -> str:
    producer, message = session.create_producer(), session.create_text_message(body)
    producer.send(message, to)
    producer.close()
    return message.message_id or ""


def _producer_of(message_id: str) -> str:
    """Return the part of a message id that all messages of a producer have."""
    return message_id.rpartition("-")[0]


def _receive(session: Session, queue: Destination, count: int) -> list[Message]:
    with session.create_consumer(queue) as consumer:
        received = [consumer.receive(timeout=PATIENCE) for _ in range(count)]
    return [message for message in received if message]
