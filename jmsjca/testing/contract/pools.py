"""Cases for pools of connections and of producers, and for their borrowers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from jmsjca.aio import ConnectionPool as AsyncConnectionPool
from jmsjca.destinations import Destination
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    PoolTimeoutError,
    ResourceAllocationError,
)
from jmsjca.messages import DeliveryMode, Message
from jmsjca.outbound import Connection, ConnectionFactory, ConnectionPool, MessageProducer, Session
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = [
    "MovableClock",
    "TestBorrowers",
    "TestPoolSizes",
    "TestPooledProducers",
    "TestPools",
    "TestReplacedConnections",
    "TestWaitingBorrowers",
]

T = TypeVar("T")

_WAITING = 3

_MANY = 300
_SENDING_THREADS = 4

_THREADS, _SENDS = 4, 25
_ASYNC = 10  # coroutines


class MovableClock:
    """A clock that stands still until a case moves it.

    Attributes:
        time: The present time in seconds, of both kinds.
    """

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        """Return the time."""
        return self.time

    def monotonic(self) -> float:
        """Return the time."""
        return self.time


class TestPools(Contract):
    """`ConnectionPool`: a borrower leaves nothing behind for the next one."""

    @pytest.fixture
    def pool(self, jms_broker_url: str) -> Iterator[ConnectionPool]:
        """Provide a pool of two connections at most.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The pool, which is closed after the case.
        """
        with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=2, timeout=PATIENCE) as pool:
            yield pool

    def test_one_borrower_after_the_other_has_the_same_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """The broker sees one connection, whichever session is used."""
        queue = harness.queue()
        for body in "abc":
            with pool.session() as session:
                session.create_producer(queue).send(session.create_text_message(body))
        assert pool.get_stats()["connections_num"] == 1
        harness.expect(queue, *"abc")

    def test_threads_share_the_connections(self, harness: Harness, pool: ConnectionPool) -> None:
        """Each send of each thread arrives, over no more connections than the pool may have."""
        queue = harness.queue()

        def send(number: int) -> None:
            """Send one message over a borrowed connection."""
            with pool.session() as session:
                session.create_producer(queue).send(session.create_text_message(f"{number}"))

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(send, range(_THREADS * _SENDS)))
        assert pool.get_stats()["connections_num"] <= 2
        received = harness.gather(harness.connection.consumer(queue), _THREADS * _SENDS)
        assert {delivery.message.body for delivery in received} == {f"{n}" for n in range(_THREADS * _SENDS)}

    def test_open_transaction_is_rolled_back_on_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """The next borrower does not commit what the last one left (JMS 3.1, section 6.2.7)."""
        harness.require("atomic")
        queue = harness.queue()
        with pool.session(transacted=True) as session:
            session.create_producer(queue).send(session.create_text_message("left"))
        with pool.session(transacted=True) as session:
            session.create_producer(queue).send(session.create_text_message("committed"))
            session.commit()
        harness.expect(queue, "committed")

    def test_message_that_was_not_committed_is_redelivered(self, harness: Harness, pool: ConnectionPool) -> None:
        """It is there for any consumer, not only for the next borrower."""
        harness.require("atomic")
        queue = harness.queue()
        harness.send(queue, "a")
        with pool.session(transacted=True) as session:
            message = session.create_consumer(queue).receive(timeout=PATIENCE)
            assert message is not None
        harness.expect(queue, "a")

    def test_consumer_of_a_borrower_ends_with_the_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """It receives no messages any more, although the connection stays open."""
        queue = harness.queue()
        with pool.session() as session:
            session.create_consumer(queue)
        harness.send(queue, *"ab")
        assert pool.get_stats()["pool_size"] == 1
        harness.expect(queue, *"ab")

    def test_temporary_queue_of_a_borrower_ends_with_the_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """The next borrower of the same connection cannot use it (JMS 3.1, section 6.2.2)."""
        harness.require("temporary")
        with pool.session() as session:
            temporary = session.create_temporary_queue()
            session.create_producer(temporary).send(session.create_text_message("in time"))
        with pool.session() as session, pytest.raises(InvalidDestinationError):
            session.create_producer(temporary).send(session.create_text_message("late"))

    def test_objects_of_a_borrower_refuse_use_after_the_return(self, harness: Harness, pool: ConnectionPool) -> None:
        """Its session, producer and consumer are closed, although the connection to the broker stays open."""
        queue = harness.queue()
        with pool.connection() as connection:
            session = connection.create_session()
            producer, consumer = session.create_producer(queue), session.create_consumer(queue)
            message = session.create_text_message("a")
            producer.send(message)
        late: list[Callable[[], object]] = [
            lambda: producer.send(message),
            consumer.receive_no_wait,
            session.create_message,
            connection.create_session,
        ]
        for call in late:
            with pytest.raises(IllegalStateError):
                call()
        assert pool.get_stats()["pool_available"] == 1
        harness.expect(queue, "a")

    def test_producer_options_of_a_borrower_do_not_reach_the_next_one(
        self, harness: Harness, pool: ConnectionPool
    ) -> None:
        """Each producer begins with the defaults (JMS 3.1, section 7.9)."""
        queue = harness.queue()
        with pool.session() as session:
            session.create_producer(queue).send(session.create_text_message("urgent"), priority=9)
        with pool.session() as session:
            session.create_producer(queue).send(session.create_text_message("normal"))
            consumer = session.create_consumer(queue)
            received = [consumer.receive(timeout=PATIENCE) for _ in range(2)]
        assert {message.body: message.priority for message in received if message} == {"urgent": 9, "normal": 4}

    def test_coroutines_share_the_connections(self, harness: Harness, jms_broker_url: str) -> None:
        """They wait for a connection without blocking the loop."""
        queue, factory = harness.queue(), ConnectionFactory(jms_broker_url)
        bodies = [f"{number}" for number in range(_ASYNC)]

        async def send(pool: AsyncConnectionPool, body: str) -> None:
            """Send one message over a borrowed connection."""
            async with pool.session() as session:
                producer = await session.create_producer(queue)
                await producer.send(session.create_text_message(body))

        async def send_all() -> int:
            """Send from all coroutines, and return the number of connections."""
            async with AsyncConnectionPool(ConnectionPool(factory, max_size=2, timeout=PATIENCE)) as pool:
                await asyncio.gather(*(send(pool, body) for body in bodies))
                return pool.get_stats()["connections_num"]

        assert asyncio.run(send_all()) <= 2
        harness.expect(queue, *bodies, ordered=False)


class TestPoolSizes(Contract):
    """`ConnectionPool`: no more connections than it may have, and none that it does not need."""

    @pytest.fixture
    def clock(self) -> MovableClock:
        """Provide the clock of the pool."""
        return MovableClock()

    @pytest.fixture
    def pool(self, jms_broker_url: str, clock: MovableClock) -> Iterator[ConnectionPool]:
        """Provide a pool of one to two connections that fails at once if both are borrowed.

        Args:
            jms_broker_url: The URL of the broker.
            clock: The clock of the pool.

        Yields:
            The pool, which is closed after the case.
        """
        factory = ConnectionFactory(jms_broker_url)
        with ConnectionPool(factory, min_size=1, max_size=2, max_idle=60, max_lifetime=600, clock=clock) as pool:
            yield pool

    def test_exhausted_pool_fails_and_its_borrowers_go_on(self, harness: Harness, pool: ConnectionPool) -> None:
        """A third borrower gets an error; the two connections stay usable."""
        queue = harness.queue()
        with pool.connection() as first, pool.connection() as second:
            with pytest.raises(PoolTimeoutError):
                pool.get_connection()
            for connection in (first, second):
                _send(connection.create_session(), queue.name)
        harness.expect(queue, "sent", "sent")

    def test_waiting_borrower_gets_the_returned_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """It opens no third one."""
        first, second = pool.get_connection(), pool.get_connection()
        waiting = harness.in_background(lambda: pool.get_connection(timeout=None))
        _await_waiting(pool)
        returned = first.connection
        first.close()
        third = waiting.result(PATIENCE)
        assert third.connection is returned
        third.close()
        second.close()
        assert _sizes(pool) == (2, 2)

    def test_wait_opens_the_minimum(self, pool: ConnectionPool) -> None:
        """The connections are there before the first borrower comes."""
        assert _sizes(pool) == (0, 0)
        pool.wait()
        assert _sizes(pool) == (1, 1)

    def test_idle_connection_above_the_minimum_is_closed(self, pool: ConnectionPool, clock: MovableClock) -> None:
        """One stays, however long nothing is sent."""
        with pool.connection(), pool.connection():
            pass
        with pool.connection():
            clock.time += 61
        assert _sizes(pool) == (1, 1)

    def test_connection_at_the_end_of_its_lifetime_is_replaced(
        self, harness: Harness, pool: ConnectionPool, clock: MovableClock
    ) -> None:
        """It is closed when it is returned, and the next borrower gets a new one."""
        with pool.connection() as connection:
            old = connection.connection
            clock.time += 600
        assert _sizes(pool) == (0, 0)
        queue = harness.queue()
        with pool.connection() as connection:
            assert connection.connection is not old
            _send(connection.create_session(), queue.name)
        harness.expect(queue, "sent")

    def test_resize_closes_what_is_too_much_and_opens_what_waits(self, harness: Harness, pool: ConnectionPool) -> None:
        """A smaller pool closes connections on their return; a larger one serves a thread that waits."""
        first, second = pool.get_connection(), pool.get_connection()
        waiting = harness.in_background(lambda: pool.get_connection(timeout=None))
        _await_waiting(pool)
        pool.resize(1, 3)
        third = waiting.result(PATIENCE)
        pool.resize(0, 1)
        for connection in (first, second, third):
            connection.close()
        assert _sizes(pool) == (1, 1)

    def test_drain_replaces_every_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """Idle ones are closed at once, borrowed ones when they are returned; their borrowers go on."""
        queue = harness.queue()
        with pool.connection() as borrowed:
            with pool.connection():
                pass
            pool.drain()
            assert _sizes(pool) == (1, 0)
            _send(borrowed.create_session(), queue.name)
        assert _sizes(pool) == (0, 0)
        with pool.connection() as connection:
            assert connection.connection is not borrowed.connection
        harness.expect(queue, "sent")

    def test_close_leaves_borrowers_their_connections(self, harness: Harness, pool: ConnectionPool) -> None:
        """They commit what they began; then the connection is closed, and a further borrower gets an error."""
        queue = harness.queue()
        pool.resize(0, 1)
        connection = pool.get_connection()
        waiting = harness.in_background(lambda: pool.get_connection(timeout=None))
        _await_waiting(pool)
        pool.close(timeout=0)
        with pytest.raises(IllegalStateError):
            waiting.result(PATIENCE)
        _send(connection.create_session(), queue.name)
        connection.close()
        assert _sizes(pool) == (0, 0)
        with pytest.raises(IllegalStateError):
            pool.get_connection()
        harness.expect(queue, "sent")


class TestReplacedConnections(Contract):
    """`ConnectionPool`: a connection that is not good is replaced before it is borrowed."""

    def test_connection_that_fails_its_check_is_replaced(self, harness: Harness, jms_broker_url: str) -> None:
        """The borrower sees no error."""
        queue, checked = harness.queue(), list[Connection]()

        def check(connection: Connection) -> None:
            """Refuse a connection that is checked for the first time."""
            if connection not in checked:
                checked.append(connection)
                raise OSError("no answer")

        with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=1, check=check) as pool:
            for _ in range(3):
                with pool.session() as session:
                    _send(session, queue.name)
            stats = pool.get_stats()
        assert (stats["connections_num"], stats["connections_lost"], stats["pool_size"]) == (3, 2, 1)
        harness.expect(queue, *["sent"] * 3)

    def test_interrupted_check_loses_no_place(self, harness: Harness, jms_broker_url: str) -> None:
        """The next borrower gets a connection, although the pool has only one."""
        interruptions = [KeyboardInterrupt()]

        def check(_connection: Connection) -> None:
            """Raise an interruption once, as a signal does."""
            if interruptions:
                raise interruptions.pop()

        queue = harness.queue()
        with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=1, check=check) as pool:
            pool.get_connection().close()
            with pytest.raises(KeyboardInterrupt):
                pool.get_connection()
            assert _sizes(pool) == (0, 0)
            with pool.session() as session:
                _send(session, queue.name)
        harness.expect(queue, "sent")

    def test_connection_that_was_not_used_for_the_idle_timeout_is_replaced(self, jms_broker_url: str) -> None:
        """So says the option of the factory (JMSJCA's manual, IdleTimeout)."""
        factory, clock = ConnectionFactory(jms_broker_url, options={"JMSJCA.idletimeout": "30000"}), MovableClock()
        with ConnectionPool(factory, clock=clock) as pool:
            with pool.connection() as first:
                pass
            clock.time += 30
            with pool.connection() as second:
                assert second.connection is first.connection
            clock.time += 31
            with pool.connection() as third:
                assert third.connection is not first.connection
            assert pool.get_stats()["pool_size"] == 1


def _send(session: Session, name: str) -> None:
    session.create_producer(session.create_queue(name)).send(session.create_text_message("sent"))


def _sizes(pool: ConnectionPool) -> tuple[int, int]:
    stats = pool.get_stats()
    return stats["pool_size"], stats["pool_available"]


def _await_waiting(pool: ConnectionPool) -> None:
    pause = threading.Event()
    for _ in range(round(PATIENCE * 1000)):
        if pool.get_stats()["requests_waiting"]:
            return
        pause.wait(0.001)
    pytest.fail(f"No thread waits for a connection: {pool.get_stats()}")


class TestBorrowers(Contract):
    """`ConnectionPool`: whatever a borrower does or fails to do, its connection returns."""

    @pytest.fixture
    def pool(self, jms_broker_url: str) -> Iterator[ConnectionPool]:
        """Provide a pool of two connections at most.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The pool, which is closed after the case.
        """
        with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=2) as pool:
            yield pool

    def test_connection_returns_when_its_block_raises(self, harness: Harness, pool: ConnectionPool) -> None:
        """The borrower gets the exception; the next borrower gets the same connection."""
        queue = harness.queue()
        with pytest.raises(ZeroDivisionError), pool.session():
            raise ZeroDivisionError
        with pool.session() as session:
            session.create_producer(queue).send("a")
        assert (pool.get_stats()["connections_num"], pool.get_stats()["pool_available"]) == (1, 1)
        harness.expect(queue, "a")

    def test_connection_that_is_returned_twice_is_there_once(self, pool: ConnectionPool) -> None:
        """Two borrowers at the same time have separate connections."""
        connection = pool.get_connection()
        connection.close()
        connection.close()
        assert pool.get_stats()["pool_available"] == 1
        with pool.connection() as first, pool.connection() as second:
            assert first.connection is not second.connection

    def test_borrowers_at_a_time_have_connections_of_their_own(self, harness: Harness, pool: ConnectionPool) -> None:
        """Also when they borrow at the same moment."""
        barrier = threading.Barrier(2)

        def borrow() -> object:
            """Borrow together with the other thread, and return together."""
            barrier.wait(PATIENCE)
            with pool.connection() as connection:
                barrier.wait(PATIENCE)
                return connection.connection

        borrowed = [harness.in_background(borrow) for _ in range(2)]
        assert len({each.result(PATIENCE) for each in borrowed}) == 2

    def test_refused_call_leaves_the_connection_in_the_pool(self, harness: Harness, pool: ConnectionPool) -> None:
        """A mistake of the borrower is not a failure of the connection."""
        queue = harness.queue()
        with pytest.raises(JMSError), pool.session() as session:
            session.create_producer(queue).send("never", priority=10)
        with pool.session() as session:
            session.create_producer(queue).send("a")
        assert pool.get_stats()["connections_num"] == 1
        assert pool.get_stats()["returns_bad"] == 0
        harness.expect(queue, "a")

    def test_next_borrower_sends_after_the_broker_refused_a_call(self, harness: Harness, pool: ConnectionPool) -> None:
        """Over the same connection, or over another one where the broker ends the connection, as STOMP demands."""
        harness.require("selectors")
        queue = harness.queue()
        with pytest.raises(InvalidSelectorError), pool.session() as session:
            session.create_consumer(queue, "a =")
        with pool.session() as session:
            session.create_producer(queue).send("a")
        assert pool.get_stats()["pool_size"] == 1
        harness.expect(queue, "a")

    def test_return_deletes_only_the_temporary_queues_of_the_borrower(
        self, harness: Harness, pool: ConnectionPool
    ) -> None:
        """Queues of other borrowers remain. It is not an error if the borrower has deleted one itself."""
        harness.require("temporary")
        with pool.session() as session:
            mine = session.create_temporary_queue()
            with pool.session() as other:
                other.create_temporary_queue()
                other.create_temporary_queue().delete()
            session.create_producer(mine).send("a")
            received = session.create_consumer(mine).receive(timeout=PATIENCE)
            assert received is not None
            assert received.body == "a"
        assert pool.get_stats()["returns_bad"] == 0
        assert pool.get_stats()["pool_available"] == 2

    def test_borrowed_connection_is_not_closed_for_being_idle(self, harness: Harness, jms_broker_url: str) -> None:
        """Only connections in the pool are closed, however long a borrower keeps one."""
        queue, clock = harness.queue(), MovableClock()
        with ConnectionPool(ConnectionFactory(jms_broker_url), max_idle=60, clock=clock) as pool:
            with pool.session() as session:
                with pool.connection():
                    pass
                clock.time += 61
                with pool.connection():
                    pass
                session.create_producer(queue).send("a")
            assert pool.get_stats()["pool_size"] >= 1
        harness.expect(queue, "a")

    def test_closed_pool_can_be_opened_again(self, harness: Harness, pool: ConnectionPool) -> None:
        """It begins without connections."""
        queue = harness.queue()
        with pool.session() as session:
            session.create_producer(queue).send("a")
        pool.close()
        assert pool.get_stats()["pool_size"] == 0
        pool.open()
        with pool.session() as session:
            session.create_producer(queue).send("b")
        assert pool.get_stats()["connections_num"] == 2
        harness.expect(queue, *"ab")


