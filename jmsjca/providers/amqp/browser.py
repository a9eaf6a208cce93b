"""Looking at a queue: a link that gets copies, until the broker has no more."""

from collections.abc import Iterator, Sequence
from functools import partial

from jmsjca.config import Limits
from jmsjca.destinations import Destination
from jmsjca.errors import JMSError
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.receiver import ReceivingLink, Source
from jmsjca.providers.amqp.states import accept

__all__ = ["browse"]

_CHUNK = 100


class _Copies:
    """Gathers the copies of one chunk."""

    def __init__(self) -> None:
        self.handles: list[int] = []
        self.encoded: list[bytes] = []

    def arrived(self, encoded: bytes, handle: int) -> None:
        """Keep a copy."""
        self.handles.append(handle)
        self.encoded.append(encoded)

    def broken(self, error: JMSError) -> None:
        """Whoever waits for the chunk hears of it."""


def browse(
    engine: Engine,
    source: Source,
    queue: Destination,
    limits: Limits,
    reply_timeout: float,
    *,
    limit: int | None,
    counts: bool,
) -> Iterator[Sequence[ReceivedMessage]]:
    """Give the messages of a queue chunk by chunk.

    Args:
        engine: The connection.
        source: Where to look.
        queue: The same, as messages name it.
        limits: The bounds.
        reply_timeout: Seconds to wait for the broker's answers.
        limit: How many messages at most; None for all.
        counts: True if the broker counts deliveries.

    Yields:
        Chunks of messages, in order.
    """
    copies = _Copies()
    link = ReceivingLink(engine, source, copies, limits.message_bytes, reply_timeout, drains=True)
    link.attach()
    try:
        while limit is None or limit > 0:
            chunk = _next_chunk(engine, link, copies, min(limit or _CHUNK, _CHUNK), reply_timeout)
            if not chunk:
                return
            yield [ReceivedMessage(encoded, queue, counts=counts) for encoded in chunk]
            limit = None if limit is None else limit - len(chunk)
    finally:
        engine.call(link.shut_down)


def _next_chunk(engine: Engine, link: ReceivingLink, copies: _Copies, size: int, reply_timeout: float) -> list[bytes]:
    engine.call(partial(link.grant, size))
    engine.wait(engine.call(link.drain), reply_timeout, "the messages of a queue")
    chunk, handles = copies.encoded, copies.handles
    copies.encoded, copies.handles = [], []
    engine.call(partial(link.settle, handles, accept))
    return chunk
