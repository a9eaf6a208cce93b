"""Sending and receiving with asyncio: the sessions of `jmsjca`, each with its own thread.

::

    async with aio.connect(factory) as connection, connection.create_session() as session:
        producer = await session.create_producer(Queue("orders"))
        await producer.send(session.create_text_message("a pear"))

Names and rules are the same as in the blocking classes. Every call that communicates with the broker is awaited, and no
call blocks the event loop. No object is bound to an event loop: a connection may be used from several, in turn.
"""

from jmsjca.aio.base import AwaitableContextManager
from jmsjca.aio.connection import Connection, ConnectionPool, PooledConnection, connect
from jmsjca.aio.consumer import Consumer
from jmsjca.aio.producer import Producer
from jmsjca.aio.session import Session

__all__ = [
    "AwaitableContextManager",
    "Connection",
    "ConnectionPool",
    "Consumer",
    "Opening",
    "PooledConnection",
    "Producer",
    "Session",
    "connect",
]

Opening = AwaitableContextManager
"""The earlier name of `AwaitableContextManager`, kept for one release."""
