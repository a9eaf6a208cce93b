"""Message producers of the classic and the simplified API, and the delivery options that they validate."""

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Self, TypedDict, Unpack

from jmsjca.destinations import Destination, check_destination
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError
from jmsjca.hooks import Send
from jmsjca.messages.bytes_message import BytesMessage
from jmsjca.messages.delivery import begin_resend
from jmsjca.messages.map_message import MapMessage
from jmsjca.messages.message import DeliveryMode, Message, TextMessage
from jmsjca.messages.properties import Properties
from jmsjca.outbound.asynchronous_sends import AsynchronousSends, OnCompletion
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.session_lock import SessionLock

__all__ = ["DeliveryOptions", "JMSProducer", "MessageProducer", "ProducerOptions", "message_from_body"]

_MAX_SECONDS = 1e10  # about 317 years: sums with the current time stay within the range of `datetime`


def _check_mode(value: object) -> DeliveryMode:
    """Return a delivery mode after validation (JMS 3.1, section 7.7).

    Raises:
        MessageFormatError: The value is no delivery mode.
    """
    try:
        return DeliveryMode(value)  # type: ignore[arg-type]  # any other value is refused
    except ValueError:
        raise MessageFormatError(f"The delivery mode must be a DeliveryMode, not {value!r:.100}.") from None


def _check_priority(value: object) -> int:
    """Return a priority after validation (JMS 3.1, section 3.4.10).

    Raises:
        MessageFormatError: The value is not a whole number from 0 to 9.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 9:  # noqa: PLR2004  # the range of JMS
        raise MessageFormatError(f"The priority must be a whole number from 0 to 9, not {value!r:.100}.")
    return value


def _check_time_to_live(value: object) -> float:
    """Return a time to live in seconds after validation (JMS 3.1, section 7.8).

    Raises:
        MessageFormatError: The value is negative, or beyond the range of dates.
    """
    return _check_seconds("time_to_live", value)


def _check_delay(value: object) -> float:
    """Return a delivery delay in seconds after validation (JMS 3.1, section 7.9).

    Raises:
        MessageFormatError: The value is negative, or beyond the range of dates.
    """
    return _check_seconds("delivery_delay", value)


class DeliveryOptions:
    """Default options of a producer's sends (JMS 3.1, section 7.4). Values are validated when they are set.

    Attributes:
        delivery_mode: Whether messages survive a restart of the broker; persistent by default.
        priority: 0 to 9; 4, the default, is normal.
        time_to_live: Seconds until messages expire; 0, the default, means never.
        delivery_delay: Seconds until messages may be delivered; 0 by default.
        disable_message_id: True to send messages without message ids (section 3.4.3).
        disable_timestamp: True to send messages without timestamps (section 3.4.4).

    Raises:
        MessageFormatError: A value that is set is invalid.
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
    "delivery_mode": _check_mode,
    "priority": _check_priority,
    "time_to_live": _check_time_to_live,
    "delivery_delay": _check_delay,
}


