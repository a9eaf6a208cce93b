"""Message producers of the classic and the simplified API, their options, and the pool of closed producers."""

import itertools
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack, overload

from jmsjca.arguments import FLAG, TIMEOUT, Constraint, GuardedAttributes, check, did_you_mean
from jmsjca.config.naming import is_reference
from jmsjca.destinations import Destination, Queue, Topic, check_destination
from jmsjca.errors import (
    ArgumentTypeError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
)
from jmsjca.hooks import Send
from jmsjca.messages.converters import Body, message_from_body
from jmsjca.messages.delivery import begin_resend
from jmsjca.messages.message import (
    DURATION,
    HEADERS,
    PRIORITY,
    DeliveryMode,
    Message,
    delivery_mode_of,
    time_of_send,
)
from jmsjca.messages.properties import Properties
from jmsjca.outbound.asynchronous_sends import AsynchronousSends, OnCompletion, checked_listener
from jmsjca.outbound.connection_state import Closeable
from jmsjca.outbound.unit_of_work import SessionLock, SessionMember, aborts_if_interrupted

__all__ = [
    "DeliveryFields",
    "DeliveryOptions",
    "HeaderFields",
    "JMSProducer",
    "MessageProducer",
    "ProducerOptions",
    "ProducerPool",
    "SendOption",
    "SendOptions",
    "check_options",
    "delivery_fields",
    "properties_of",
    "set_headers",
]

T = TypeVar("T")
Given = TypeVar("Given")

_ACKNOWLEDGEMENT_TIMEOUT = "JBXAcknowledgmentTimeout"
_MOST_IDLE = 100


def properties_of(name: str, value: object) -> Properties:
    """Return a copy of a mapping as properties.

    Raises:
        MessageFormatError: The value is not a mapping, or a name or a value is not allowed.
    """
    return Properties(_PROPERTIES(name, value))


_PROPERTIES = Constraint[Mapping[str, Any]]("a mapping from names to values", Mapping, error=MessageFormatError)


class DeliveryFields(TypedDict, total=False):
    """The options of every send, as keywords. For an option that is missing or None the producer's value applies.

    Attributes:
        delivery_mode: Whether messages survive a restart of the broker, a `DeliveryMode` or its name; persistent by
            default.
        priority: 0 to 9; 4, the default, is normal.
        time_to_live: Seconds until messages expire; 0, the default, means never.
        delivery_delay: Seconds until messages may be delivered; 0 by default.
    """

    delivery_mode: DeliveryMode | str | None
    priority: int | None
    time_to_live: float | timedelta | None
    delivery_delay: float | timedelta | None


class HeaderFields(DeliveryFields, total=False):
    """The options of a send that also sets headers of its message.

    Attributes:
        correlation_id: Relates a reply to its request; None keeps the message's own.
        reply_to: Destination for replies; None keeps the message's own.
        type: The application's message type (JMSType); None keeps the message's own.
    """

    correlation_id: str | None
    reply_to: Destination | None
    type: str | None


class SendOptions(HeaderFields, total=False):
    """The options of a send through an adapter, a sender or a session. None counts as not given.

    Attributes:
        properties: Properties of the message.
        acknowledgement_timeout: Seconds after which a listener with held acknowledgement rolls the message back: the
            integer property ``JBXAcknowledgmentTimeout``, rounded up, at least 1.
    """

    properties: Mapping[str, bool | int | float | str | None]
    acknowledgement_timeout: float | None


class ProducerOptions(HeaderFields, total=False):
    """The attributes of a `JMSProducer`, as keywords.

    Attributes:
        properties: Properties of all messages, with the types that a `Message` allows; the mapping is copied.
        disable_message_id: True to send messages without message ids (JMS 3.1, section 3.4.3).
        disable_timestamp: True to send messages without timestamps (section 3.4.4).
        on_completion: If it is set, `JMSProducer.send` is asynchronous, as `MessageProducer.send_async` (section 7.3);
            JMS calls it ``setAsync``.
    """

    properties: Mapping[str, object]
    disable_message_id: bool
    disable_timestamp: bool
    on_completion: OnCompletion | None


