"""aio.ConnectionPool: borrowing, returning, cancellation, and the verbs of the blocking pool."""

import asyncio
import random

import pytest

from jmsjca import ConnectionFactory, Queue, aio
from jmsjca.errors import ArgumentTypeError, IllegalStateError, PoolTimeoutError
from jmsjca.outbound import ConnectionPool
from tests.unit.outbound.queues import PATIENCE
from tests.unit.outbound.test_pool import wait_for_waiting

QUEUE = Queue("orders")


@pytest.fixture
def blocking(jms_broker_url):
    with ConnectionPool(ConnectionFactory(jms_broker_url), max_size=1) as pool:
        yield pool


def sizes(pool: aio.ConnectionPool) -> tuple[int, int]:
    stats = pool.get_stats()
    return stats["pool_size"], stats["pool_available"]


async def test_session_sends_receives_and_returns_its_connection(blocking):
    async with aio.ConnectionPool(blocking) as pool:
        async with pool.session(transacted=True) as session:
            await (await session.create_producer(QUEUE)).send(session.create_text_message("a pear"))
            await session.commit()
        async with pool.session() as session, session.create_consumer(QUEUE) as consumer:
            assert (await consumer.receive(PATIENCE)).body == "a pear"
        assert sizes(pool) == (1, 1)
        assert pool.get_stats()["connections_num"] == 1
    assert pool.closed


async def test_exhausted_pool_fails_at_once_by_default(blocking):
    async with aio.ConnectionPool(blocking) as pool, pool.connection():
        with pytest.raises(PoolTimeoutError):
            await pool.connection()


async def test_returned_connection_creates_no_session(blocking):
    async with aio.ConnectionPool(blocking) as pool:
        async with pool.connection() as connection:
            pass
        with pytest.raises(IllegalStateError, match="returned"):
            await connection.create_session()


async def test_waiting_receive_ends_when_the_connection_is_returned(blocking, receiving):
    async with aio.ConnectionPool(blocking) as pool:
        async with pool.connection() as connection:
            session = await connection.create_session()
            consumer = await session.create_consumer(QUEUE)
            waiting = await receiving(consumer.receive())
        assert await waiting is None
        assert sizes(pool) == (1, 1)


async def test_cancelled_borrower_leaves_nothing_borrowed(blocking):
    async with aio.ConnectionPool(blocking) as pool:
        async with pool.connection():
            waiting = asyncio.ensure_future(pool.connection(timeout=PATIENCE))
            await asyncio.to_thread(wait_for_waiting, blocking, 1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with pool.connection(timeout=PATIENCE):
            assert sizes(pool) == (1, 0)


async def test_resize_and_drain_are_those_of_the_pool(blocking):
    async with aio.ConnectionPool(blocking) as pool:
        await pool.resize(2, 3)
        await pool.wait()
        assert sizes(pool) == (2, 2)
        await pool.drain()
        assert sizes(pool) == (0, 0)


async def test_factory_is_no_pool(jms_broker_url):
    with pytest.raises(ArgumentTypeError, match="pool"):
        aio.ConnectionPool(ConnectionFactory(jms_broker_url))


async def test_no_cancellation_loses_a_connection(jms_broker_url):
    """Borrowers are cancelled while they wait, while they use a connection, and while they return it."""
    chance = random.Random(7)
    blocking = ConnectionPool(ConnectionFactory(jms_broker_url), max_size=2, timeout=PATIENCE)
    async with aio.ConnectionPool(blocking) as pool:

        async def borrow() -> None:
            async with pool.session() as session:
                producer = await session.create_producer(QUEUE)
                await producer.send(session.create_text_message("a"))

        tasks = [asyncio.ensure_future(borrow()) for _ in range(200)]
        for task in tasks:
            await asyncio.sleep(0)
            if chance.random() < 0.5:
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {type(None), asyncio.CancelledError}
        async with pool.connection(timeout=PATIENCE), pool.connection(timeout=PATIENCE):
            assert sizes(pool) == (2, 0)
        await pool.close(PATIENCE)  # waits for connections that are still borrowed
        assert sizes(pool) == (0, 0)
