"""One received message of the embedded broker."""

from typing import TYPE_CHECKING

from jmsjca.messages import Message
from jmsjca.providers.embedded.claiming import Row
from jmsjca.providers.embedded.codec import decode
from jmsjca.providers.embedded.rows import Claim

if TYPE_CHECKING:
    from jmsjca.providers.embedded.consumer import EmbeddedConsumer
    from jmsjca.providers.embedded.unit import EmbeddedUnit

__all__ = ["EmbeddedDelivery", "StoredMessage"]


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
        """The message; decoded now, so a body that cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            row = self._row
            self._message = decode(row.headers, row.body, row.deliveries, row.expires)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as it lies in the store."""
        return self._row.body or b""

    @property
    def count(self) -> int:
        """How often the message was delivered, this time included."""
        return self._row.deliveries

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self._row.deliveries > 1


class EmbeddedDelivery(StoredMessage):
    """A claimed row.

    Attributes:
        claim: What proves that it is ours.
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("claim", "consumer", "unit")

    def __init__(self, row: Row, claim: Claim, consumer: "EmbeddedConsumer") -> None:
        super().__init__(row)
        self.claim = claim
        self.consumer = consumer
        self.unit: EmbeddedUnit | None = None