def _check_seconds(name: str, value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= _MAX_SECONDS:  # nor NaN
        raise MessageFormatError(
            f"{name} must be seconds, from 0 on and less than {_MAX_SECONDS:g}, not {value!r:.100}."
        )
    return value


class BaseProducer(DeliveryOptions):
    """Base of both producers: sets the headers and sends.

    Args:
        send: Sends in the unit of the session, inside all hooks.
        lock: The lock of the session.
        asynchronous: The asynchronous sends of the session.
    """

    def __init__(self, send: Send, lock: SessionLock, asynchronous: AsynchronousSends) -> None:
        self._send_in_unit = send
        self._lock = lock
        self._asynchronous = asynchronous
        self._message_ids = _message_ids()

    def _sender_to(self, futures: "list[Future[Message]]", on_completion: OnCompletion | None) -> Send:
        """Return a function that sends asynchronously, and appends the future."""

        def send(message: Message, to: Destination) -> None:
            futures.append(self._asynchronous.send(message, to, on_completion))

        return send

    def _send(
        self,
        message: Message,
        to: Destination,
        send: Send | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
    ) -> None:
        mode = self.delivery_mode if delivery_mode is None else _check_mode(delivery_mode)
        urgency = self.priority if priority is None else _check_priority(priority)
        life = self.time_to_live if time_to_live is None else _check_time_to_live(time_to_live)
        delay = self.delivery_delay if delivery_delay is None else _check_delay(delivery_delay)
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
            (send or self._send_in_unit)(message, to)


class MessageProducer(BaseProducer, Closeable):
    """Sends messages to one destination, or to one that each send names (JMS 3.1, chapter 7).

    `Session.create_producer` creates it; like its session it is for one thread at a time. Its attributes are the
    defaults of its sends. Messages that it sends to the same destination stay in order.

    Args:
        send: Sends in the unit of the session, inside all hooks.
        lock: The lock of the session.
        asynchronous: The asynchronous sends of the session.
        destination: The destination; None if each send names one.

    Attributes:
        destination: The destination; None if each send names one.
    """

    def __init__(
        self, send: Send, lock: SessionLock, asynchronous: AsynchronousSends, destination: Destination | None
    ) -> None:
        super().__init__(send, lock, asynchronous)
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
        on_completion: OnCompletion | None = None,
    ) -> None:
        """Send a message. The message may be changed and sent again afterwards.

        A transacted session sends the message when it commits, any other before this returns. The headers
        ``message_id``, ``destination``, ``timestamp``, ``expiration`` and so on are set here (JMS 3.1, section 3.4.11);
        times run from now, not from the commit. An option that is None is taken from the producer.

        Args:
            message: The message.
            destination: The destination; required if the producer has none, refused if it has one.
            delivery_mode: Whether the message survives a restart of the broker.
            priority: 0 to 9; 4 is normal.
            time_to_live: Seconds until the message expires; 0 means never.
            delivery_delay: Seconds until the message may be delivered.
            on_completion: If it is given, the message is sent asynchronously, as by `send_async`.

        Raises:
            InvalidDestinationError: There is no destination, or there are two; or it is a deleted temporary one.
            MessageFormatError: The priority is outside 0 to 9, or a time is negative or too large.
            IllegalStateError: The producer is closed, or another thread uses its session.
            JMSError: The broker refuses the message.
        """
        to = self._target(destination)
        send = None if on_completion is None else self._sender_to([], on_completion)
        self._send(
            message,
            to,
            send,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )

    def send_async(
        self,
        message: Message,
        destination: Destination | None = None,
        *,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
        on_completion: OnCompletion | None = None,
    ) -> "Future[Message]":
        """Begin to send a message, and do not wait for the broker (JMS 3.1, section 7.3).

        The messages of a session stay in order, whether they are sent asynchronously or not. The headers are set before
        this returns, and the message may then be changed and sent again. Up to `Limits.sends_in_flight` sends of a
        session may be incomplete; then this waits until half of them are complete. In a transacted session a send is
        complete as soon as the message belongs to the transaction; the commit reports the failure of all.

        Completion listeners are called one after the other, in the order of the sends, on one thread of the session.
        They may use the session only while no other thread does, and may not commit, roll back or close it, nor close
        its producers and its connection, since all of these wait for the listeners. Their exceptions are logged.

        Args:
            message: The message.
            destination: The destination; required if the producer has none, refused if it has one.
            delivery_mode: Whether the message survives a restart of the broker.
            priority: 0 to 9; 4 is normal.
            time_to_live: Seconds until the message expires; 0 means never.
            delivery_delay: Seconds until the message may be delivered.
            on_completion: A function of the message and its error, which is None after a success, or a
                `CompletionListener`. It is called before the future is done.

        Returns:
            A future of the message, which cannot be cancelled. It raises the error of the send:
            `TransactionInDoubtError` if the connection was lost, so that the message may or may not be sent.

        Raises:
            JMSError: As `send`, if the message is refused before it is on its way; then no completion is reported.
            NotSupportedError: The session belongs to a delivery.
        """
        futures: list[Future[Message]] = []
        self._send(
            message,
            self._target(destination),
            self._sender_to(futures, on_completion),
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
        )
        return futures[0]

    def close(self) -> None:
        """Close the producer, once its asynchronous sends are complete (JMS 3.1, section 7.3.4). Idempotent.

        Messages that were sent in an open transaction stay in it.

        Raises:
            IllegalStateError: A completion listener of the session calls it.
        """
        self._asynchronous.wait("MessageProducer.close()")
        self._closed = True

    def _target(self, destination: Destination | None) -> Destination:
        if self._closed:
            raise IllegalStateError("The producer is closed.")
        if (destination is None) == (self.destination is None):
            raise InvalidDestinationError(
                "A send names its destination once: give it to create_producer() or to send(), not to both or neither."
            )
        if destination is None:
            return self.destination  # type: ignore[return-value]  # not None: checked above
        check_destination(destination)
        return destination


