"""A program of a user that type checkers must accept in their strict modes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from jmsjca import (
    AcknowledgeMode,
    ActivationSpec,
    BytesMessage,
    ConnectionFactory,
    MapMessage,
    Message,
    Queue,
    ResourceAdapter,
    Session,
    StreamMessage,
    TextMessage,
    Topic,
    aio,
)

adapter = ResourceAdapter("embedded://typed", user_name=None, password=None, options={"JMSJCA.NoXA": "true"})
plain = ResourceAdapter(connection_url="embedded://x", mbean_object_name=None, mbean_server_domain=None)


@dataclass
class Order:
    """The typed body of a message."""

    number: int


@adapter.listener(
    "orders",
    concurrency_mode="cc",
    endpoint_pool_max_size=8,
    selector="region = ${region}",
    selector_variables={"region": "EU", "least": 3},
    redelivery_handling="3:1000; 5:move(queue:dlq.$)",
)
def on_order(message: Message) -> str:
    """Return a reply."""
    return str(message.body)


@adapter.listener(Topic("news"), subscription_durability="Durable", subscription_name="s", client_id="c")
async def on_news(message: TextMessage, session: Session) -> None:
    """Send in the unit of the delivery."""
    session.create_producer(Queue("copies")).send(session.create_text_message(message.body.upper()))


@adapter.listener("typed", batch_size=10, concurrency_mode="sync", hold_until_ack=True, acknowledgement_timeout=5)
def on_batch(orders: Sequence[Order], messages: Sequence[Message]) -> None:
    """Acknowledge a batch."""
    for message in messages[: len(orders)]:
        message.acknowledge()


reply: str = on_order(TextMessage("the decorator keeps the type of the handler"))

spec = ActivationSpec(destination=Queue("orders"), destination_type="queue", concurrency_mode="serial", mbean_name="m")
unconfirmed = ActivationSpec(destination="orders", transaction="none", acknowledge_mode=AcknowledgeMode.DUPS_OK)
activation = adapter.activate(spec, on_order)


def text_of(message: TextMessage) -> int:
    """Return the length of a text."""
    return len(message.body)


def bytes_of(message: BytesMessage) -> bytes:
    """Return the bytes."""
    return message.body


def entries_of(message: MapMessage) -> list[str]:
    """Return the names of the entries."""
    message.body["more"] = 1
    return list(message.body)


def values_of(message: StreamMessage) -> int:
    """Return the number of values."""
    message.body = [1, "two"]
    return len(message.body)


def work() -> None:
    """Send, receive and browse as the documentation does."""
    with ConnectionFactory("embedded://typed").create_connection() as connection:
        session = connection.create_session(transacted=True)
        producer = session.create_producer(Queue("orders"))
        with session.transaction():
            producer.send(session.create_text_message("hello", properties={"region": "EU"}), priority=7)
        consumer = session.create_consumer(Queue("orders"), selector="region = 'EU'")
        print(consumer.receive().body)
        message = consumer.receive(timeout=1)
        if message is None:
            return
        print(message.body, message.get_body(str).upper(), consumer.receive_body(str, timeout=1))
        print([each.message_id for each in session.create_browser(Queue("orders"))])


async def work_async() -> None:
    """Receive as `work` does, on an event loop."""
    factory = ConnectionFactory("embedded://typed")
    async with aio.connect(factory) as connection, connection.create_session() as session:
        consumer = await session.create_consumer(Queue("orders"))
        print((await consumer.receive()).body)
        message = await consumer.receive(timeout=1)
        print(message and message.body)


asyncio.run(work_async())
