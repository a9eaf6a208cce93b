"""The message base class, the text message, and the message that marks the end of a batch."""

import builtins
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache, partial
from time import time_ns
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

from jmsjca.arguments import CLASS, TEXT_OR_NONE, Constraint, check, enum_member
from jmsjca.destinations import Destination
from jmsjca.errors import (
    IllegalStateError,
    InvalidDestinationError,
    MessageFormatError,
    MessageNotWriteableError,
    excerpt,
)
from jmsjca.messages.delivery import DeliveryContext, DeliveryMixin, vendor_property
from jmsjca.messages.properties import (
    DELIVERY_COUNT,
    Int,
    Properties,
    PropertyValue,
    as_boolean,
    as_integer,
    as_real,
    as_text,
    typed_property,
)

__all__ = [
    "DURATION",
    "HEADERS",
    "MAX_SECONDS",
    "PRIORITY",
    "DeliveryMode",
    "EndOfBatch",
    "Message",
    "TextMessage",
    "delivery_mode_of",
    "end_of_batch_message",
    "has_properties",
    "headers_of",
    "may_contain_property",
    "time_of_send",
    "to_datetime",
]

T = TypeVar("T")


def _set_if_unset(slot: Any, of: object, value: object) -> Any:
    """Set a slot, unless another thread has already set it, and return its value.

    Args:
        slot: The descriptor of the slot.
        of: The object.
        value: The value.
    """
    try:
        return slot.__get__(of)
    except AttributeError:
        slot.__set__(of, value)
        return value


def _identity(value: T) -> T:
    """Return the decoded headers. A module-level function, because a message is pickled with a reference to it."""
    return value


