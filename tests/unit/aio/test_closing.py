"""Closing from other tasks: who waits goes on, what is open is rolled back, and the threads end."""

import asyncio
import subprocess
import sys
import threading

import pytest

from jmsjca import AcknowledgeMode, TextMessage, aio
from jmsjca.errors import IllegalStateError
from tests.unit.aio.conftest import ours
from tests.unit.aio.tasks import cancelled
from tests.unit.inbound.deliveries import until
from tests.unit.outbound.queues import PATIENCE, QUEUE, put, shown
from tests.unit.providers.embedded.test_group_commit import in_background


@pytest.fixture(params=["consumer", "session", "connection"])
def what(request):
    return request.param


async def test_waiting_receive_returns_none(jms_connection_factory, receiving, what):
    async with aio.connect(jms_connection_factory) as connection, connection.create_session() as session:
        consumer = await session.create_consumer(QUEUE)
        task = await receiving(consumer.receive())
        await {"consumer": consumer, "session": session, "connection": connection}[what].close()
        assert await task is None
        assert consumer.closed
        with pytest.raises(IllegalStateError):
            await consumer.receive(0)


async def test_iteration_ends(jms_connection_factory, receiving, what):
    async with aio.connect(jms_connection_factory) as connection, connection.create_session() as session:
        consumer = await session.create_consumer(QUEUE)

        async def iterate():
            return [message async for message in consumer]

        task = await receiving(iterate())
        await {"consumer": consumer, "session": session, "connection": connection}[what].close()
        assert await task == []


async def test_iteration_ends_that_was_about_to_begin(jms_connection_factory):
    """The consumer is closed after the iteration looked, and before its thread receives."""
    async with aio.connect(jms_connection_factory) as connection, connection.create_session() as session:
        consumer = await session.create_consumer(QUEUE)
        begun, go_on = threading.Event(), threading.Event()
        busy = asyncio.create_task(session.run_sync(lambda _: (begun.set(), go_on.wait(PATIENCE))))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        iteration = asyncio.ensure_future(anext(consumer, None))
        await asyncio.to_thread(lambda: None)  # it looked
        await consumer.close()
        go_on.set()
        assert await iteration is None
        await busy


async def test_closing_rolls_back(jms_connection_factory, connection):
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        await (await session.create_producer(QUEUE)).send(TextMessage("b"))
        assert (await (await session.create_consumer(QUEUE)).receive(PATIENCE)).body == "a"
    assert shown(connection) == ["a"]


async def test_prefetched_messages_are_released_uncounted(jms_connection_factory, connection):
    put(connection, *"abc")
    mode = AcknowledgeMode.AUTO
    async with aio.connect(jms_connection_factory) as c, c.create_session(acknowledge_mode=mode) as session:
        async with session.create_consumer(QUEUE) as consumer:
            assert (await consumer.receive(PATIENCE)).body == "a"
        async with session.create_consumer(QUEUE) as consumer:
            message = await consumer.receive(PATIENCE)
            assert (message.body, message.delivery_count) == ("b", 1)


async def test_closing_ends_the_threads_and_again_is_harmless(jms_connection_factory):
    connection = await aio.connect(jms_connection_factory)
    sessions = [await connection.create_session() for _ in range(3)]
    for session in sessions:
        await session.create_producer(QUEUE)
    threads = [thread for thread in ours() if thread.name.startswith("jmsjca session")]
    assert len(threads) == 3
    await sessions[0].close()
    await sessions[0].close()
    assert sum(thread.is_alive() for thread in threads) == 2
    await connection.close()
    await connection.close()
    await sessions[1].close()
    assert not any(thread.is_alive() for thread in threads)


async def test_use_after_closing(jms_connection_factory):
    connection = await aio.connect(jms_connection_factory)
    session = await connection.create_session()
    producer = await session.create_producer(QUEUE)
    await session.close()
    for use in (producer.send(TextMessage("a")), session.commit(), session.create_producer()):
        with pytest.raises(IllegalStateError, match="closed"):
            await use
    with pytest.raises(IllegalStateError):
        session.create_text_message("a")
    await connection.close()
    with pytest.raises(IllegalStateError):
        await connection.start()
    with pytest.raises(IllegalStateError):
        await connection.create_session()
    assert session.closed


async def test_session_that_cannot_be_made_leaves_no_thread(jms_connection_factory):
    connection = await aio.connect(jms_connection_factory)
    await connection.close()
    with pytest.raises(IllegalStateError):
        async with connection.create_session():
            pytest.fail("It was made.")


FORGETFUL = """
import asyncio
from jmsjca import ConnectionFactory, Queue, aio

async def main():
    connection = await aio.connect(ConnectionFactory("embedded://forgotten"))
    await connection.start()
    session = await connection.create_session()
    consumer = await session.create_consumer(Queue("q"))
    return session, asyncio.create_task(consumer.receive()), await asyncio.sleep(0)

session, task, _ = asyncio.new_event_loop().run_until_complete(main())
print("ended")
"""


def test_program_that_forgets_a_waiting_receive_ends():
    ran = subprocess.run(
        [sys.executable, "-c", FORGETFUL], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert ran.stdout == "ended\n"


async def test_connection_that_is_closed_while_it_opens_a_session(jms_connection_factory):
    """No thread is left, although the task gets the session only afterwards."""
    connection = await aio.connect(jms_connection_factory)
    task = asyncio.ensure_future(connection.create_session())
    await asyncio.sleep(0)
    until(lambda: connection._wrapped._sessions)
    in_background(asyncio.run, connection.close()).result(PATIENCE)  # this loop is blocked
    assert (await task).closed


async def test_session_that_is_closed_while_a_consumer_opens_and_its_task_is_cancelled(jms_connection_factory):
    async with aio.connect(jms_connection_factory) as connection, connection.create_session() as session:
        task = asyncio.ensure_future(session.create_consumer(QUEUE))
        await asyncio.sleep(0)
        until(lambda: session._wrapped._receivers)
        in_background(asyncio.run, session.close()).result(PATIENCE)  # this loop is blocked
        await cancelled(task)
