"""One received message of the embedded broker."""

from typing import TYPE_CHECKING, TypeAlias

from jmsjca.messages import Message
from jmsjca.providers.embedded.codec import decode
from jmsjca.providers.embedded.digests import check_digest

if TYPE_CHECKING:
    from jmsjca.providers.embedded.consumer import EmbeddedConsumer
    from jmsjca.providers.embedded.rows import Hold
    from jmsjca.providers.embedded.unit import EmbeddedUnit

__all__ = ["EmbeddedDelivery", "Row", "StoredMessage"]

Row: TypeAlias = tuple[int, int, int | None, bytes, bytes | None, int | None]
"""A message as it lies in the store: id, deliveries (this one included), when it expires, headers, body, digest."""


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
            _, deliveries, expires, headers, body, digest = self._row
            check_digest(digest, headers, body)
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


class EmbeddedDelivery(StoredMessage):
    """A claimed row.

    Attributes:
        id: The row's id.
        hold: What proves, with the id, that it is ours.
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("consumer", "hold", "id", "unit")

    def __init__(self, row: Row, hold: "Hold", consumer: "EmbeddedConsumer") -> None:
        self._row = row
        self._message = None
        self.id = row[0]
        self.hold = hold
        self.consumer = consumer
        self.unit: EmbeddedUnit | None = None
