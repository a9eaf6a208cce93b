"""A message producer of a session."""

import itertools
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.messages import DeliveryMode, Message

if TYPE_CHECKING:
    from jmsjca.outbound.session import Session

__all__ = ["MessageProducer"]


class MessageProducer:
    """Made by `Session.create_producer`.

    Args:
        session: Whose unit holds what is sent.
        destination: Where messages go; None if each send says so.
    """

    def __init__(self, session: "Session", destination: Destination | None) -> None:
        self._session = session
        self._ids = _ids()
        self._closed = False
        self.destination = destination

    def send(
        self,
        message: Message,
        destination: Destination | None = None,
        *,
        delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT,
        priority: int = 4,
        time_to_live: float = 0,
        delivery_delay: float = 0,
    ) -> None:
        """Send a message; it may be changed and sent again afterwards.

        In a transacted session it is sent when the session commits, otherwise before this returns. Its headers
        ``message_id``, ``destination``, ``timestamp``, ``expiration`` and so on are set here.

        Args:
            message: What to send.
            destination: Where to; needed if the producer has no destination, refused if it has.
            delivery_mode: Whether it must survive the broker's restart.
            priority: 0 to 9; 4 is normal.
            time_to_live: Seconds until it expires; 0 for never.
            delivery_delay: Seconds until it may be delivered.

        Raises:
            InvalidDestinationError: No destination, or two.
            MessageFormatError: A priority outside 0 to 9, or a negative time.
            JMSError: The broker refuses it.
        """
        if self._closed:
            raise IllegalStateError("The producer is closed.")
        to = self._target(destination)
        _check(priority, time_to_live, delivery_delay)
        now = datetime.now(UTC)
        message.message_id = next(self._ids)
        message.destination = to
        message.timestamp = now
        message.delivery_mode = delivery_mode
        message.priority = priority
        message.delivery_time = now + timedelta(seconds=delivery_delay) if delivery_delay else None
        message.expiration = now + timedelta(seconds=time_to_live) if time_to_live else None
        self._session.send(message, to)

    def close(self) -> None:
        """Send no more. What was sent in an open unit stays in it."""
        self._closed = True

    def _target(self, destination: Destination | None) -> Destination:
        if (destination is None) == (self.destination is None):
            raise InvalidDestinationError(
                "A send names its destination once: give it to create_producer() or to send(), not to both or neither."
            )
        return destination or self.destination  # type: ignore[return-value]  # one of them is there


def _ids() -> Iterator[str]:
    """Ids of one producer: a unique prefix, then a count."""
    prefix = f"ID:{uuid.uuid4().hex}"
    return (f"{prefix}-{n}" for n in itertools.count(1))


def _check(priority: int, time_to_live: float, delivery_delay: float) -> None:
    if not 0 <= priority <= 9:  # noqa: PLR2004  # the range of JMS
        raise MessageFormatError(f"The priority must be 0 to 9, not {priority}.")
    if time_to_live < 0 or delivery_delay < 0:
        raise MessageFormatError(
            f"Times must not be negative: time_to_live {time_to_live}, delivery_delay {delivery_delay}."
        )