class TestWaitingBorrowers(Contract):
    """`ConnectionPool`: borrowers wait in order, and one that gives up leaves nothing behind."""

    @pytest.fixture
    def pool(self, jms_broker_url: str) -> Iterator[ConnectionPool]:
        """Provide a pool of one connection, for which three threads at most may wait.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The pool, which is closed after the case.
        """
        factory = ConnectionFactory(jms_broker_url)
        with ConnectionPool(factory, max_size=1, timeout=None, max_waiting=_WAITING) as pool:
            yield pool

    def test_borrowers_are_served_in_the_order_of_their_arrival(self, harness: Harness, pool: ConnectionPool) -> None:
        """One connection goes from one to the next."""
        connection, served = pool.get_connection(), list[int]()

        def borrow(number: int) -> None:
            """Borrow the connection, record it, and return it."""
            with pool.connection():
                served.append(number)

        waiting = [_wait(harness, pool, number, partial(borrow, number)) for number in range(_WAITING)]
        connection.close()
        for each in waiting:
            each.result(PATIENCE)
        assert served == list(range(_WAITING))
        assert pool.get_stats()["connections_num"] == 1

    def test_no_more_than_max_waiting_borrowers_wait(self, harness: Harness, pool: ConnectionPool) -> None:
        """A further one gets an error at once, and the others are served."""
        connection = pool.get_connection()
        waiting = [_wait(harness, pool, n, lambda: pool.get_connection().close()) for n in range(_WAITING)]
        with pytest.raises(ResourceAllocationError):
            pool.get_connection()
        connection.close()
        for each in waiting:
            each.result(PATIENCE)
        assert pool.get_stats()["requests_errors"] == 1

    def test_borrower_that_gave_up_takes_no_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """The next borrower in line is served."""
        queue, connection = harness.queue(), pool.get_connection()
        with pytest.raises(PoolTimeoutError):
            pool.get_connection(timeout=0.001)
        waiting = _wait(harness, pool, 0, pool.get_connection)
        connection.close()
        borrowed = waiting.result(PATIENCE)
        borrowed.create_session().create_producer(queue).send("a")
        borrowed.close()
        stats = pool.get_stats()
        assert (stats["pool_size"], stats["pool_available"], stats["requests_waiting"]) == (1, 1, 0)
        harness.expect(queue, "a")

    def test_cancelled_coroutine_takes_no_connection(self, harness: Harness, pool: ConnectionPool) -> None:
        """Neither one that waits, nor one that has just been given a connection."""
        queue = harness.queue()

        async def cancel_one_that_waits() -> None:
            """Cancel a task that waits for the only connection, then use that connection."""
            borrowers = AsyncConnectionPool(pool)
            async with borrowers.connection():
                task = asyncio.create_task(_use(borrowers))
                await asyncio.to_thread(_await_waiting_borrowers, pool, 1)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with borrowers.session() as session:
                producer = await session.create_producer(queue)
                await producer.send("a")

        asyncio.run(cancel_one_that_waits())
        stats = pool.get_stats()
        assert (stats["pool_size"], stats["pool_available"], stats["requests_waiting"]) == (1, 1, 0)
        harness.expect(queue, "a")


