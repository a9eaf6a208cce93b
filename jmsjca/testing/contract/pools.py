"""Cases for pools of connections: what a return ends, what threads share, and when a connection is replaced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca.aio import ConnectionPool as AsyncConnectionPool
from jmsjca.errors import IllegalStateError, InvalidDestinationError, PoolTimeoutError
from jmsjca.outbound import Connection, ConnectionFactory, ConnectionPool, Session
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness

__all__ = ["MovableClock", "TestPoolSizes", "TestPools", "TestReplacedConnections"]

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
