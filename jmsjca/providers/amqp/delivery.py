"""One message received over AMQP."""

import time
from typing import TYPE_CHECKING

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, Message, ObjectMessage, TextMessage
from jmsjca.providers.amqp.addresses import Naming
from jmsjca.providers.amqp.codec import decode
from jmsjca.providers.amqp.header import Header, header_of
from jmsjca.providers.amqp.sections import body

if TYPE_CHECKING:
    from jmsjca.providers.amqp.consumer import AMQPConsumer
    from jmsjca.providers.amqp.unit import AMQPUnit

__all__ = ["AMQPDelivery", "ReceivedMessage"]


class ReceivedMessage:
    """Encoded bytes, decoded when first looked at.

    Args:
        encoded: The message as it came.
        source: Where it came from.
        counts: True if the broker counts deliveries.
        failures: How often it failed here, which the broker does not know.
        naming: How the broker names destinations.
    """

    __slots__ = ("_arrived", "_counts", "_failures", "_header", "_message", "_naming", "_source", "encoded")

    def __init__(
        self,
        encoded: bytes,
        source: Destination,
        *,
        counts: bool,
        failures: int = 0,
        naming: Naming = "capability",
    ) -> None:
        self.encoded = encoded
        self._source = source
        self._naming: Naming = naming
        self._arrived = time.time()  # a time to live may begin here
        self._counts = counts
        self._failures = failures
        self._header: Header | None = None
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message; its body is decoded now, so one that cannot be raises `MessageFormatError` here."""
        if self._message is None:
            message = decode(self.encoded, self._source, self._arrived, self._naming)
            message.delivery_count = self.count or 0
            message.redelivered = self.redelivered
            self._message = message
        return self._message

    @property
    def raw(self) -> bytes:
        """The bytes of the body; of a message that cannot be decoded, all of its bytes."""
        try:
            message = self.message
        except MessageFormatError:
            return self.encoded
        return _raw_body(message, self.encoded)

    @property
    def count(self) -> int | None:
        """How often the message was delivered, this time included; None if the broker does not count."""
        return self._head().before + 1 + self._failures if self._counts or self._failures else None

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        head = self._head()
        return self._failures > 0 or (head.before > 0 if self._counts else not head.first)

    def _head(self) -> Header:
        if self._header is None:
            self._header = header_of(self.encoded)
        return self._header


def _raw_body(message: Message, encoded: bytes) -> bytes:
    """What is in texts, bytes and pickles; of what has a form of AMQP's the encoded bytes."""
    if isinstance(message, TextMessage):
        return (message.body or "").encode()
    if isinstance(message, BytesMessage):
        return message.body or b""
    if isinstance(message, ObjectMessage) and message.plain_data is None:
        return message.pickled or b""
    return body(encoded)


class AMQPDelivery(ReceivedMessage):
    """An unsettled delivery.

    Attributes:
        handle: Names proton's delivery, which stays on the engine's thread.
        size: How many bytes it takes.
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("consumer", "handle", "size", "unit")

    def __init__(self, encoded: bytes, handle: int, consumer: "AMQPConsumer", failures: int = 0) -> None:
        super().__init__(encoded, consumer.source, counts=consumer.counts, failures=failures, naming=consumer.naming)
        self.handle = handle
        self.size = len(encoded)
        self.consumer = consumer
        self.unit: AMQPUnit | None = None

    def again(self, *, counted: bool) -> "AMQPDelivery":
        """The same message for another attempt; whoever has this delivery can do nothing with it any more."""
        return AMQPDelivery(self.encoded, self.handle, self.consumer, self._failures + counted)