class DeliveryMode(IntEnum):
    """Whether a message must survive the broker's restart (JMS 3.1, section 3.4.2)."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


_PERSISTENT = DeliveryMode.PERSISTENT  # an Enum member lookup costs as much as a call


class Message(DeliveryMixin):
    """A message without a body, and the base of those that have one.

    Args:
        body: The body, of the type of the subclass.
        properties: Initial properties.
        correlation_id: The id that relates a reply to its request.
        reply_to: The destination for replies.
        type: The application's name for this type of message (JMSType).

    Attributes:
        message_id: Set when sent.
        destination: Set when sent.
        delivery_mode: Set when sent.
        priority: 0 to 9, 4 is normal; set when sent.
        timestamp: The time of the send, timezone-aware; None before.
        expiration: The time of expiry, timezone-aware; None if the message never expires.
        redelivered: True if it was delivered before.
        delivery_time: The earliest time of delivery, timezone-aware; None means immediately.
        delivery_count: The number of deliveries, including this one; 0 if unknown.

    ``get_…_property`` converts by the table of JMS 3.1, section 3.5.4; ``set_…_property`` fixes the type. Getters raise
    `MessageFormatError` where the table forbids the conversion, setters where the value does not fit, and
    `MessageNotWriteableError` on a received message. Besides the sender's properties they know JMSXDeliveryCount and,
    in a listener, JMSJCA's own properties.
    """

    __slots__ = (
        "__weakref__",  # a listener's delivery refers to its message weakly
        "_body",
        "_properties",
        "_read_only",
        "_undecoded",
        "correlation_id",
        "delivery_count",
        "delivery_mode",
        "delivery_time",
        "destination",
        "expiration",
        "message_id",
        "priority",
        "redelivered",
        "reply_to",
        "timestamp",
        "type",
    )

    _body_kinds: ClassVar[tuple[builtins.type, ...]] = ()
    _body_error: ClassVar[str] = "A plain Message has no body; use TextMessage, BytesMessage or another kind."
    _properties: Properties | None
    _undecoded: Callable[[], Mapping[str, Any]]

    def __init__(
        self,
        body: Any = None,
        *,
        properties: Mapping[str, object] | None = None,
        correlation_id: str | None = None,
        reply_to: Destination | None = None,
        type: str | None = None,  # noqa: A002  # the name of the header
    ) -> None:
        self._read_only = False
        self._context: DeliveryContext | None = None
        self._body = self._stored(body)
        # Created on demand: most messages have none.
        self._properties = None if properties is None else Properties(properties)
        if correlation_id is not None or reply_to is not None or type is not None:
            check(HEADERS, correlation_id=correlation_id, reply_to=reply_to, type=type)
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.type = type
        self.message_id: str | None = None
        self.destination: Destination | None = None
        self.delivery_mode = _PERSISTENT
        self.priority = 4
        self.timestamp: datetime | None = None
        self.expiration: datetime | None = None
        self.delivery_time: datetime | None = None
        self.redelivered = False
        self.delivery_count = 0

    @classmethod
    def received(
        cls, body: Any, headers: Callable[[], Mapping[str, Any]], decoded: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a read-only message that decodes its headers on first access. For providers.

        Args:
            body: The body, of the type of the class; the pickle for an object message.
            headers: Returns all headers and the properties by attribute name. Its exceptions are raised on access to a
                header.
            decoded: The same, if they are decoded already: then no access to a header is a call.

        Raises:
            MessageFormatError: The body does not fit this message class.
        """
        message: Self = cls.__new__(cls)
        message._context = None
        message._body = message._decoded(body)
        message._undecoded = headers
        message._freeze()
        if decoded is not None:
            for name, slot in _SLOT_NAMES:
                setattr(message, slot, decoded[name])
        return message

    def _headers(self) -> Mapping[str, Any]:
        """Return headers and properties by attribute name; of a received message as its provider decodes them.

        For readers that need many headers once: each attribute of a received message is two calls more. Access to a
        damaged header raises `MessageFormatError`.
        """
        undecoded = getattr(self, "_undecoded", None)
        return {name: getattr(self, name) for name in _ATTRIBUTES} if undecoded is None else undecoded()

    def _may_contain_property(self, name: str) -> bool:
        """Return False if a received message certainly lacks a property. Cheaper than decoding the properties."""
        mentions = getattr(getattr(self, "_undecoded", None), "mentions", None)
        return mentions is None or mentions(name)

    if not TYPE_CHECKING:  # otherwise type checkers accept every misspelt attribute

        def __getattr__(self, name: str) -> Any:
            """Decode the headers on demand. Called only for slots that are not set; sets only the requested one."""
            if name not in _HEADERS:
                hint = _HINTS.get(name.lower(), "")
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
            headers = self._undecoded()
            if headers is not self._undecoded:  # it returns itself if it decodes each header separately
                self._undecoded = partial(_identity, headers)
            elif headers.whole is not None and (whole := headers.whole(name.removeprefix("_"))) is not None:
                for key, get, set_value in _SLOTS:
                    try:  # as `_set_if_unset`, without a call for each header
                        get(self)
                    except AttributeError:
                        set_value(self, whole[key])
                return _HEADERS[name].__get__(self)
            return _set_if_unset(_HEADERS[name], self, headers[name.removeprefix("_")])

    @property
    def body(self) -> Any:
        """The body; None if the message has no body.

        Raises:
            MessageNotWriteableError: On setting: the message was received and `clear_body` was not called.
            MessageFormatError: On setting: the type does not fit this message class.
        """
        return self._body

    @body.setter
    def body(self, value: Any) -> None:
        """Set the body."""
        self._set_body(value)

    def get_body(self, kind: builtins.type[T]) -> T:
        """Return the body as a type.

        Args:
            kind: The requested type: `str` of a text message, `bytes` of a bytes message, `dict` of a map message,
                `list` of a stream message; or a base of it, such as `object`.

        Returns:
            The body; a copy for map and stream messages.

        Raises:
            MessageFormatError: The body has another type, is missing, or is a pickled object.
            ArgumentTypeError: ``kind`` is not a class.
        """
        body = self._content()
        CLASS("kind", kind)
        if isinstance(body, kind):
            return body
        raise MessageFormatError(
            f"The body of this {type(self).__name__} is not a {kind.__name__}; it is {_described(body)}."
        )

    def is_body_assignable_to(self, kind: builtins.type[object]) -> bool:
        """Return True if `get_body` can return the body as that type."""
        try:
            return isinstance(self._content(), kind)
        except MessageFormatError:
            return False

    def clear_body(self) -> None:
        """Make the body empty and writeable, as in a new message. Headers and properties are kept."""
        self._read_only = False
        self._body = self._stored(None)

    @property
    def properties(self) -> Properties:
        """The properties: names and typed values in addition to the headers."""
        if self._properties is None:
            self._properties = Properties()
        return self._properties

    @properties.setter
    def properties(self, value: Mapping[str, object]) -> None:
        """Replace all properties."""
        self._properties = value if isinstance(value, Properties) else Properties(value)

    def _has_properties(self) -> bool:
        """Return True if the message has properties."""
        return bool(self._properties)

    def get_property_names(self) -> list[str]:
        """Return the names of the properties that are set."""
        return [*self.properties, *([DELIVERY_COUNT] if self.delivery_count else [])]

    def property_exists(self, name: str) -> bool:
        """Return True if the property is set."""
        return name in self.properties or (name == DELIVERY_COUNT and self.delivery_count > 0)

    def get_object_property(self, name: str) -> Any:
        """Return the value with the type that it was set with; None if it is not set."""
        context = self._context  # inline: a call would be a third of the time
        if context is not None and context.endpoint is not None and (vendor := vendor_property(name)):
            value = vendor.read(self)
            return self.properties.get(name) if value is None and vendor.survives_move else value
        if name == DELIVERY_COUNT and self.delivery_count:
            return Int(self.delivery_count)
        return self.properties.get(name)

    def set_object_property(self, name: str, value: PropertyValue) -> None:
        """Set a value; its JMS type follows from the Python type."""
        context = self._context
        if context is not None and context.endpoint is not None and (vendor := vendor_property(name)):
            vendor.write(self, value)
        else:
            self.properties[name] = value

    def get_boolean_property(self, name: str) -> bool:
        """Read as boolean; False if it is not set."""
        return as_boolean(self.get_object_property(name))

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self.set_object_property(name, typed_property(value, "boolean"))

    def get_string_property(self, name: str) -> str | None:
        """Read as string; None if it is not set."""
        return as_text(self.get_object_property(name))

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a string."""
        self.set_object_property(name, typed_property(value, "string"))

    def get_byte_property(self, name: str) -> int:
        """Read as byte."""
        return as_integer(self.get_object_property(name), "byte")

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a byte (8 bits, signed)."""
        self.properties[name] = typed_property(value, "byte")

    def get_short_property(self, name: str) -> int:
        """Read as short."""
        return as_integer(self.get_object_property(name), "short")

    def set_short_property(self, name: str, value: int) -> None:
        """Set a short (16 bits, signed)."""
        self.properties[name] = typed_property(value, "short")

    def get_int_property(self, name: str) -> int:
        """Read as int."""
        return as_integer(self.get_object_property(name), "int")

    def set_int_property(self, name: str, value: int) -> None:
        """Set an int (32 bits, signed)."""
        self.properties[name] = typed_property(value, "int")

    def get_long_property(self, name: str) -> int:
        """Read as long."""
        return as_integer(self.get_object_property(name), "long")

    def set_long_property(self, name: str, value: int) -> None:
        """Set a long (64 bits, signed)."""
        self.properties[name] = typed_property(value, "long")

    def get_float_property(self, name: str) -> float:
        """Read as float."""
        return as_real(self.get_object_property(name), "float")

    def set_float_property(self, name: str, value: float) -> None:
        """Set a float (single precision)."""
        self.properties[name] = typed_property(value, "float")

    def get_double_property(self, name: str) -> float:
        """Read as double."""
        return as_real(self.get_object_property(name), "double")

    def set_double_property(self, name: str, value: float) -> None:
        """Set a double."""
        self.properties[name] = typed_property(value, "double")

    def clear_properties(self) -> None:
        """Remove all properties and make them writeable. Headers and body are kept."""
        self._properties = None

    def _freeze(self) -> None:
        """Make a decoded message read-only."""
        self._read_only = True

    def _content(self) -> object:
        """Return the body for `get_body`."""
        return self._body

    def _stored(self, body: Any) -> Any:
        """Return the stored form of a body; raise an error if it does not fit this message class."""
        if body is not None and not isinstance(body, self._body_kinds):
            raise MessageFormatError(self._body_error.format(type(body).__name__))
        return body

    _decoded = _stored
    """Returns the stored form of a received body; an alias saves a call per message."""

    def _set_body(self, body: Any) -> None:
        self._check_writeable()
        self._body = self._stored(body)

    def _check_writeable(self) -> None:
        if self._read_only:
            raise MessageNotWriteableError("The body of a received message is read-only; call clear_body() first.")

    def __repr__(self) -> str:
        # Never contains the body: it may be huge, secret or hostile. Ids and names also come from other programs.
        try:
            return f"<{type(self).__name__} {excerpt(self.message_id)} to {excerpt(self.destination)}>"
        except MessageFormatError:  # the headers are damaged, which their first access detects
            return f"<{type(self).__name__} that cannot be decoded>"


