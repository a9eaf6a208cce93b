"""A message received over AMQP, decoded on first access."""

import time
from typing import Protocol

from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, Message, ObjectMessage, TextMessage
from jmsjca.messages.object_message import plain_data_of
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.sections import bare_message, encoded_body, read_header
from jmsjca.providers.common.unit import DeliveryOwner
from jmsjca.spi import Unit

__all__ = ["AMQPDelivery", "AMQPDeliveryOwner", "ReceivedMessage"]


class ReceivedMessage:
    """An encoded message, decoded on first access.

    Args:
        encoded: The message as received.
        origin: The source of the message and properties of its broker.
        failures: The number of failed deliveries on this connection that the broker did not count.

    Attributes:
        size: The size in bytes.
    """

    __slots__ = ("_failures", "_message", "_origin", "_received_at", "encoded", "size")

    def __init__(self, encoded: bytes, origin: ReceiveContext, failures: int = 0) -> None:
        self.encoded = encoded
        self.size = len(encoded)
        self._origin = origin
        self._received_at = time.time()  # the start of the time to live, if the message has no creation time
        self._failures = failures
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message. Its body is decoded on first access, which raises `MessageFormatError` if that fails."""
        if self._message is None:
            self._message = decode(self.encoded, self._origin, self._received_at, self._failures)
        return self._message

    @property
    def raw(self) -> bytes:
        """The bytes of the body; if the message cannot be decoded, all of its bytes."""
        try:
            message = self.message
        except MessageFormatError:
            return self.encoded
        return _body_bytes(message, self.encoded)

    @property
    def digest(self) -> str:
        """A digest of the bare message, which brokers keep unchanged."""
        from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, for few messages

        return sha256(bare_message(self.encoded)).hexdigest()

    @property
    def count(self) -> int | None:
        """The number of deliveries, including this one; None if the broker does not count them."""
        return read_header(self.encoded).jms_delivery_count(self._failures, counts=self._origin.counts_deliveries)

    @property
    def redelivered(self) -> bool:
        """True if the message was delivered before."""
        return read_header(self.encoded).redelivered(self._failures, counts=self._origin.counts_deliveries)

    def drop_content(self) -> None:
        """Free the memory of the message and its bytes."""
        self.encoded = b""
        self._message = None


def _body_bytes(message: Message, encoded: bytes) -> bytes:
    """Return the content of text, bytes and pickled object messages; for other types the encoded body."""
    if isinstance(message, TextMessage):
        return (message.body or "").encode("utf-8", "surrogatepass")  # some charsets have halves of surrogate pairs
    if isinstance(message, BytesMessage):
        return message.body or b""
    if isinstance(message, ObjectMessage) and plain_data_of(message) is None:
        return message.pickled or b""
    return encoded_body(encoded)


class AMQPDeliveryOwner(DeliveryOwner, Protocol):
    """The consumer of a delivery, as far as the delivery uses it."""

    @property
    def origin(self) -> ReceiveContext:
        """The source as messages name it, and properties of its broker."""
        ...


class AMQPDelivery(ReceivedMessage):
    """An unsettled delivery.

    Attributes:
        sequence: The number of proton's delivery, which only the engine thread may use.
        consumer: The consumer that received it.
        unit: The unit that took it; None as long as none did.
    """

    __slots__ = ("consumer", "sequence", "unit")

    def __init__(
        self, encoded: bytes, sequence: int, consumer: AMQPDeliveryOwner, received_at: float, failures: int = 0
    ) -> None:
        self.encoded = encoded  # set here: calling the base class's __init__ for each message would double the cost
        self._origin = consumer.origin
        self._received_at = received_at
        self._failures = failures
        self._message = None
        self.sequence = sequence
        self.size = len(encoded)
        self.consumer = consumer
        self.unit: Unit | None = None

    def for_redelivery(self, *, counted: bool) -> "AMQPDelivery":
        """Return a new delivery of the same message; the old one can no longer be settled."""
        return AMQPDelivery(self.encoded, self.sequence, self.consumer, self._received_at, self._failures + counted)
