"""Repid's publish over AMQP 1.0. It sends settled messages, which the broker does not confirm."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from repid.connections.amqp import AmqpMessageHeader, AmqpServer
from repid.data import MessageData

__all__ = ["publisher"]

_DURABLE = {"header": AmqpMessageHeader(durable=True)}


@asynccontextmanager
async def publisher(url: str, queue: str, body: bytes) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Yield a coroutine function that publishes a message to a queue of the broker."""
    server, message = AmqpServer(url, publish_naming_strategy=lambda channel, _: channel), MessageData(payload=body)
    async with server.connection():
        yield lambda: server.publish(channel=queue, message=message, server_specific_parameters=_DURABLE)
