"""The asyncio API: sending, receiving, settling, and the thread that does the work."""

import asyncio
import threading
from contextvars import ContextVar
from datetime import timedelta

import pytest
from poisoning import poison_embedded

from jmsjca import AcknowledgeMode, ConnectionFactory, Hooks, Queue, TextMessage, Topic, aio
from jmsjca.errors import IllegalStateError, InvalidSelectorError, MessageFormatError
from tests.unit.outbound.queues import PATIENCE, QUEUE, put
from tests.unit.outbound.queues import shown as waiting


async def test_what_is_sent_is_received(jms_connection_factory):
    async with aio.connect(jms_connection_factory) as connection, connection.create_session() as session:
        producer = await session.create_producer(QUEUE)
        await producer.send(session.create_text_message("a", properties={"n": 1}), priority=7, time_to_live=60)
        async with session.create_consumer(QUEUE) as consumer:
            message = await consumer.receive(PATIENCE)
            assert (message.body, message.properties["n"], message.priority) == ("a", 1, 7)
            assert message.expiration is not None
            assert await consumer.receive(0) is None
            assert await consumer.receive(timedelta(milliseconds=1)) is None


async def test_session_sends_to_a_name(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        assert (await session.send(QUEUE.name, "a", priority=7)).message_id
    assert waiting(connection) == ["a"]


async def test_asynchronous_sends_are_awaited_together(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        producer, message = await session.create_producer(QUEUE), TextMessage("a")
        sent = [await producer.send_async(each, priority=5) for each in (message, TextMessage("b"))]
        first, _ = await asyncio.gather(*sent)
        assert first is message
        with pytest.raises(MessageFormatError):
            await producer.send_async(message, priority=10)
    assert waiting(connection) == ["a", "b"]


async def test_cancelled_future_of_a_send_changes_nothing(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        producer = await session.create_producer(QUEUE)
        (await producer.send_async(TextMessage("a"))).cancel()
        await producer.send(TextMessage("b"))
    assert waiting(connection) == ["a", "b"]


async def test_a_send_needs_a_destination_if_the_producer_has_none(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        producer = await session.create_producer()
        await producer.send(TextMessage("a"), QUEUE)
        with pytest.raises(ValueError, match="destination"):
            await producer.send(TextMessage("a"))
    assert waiting(connection) == ["a"]


async def test_all_can_be_awaited_instead_of_entered(jms_connection_factory, connection):
    put(connection, "a")
    opened = await aio.connect(jms_connection_factory)
    session = await opened.create_session()
    consumer = await session.create_consumer(QUEUE)
    assert await consumer.receive(0) is None  # not started yet
    await opened.start()
    assert (await consumer.receive(PATIENCE)).body == "a"
    await opened.stop()
    put(connection, "b")
    assert await consumer.receive(0) is None
    await opened.close()


async def test_iterating_waits_for_one_message_after_the_other(jms_connection_factory, connection):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        consumer, got = await session.create_consumer(QUEUE), asyncio.Queue()

        async def iterate():
            async for message in consumer:
                got.put_nowait(message.body)

        task = asyncio.create_task(iterate())
        for body in "abc":
            put(connection, body)
            assert await got.get() == body
        await consumer.close()
        await task
        assert [message async for message in consumer] == []


async def test_sends_keep_their_order(jms_connection_factory, connection):
    """The calls of a session run one after the other, in the order in which they were made."""
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        producer = await session.create_producer(QUEUE)
        await asyncio.gather(*(producer.send(TextMessage(str(n))) for n in range(50)))
    assert waiting(connection) == [str(n) for n in range(50)]


async def test_one_thread_for_each_session(jms_connection_factory):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as one, c.create_session() as two:
        threads = [await s.run_sync(lambda _: threading.get_ident()) for s in (one, two, one, two)]
        assert threads[:2] == threads[2:]
        assert len({threading.get_ident(), *threads}) == 3


async def test_loop_goes_on_while_a_session_waits(jms_connection_factory, receiving):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as one, c.create_session() as two:
        consumer, producer = await one.create_consumer(QUEUE), await two.create_producer(QUEUE)
        task = await receiving(consumer.receive())
        await producer.send(TextMessage("a"))
        assert (await task).body == "a"


async def test_call_waits_for_those_before_it(jms_connection_factory, receiving):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session, c.create_session() as other:
        consumer, producer = await session.create_consumer(QUEUE), await session.create_producer(QUEUE)
        receive = await receiving(consumer.receive())
        send = asyncio.create_task(producer.send(TextMessage("second"), priority=9))
        await (await other.create_producer(QUEUE)).send(TextMessage("first"))
        await send
        assert (await receive).body == "first"


async def test_consumers_of_subscriptions(jms_broker_url):
    prices = Topic("prices")
    async with (
        aio.connect(ConnectionFactory(jms_broker_url, client_id="me")) as connection,
        connection.create_session() as session,
        session.create_shared_consumer(prices, "shared") as shared,
        session.create_durable_consumer(prices, "durable", "n = 1") as durable,
        session.create_shared_durable_consumer(prices, "both") as both,
    ):
        await (await session.create_producer(prices)).send(TextMessage("a", properties={"n": 1}))
        bodies = [(await consumer.receive(PATIENCE)).body for consumer in (shared, durable, both)]
    assert bodies == ["a"] * 3


async def test_what_has_no_method_runs_on_the_thread(jms_connection_factory, connection):
    put(connection, *"ab")
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        found = await session.run_sync(lambda s: [message.body for message in s.create_browser(QUEUE)])
        assert (found, (await c.run_sync(lambda c: c.admin.depth(QUEUE))).ready) == (["a", "b"], 2)


async def test_errors_come_where_they_belong(jms_connection_factory, tmp_path):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        with pytest.raises(InvalidSelectorError):
            await session.create_consumer(QUEUE, "=")
        with pytest.raises(IllegalStateError):
            await session.commit()
    with pytest.raises(Exception, match="missing"):
        async with aio.connect(ConnectionFactory(f"embedded://{tmp_path}/missing/broker.db")):
            pytest.fail("It was opened.")


async def test_message_that_cannot_be_decoded(jms_connection_factory, connection, jms_broker_url):
    poison_embedded(jms_broker_url, QUEUE)
    put(connection, "b")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer = await session.create_consumer(QUEUE)
        with pytest.raises(MessageFormatError):
            await consumer.receive(PATIENCE)
        assert (await consumer.receive(PATIENCE)).body == "b"
        await session.commit()  # it was received, and is settled with the others
    assert connection.admin.depth(QUEUE).ready == 0


TRACE = ContextVar("TRACE", default="none")


class Traced(Hooks):
    def around_send(self, message, destination, call_next):
        message.properties["trace"] = TRACE.get()
        call_next()


async def test_hooks_see_the_context_of_the_task_that_sends(jms_broker_url, connection):
    factory = ConnectionFactory(jms_broker_url, hooks=[Traced()])
    async with aio.connect(factory) as c, c.create_session() as session:
        producer, consumer = await session.create_producer(QUEUE), await session.create_consumer(QUEUE)

        async def send(trace):
            TRACE.set(trace)
            await producer.send(TextMessage(trace))

        await asyncio.gather(*map(send, "abc"))
        messages = [await consumer.receive(PATIENCE) for _ in range(3)]
        assert [(message.body, message.properties["trace"]) for message in messages] == [
            ("a", "a"),
            ("b", "b"),
            ("c", "c"),
        ]


def test_one_loop_after_the_other(jms_connection_factory):
    async def opened():
        connection = await aio.connect(jms_connection_factory)
        await connection.start()
        session = await connection.create_session()
        return connection, await session.create_producer(QUEUE), await session.create_consumer(QUEUE)

    async def sent_and_received(producer, consumer, body):
        await producer.send(TextMessage(body))
        return (await consumer.receive(PATIENCE)).body

    connection, producer, consumer = asyncio.run(opened())
    assert [asyncio.run(sent_and_received(producer, consumer, body)) for body in "ab"] == ["a", "b"]
    asyncio.run(connection.close())


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL])
async def test_acknowledging(jms_connection_factory, connection, mode):
    put(connection, *"abc")
    async with aio.connect(jms_connection_factory) as c, c.create_session(acknowledge_mode=mode) as session:
        consumer = await session.create_consumer(QUEUE)
        messages = [await consumer.receive(PATIENCE) for _ in range(3)]
        await session.acknowledge(messages[1])
        await session.recover()
        assert (await consumer.receive(0) is None) is (mode is AcknowledgeMode.CLIENT)
        await session.acknowledge()
    assert waiting(connection) == ([] if mode is AcknowledgeMode.CLIENT else ["c"])


async def test_transaction(jms_connection_factory, connection):
    put(connection, "a")
    async with aio.connect(jms_connection_factory) as c, c.create_session(transacted=True) as session:
        consumer, producer = await session.create_consumer(QUEUE), await session.create_producer(Queue("to"))

        async def fail():
            async with session.transaction():
                await producer.send(await consumer.receive(PATIENCE))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with session.transaction():
            message = await consumer.receive(PATIENCE)
            assert message.delivery_count == 2
            await producer.send(message)
            assert waiting(connection, Queue("to")) == []
        await session.rollback()
    assert (waiting(connection), waiting(connection, Queue("to"))) == ([], ["a"])


async def test_transaction_needs_a_transacted_session(jms_connection_factory):
    async with aio.connect(jms_connection_factory) as c, c.create_session() as session:
        with pytest.raises(IllegalStateError, match="not transacted"):
            async with session.transaction():
                pytest.fail("The block was entered.")
