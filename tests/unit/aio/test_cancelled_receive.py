"""A cancelled receive takes nothing: the message is the next one, or goes back, uncounted."""

import asyncio
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsjca import AcknowledgeMode, ConnectionFactory, TextMessage, aio
from jmsjca.errors import ResourceAllocationError
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.store.store import drop_memory_store
from tests.unit.aio.tasks import cancelled
from tests.unit.outbound import PATIENCE, QUEUE, put
from tests.unit.outbound import shown as waiting

MODES = {
    "auto": {},
    "dups_ok": {"acknowledge_mode": AcknowledgeMode.DUPS_OK},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "individual": {"acknowledge_mode": AcknowledgeMode.INDIVIDUAL},
    "transacted": {"transacted": True},
}
in_each_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


@in_each_mode
async def test_receive_that_waits(jms_connection_factory, connection, receiving, mode):
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
