"""A message received over AMQP, decoded when it is first looked at."""

import time
from typing import Protocol

from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, Message, ObjectMessage, TextMessage
from jmsjca.messages.object_message import plain_data_of
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.sections import encoded_body, read_header
from jmsjca.providers.common.unit import DeliveryOwner
from jmsjca.spi import Unit

__all__ = ["AMQPDelivery", "AMQPDeliveryOwner", "ReceivedMessage"]


class ReceivedMessage:
    """Encoded bytes, decoded when first looked at.

    Args:
        encoded: The message as it came.
        origin: Where it came from.
        failures: How often it failed here, which the broker does not know.
    """

    __slots__ = ("_failures", "_message", "_origin", "_received_at", "encoded")

    def __init__(self, encoded: bytes, origin: ReceiveContext, failures: int = 0) -> None:
        self.encoded = encoded
        self._origin = origin
        self._received_at = time.time()  # a time to live may begin here
        self._failures = failures
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message; its body is decoded now, so one that cannot be raises `MessageFormatError` here."""
        if self._message is None:
            self._message = decode(self.encoded, self._origin, self._received_at, self._failures)
        return self._message

    @property
    def raw(self) -> bytes:
        """The bytes of the body; of a message that cannot be decoded, all of its bytes."""
        try:
            message = self.message
        except MessageFormatError:
            return self.encoded
        return _body_bytes(message, self.encoded)

    @property
    def count(self) -> int | None:
        """How often the message was delivered, this time included; None if the broker does not count."""
        return read_header(self.encoded).jms_delivery_count(self._failures, counts=self._origin.counts_deliveries)

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return read_header(self.encoded).redelivered(self._failures, counts=self._origin.counts_deliveries)


def _body_bytes(message: Message, encoded: bytes) -> bytes:
    """What is in texts, bytes and pickles; of what has a form of AMQP's the encoded bytes."""
    if isinstance(message, TextMessage):
        return (message.body or "").encode()
    if isinstance(message, BytesMessage):
        return message.body or b""
    if isinstance(message, ObjectMessage) and plain_data_of(message) is None:
        return message.pickled or b""
    return encoded_body(encoded)


class AMQPDeliveryOwner(DeliveryOwner, Protocol):
    """Who received a delivery, as the delivery knows it."""

    @property
    def origin(self) -> ReceiveContext:
        """What it receives from, as messages name it, and what its broker does."""
        ...


class AMQPDelivery(ReceivedMessage):
    """An unsettled delivery.

    Attributes:
        handle: Names proton's delivery, which stays on the engine's thread.
        size: How many bytes it takes.
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("consumer", "sequence", "size", "unit")

    def __init__(
        self, encoded: bytes, sequence: int, consumer: AMQPDeliveryOwner, received_at: float, failures: int = 0
    ) -> None:
        self.encoded = encoded  # all in one: a call of the base's for each message would double the cost
        self._origin = consumer.origin
        self._received_at = received_at
        self._failures = failures
        self._message = None
        self.sequence = sequence
        self.size = len(encoded)
        self.consumer = consumer
        self.unit: Unit | None = None

    def for_redelivery(self, *, counted: bool) -> "AMQPDelivery":
        """The same message for another attempt; whoever has this delivery can do nothing with it any more."""
        return AMQPDelivery(self.encoded, self.sequence, self.consumer, self._received_at, self._failures + counted)
