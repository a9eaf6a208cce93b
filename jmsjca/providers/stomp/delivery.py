"""One message that came over STOMP."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jmsjca.destinations import Destination
from jmsjca.messages import Message
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.frames import Frame

if TYPE_CHECKING:
    from jmsjca.providers.stomp.consumer import STOMPConsumer
    from jmsjca.providers.stomp.unit import STOMPUnit

__all__ = ["Arrival", "ReceivedMessage", "STOMPDelivery"]


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A MESSAGE frame and its place in the order of receipt."""

    frame: Frame
    place: int
    deliveries: int  #: how often it was handed out, as far as this side knows
    redelivered: bool

    def again(self, *, counted: bool) -> "Arrival":
        """The same message, to be handed out once more."""
        return Arrival(self.frame, self.place, self.deliveries + counted, self.redelivered or counted)


class ReceivedMessage:
    """A MESSAGE frame, decoded when first looked at.

    Args:
        arrival: The frame.
        source: Where it was received from.
        dialect: How its broker writes messages.
    """

    __slots__ = ("_dialect", "_message", "_source", "arrival")

    def __init__(self, arrival: Arrival, source: Destination, dialect: Dialect) -> None:
        self.arrival = arrival
        self._source = source
        self._dialect = dialect
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message; decoded now, so a body that cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            told = {"delivery_count": self.count, "redelivered": self.redelivered}
            self._message = self._dialect.decode(self.arrival.frame, self._source, **told)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as it came."""
        return self.arrival.frame.body

    @property
    def count(self) -> int:
        """How often it was delivered at least: over STOMP no broker tells more than that it was delivered before."""
        return self.arrival.deliveries

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return self.arrival.redelivered


class STOMPDelivery(ReceivedMessage):
    """A message that a consumer handed out.

    Attributes:
        consumer: Who received it.
        unit: Which unit took it; None as long as none did.
    """

    __slots__ = ("consumer", "unit")

    def __init__(self, arrival: Arrival, source: Destination, dialect: Dialect, consumer: "STOMPConsumer") -> None:
        super().__init__(arrival, source, dialect)
        self.consumer = consumer
        self.unit: STOMPUnit | None = None
