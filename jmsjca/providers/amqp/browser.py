"""Browsing a queue: a link that receives copies until the broker has no more."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from jmsjca.config import Limits
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import accept
from jmsjca.providers.amqp.links.credit import ByteBudget
from jmsjca.providers.amqp.links.receiver import ReceiverLink
from jmsjca.providers.amqp.links.source import Source

__all__ = ["browse"]

_CHUNK_SIZE = 100


class _ChunkListener:
    """Gathers the copies of one chunk."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.encoded: list[bytes] = []

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Keep copies."""
        self.sequences += range(first, first + len(messages))
        self.encoded += messages

    def on_credit_changed(self, more: int) -> None:
        """What is asked for next does not depend on it."""

    def on_credit_lost(self) -> None:
        """The chunk is smaller."""

    def on_link_failed(self, error: JMSError) -> None:
        """Whoever waits for the chunk hears of it."""


def browse(
    engine: Engine,
    source: Source,
    origin: ReceiveContext,
    limits: Limits,
    reply_timeout: float,
    *,
    limit: int | None,
) -> Iterator[Sequence[ReceivedMessage]]:
    """Give the messages of a queue chunk by chunk.

    Args:
        engine: The connection.
        source: Where to look.
        origin: The same, as messages name it.
        limits: The bounds.
        reply_timeout: Seconds to wait for the broker's answers.
        limit: How many messages at most; None for all.

    Yields:
        Chunks of messages, in order.
    """
    copies = _ChunkListener()
    link = ReceiverLink(engine, source, copies, limits.message_bytes, reply_timeout, supports_drain=True)
    budget = ByteBudget(limits.prefetch_bytes)
    link.attach()
    end = link.close
    try:
        while limit is None or limit > 0:
            chunk = _receive_chunk(
                engine, link, copies, min(limit or _CHUNK_SIZE, _CHUNK_SIZE, budget.messages_that_fit(0))
            )
            if chunk is None:
                return
            budget.on_messages([len(encoded) for encoded in chunk])
            found = [ReceivedMessage(encoded, origin) for encoded in chunk]
            yield [message for message in found if not _is_expired(message)]
            limit = None if limit is None else limit - len(chunk)
    except GeneratorExit:  # nobody looks on; the garbage collector may say so, and on the engine's thread
        end = link.close_nowait
        raise
    finally:
        end()


def _is_expired(found: ReceivedMessage) -> bool:
    """Brokers show what has expired until they come across it."""
    try:
        expiration = found.message.expiration
    except MessageFormatError:
        return False
    return expiration is not None and expiration <= datetime.now(UTC)


def _receive_chunk(engine: Engine, link: ReceiverLink, copies: _ChunkListener, size: int) -> list[bytes] | None:
    """Give some copies; None if the broker has no more."""
    engine.call(partial(link.grant, size))
    no_more = link.drain()
    chunk, handles = copies.encoded, copies.sequences
    copies.encoded, copies.sequences = [], []
    engine.call(partial(link.settle, handles, accept))
    return chunk if chunk or not no_more else None
