"""Committing, rolling back and acknowledging from asyncio."""

import pytest

from jmsjca import AcknowledgeMode, Queue, aio
from jmsjca.errors import IllegalStateError
from tests.unit.outbound import PATIENCE, QUEUE, put
from tests.unit.outbound import shown as waiting


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
