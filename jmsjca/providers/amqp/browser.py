"""Browsing a queue: a receiver link that gets copies of its messages."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from jmsjca.config import Limits
from jmsjca.destinations import Destination
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
    """Collects the messages of one chunk."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.encoded: list[bytes] = []

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Collect messages."""
        self.sequences += range(first, first + len(messages))
        self.encoded += messages

    def on_credit_changed(self, more: int) -> None:
        """Ignore it: each chunk is requested with a fixed credit."""

    def on_credit_lost(self) -> None:
        """Ignore it: the chunk is smaller."""

    def on_link_failed(self, error: JMSError) -> None:
        """Ignore it: the thread that waits for the chunk gets the error from the link."""


def browse(
    engine: Engine,
    source: Source,
    origin: ReceiveContext,
    limits: Limits,
    reply_timeout: float,
    *,
    limit: int | None,
) -> Iterator[Sequence[ReceivedMessage]]:
    """Yield the messages of a queue, in chunks.

    Args:
        engine: The engine of the connection.
        source: The source terminus of the link.
        origin: The source as messages name it, and properties of its broker.
        limits: The limits of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
        limit: The maximum number of messages; None for all.

    Yields:
        Chunks of messages, in order.
    """
    listener = _ChunkListener()
    link = ReceiverLink(engine, source, listener, limits.message_bytes, reply_timeout, supports_drain=True)
    budget = ByteBudget(limits.prefetch_bytes)
    link.attach()
    end, may_have_more = link.close, True
    try:
        while limit is None or limit > 0:
            chunk = _receive_chunk(
                engine, link, listener, min(limit or _CHUNK_SIZE, _CHUNK_SIZE, budget.messages_that_fit(0))
            )
            if chunk is None:
                if not may_have_more:
                    return
                may_have_more = False  # a busy Artemis ended a queue too early, once in thousands of browsers
                continue
            may_have_more = may_have_more or bool(chunk)
            budget.on_messages([len(encoded) for encoded in chunk])
            found = [ReceivedMessage(encoded, origin) for encoded in chunk]
            yield [message for message in found if not _is_expired(message, origin.source)]
            limit = None if limit is None else limit - len(chunk)
    except GeneratorExit:  # raised by the garbage collector, too, perhaps on the engine thread: do not wait
        end = link.close_nowait
        raise
    finally:
        end()


def _is_expired(found: ReceivedMessage, source: Destination | None) -> bool:
    """Return True for an expired message. Browsers see those until the broker removes them.

    A message that was sent to another destination is shown: ActiveMQ moves expired ones to its dead-letter queue, as
    they are, where consumers get them.
    """
    try:
        expiration, sent_to = found.message.expiration, found.message.destination
    except MessageFormatError:
        return False
    return expiration is not None and expiration <= datetime.now(UTC) and sent_to == source


def _receive_chunk(engine: Engine, link: ReceiverLink, listener: _ChunkListener, size: int) -> list[bytes] | None:
    """Return up to `size` messages; None if the broker has no more."""
    engine.call(partial(link.grant, size))
    no_more = link.drain()
    chunk, sequences = listener.encoded, listener.sequences
    listener.encoded, listener.sequences = [], []
    engine.call(partial(link.settle, sequences, accept))
    return chunk if chunk or not no_more else None