def _wait(harness: Harness, pool: ConnectionPool, before: int, borrow: Callable[[], T]) -> Future[T]:
    """Borrow on another thread, and return when it waits behind those before it."""
    future = harness.in_background(borrow)
    _await_waiting_borrowers(pool, before + 1)
    return future


def _await_waiting_borrowers(pool: ConnectionPool, count: int) -> None:
    pause = threading.Event()
    for _ in range(round(PATIENCE * 1000)):
        if pool.get_stats()["requests_waiting"] >= count:
            return
        pause.wait(0.001)
    pytest.fail(f"No thread waits for a connection: {pool.get_stats()}")


async def _use(pool: AsyncConnectionPool) -> None:
    async with pool.connection():
        pass


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
        """The broker sees one producer: the message ids of the second object continue the ids of the first."""
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
        """It does not affect the object that continues its producer; a second close does not return the producer."""
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
        assert _producer_of(_id_of_sent(session, third, "c")) != _producer_of(_id_of_sent(session, open_one, "d"))
        harness.expect(queue, *"abcd")

    def test_open_producers_of_one_destination_are_two(self, harness: Harness, session: Session) -> None:
        """Each producer has separate options."""
        queue = harness.queue()
        first, second = session.create_producer(queue), session.create_producer(queue)
        first.priority = 9
        ids = {_id_of_sent(session, first, "first"), _id_of_sent(session, second, "second")}
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
        """This includes a failed asynchronous send: closing waits for the outcome."""
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
        """Nothing was sent, so the next producer continues it."""
        queue = harness.queue()
        producer = session.create_producer(queue)
        first = _producer_of(_id_of_sent(session, producer, "a"))
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
        """A rollback discards them, and a commit sends them, whichever producer continues the closed one."""
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

        with ThreadPoolExecutor(_SENDING_THREADS) as threads:
            producers = list(threads.map(send, range(_SENDING_THREADS * 5)))
        assert len(set(producers)) == _SENDING_THREADS * 5
        bodies = [f"{number}{half}" for number in range(_SENDING_THREADS * 5) for half in "ab"]
        harness.expect(queue, *sorted(bodies), ordered=False)


def _id_of_sent(session: Session, producer: MessageProducer, body: str) -> str:
    """Send a message, and return its id."""
    message = session.create_text_message(body)
    producer.send(message)
    return message.message_id or ""


def _send_and_close(session: Session, to: Destination, body: str) -> str:
    producer = session.create_producer(to)
    try:
        return _id_of_sent(session, producer, body)
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
