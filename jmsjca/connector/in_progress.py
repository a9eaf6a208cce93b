"""The in-progress destination: it holds each message from before its delivery until its collaboration has taken it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

from jmsjca import spi
from jmsjca.connector.event_conversion import Event
from jmsjca.destinations import Destination, Queue, destination
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.messages.vendor_properties import PREFIX, vendor_names
from jmsjca.outbound.consumer import receive_delivery
from jmsjca.outbound.session import Session
from jmsjca.redelivery import MoveFacts, moved_copy

__all__ = ["InProgress"]

logger = get_logger("jmsjca.connector")

_RUN = PREFIX + "ConnectorRun"
_NAME, _TYPE = PREFIX + "OriginalDestinationName", PREFIX + "OriginalDestinationType"
_ID = PREFIX + "OriginalJMSMessageID"
_ORIGINAL = ("OriginalDestinationName", "OriginalDestinationType", "OriginalTimestamp", "OriginalJMSMessageID")
_ARRIVAL_TIMEOUT = 60.0  # seconds until a committed message arrives at the consumer of its sender


class InProgress:
    """The in-progress destination of one run of a connector, which is the time from its start to its end or restart.

    Each held message has the id of the run as a property. So a run delivers its own messages while those of an earlier
    run stay there.

    Args:
        session: The transacted session of the connector.
        queue: The in-progress destination.
        reprocess: True to receive the messages of earlier runs.

    Raises:
        NotSupportedError: The broker has no selectors.
    """

    def __init__(self, session: Session, queue: Destination, *, reprocess: bool) -> None:
        run = uuid.uuid4().hex
        self._session = session
        self._queue = queue
        self._run = run
        self._own = session.create_consumer(queue, f"{_RUN} = '{run}'")
        earlier = f"{_RUN} IS NULL OR {_RUN} <> '{run}'"
        self._earlier = session.create_consumer(queue, earlier) if reprocess else None
        self._producer = session.create_producer(queue)

    def hold(self, message: Message, origin: Destination) -> Event:
        """Move a received message to the in-progress destination, commit, and receive it again from there.

        Args:
            message: The message; the session's transaction holds nothing else.
            origin: The input destination of the message.

        Returns:
            The event of the held message. The next commit of the session removes it.

        Raises:
            JMSError: The broker does not deliver the held message.
        """
        copy = moved_copy(message, MoveFacts(origin, max(message.delivery_count - 1, 0)))
        copy.properties[_RUN] = self._run
        self._producer.send(copy, delivery_mode=copy.delivery_mode, priority=copy.priority)
        self._session.commit()
        held = self._own.receive(_ARRIVAL_TIMEOUT)
        if held is None:
            raise JMSError(
                f"The broker did not deliver message {copy.message_id} of {self._queue} within {_ARRIVAL_TIMEOUT:.0f} "
                "seconds after it was moved there. It is delivered after a restart, as in_doubt_events says."
            )
        return self._event(held)

    def earlier_events(self, receive_timeout: float) -> Iterator[Event]:
        """Yield the events of earlier runs; each must be committed or rolled back before the next one.

        Nothing is received unless messages are to be reprocessed.

        Args:
            receive_timeout: Seconds to wait for each message.
        """
        while self._earlier is not None:
            received = receive_delivery(self._earlier, receive_timeout)
            if received is None:
                return
            yield self._earlier_event(*received)

    def is_empty(self) -> bool:
        """Return True if the in-progress destination has no message.

        Raises:
            NotSupportedError: The broker cannot browse.
        """
        with self._session.create_browser(Queue(self._queue.name)) as browser, suppress(MessageFormatError):
            return next(iter(browser), None) is None
        return False  # there is one, which cannot be decoded

    def _earlier_event(self, message: Message | MessageFormatError, delivery: spi.Delivery) -> Event:
        """Return the event of an earlier run. One that cannot be decoded is of another program."""
        try:
            if isinstance(message, MessageFormatError):
                raise message
            event = self._event(message, lambda: delivery.raw)
        except MessageFormatError as error:
            return Event.undecodable(delivery.raw, self._queue, error)
        logger.info("Message %s of %s is processed again: its delivery is in doubt.", message.message_id, self._queue)
        return event

    def _event(self, message: Message, raw: Callable[[], bytes] | None = None) -> Event:
        """Return the event of a held message: its copies have the origin of the message, not of the held copy."""
        names = [spelling for name in _ORIGINAL for spelling in vendor_names(name)]
        original = {name: message.properties[name] for name in names if name in message.properties}
        event_id = original.get(_ID)
        return Event(
            message,
            self._origin(message),
            {**original, _RUN: None},
            event_id if isinstance(event_id, str) else message.message_id,
            raw=raw,
        )

    def _origin(self, message: Message) -> Destination:
        name, kind = message.properties.get(_NAME), str(message.properties.get(_TYPE, ""))
        return (
            destination(name, "topic" if kind.endswith("Topic") else "queue")
            if isinstance(name, str) and name
            else self._queue
        )