_CONSTRAINTS: Mapping[str, Callable[[str, object], Any]] = {
    "delivery_mode": delivery_mode_of,
    "priority": PRIORITY,
    "time_to_live": DURATION,
    "delivery_delay": DURATION,
    "properties": properties_of,
    **HEADERS,
    "disable_message_id": FLAG,
    "disable_timestamp": FLAG,
    "on_completion": checked_listener,
}


def check_options(owner: str, options: Mapping[str, object], fields: type) -> None:
    """Raise an error for a misspelt option, which would have no effect.

    Args:
        owner: The owner of the options, for the error message.
        options: The options that were given.
        fields: The `TypedDict` of the known ones.

    Raises:
        ArgumentTypeError: There is no such option.
    """
    known = fields.__annotations__
    for name in sorted(options.keys() - known.keys()):
        remark = did_you_mean(name.lower(), {each: each for each in known})
        raise ArgumentTypeError(f"{owner} has no option {name!r:.100} {remark}.")


def set_headers(message: Message, options: SendOptions) -> None:
    """Set the properties and headers of a message that the options of a send name."""
    for name, value in _PROPERTIES("properties", options.get("properties") or {}).items():
        message.set_object_property(name, value)
    for name in HEADERS:
        if (header := options.get(name)) is not None:
            setattr(message, name, header)
    if (seconds := options.get("acknowledgement_timeout")) is not None:
        message.set_int_property(_ACKNOWLEDGEMENT_TIMEOUT, _whole_seconds(seconds))


def _whole_seconds(timeout: float) -> int:
    return max(1, math.ceil(TIMEOUT("acknowledgement_timeout", timeout) or 0))


def delivery_fields(options: SendOptions) -> dict[str, Any]:
    """Return the options of a send that are for the producer."""
    delivery = DeliveryFields.__annotations__
    return {name: value for name, value in options.items() if name in delivery and value is not None}


