"""Messages received from the embedded broker, decoded at the first access."""

from collections.abc import Iterable
from typing import Protocol

from jmsjca.messages import Message
from jmsjca.providers.embedded.codec import decode, verify_checksum
from jmsjca.providers.embedded.store.messages import Lease, Row
from jmsjca.spi import Unit

__all__ = ["EmbeddedDelivery", "EmbeddedDeliveryOwner", "StoredMessage"]


class StoredMessage:
    """A message of the store, decoded at the first access.

    Args:
        row: The row of the message.
    """

    __slots__ = ("_message", "_row")

    def __init__(self, row: Row) -> None:
        self._row = row
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message, decoded here; `MessageFormatError` if it is damaged or cannot be decoded."""
        if self._message is None:
            _, deliveries, expires, headers, body, checksum = self._row
            verify_checksum(checksum, headers, body)
            self._message = decode(headers, body, deliveries, expires)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as it is stored."""
        return self._row[4] or b""

    @property
    def size(self) -> int:
        """The size of the headers and the body as they are stored, in bytes."""
        return len(self._row[3]) + len(self._row[4] or b"")

    @property
    def digest(self) -> str:
        """A digest of the headers and the body as they are stored."""
        from hashlib import sha256  # loads OpenSSL, for few messages

        return sha256(self._row[3] + b"\0" + (self._row[4] or b"")).hexdigest()

    @property
    def count(self) -> int:
        """Number of deliveries, this one included."""
        return self._row[1]

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self._row[1] > 1

    def drop_content(self) -> None:
        """Free the memory of the message and its bytes."""
        self._row = (*self._row[:3], b"", None, None)
        self._message = None


class EmbeddedDeliveryOwner(Protocol):
    """The consumer of a delivery, as units use it."""

    def check_held(self, delivery: "EmbeddedDelivery") -> None:
        """Check that this consumer received a delivery, and that it is not settled."""
        ...

    def received_after(self, delivery: "EmbeddedDelivery") -> list["EmbeddedDelivery"]:
        """Return the deliveries received after another one that belong to no unit."""
        ...

    def forget(self, deliveries: Iterable["EmbeddedDelivery"]) -> None:
        """Forget deliveries that are settled or released."""
        ...


class EmbeddedDelivery(StoredMessage):
    """A message that a consumer has claimed.

    Attributes:
        id: The id of the row.
        lease: The lease of the claim.
        consumer: The consumer that received it.
        unit: The unit it belongs to, or None.
        slot: Where its hand-over is recorded, see `HandOverRecord`; None before `hand_over`.
    """

    __slots__ = ("consumer", "id", "lease", "slot", "unit")

    def __init__(self, row: Row, lease: Lease, consumer: EmbeddedDeliveryOwner) -> None:
        self._row = row
        self._message = None
        self.id = row[0]
        self.lease = lease
        self.consumer = consumer
        self.unit: Unit | None = None
        self.slot: int | None = None
