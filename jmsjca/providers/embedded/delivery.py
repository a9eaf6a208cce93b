"""A message received from the embedded broker, decoded when it is first looked at."""

from collections.abc import Iterable
from typing import Protocol

from jmsjca.messages import Message
from jmsjca.providers.embedded.codec import decode, verify_checksum
from jmsjca.providers.embedded.store.messages import Lease, Row
from jmsjca.spi import Unit

__all__ = ["EmbeddedDelivery", "EmbeddedDeliveryOwner", "StoredMessage"]


class StoredMessage:
    """A row, decoded when first looked at.

    Args:
        row: The row.
    """

    __slots__ = ("_message", "_row")

    def __init__(self, row: Row) -> None:
        self._row = row
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message; decoded now, so one that is damaged or cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            _, deliveries, expires, headers, body, checksum = self._row
            verify_checksum(checksum, headers, body)
            self._message = decode(headers, body, deliveries, expires)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as it lies in the store."""
        return self._row[4] or b""

    @property
    def count(self) -> int:
        """How often the message was delivered, this time included."""
        return self._row[1]

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self._row[1] > 1


class EmbeddedDeliveryOwner(Protocol):
    """Who received a delivery, as its unit knows it."""

    def check_held(self, delivery: "EmbeddedDelivery") -> None:
        """Check that a delivery is ours and not settled."""
        ...

    def received_after(self, delivery: "EmbeddedDelivery") -> list["EmbeddedDelivery"]:
        """What was received after a delivery and no unit took."""
        ...

    def forget(self, deliveries: Iterable["EmbeddedDelivery"]) -> None:
        """Forget deliveries that are settled or given back."""
        ...


class EmbeddedDelivery(StoredMessage):
    """A claimed row.

    Attributes:
        id: The row's id.
        hold: What proves, with the id, that it is ours.
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("consumer", "id", "lease", "unit")

    def __init__(self, row: Row, lease: Lease, consumer: EmbeddedDeliveryOwner) -> None:
        self._row = row
        self._message = None
        self.id = row[0]
        self.lease = lease
        self.consumer = consumer
        self.unit: Unit | None = None
