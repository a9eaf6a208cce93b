"""A cancelled send, transaction, opening or closing: it happens or not, and leaves nothing behind."""

import asyncio
import threading

import pytest

from jmsjca import ConnectionFactory, Hooks, TextMessage, aio
from jmsjca.outbound import Connection
from tests.unit.aio.tasks import Busy, cancelled
from tests.unit.outbound import PATIENCE, QUEUE, put
from tests.unit.outbound import shown as waiting


async def test_send_that_has_not_begun(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        producer = await session.create_producer(QUEUE)
        busy = await Busy(session).begun()
        task = asyncio.create_task(producer.send(TextMessage("a")))
        await asyncio.sleep(0)
        await cancelled(task)
        await busy.go_on()
        await producer.send(TextMessage("b"))
    assert waiting(connection) == ["b"]


class Holding(Hooks):
    """Holds each send until `go_on` is set."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def around_send(self, message, destination, call_next):
        self.begun.set()
        assert self.go_on.wait(PATIENCE)
        call_next()


async def test_send_that_has_begun(jms_broker_url, connection):
    """It happens, and the next call waits for it."""
    holding = Holding()
    factory = ConnectionFactory(jms_broker_url, hooks=[holding])
    async with aio.connect(factory) as c, c.create_session() as session:
        producer = await session.create_producer(QUEUE)
        task = asyncio.create_task(producer.send(TextMessage("a")))
        assert await asyncio.to_thread(holding.begun.wait, PATIENCE)
        await cancelled(task)
        holding.go_on.set()
        await producer.send(TextMessage("b"))
    assert waiting(connection) == ["a", "b"]


async def test_cancelled_transaction_is_rolled_back(jms_connection_factory, connection):
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer, got = await session.create_consumer(QUEUE), asyncio.Event()

        async def work():
            async with session.transaction():
                await consumer.receive()
                got.set()
                await consumer.receive()

        task = asyncio.create_task(work())
        await got.wait()
        await cancelled(task)
        message = await consumer.receive(PATIENCE)
        assert (message.body, message.delivery_count) == ("a", 2)


async def test_commit_that_has_not_begun_is_rolled_back_with_its_transaction(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        producer, sent = await session.create_producer(QUEUE), asyncio.Event()

        async def work():
            async with session.transaction():
                await producer.send(TextMessage("a"))
                work.busy = await Busy(session).begun()
                sent.set()

        task = asyncio.create_task(work())
        await sent.wait()
        task.cancel()
        await asyncio.sleep(0)  # before the thread comes to it
        await work.busy.go_on()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.commit()
    assert waiting(connection) == []


async def test_rollback_happens_all_the_same(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        producer = await session.create_producer(QUEUE)
        await producer.send(TextMessage("a"))
        busy = await Busy(session).begun()
        task = asyncio.create_task(session.rollback())
        await asyncio.sleep(0)
        await cancelled(task)
        await busy.go_on()
        await session.commit()
    assert waiting(connection) == []


async def test_connection_that_nobody_waits_for_any_more_is_closed(jms_connection_factory, monkeypatch):
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    create, close = ConnectionFactory.create_connection, Connection.close

    def creating(*arguments):
        begun.set()
        assert go_on.wait(PATIENCE)
        return create(*arguments)

    monkeypatch.setattr(ConnectionFactory, "create_connection", creating)
    monkeypatch.setattr(Connection, "close", lambda connection: (close(connection), closed.set()))
    task = asyncio.ensure_future(aio.connect(jms_connection_factory))
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    await cancelled(task)
    go_on.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)


async def test_consumer_that_nobody_waits_for_any_more_is_closed(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        busy = await Busy(session).begun()
        task = asyncio.ensure_future(session.create_consumer(QUEUE))
        await asyncio.sleep(0)
        await cancelled(task)
        await busy.go_on()
        assert await session.run_sync(lambda s: all(receiver.closed for receiver in s._receivers))


async def test_closing_happens_all_the_same(jms_connection_factory):
    connection = await aio.connect(jms_connection_factory)
    session = await connection.create_session()
    busy = await Busy(session).begun()
    task = asyncio.create_task(connection.close())
    await asyncio.sleep(0)
    await cancelled(task)
    await busy.go_on()
    await connection.close()
    assert session.closed
