"""The message base class and the text message: headers, typed properties and a body."""

import builtins
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError, MessageNotWriteableError, excerpt
from jmsjca.messages.delivery import DeliveryContext, DeliveryMixin
from jmsjca.messages.properties import DELIVERY_COUNT, Properties
from jmsjca.messages.value_types import Int, PropertyValue, as_boolean, as_integer, as_real, as_text, typed_property
from jmsjca.messages.vendor_properties import vendor_property

__all__ = [
    "DeliveryMode",
    "Message",
    "TextMessage",
    "has_properties",
    "may_contain_property",
]

T = TypeVar("T")


def _set_if_unset(slot: Any, of: object, value: object) -> Any:
    """Set an attribute, but not one that somebody has set meanwhile; give what it has then.

    Args:
        slot: The attribute, as it stands in the class.
        of: The object.
        value: What it is set to.
    """
    try:
        return slot.__get__(of)
    except AttributeError:
        slot.__set__(of, value)
        return value


def _identity(value: T) -> T:
    """What gives headers once they are decoded: a function with a name, or a message could not be pickled."""
    return value


class DeliveryMode(IntEnum):
    """Whether a message must survive the broker's restart (JMS 3.1, section 3.4.2)."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


_PERSISTENT = DeliveryMode.PERSISTENT  # asking an Enum costs as much as a call


class Message(DeliveryMixin):
    """A message without a body, and the base of those that have one.

    Args:
        body: The body, of the type that the subclass holds.
        properties: Initial properties.
        correlation_id: Ties a reply to its request.
        reply_to: Where a reply should go.
        type: The application's name for this sort of message (JMSType).

    Attributes:
        message_id: Set when sent.
        destination: Set when sent.
        delivery_mode: Set when sent.
        priority: 0 to 9, 4 is normal; set when sent.
        timestamp: When it was sent, aware; None before.
        expiration: When it expires, aware; None if it never does.
        redelivered: True if it was delivered before.
        delivery_time: When it may be delivered at the earliest, aware; None for at once.
        delivery_count: How often it was delivered, this time included; 0 if that is not known.

    ``get_…_property`` converts by the table of JMS 3.1, section 3.5.4; ``set_…_property`` fixes the type. Getters raise
    `MessageFormatError` where the table forbids the conversion, setters where the value does not fit, and
    `MessageNotWriteableError` on a received message. Besides the sender's properties they know JMSXDeliveryCount and,
    in a listener, JMSJCA's own properties.
    """

    __slots__ = (
        "__weakref__",  # a listener's delivery refers to its message without keeping it
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
        self._body = self._checked(body)
        self._properties = Properties(properties) if properties else None  # made when it is asked for: most have none
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
    def received(cls, body: Any, headers: Callable[[], Mapping[str, Any]]) -> Self:
        """Make a read-only message whose headers are decoded when the first of them is asked for. For providers.

        Args:
            body: The body, of the type that the class holds; of an object message its pickle.
            headers: Gives every header and the properties by the name of its attribute. What it raises is raised
                where a header is asked for.

        Raises:
            MessageFormatError: The body does not fit this kind of message.
        """
        message = cls.__new__(cls)
        message._context = None  # noqa: SLF001  # here and below: our own, and a method would be a call for each
        message._body = message._decoded(body)  # noqa: SLF001
        message._undecoded = headers  # noqa: SLF001
        message._freeze()  # noqa: SLF001
        return message

    def _may_contain_property(self, name: str) -> bool:
        """Tell, at less than the cost of decoding them, that a received message has no such property: False then."""
        mentions = getattr(self._undecoded, "mentions", None)
        return mentions is None or mentions(name)

    if not TYPE_CHECKING:  # or every misspelt attribute would pass the type checkers

        def __getattr__(self, name: str) -> Any:
            """Decode the headers: only what is not set comes here, and only what is asked for is set."""
            if name not in _HEADERS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            headers = self._undecoded()
            if headers is not self._undecoded:  # which gives itself where it decodes each header by itself
                self._undecoded = partial(_identity, headers)
            return _set_if_unset(_HEADERS[name], self, headers[name.removeprefix("_")])

    @property
    def body(self) -> Any:
        """The body; None if there is none.

        Raises:
            MessageNotWriteableError: On setting: the message was received and `clear_body` was not called.
            MessageFormatError: On setting: the type does not fit this kind of message.
        """
        return self._body

    @body.setter
    def body(self, value: Any) -> None:
        self._check_writeable()
        self._body = self._checked(value)

    def get_body(self, kind: builtins.type[T]) -> T:
        """Give the body as a type.

        Args:
            kind: The type asked for: `str` of a text message, `bytes` of a bytes message, `dict` of a map message,
                `list` of a stream message; or a base of it, such as `object`.

        Returns:
            The body; of a map or a stream message a copy.

        Raises:
            MessageFormatError: The body is of another type, or there is none, or it is an object.
        """
        body = self._content()
        if isinstance(body, kind):
            return body
        raise MessageFormatError(f"The body of this {type(self).__name__} is not a {kind.__name__}.")

    def is_body_assignable_to(self, kind: builtins.type[object]) -> bool:
        """Tell whether `get_body` would give the body as that type."""
        try:
            return isinstance(self._content(), kind)
        except MessageFormatError:
            return False

    def clear_body(self) -> None:
        """Make the body as empty and writeable as that of a new message. Headers and properties stay."""
        self._read_only = False
        self._body = self._checked(None)

    @property
    def properties(self) -> Properties:
        """Names and typed values beside the headers."""
        if self._properties is None:
            self._properties = Properties()
        return self._properties

    @properties.setter
    def properties(self, value: Properties) -> None:
        self._properties = value

    def _has_properties(self) -> bool:
        """Tell whether there are any. For providers."""
        return bool(self._properties)

    def get_property_names(self) -> list[str]:
        """Name the properties that are set."""
        return [*self.properties, *([DELIVERY_COUNT] if self.delivery_count else [])]

    def property_exists(self, name: str) -> bool:
        """Tell whether the property is set."""
        return name in self.properties or (name == DELIVERY_COUNT and self.delivery_count > 0)

    def get_object_property(self, name: str) -> Any:
        """Give the value with the type that it was set with; None if it is not set."""
        context = self._context  # looked at right here: a call would be a third of the time
        if context is not None and context.endpoint is not None and (vendor := vendor_property(name)):
            value = vendor.read(self)
            return self.properties.get(name) if value is None and vendor.survives_move else value
        if name == DELIVERY_COUNT and self.delivery_count:
            return Int(self.delivery_count)
        return self.properties.get(name)

    def set_object_property(self, name: str, value: PropertyValue) -> None:
        """Set a value, typed as it stands."""
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
        """Take all properties away and make them writeable. Headers and body stay."""
        self._properties = None

    def _freeze(self) -> None:
        """Make a decoded message read-only. For providers."""
        self._read_only = True

    def _decoded(self, body: Any) -> Any:
        """What is kept of a body that was received."""
        return self._checked(body)

    def _content(self) -> object:
        """What `get_body` gives."""
        return self._body

    def _checked(self, body: Any) -> Any:
        """What is kept of a body that is set, if it fits this kind of message."""
        if body is not None:
            raise MessageFormatError("A plain Message has no body; use TextMessage, BytesMessage or another kind.")
        return None

    def _check_writeable(self) -> None:
        if self._read_only:
            raise MessageNotWriteableError("The body of a received message is read-only; call clear_body() first.")

    def __repr__(self) -> str:
        # Never touches the body: it may be huge, secret or hostile. Ids and names come from others, too.
        try:
            return f"<{type(self).__name__} {excerpt(self.message_id)} to {excerpt(self.destination)}>"
        except MessageFormatError:  # its headers are damaged, which is found out here
            return f"<{type(self).__name__} that cannot be decoded>"


# For providers and listeners; methods of these names would be offered to every user of a message.
has_properties = Message._has_properties  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
may_contain_property = Message._may_contain_property  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

_HEADERS = {name: vars(Message)[name] for name in Message.__slots__ if not name.startswith("_")}
_HEADERS["_properties"] = vars(Message)["_properties"]


class TextMessage(Message):
    """A message whose body is a `str`."""

    __slots__ = ()

    def _checked(self, body: Any) -> Any:
        if body is not None and not isinstance(body, str):
            raise MessageFormatError(f"A TextMessage holds str, not {type(body).__name__}.")
        return body

    _decoded = _checked  # without a call between them
