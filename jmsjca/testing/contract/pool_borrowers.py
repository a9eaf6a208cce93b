"""Cases for the borrowers of pools: what they may leave undone, what they do to each other, and how they wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import pytest

from jmsjca.aio import ConnectionPool as AsyncConnectionPool
from jmsjca.errors import InvalidSelectorError, JMSError, PoolTimeoutError, ResourceAllocationError
from jmsjca.outbound import ConnectionFactory, ConnectionPool
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness
from jmsjca.testing.contract.pools import MovableClock

__all__ = ["TestBorrowers", "TestWaitingBorrowers"]

T = TypeVar("T")

_WAITING = 3


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
        """The exception is the borrower's own; the next borrower has the same connection."""
        queue = harness.queue()
        with pytest.raises(ZeroDivisionError), pool.session():
            raise ZeroDivisionError
        with pool.session() as session:
            session.create_producer(queue).send("a")
        assert (pool.get_stats()["connections_num"], pool.get_stats()["pool_available"]) == (1, 1)
        harness.expect(queue, "a")

    def test_connection_that_is_returned_twice_is_there_once(self, pool: ConnectionPool) -> None:
        """Two borrowers at a time have connections of their own."""
        connection = pool.get_connection()
        connection.close()
        connection.close()
        assert pool.get_stats()["pool_available"] == 1
        with pool.connection() as first, pool.connection() as second:
            assert first.connection is not second.connection

    def test_borrowers_at_a_time_have_connections_of_their_own(self, harness: Harness, pool: ConnectionPool) -> None:
        """Also when they come at the same moment."""
        barrier = threading.Barrier(2)

        def borrow() -> object:
            """Borrow when the other thread does, and return when it has, too."""
            barrier.wait(PATIENCE)
            with pool.connection() as connection:
                barrier.wait(PATIENCE)
                return connection.connection

        borrowed = [harness.in_background(borrow) for _ in range(2)]
        assert len({each.result(PATIENCE) for each in borrowed}) == 2

    def test_refused_call_leaves_the_connection_in_the_pool(self, harness: Harness, pool: ConnectionPool) -> None:
        """A mistake of the borrower is no failure of the connection."""
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
        """Another borrower's is still there; one that the borrower deleted itself is no error."""
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
        """Only those in the pool are, however long a borrower keeps its own."""
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
        """The one behind it is served, although the other came first."""
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
                await asyncio.to_thread(_await_waiting, pool, 1)
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
    _await_waiting(pool, before + 1)
    return future


def _await_waiting(pool: ConnectionPool, count: int) -> None:
    pause = threading.Event()
    for _ in range(round(PATIENCE * 1000)):
        if pool.get_stats()["requests_waiting"] >= count:
            return
        pause.wait(0.001)
    pytest.fail(f"No thread waits for a connection: {pool.get_stats()}")


async def _use(pool: AsyncConnectionPool) -> None:
    async with pool.connection():
        pass