class SendOption(Generic[T, Given]):
    """A default option of a producer: validated when it is set, refused once the producer is closed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, producer: None, owner: type) -> Self: ...

    @overload
    def __get__(self, producer: "DeliveryOptions", owner: type) -> T: ...

    def __get__(self, producer: "DeliveryOptions | None", owner: type) -> Self | T:
        if producer is None:
            return self
        producer.check_open()
        value: T = getattr(producer, f"_{self._name}")
        return value

    def __set__(self, producer: "DeliveryOptions", value: Given) -> None:
        producer.check_open()
        setattr(producer, f"_{self._name}", _CONSTRAINTS[self._name](self._name, value))


class DeliveryOptions(SessionMember, GuardedAttributes):
    """Default options of a producer's sends (JMS 3.1, section 7.4). Values are validated when they are set.

    `DeliveryFields` and `ProducerOptions` document them.

    Raises:
        MessageFormatError: A value that is set is invalid.
        InvalidAttributeError: An attribute that is set does not exist.
        IllegalStateError: The producer, or its session, is closed.
    """

    # The values; a send reads them without the check of the attributes.
    _delivery_mode: DeliveryMode = DeliveryMode.PERSISTENT
    _priority: int = 4
    _time_to_live: float = 0
    _delivery_delay: float = 0
    _disable_message_id: bool = False
    _disable_timestamp: bool = False

    delivery_mode = SendOption[DeliveryMode, DeliveryMode | str]()
    priority = SendOption[int, int]()
    time_to_live = SendOption[float, float]()
    delivery_delay = SendOption[float, float]()
    disable_message_id = SendOption[bool, bool]()
    disable_timestamp = SendOption[bool, bool]()

    def check_open(self) -> None:
        """Raise an error if the producer or its session is closed.

        Raises:
            IllegalStateError: It is closed.
        """
        self._check_open()


class ProducerPool:
    """The closed producers of a session that its next producers continue, at most one for each destination.

    At the broker, a producer is its sequence of message ids: all else, such as the link to the destination, belongs to
    the connection. The next producer is another object, with the default options, so that neither the options of the
    closed object nor a use of it reach the next one. When the pool is full, the producer closed first is dropped.

    Args:
        most: The maximum number of producers.
    """

    def __init__(self, most: int = _MOST_IDLE) -> None:
        self._most = most
        self._idle: dict[Destination | None, Iterator[str]] = {}

    def take(self, destination: Destination | None) -> Iterator[str] | None:
        """Remove the producer of a destination from the pool, and return its message ids; None without one."""
        return self._idle.pop(destination, None)

    def put(self, destination: Destination | None, message_ids: Iterator[str]) -> None:
        """Store a closed producer, unless its destination is temporary: a later one of that name is another one.

        Args:
            destination: The destination; None for a producer that names one in each send.
            message_ids: The message ids of its next sends.
        """
        if destination is not None and destination.temporary:
            return
        self._idle.pop(destination, None)
        self._idle[destination] = message_ids
        if len(self._idle) > self._most:
            del self._idle[next(iter(self._idle))]

    def clear(self) -> None:
        """Drop all producers: their session is closed."""
        self._idle.clear()

    def __len__(self) -> int:
        return len(self._idle)


_LASTING = (Queue, Topic)  # the name of a temporary destination may be reused
_MOST_KNOWN = 16

Resolve = Callable[[Destination], Destination]
"""Returns a destination as it is at the broker, see `ConnectionContext.resolve`."""


class BaseProducer(DeliveryOptions):
    """Base of both producers: sets the headers and sends.

    Args:
        send: Sends in the unit of the session, inside all hooks.
        lock: The lock of the session.
        asynchronous: The asynchronous sends of the session.
        resolve: Returns each destination as it is at the broker.
    """

    _pool: ProducerPool | None = None
    _failed: bool = False  # a producer that failed does not return to its pool
    _last: Destination | None = None  # the last one that is at the broker as it was given
    _known: frozenset[Destination] = frozenset()  # equal ones need no look-up either

    def __init__(self, send: Send, lock: SessionLock, asynchronous: AsynchronousSends, resolve: Resolve) -> None:
        self._send_in_unit = send
        self._lock = lock
        self._asynchronous = asynchronous
        self._resolve = resolve
        self._message_ids = _message_ids()

    def _resolved(self, destination: Destination) -> Destination:
        if destination is self._last or (type(destination) in _LASTING and destination in self._known):
            return destination
        check_destination(destination)
        to = self._resolve(destination)
        if to is destination and not is_reference(to.name):
            self._last = to
            if type(to) in _LASTING:
                self._known = frozenset({to, *self._known}) if len(self._known) < _MOST_KNOWN else frozenset({to})
        return to

    def _sender_to(self, futures: "list[Future[Message]]", on_completion: OnCompletion | None) -> Send:
        """Return a function that sends asynchronously, and appends the future."""
        checked_listener("on_completion", on_completion)

        def send(message: Message, to: Destination) -> None:
            """Begin to send a message."""
            futures.append(self._asynchronous.send(message, to, on_completion))
            if self._pool is not None:
                futures[-1].add_done_callback(self._record_outcome)

        return send

    def _record_outcome(self, sent: "Future[Message]") -> None:
        self._failed = self._failed or sent.exception() is not None

    @aborts_if_interrupted
    def _send(
        self,
        message: Message,
        to: Destination,
        send: Send | None = None,
        options: DeliveryFields | None = None,
    ) -> None:
        mode, urgency, life, delay = self._delivery_mode, self._priority, self._time_to_live, self._delivery_delay
        if options:
            check_options("A send", options, DeliveryFields)
            given = {name: _CONSTRAINTS[name](name, value) for name, value in options.items() if value is not None}
            mode, urgency = given.get("delivery_mode", mode), given.get("priority", urgency)
            life, delay = given.get("time_to_live", life), given.get("delivery_delay", delay)
        if message.reply_to is not None or message.correlation_id is not None or message.type is not None:
            headers = {"correlation_id": message.correlation_id, "reply_to": message.reply_to, "type": message.type}
            check(HEADERS, **headers)  # attributes are not checked when set
        now = time_of_send()
        with self._lock:
            begin_resend(message)
            message.message_id = None if self._disable_message_id else next(self._message_ids)
            message.destination = to
            message.timestamp = None if self._disable_timestamp else now
            message.delivery_mode = mode
            message.priority = urgency
            message.delivery_time = now + _whole_milliseconds(delay) if delay else None
            message.expiration = now + _whole_milliseconds(life) if life else None
            try:
                (send or self._send_in_unit)(message, to)
            except JMSError:
                self._failed = True
                raise


class MessageProducer(BaseProducer, Closeable):
    """Sends messages to one destination, or to one that each send names (JMS 3.1, chapter 7).

    `Session.create_producer` creates it; like its session it is for one thread at a time. Its attributes are the
    defaults of its sends. Messages that it sends to the same destination stay in order.

    Args:
        send: Sends in the unit of the session, inside all hooks.
        lock: The lock of the session.
        asynchronous: The asynchronous sends of the session.
        resolve: Returns each destination as it is at the broker.
        destination: The destination; None if each send names one.
        pool: The pool of the session; None without one.

    Raises:
        InvalidDestinationError: The value is not a destination.
    """

    _closed_text = "The producer is closed; create another one with session.create_producer(…)."

    def __init__(  # the session gives them
        self,
        send: Send,
        lock: SessionLock,
        asynchronous: AsynchronousSends,
        resolve: Resolve,
        destination: Destination | None,
        pool: ProducerPool | None = None,
    ) -> None:
        super().__init__(send, lock, asynchronous, resolve)
        self._closed = False
        self._destination = None if destination is None else self._resolved(destination)
        self._pool = pool
        if pool is not None:
            self._message_ids = pool.take(self._destination) or self._message_ids

    @property
    def closed(self) -> bool:
        """True once the producer or its session is closed."""
        return self._closed or self._lock.closed

    @property
    def destination(self) -> Destination | None:
        """The destination; None if each send names one."""
        self.check_open()
        return self._destination

    def send(
        self,
        message: Message | Body,
        destination: Destination | None = None,
        *,
        on_completion: OnCompletion | None = None,
        **options: Unpack[DeliveryFields],
    ) -> None:
        """Send a message, or a body as a message. The message may be changed and sent again afterwards.

        A transacted session sends the message when it commits, any other before this returns. The headers
        ``message_id``, ``destination``, ``timestamp``, ``expiration`` and so on are set here (JMS 3.1, section 3.4.11);
        times run from now, not from the commit.

        Args:
            message: The message; or a body: `str` (text message), `bytes`, a mapping (map message), a pydantic model or
                a dataclass (text message with JSON).
            destination: The destination; required if the producer has none, refused if it has one.
            on_completion: If it is given, the message is sent asynchronously, as by `send_async`.
            **options: See `DeliveryFields`; those that are not given are taken from the producer.

        Raises:
            InvalidDestinationError: There is no destination, or there are two; or it is a deleted temporary one.
            MessageFormatError: The priority is outside 0 to 9, a time is negative or too large, or no message can hold
                the body.
            ArgumentTypeError: A header of the message has a wrong type, or there is no such option.
            IllegalStateError: The producer is closed, or another thread uses its session.
            JMSError: The broker refuses the message.
        """
        to = self._target(destination)
        send = None if on_completion is None else self._sender_to([], on_completion)
        self._send(
            message if isinstance(message, Message) else _required_message(message),
            to,
            send,
            options,
        )

    def send_async(
        self,
        message: Message | Body,
        destination: Destination | None = None,
        *,
        on_completion: OnCompletion | None = None,
        **options: Unpack[DeliveryFields],
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
            message: The message, or a body as for `send`.
            destination: The destination; required if the producer has none, refused if it has one.
            on_completion: A function of the message and its error, which is None after a success, or a
                `CompletionListener`. It is called before the future is done.
            **options: As for `send`.

        Returns:
            A future of the message, which cannot be cancelled. It raises the error of the send:
            `TransactionInDoubtError` if the connection was lost, so that the message may or may not be sent.

        Raises:
            JMSError: As `send`, if the message is refused before it is on its way; then no completion is reported.
            NotSupportedError: The session belongs to a delivery.
        """
        futures: list[Future[Message]] = []
        self._send(
            message if isinstance(message, Message) else _required_message(message),
            self._target(destination),
            self._sender_to(futures, on_completion),
            options,
        )
        return futures[0]

    def close(self) -> None:
        """Close the producer, once its asynchronous sends are complete (JMS 3.1, section 7.3.4). Idempotent.

        Messages that were sent in an open transaction stay in it.

        Raises:
            IllegalStateError: A completion listener of the session calls it.
        """
        self._asynchronous.wait("MessageProducer.close()")
        if self._pool is not None and not (self._failed or self.closed):
            self._pool.put(self._destination, self._message_ids)
        self._closed = True

    def _target(self, destination: Destination | None) -> Destination:
        if self._closed:
            raise IllegalStateError(self._closed_text)
        if (destination is None) == (self._destination is None):
            raise InvalidDestinationError(
                "A send names its destination once: give it to create_producer() or to send(), not to both or neither."
            )
        if destination is None:
            return self._destination  # type: ignore[return-value]  # not None: checked above
        return self._resolved(destination)


