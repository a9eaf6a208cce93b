"""A message received over STOMP, decoded on first access."""

from typing import Protocol

from jmsjca.destinations import Destination
from jmsjca.messages import Message
from jmsjca.providers.common.unit import DeliveryOwner
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Unit

__all__ = ["STOMPDelivery", "STOMPDeliveryOwner"]


_OF_ONE_DELIVERY = {"subscription", "message-id", "ack", "redelivered"}


class STOMPDeliveryOwner(DeliveryOwner, Protocol):
    """Interface of a consumer to its deliveries."""

    @property
    def source(self) -> Destination:
        """The destination that the messages come from."""
        ...

    @property
    def dialect(self) -> Dialect:
        """The dialect of the broker."""
        ...


class STOMPDelivery:
    """A MESSAGE frame that a consumer received, decoded on first access.

    Args:
        frame: The frame.
        handle: Its place in the order of receipt.
        consumer: The consumer that received it.
        failures: How often it failed here, which the broker does not know.

    Attributes:
        size: Its size on the wire, in bytes.
        unit: The unit that took it; None until a unit takes it.
    """

    __slots__ = ("_failures", "_message", "consumer", "frame", "sequence", "size", "unit")

    def __init__(self, frame: Frame, sequence: int, consumer: STOMPDeliveryOwner, failures: int = 0) -> None:
        self.frame = frame
        self.sequence = sequence
        self.size = frame.size
        self.consumer = consumer
        self.unit: Unit | None = None
        self._failures = failures
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message, decoded on first access; a body that cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            told = {"delivery_count": self.count, "redelivered": self.redelivered}
            self._message = self.consumer.dialect.decode(self.frame, self.consumer.source, **told)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as received."""
        return self.frame.body

    @property
    def digest(self) -> str:
        """A digest of the body and of those headers that are the same for each delivery."""
        from hashlib import sha256  # loads OpenSSL, for few messages

        kept = sorted(item for item in self.frame.headers.items() if item[0] not in _OF_ONE_DELIVERY)
        return sha256(repr(kept).encode() + self.frame.body).hexdigest()

    @property
    def count(self) -> int:
        """Lower bound of the delivery count: over STOMP brokers report only whether it was delivered before."""
        return 1 + self._came_before + self._failures

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self._came_before or self._failures > 0

    def drop_content(self) -> None:
        """Free the memory of the message and its body; its acknowledgement needs the headers."""
        self.frame = self.frame._replace(body=b"")
        self._message = None

    def for_redelivery(self, *, counted: bool) -> "STOMPDelivery":
        """Return the same message for another attempt; this delivery cannot be used afterwards."""
        return STOMPDelivery(self.frame, self.sequence, self.consumer, self._failures + counted)

    @property
    def _came_before(self) -> bool:
        return self.frame.headers.get("redelivered") == "true"