def _message_ids() -> Iterator[str]:
    """Generate the message ids of one producer: a unique prefix and a number (JMS 3.1, section 3.4.3)."""
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
    on_completion: OnCompletion | None


class JMSProducer(BaseProducer):
    """Producer of the simplified API (JMS 3.1, sections 7.2 to 7.10). It is lightweight and need not be closed.

    `JMSContext.create_producer` creates it. Its attributes and those of `DeliveryOptions` apply to every message that
    it sends; they override the headers and properties of the message.

    Args:
        send: Sends in the unit of the context, inside all hooks.
        lock: The lock of the context.
        asynchronous: The asynchronous sends of the context.
        **options: Initial values of the attributes.

    Attributes:
        properties: Properties of all messages, typed as those of a `Message`.
        correlation_id: Relates a reply to its request; None keeps the message's own.
        reply_to: Destination for replies; None keeps the message's own.
        type: The application's message type (JMSType); None keeps the message's own.
        on_completion: If it is set, `send` is asynchronous, as `MessageProducer.send_async` (section 7.3); JMS calls it
            ``setAsync``.
    """

    def __init__(
        self, send: Send, lock: SessionLock, asynchronous: AsynchronousSends, **options: Unpack[ProducerOptions]
    ) -> None:
        super().__init__(send, lock, asynchronous)
        self.properties = Properties()
        self.correlation_id: str | None = None
        self.reply_to: Destination | None = None
        self.type: str | None = None
        self.on_completion: OnCompletion | None = None
        self.set(**options)

    def set(self, **options: Unpack[ProducerOptions]) -> Self:
        """Set attributes and return the producer, for chaining: ``producer.set(priority=7).send(queue, "now")``.

        Args:
            **options: Attributes by name; ``properties`` replaces all properties.

        Raises:
            MessageFormatError: A value is invalid.
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
        """Send a message, or a body as a message, and return the producer, for chaining.

        Args:
            destination: The destination.
            body: A message; or a body: `str` (text message), `bytes`, a mapping (map message), None (without a body).

        Raises:
            InvalidDestinationError: The value is no destination, or a deleted temporary one.
            MessageFormatError: No message can hold the body.
            MessageNotWriteableError: The message was received, and the producer has properties to set in it.
            IllegalStateError: The context is closed, or another thread uses it.
            JMSError: The broker refuses the message.
        """
        send = None if self.on_completion is None else self._sender_to([], self.on_completion)
        self._send(self._message(destination, body), destination, send)
        return self

    def send_async(
        self, destination: Destination, body: Message | str | bytes | Mapping[str, object] | None
    ) -> "Future[Message]":
        """Begin to send a message, or a body as a message, as `MessageProducer.send_async` does.

        Args:
            destination: The destination.
            body: A message, or a body as for `send`.

        Returns:
            A future of the message; it raises the error of the send. It is done after the call of `on_completion`.

        Raises:
            JMSError: As `send`, if the message is refused before it is on its way.
        """
        futures: list[Future[Message]] = []
        self._send(self._message(destination, body), destination, self._sender_to(futures, self.on_completion))
        return futures[0]

    def _message(self, destination: Destination, body: Message | str | bytes | Mapping[str, object] | None) -> Message:
        """Return the message to send, with the headers and properties of this producer."""
        check_destination(destination)
        message = body if isinstance(body, Message) else message_from_body(body)
        self._apply_overrides(message)
        return message

    def _apply_overrides(self, message: Message) -> None:
        if self.properties:
            message.properties.update(self.properties)
        message.correlation_id = self.correlation_id or message.correlation_id
        message.reply_to = self.reply_to or message.reply_to
        message.type = self.type or message.type


def message_from_body(body: object) -> Message:
    """Return a new message with a body: text, bytes, a mapping, or None for a message without a body.

    Raises:
        MessageFormatError: No message can hold a body of that type.
    """
    for kind, create in _MESSAGE_TYPES.items():
        if isinstance(body, kind):
            return create(body)
    raise MessageFormatError(
        f"No message is made of {type(body).__name__}: send a str, bytes, a mapping or None, or a message of your own."
    )


_MESSAGE_TYPES: dict[type, type[Message]] = {
    str: TextMessage,
    bytes: BytesMessage,
    bytearray: BytesMessage,
    Mapping: MapMessage,
    type(None): Message,
}
