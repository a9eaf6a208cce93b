"""Message producers of both APIs, and the delivery options that they check."""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Self, TypedDict, Unpack

from jmsjca.destinations import Destination, check_destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.hooks import Send
from jmsjca.messages import BytesMessage, DeliveryMode, MapMessage, Message, Properties, TextMessage
from jmsjca.messages.delivery import begin_resend
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.session_lock import SessionLock

__all__ = [
    "BaseProducer",
    "DeliveryOptions",
    "JMSProducer",
    "MessageProducer",
    "ProducerOptions",
    "check_delay",
    "check_mode",
    "check_priority",
    "check_time_to_live",
    "message_from_body",
]

_CENTURIES = 1e10  # seconds: the calendar ends later, but not much


def check_mode(value: object) -> DeliveryMode:
    """Check a delivery mode (JMS 3.1, section 7.7).

    Raises:
        MessageFormatError: It is none.
    """
    try:
        return DeliveryMode(value)  # type: ignore[arg-type]  # any other value is refused
    except ValueError:
        raise MessageFormatError(f"The delivery mode must be a DeliveryMode, not {value!r:.100}.") from None


def check_priority(value: object) -> int:
    """Check a priority (JMS 3.1, section 3.4.10).

    Raises:
        MessageFormatError: It is not a whole number from 0 to 9.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 9:  # noqa: PLR2004  # the range of JMS
        raise MessageFormatError(f"The priority must be a whole number from 0 to 9, not {value!r:.100}.")
    return value


def check_time_to_live(value: object) -> float:
    """Check a time to live in seconds (JMS 3.1, section 7.8).

    Raises:
        MessageFormatError: It is negative, or beyond all calendars.
    """
    return _check_seconds("time_to_live", value)


def check_delay(value: object) -> float:
    """Check a delivery delay in seconds (JMS 3.1, section 7.9).

    Raises:
        MessageFormatError: It is negative, or beyond all calendars.
    """
    return _check_seconds("delivery_delay", value)


class DeliveryOptions:
    """What a producer sends with unless a send says otherwise (JMS 3.1, section 7.4).

    Attributes:
        delivery_mode: Whether messages must survive the broker's restart; persistent by default.
        priority: 0 to 9; 4, the default, is normal.
        time_to_live: Seconds until messages expire; 0, the default, for never.
        delivery_delay: Seconds until messages may be delivered; 0 by default.
        disable_message_id: True if nobody needs message ids; then messages have none (section 3.4.3).
        disable_timestamp: True if nobody needs timestamps; then messages have none (section 3.4.4).

    Raises:
        MessageFormatError: On setting: the value makes no sense.
    """

    delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT
    priority: int = 4
    time_to_live: float = 0
    delivery_delay: float = 0
    disable_message_id: bool = False
    disable_timestamp: bool = False

    def __setattr__(self, name: str, value: object) -> None:
        check = _CHECKS.get(name)
        super().__setattr__(name, check(value) if check else value)


_CHECKS: dict[str, Callable[[object], object]] = {
    "delivery_mode": check_mode,
    "priority": check_priority,
    "time_to_live": check_time_to_live,
    "delivery_delay": check_delay,
}


def _check_seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= _CENTURIES:  # nor NaN
        raise MessageFormatError(f"{name} must be seconds, from 0 on and less than {_CENTURIES:g}, not {value!r:.100}.")
    return value


class BaseProducer(DeliveryOptions):
    """What a `MessageProducer` and a `JMSProducer` have in common.

    Args:
        send: Sends in the unit of its session.
        lock: What lets one thread at a time into the session.
    """

    def __init__(self, send: Send, lock: SessionLock) -> None:
        self._send_in_unit = send
        self._lock = lock
        self._message_ids = _ids()

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
        with self._lock:
            begin_resend(message)
            message.message_id = None if self.disable_message_id else next(self._message_ids)
            message.destination = to
            message.timestamp = None if self.disable_timestamp else now
            message.delivery_mode = mode
            message.priority = urgency
            message.delivery_time = now + timedelta(seconds=delay) if delay else None
            message.expiration = now + timedelta(seconds=life) if life else None
            self._send_in_unit(message, to)


class MessageProducer(BaseProducer, Closeable):
    """Made by `Session.create_producer` (JMS 3.1, chapter 7); for one thread at a time, as its session.

    Its attributes are the defaults of its messages. Messages that it sends to one destination stay in order.

    Args:
        send: Sends in the unit of its session.
        lock: What lets one thread at a time into the session.
        destination: Where messages go; None if each send says so.

    Attributes:
        destination: Where messages go.
    """

    def __init__(self, send: Send, lock: SessionLock, destination: Destination | None) -> None:
        super().__init__(send, lock)
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


class ProducerOptions(TypedDict, total=False):
    """The attributes of a `JMSProducer`, as keywords."""

    delivery_mode: DeliveryMode
    priority: int
    time_to_live: float
    delivery_delay: float
    disable_message_id: bool
    disable_timestamp: bool
    properties: Mapping[str, object]
    correlation_id: str | None
    reply_to: Destination | None
    type: str | None


class JMSProducer(BaseProducer):
    """Made by `JMSContext.create_producer` (JMS 3.1, sections 7.2 to 7.10). It is light, and need not be closed.

    Its attributes, those of `DeliveryOptions` and these, hold for every message that it sends; they override what the
    message has itself.

    Args:
        send: Sends in the unit of its context.
        lock: What lets one thread at a time into the context.
        **options: Attributes to begin with.

    Attributes:
        properties: The properties of its messages, typed as those of a `Message`.
        correlation_id: Ties a reply to its request; None for the message's own.
        reply_to: Where a reply should go; None for the message's own.
        type: The application's name for its messages (JMSType); None for the message's own.
    """

    def __init__(self, send: Send, lock: SessionLock, **options: Unpack[ProducerOptions]) -> None:
        super().__init__(send, lock)
        self.properties = Properties()
        self.correlation_id: str | None = None
        self.reply_to: Destination | None = None
        self.type: str | None = None
        self.set(**options)

    def set(self, **options: Unpack[ProducerOptions]) -> Self:
        """Set attributes, and go on: ``producer.set(priority=7).send(queue, "now")``.

        Args:
            **options: Attributes by name; ``properties`` replaces all of them.

        Raises:
            MessageFormatError: A value makes no sense.
            TypeError: There is no such attribute.
        """
        known = ProducerOptions.__annotations__
        if unknown := options.keys() - known.keys():
            raise TypeError(f"A JMSProducer has no {', '.join(sorted(unknown))}; it has {', '.join(known)}.")
        properties = options.pop("properties", None)
        if properties is not None:
            self.properties = Properties(properties)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    def send(self, destination: Destination, body: Message | str | bytes | Mapping[str, object] | None) -> Self:
        """Send a message, or one made of its body, and go on: sends can be chained.

        Args:
            destination: Where to.
            body: A message; or what to make one of: a `str` (text), `bytes`, a mapping (map), None (without a body).

        Raises:
            InvalidDestinationError: It is no destination, or a temporary one that is gone.
            MessageFormatError: No message can be made of the body.
            MessageNotWriteableError: The message was received, and the producer has properties to set in it.
            IllegalStateError: The context is closed, or another thread uses it.
            JMSError: The broker refuses it.
        """
        check_destination(destination)
        message = body if isinstance(body, Message) else message_from_body(body)
        self._apply_overrides(message)
        self._send(message, destination)
        return self

    def _apply_overrides(self, message: Message) -> None:
        if self.properties:
            message.properties.update(self.properties)
        message.correlation_id = self.correlation_id or message.correlation_id
        message.reply_to = self.reply_to or message.reply_to
        message.type = self.type or message.type


def message_from_body(body: object) -> Message:
    """Make a message of its body: text, bytes, a mapping, or None for none.

    Raises:
        MessageFormatError: No message is made of such a thing.
    """
    for kind, make in _MAKERS.items():
        if isinstance(body, kind):
            return make(body)
    raise MessageFormatError(
        f"No message is made of {type(body).__name__}: send a str, bytes, a mapping or None, or a message of your own."
    )


_MAKERS: dict[type, type[Message]] = {
    str: TextMessage,
    bytes: BytesMessage,
    bytearray: BytesMessage,
    Mapping: MapMessage,
    type(None): Message,
}