def _required_message(body: object) -> Message:
    if body is None:
        raise MessageFormatError("There is no message to send: it is None. A message without a body is Message().")
    return message_from_body(body)


def _whole_milliseconds(seconds: float) -> timedelta:
    """Return a duration in whole milliseconds, as messages carry times; at least one."""
    return timedelta(milliseconds=max(round(seconds * 1000), 1))


def _message_ids() -> Iterator[str]:
    """Generate the message ids of one producer: a unique prefix and a number (JMS 3.1, section 3.4.3).

    Not by a generator, which an exception of a signal handler would end for all later sends.
    """
    return map(f"ID:{uuid.uuid4().hex}-{{}}".format, itertools.count(1))


class JMSProducer(BaseProducer):
    """Producer of the simplified API (JMS 3.1, sections 7.2 to 7.10). It is lightweight and need not be closed.

    `JMSContext.create_producer` creates it. Its attributes, which `ProducerOptions` documents, apply to every message
    that it sends; they override the headers and properties of the message.

    Args:
        send: Sends in the unit of the context, inside all hooks.
        lock: The lock of the context.
        asynchronous: The asynchronous sends of the context.
        **options: Initial values of the attributes.
    """

    _correlation_id: str | None = None
    _reply_to: Destination | None = None
    _type: str | None = None
    _on_completion: OnCompletion | None = None

    properties = SendOption[Properties, Mapping[str, object]]()
    correlation_id = SendOption[str | None, str | None]()
    reply_to = SendOption[Destination | None, Destination | None]()
    type = SendOption[str | None, str | None]()
    on_completion = SendOption[OnCompletion | None, OnCompletion | None]()

    def __init__(
        self,
        send: Send,
        lock: SessionLock,
        asynchronous: AsynchronousSends,
        resolve: Resolve,
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__(send, lock, asynchronous, resolve)
        self._properties = Properties()
        self.set(**options)

    def set(self, **options: Unpack[ProducerOptions]) -> Self:
        """Set attributes and return the producer, for chaining: ``producer.set(priority=7).send(queue, "now")``.

        Args:
            **options: See `ProducerOptions`; ``properties`` replaces all properties.

        Raises:
            MessageFormatError: A value is invalid.
            InvalidArgumentError: There is no such attribute, or a value has a wrong type.
            IllegalStateError: The context is closed.
        """
        check_options("A JMSProducer", options, ProducerOptions)
        for name, value in options.items():
            if value is not None or name not in DeliveryFields.__annotations__:
                setattr(self, name, value)
        return self

    def send(self, destination: Destination, body: Message | Body | None) -> Self:
        """Send a message, or a body as a message, and return the producer, for chaining.

        Args:
            destination: The destination.
            body: A message; or a body: `str` (text message), `bytes`, a mapping (map message), a pydantic model or a
                dataclass (text message with JSON), None (without a body).

        Raises:
            InvalidDestinationError: The value is not a destination, or is a deleted temporary destination.
            MessageFormatError: No message can hold the body.
            MessageNotWriteableError: The message was received, and the producer has properties to set in it.
            IllegalStateError: The context is closed, or another thread uses it.
            JMSError: The broker refuses the message.
        """
        send = None if self._on_completion is None else self._sender_to([], self._on_completion)
        to = self._resolved(destination)
        self._send(self._message(body), to, send)
        return self

    def send_async(self, destination: Destination, body: Message | Body | None) -> "Future[Message]":
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
        to = self._resolved(destination)
        self._send(self._message(body), to, self._sender_to(futures, self._on_completion))
        return futures[0]

    def _message(self, body: Message | Body | None) -> Message:
        """Return the message to send, with the headers and properties of this producer."""
        message = body if isinstance(body, Message) else message_from_body(body)
        self._apply_overrides(message)
        return message

    def _apply_overrides(self, message: Message) -> None:
        if self._properties:
            message.properties.update(self._properties)
        message.correlation_id = self._correlation_id or message.correlation_id
        message.reply_to = self._reply_to or message.reply_to
        message.type = self._type or message.type
