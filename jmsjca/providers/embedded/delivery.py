"""Messages received from the embedded broker, decoded at the first access."""

from itertools import dropwhile
from typing import NamedTuple, TypeAlias

from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message
from jmsjca.providers.common.codec import ReadingHabit
from jmsjca.providers.embedded.codec import decode, verify_checksum
from jmsjca.spi import Order, Unit

__all__ = ["EmbeddedDelivery", "Lease", "Row", "StoredMessage", "UnsettledDeliveries", "settled_error"]

Row: TypeAlias = tuple[int, int, int | None, bytes, bytes | None, int | None]
"""A stored message: id, deliveries (this one included), expiration, headers, body, checksum."""


class Lease(NamedTuple):
    """Lease on claimed messages: only its owner, with the token of that claim, can settle them."""

    queue_id: int
    owner: int
    token: int


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
            if checksum is not None:
                verify_checksum(checksum, headers, body)
            self._message = decode(headers, body, deliveries, expires, self.habit)
        return self._message

    @property
    def habit(self) -> ReadingHabit | None:
        """How the application reads such messages; None if that is not noted."""
        return None

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


class EmbeddedDelivery(StoredMessage):
    """A message that a consumer has claimed.

    Attributes:
        id: The id of the row.
        lease: The lease of the claim.
        unsettled: The unsettled deliveries of its consumer; this one is among them until it is settled or released.
        unit: The unit it belongs to, or None.
        slot: Where its hand-over is recorded, see `HandOverRecord`; None before `hand_over`.
    """

    __slots__ = ("id", "lease", "slot", "unit", "unsettled")

    def __init__(self, row: Row, lease: Lease, unsettled: "UnsettledDeliveries") -> None:
        self._row = row
        self._message = None
        self.id = row[0]
        self.lease = lease
        self.unsettled = unsettled
        self.unit: Unit | None = None
        self.slot: int | None = None

    @property
    def habit(self) -> ReadingHabit | None:
        """How the application reads the messages of the consumer."""
        return self.unsettled.habit


class UnsettledDeliveries(dict[EmbeddedDelivery, None]):
    """The unsettled deliveries of a consumer, in order of receipt.

    Other threads settle at the same time, so each use is one atomic step, never a loop over it.

    Args:
        order: The order in which they are settled.
    """

    def __init__(self, order: Order) -> None:
        super().__init__()
        self._order = order
        self.habit = ReadingHabit()

    def in_no_unit(self) -> list[EmbeddedDelivery]:
        """Return the deliveries that belong to no unit."""
        return [d for d in list(self) if d.unit is None]

    def received_after(self, delivery: EmbeddedDelivery) -> list[EmbeddedDelivery]:
        """Return the deliveries received after another one that belong to no unit; none if the order is free."""
        if self._order is Order.ANY:
            return []
        return [d for d in dropwhile(lambda d: d is not delivery, list(self)) if d.unit is None]


def settled_error() -> IllegalStateError:
    """Return the error for the use of a delivery that its consumer does not hold any more."""
    return IllegalStateError("This delivery was settled or released already; it will be redelivered if it must.")
