"""A message producer of a session."""

import itertools
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from jmsjca.messages import DeliveryMode, Message
from jmsjca.outbound.checks import check_destination
from jmsjca.outbound.closing import Closing
from jmsjca.outbound.options import DeliveryOptions, check_delay, check_mode, check_priority, check_time_to_live

if TYPE_CHECKING:
    from jmsjca.outbound.base_session import BaseSession

__all__ = ["MessageProducer", "Sending"]


class Sending(DeliveryOptions):
    """What a `MessageProducer` and a `JMSProducer` have in common.

    Args:
        session: Whose unit holds what is sent.
    """

    def __init__(self, session: "BaseSession") -> None:
        self._session = session
        self._gate = session.gate
        self._ids = _ids()

    def _send(
        self,
        message: Message,
        to: Destination,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
    ) -> None:
        mode = self.delivery_mode if delivery_mode is None else check_mode(delivery_mode)
        urgency = self.priority if priority is None else check_priority(priority)
        life = self.time_to_live if time_to_live is None else check_time_to_live(time_to_live)
        delay = self.delivery_delay if delivery_delay is None else check_delay(delivery_delay)
        now = datetime.now(UTC)
        with self._gate:
            message.send_on()
            message.message_id = None if self.disable_message_id else next(self._ids)
            message.destination = to
            message.timestamp = None if self.disable_timestamp else now
            message.delivery_mode = mode
            message.priority = urgency
            message.delivery_time = now + timedelta(seconds=delay) if delay else None
            message.expiration = now + timedelta(seconds=life) if life else None
            self._session.send(message, to)


class MessageProducer(Sending, Closing):
    """Made by `Session.create_producer` (JMS 3.1, chapter 7); for one thread at a time, as its session.

    Its attributes are the defaults of its messages. Messages that it sends to one destination stay in order.

    Args:
        session: Whose unit holds what is sent.
        destination: Where messages go; None if each send says so.

    Attributes:
        destination: Where messages go.
    """

    def __init__(self, session: "BaseSession", destination: Destination | None) -> None:
        super().__init__(session)
        self._closed = False
        if destination is not None:
            check_destination(destination)
        self.destination = destination

    def send(
        self,
        message: Message,
        destination: Destination | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
    ) -> None:
        """Send a message; it may be changed and sent again afterwards.

        In a transacted session it is sent when the session commits, otherwise before this returns. Its headers
        ``message_id``, ``destination``, ``timestamp``, ``expiration`` and so on are set here (JMS 3.1, section 3.4.11);
        times run from now, not from the commit. An option that is None is the producer's.

        Args:
            message: What to send.
            destination: Where to; needed if the producer has no destination, refused if it has.
            delivery_mode: Whether it must survive the broker's restart.
            priority: 0 to 9; 4 is normal.
            time_to_live: Seconds until it expires; 0 for never.
            delivery_delay: Seconds until it may be delivered.

        Raises:
            InvalidDestinationError: No destination, or two; or a temporary one that is gone.
            MessageFormatError: A priority outside 0 to 9, or a time that makes no sense.
            IllegalStateError: The producer is closed, or another thread uses its session.
            JMSError: The broker refuses it.
        """
        if self._closed:
            raise IllegalStateError("The producer is closed.")
        self._send(
            message,
            self._target(destination),
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )

    def close(self) -> None:
        """Send no more. What was sent in an open unit stays in it."""
        self._closed = True

    def _target(self, destination: Destination | None) -> Destination:
        if (destination is None) == (self.destination is None):
            raise InvalidDestinationError(
                "A send names its destination once: give it to create_producer() or to send(), not to both or neither."
            )
        if destination is None:
            return self.destination  # type: ignore[return-value]  # one of them is there
        check_destination(destination)
        return destination


def _ids() -> Iterator[str]:
    """Ids of one producer: a unique prefix, then a count (JMS 3.1, section 3.4.3)."""
    prefix = f"ID:{uuid.uuid4().hex}"
    return (f"{prefix}-{n}" for n in itertools.count(1))
