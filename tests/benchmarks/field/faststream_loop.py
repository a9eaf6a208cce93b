"""FastStream's publish over AMQP 0.9.1 to RabbitMQ, with publisher confirms, as is its default."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from faststream.rabbit import RabbitBroker, RabbitQueue

__all__ = ["publisher"]

_USER = "jmsjca:jmsjca"  # that of the brokers of our tests


@asynccontextmanager
async def publisher(url: str, queue: str, body: bytes) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Yield a coroutine function that publishes a message to a durable queue."""
    declared = RabbitQueue(queue, durable=True)
    async with RabbitBroker(url.replace("://", f"://{_USER}@"), logger=None) as broker:
        await broker.declare_queue(declared)
        yield lambda: broker.publish(body, declared, persist=True)