# For providers and listeners; methods of these names would be offered to every user of a message.
has_properties = Message._has_properties  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
headers_of = Message._headers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
may_contain_property = Message._may_contain_property  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def time_of_send() -> datetime:
    """Return the current time in whole milliseconds, as messages carry times."""
    return _time_of(time_ns() // 1_000_000)


@lru_cache(1)  # many messages are sent in the same millisecond
def _time_of(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(microsecond=999_000, tzinfo=UTC)
_EPOCH, _LONG_LIMIT = datetime(1970, 1, 1, tzinfo=UTC), 1 << 63
_EARLIEST, _LATEST = ((moment - _EPOCH) // timedelta(milliseconds=1) for moment in (_FIRST, _LAST))


def to_datetime(milliseconds: int | None) -> datetime | None:
    """Return the time of milliseconds since the epoch; None for None.

    Senders in other languages have times outside of the years 1 to 9999: these are the first and the last one here.

    Raises:
        ValueError: The number has more than 64 bits.
    """
    if milliseconds is None:
        return None
    if _EARLIEST <= milliseconds <= _LATEST:
        return _EPOCH + timedelta(milliseconds=milliseconds)  # division by 1000 is not exact for far times
    if -_LONG_LIMIT <= milliseconds < _LONG_LIMIT:
        return _FIRST if milliseconds < 0 else _LAST
    raise ValueError("a time is a number of milliseconds of 64 bits")


HEADERS: Mapping[str, Constraint[object]] = {
    "correlation_id": TEXT_OR_NONE,
    "reply_to": Constraint("a Queue(…), a Topic(…) or None", (Destination, NoneType), error=InvalidDestinationError),
    "type": TEXT_OR_NONE,
}
"""The headers that the application sets."""


def _described(body: object) -> str:
    return "empty" if body is None else f"{builtins.type(body).__name__}"


_BODY = ": the content is message.body"
_ACKNOWLEDGE = ": a message is acknowledged by message.acknowledge()"
_HINTS = {
    **dict.fromkeys(("text", "gettext", "get_text", "settext", "data", "content", "payload", "getobject"), _BODY),
    "json": _BODY,
    **dict.fromkeys(("id", "messageid", "getjmsmessageid"), ": the id is message.message_id"),
    "headers": ": each header is an attribute, as message.priority; the others are message.properties",
    **dict.fromkeys(("ack", "accept", "settle"), _ACKNOWLEDGE),
    **dict.fromkeys(("nack", "reject", "requeue"), ": a handler raises jmsjca.Reject(…) or jmsjca.Retry(…)"),
    **dict.fromkeys(("getstringproperty", "getintproperty", "getobjectproperty"), ": use message.properties[name]"),
}
"""Remedies for the names that messages of other clients have, in lower case."""

_HEADERS = {name: vars(Message)[name] for name in Message.__slots__ if not name.startswith("_")}
_ATTRIBUTES = ("properties", *_HEADERS)
_HEADERS["_properties"] = vars(Message)["_properties"]
_SLOT_NAMES = [(name.removeprefix("_"), name) for name in _HEADERS]
_SLOTS = [(name.removeprefix("_"), slot.__get__, slot.__set__) for name, slot in _HEADERS.items()]


class TextMessage(Message):
    """A message with a body of `str`."""

    __slots__ = ()
    _body_kinds = (str,)
    _body_error = "A TextMessage holds a str, not {}; convert it, or use another kind of message."

    @property
    def body(self) -> str:
        """The text; None only if the sender set none, which is so rare that the type does not mention it."""
        return self._body  # type: ignore[no-any-return]

    @body.setter
    def body(self, value: str | None) -> None:
        """Set the body."""
        self._set_body(value)


_MODES = {int(mode): mode for mode in DeliveryMode}
MAX_SECONDS = 1e10
"""The longest time to live and delivery delay, about 317 years: sums with the current time are within `datetime`."""


PRIORITY = Constraint[int]("a whole number from 0 to 9", int, within=(0, 9), error=MessageFormatError)
"""The priority of a message (JMS 3.1, section 3.4.10)."""

DURATION = Constraint[float](
    f"seconds, as a number from 0 to {MAX_SECONDS:g}",
    (int, float),
    within=(0, MAX_SECONDS),
    error=MessageFormatError,
    seconds=True,
)
"""A time to live or a delivery delay (JMS 3.1, sections 7.8 and 7.9)."""


def delivery_mode_of(name: str, value: object) -> DeliveryMode:
    """Return the delivery mode of a member, its name or its number (JMS 3.1, section 7.7).

    Raises:
        MessageFormatError: The value is not a delivery mode.
    """
    if type(value) is int and value in _MODES:
        return _MODES[value]
    return enum_member(name, value, DeliveryMode, MessageFormatError)


class _NoProperties(Properties):
    __slots__ = ()

    _refusal = "The message at the end of a batch takes no properties; set those of a message of your own."


class EndOfBatch(Message):
    """The extra message that marks the end of a batch. It was never sent: no id, no destination, no properties.

    The property getters know JMSJCA's own properties only and refuse all others; `properties` is empty.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.delivery_mode = DeliveryMode.NON_PERSISTENT
        self.properties = _NoProperties.received({})
        self._freeze()

    @property
    def end_of_batch(self) -> bool:
        """True."""
        return True

    def get_object_property(self, name: str) -> Any:
        """Return one of JMSJCA's own properties.

        Raises:
            IllegalStateError: The property is not one of JMSJCA's.
        """
        vendor = vendor_property(name)
        if vendor is None:
            raise IllegalStateError(
                f"The message at the end of a batch has no property {excerpt(name)}; it was never sent."
            )
        return vendor.read(self)

    def get_property_names(self) -> NoReturn:
        """Raise an error: this message has no properties.

        Raises:
            IllegalStateError: Always.
        """
        raise IllegalStateError("The message at the end of a batch has no properties to name; it was never sent.")

    def clear_properties(self) -> None:
        """Do nothing: there are no properties."""


def end_of_batch_message() -> EndOfBatch:
    """Return a new message for the end of a batch."""
    return EndOfBatch()
