"""A cancelled call happens or does not happen; a cancelled receive takes no message."""

import asyncio
import threading
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca import AcknowledgeMode, ConnectionFactory, Hooks, TextMessage, aio
from jmsjca.errors import ResourceAllocationError
from jmsjca.outbound import Connection
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.store.store import drop_memory_store
from tests.unit.aio.tasks import Busy, cancelled
from tests.unit.outbound.queues import PATIENCE, QUEUE, put
from tests.unit.outbound.queues import shown as waiting

MODES = {
    "auto": {},
    "dups_ok": {"acknowledge_mode": AcknowledgeMode.DUPS_OK},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "individual": {"acknowledge_mode": AcknowledgeMode.INDIVIDUAL},
    "transacted": {"transacted": True},
}
in_each_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@in_each_mode
async def test_a_cancelled_receive_loses_no_message(jms_connection_factory, connection, receiving, mode):
    async with aio.connect(jms_connection_factory) as c, c.create_session(**mode) as session:
        consumer = await session.create_consumer(QUEUE)
        await cancelled(await receiving(consumer.receive()))
        put(connection, "a")
        message = await consumer.receive(PATIENCE)
        assert (message.body, message.delivery_count) == ("a", 1)


async def test_receive_of_a_connection_that_is_not_started(jms_connection_factory, connection):
    put(connection, "a")
    opened = await aio.connect(jms_connection_factory)
    session = await opened.create_session()
    consumer = await session.create_consumer(QUEUE)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(consumer.receive(), 0.01)
    await session.recover()  # the thread is free
    await opened.start()
    assert (await consumer.receive(PATIENCE)).body == "a"
    await opened.close()


@in_each_mode
async def test_receive_whose_message_is_there_already(jms_connection_factory, connection, shown, mode):
    """The thread has shown the message when the task is cancelled, which has not seen it yet."""
    put(connection, *"ab")
    async with aio.connect(jms_connection_factory) as c, c.create_session(**mode) as session:
        consumer = await session.create_consumer(QUEUE)
        task = asyncio.create_task(consumer.receive())
        await asyncio.sleep(0)  # it begins
        assert shown.wait(PATIENCE)  # the loop stands still meanwhile
        await cancelled(task)
        messages = [await consumer.receive(PATIENCE) for _ in range(2)]
        assert [(message.body, message.delivery_count) for message in messages] == [("a", 1), ("b", 1)]


@in_each_mode
async def test_message_that_nobody_took_goes_back_uncounted(jms_connection_factory, connection, shown, mode):
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c:
        async with c.create_session(**mode) as session:
            task = asyncio.create_task((await session.create_consumer(QUEUE)).receive())
            await asyncio.sleep(0)
            assert shown.wait(PATIENCE)
            await cancelled(task)
            if mode.get("transacted"):
                await session.commit()  # of nothing
        async with c.create_session() as session, session.create_consumer(QUEUE) as consumer:
            assert (await consumer.receive(PATIENCE)).delivery_count == 1


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.integers(0, 4), min_size=1, max_size=40), transacted=st.booleans())
def test_however_receives_are_cancelled_each_message_comes_once_and_in_order(steps, transacted):
    name = uuid.uuid4().hex

    async def run():
        async with (
            aio.connect(ConnectionFactory(f"embedded://{name}")) as c,
            c.create_session(transacted=transacted) as session,
        ):
            await c.run_sync(lambda connection: put(connection, *map(str, range(len(steps)))))
            consumer, got = await session.create_consumer(QUEUE), []
            for step in steps:
                task = asyncio.create_task(consumer.receive(PATIENCE))
                for _ in range(step):
                    await asyncio.to_thread(lambda: None) if step == 4 else await asyncio.sleep(0)
                task.cancel()
                (outcome,) = await asyncio.gather(task, return_exceptions=True)
                got += [outcome.body] if isinstance(outcome, TextMessage) else []
            got += [(await consumer.receive(PATIENCE)).body for _ in steps[len(got) :]]
            assert got == [str(n) for n in range(len(steps))]

    asyncio.run(run())
    drop_memory_store(name)


@pytest.fixture
def failing(monkeypatch):
    """The first message that is received cannot be made part of its unit."""
    take, failures = UnitOfWork.take, [ResourceAllocationError("full")]

    def taking(*arguments):
        if failures:
            raise failures.pop()
        return take(*arguments)

    monkeypatch.setattr(UnitOfWork, "take", taking)


async def test_next_call_tells_that_a_receipt_failed(jms_connection_factory, connection, failing):
    """Nobody waits for it: the task has its message already. The transaction must not seem to have happened."""
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer, producer = await session.create_consumer(QUEUE), await session.create_producer(QUEUE)
        with pytest.raises(ResourceAllocationError, match="full"):
            async with session.transaction():
                assert (await consumer.receive(PATIENCE)).body == "a"
        await producer.send(TextMessage("b"))
        await session.commit()
    assert waiting(connection) == ["a", "b"]


async def test_next_receive_tells_it_too(jms_connection_factory, connection, failing):
    put(connection, *"ab")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer = await session.create_consumer(QUEUE)
        await consumer.receive(PATIENCE)
        with pytest.raises(ResourceAllocationError, match="full"):
            await consumer.receive(PATIENCE)
        assert (await consumer.receive(PATIENCE)).body == "b"


async def test_rollback_settles_it(jms_connection_factory, connection, failing):
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer = await session.create_consumer(QUEUE)
        await consumer.receive(PATIENCE)
        await session.rollback()
        await session.commit()


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
