"""The message types: headers, typed properties and a body."""

import builtins
from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, MessageFormatError, MessageNotWriteableError
from jmsjca.messages.accessors import PropertyAccessors
from jmsjca.messages.properties import Properties
from jmsjca.messages.settlement import Settlement

__all__ = ["BytesMessage", "DeliveryContext", "DeliveryMode", "Message", "TextMessage"]

T = TypeVar("T")


class DeliveryMode(IntEnum):
    """Whether a message must survive the broker's restart (JMS 3.1, section 3.4.2)."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class DeliveryContext(Protocol):
    """What a delivered message reaches through its one internal slot: the unit that it belongs to."""

    def acknowledge(self) -> Settlement:
        """Acknowledge the message."""
        ...

    def set_rollback_only(self) -> None:
        """Make the unit roll back."""
        ...


class Message(PropertyAccessors):
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
        delivery_count: How often it was delivered, this time included; 0 for a message that was not received.
    """

    __slots__ = (
        "_body",
        "_context",
        "_read_only",
        "correlation_id",
        "delivery_count",
        "delivery_mode",
        "delivery_time",
        "destination",
        "expiration",
        "message_id",
        "priority",
        "properties",
        "redelivered",
        "reply_to",
        "timestamp",
        "type",
    )

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
        self.properties = Properties(properties)
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.type = type
        self.message_id: str | None = None
        self.destination: Destination | None = None
        self.delivery_mode = DeliveryMode.PERSISTENT
        self.priority = 4
        self.timestamp: datetime | None = None
        self.expiration: datetime | None = None
        self.delivery_time: datetime | None = None
        self.redelivered = False
        self.delivery_count = 0

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
        """Replace the body."""
        if self._read_only:
            raise MessageNotWriteableError("The body of a received message is read-only; call clear_body() first.")
        self._body = self._checked(value)

    def get_body(self, kind: builtins.type[T]) -> T:
        """Give the body as a type.

        Args:
            kind: The type asked for: `str` of a text message, `bytes` of a bytes message.

        Raises:
            MessageFormatError: The body is of another type, or there is none.
        """
        body: object = self._body
        if isinstance(body, kind):
            return body
        raise MessageFormatError(f"The body of this {type(self).__name__} is not a {kind.__name__}.")

    def clear_body(self) -> None:
        """Take the body away and make it writeable. Headers and properties stay."""
        self._read_only = False
        self._body = None

    def clear_properties(self) -> None:
        """Take all properties away and make them writeable. Headers and body stay."""
        self.properties = Properties()

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before: 0 the first time."""
        return max(self.delivery_count - 1, 0)

    def acknowledge(self) -> Settlement:
        """Acknowledge a received message; never blocks in a listener.

        Under `AcknowledgeMode.CLIENT` it acknowledges all that the session received, under `INDIVIDUAL` this message.
        In a listener without held acknowledgement it changes nothing: the handler's return acknowledges.

        Returns:
            The settlement of the unit that the message belongs to.

        Raises:
            IllegalStateError: The message was not received.
        """
        return self._delivered().acknowledge()

    def set_rollback_only(self) -> None:
        """Make the unit of this delivery roll back although the handler returns normally.

        Raises:
            IllegalStateError: The message was not received, or its unit is settled.
        """
        self._delivered().set_rollback_only()

    def bind(self, context: DeliveryContext) -> None:
        """Tie a delivered message to its unit. For whoever delivers it."""
        self._context = context

    def freeze(self) -> None:
        """Make a decoded message read-only. For providers."""
        self._read_only = True

    def _delivered(self) -> DeliveryContext:
        if self._context is None:
            raise IllegalStateError("This message was not delivered by a session or a listener, so it has no unit.")
        return self._context

    def _checked(self, body: Any) -> Any:
        if body is not None:
            raise MessageFormatError("A plain Message has no body; use TextMessage or BytesMessage.")
        return None

    def __repr__(self) -> str:
        # Never touches the body: it may be huge, secret or hostile.
        return f"<{type(self).__name__} {self.message_id} to {self.destination}>"[:300]


class TextMessage(Message):
    """A message whose body is a `str`."""

    __slots__ = ()

    def _checked(self, body: Any) -> Any:
        if body is not None and not isinstance(body, str):
            raise MessageFormatError(f"A TextMessage holds str, not {type(body).__name__}.")
        return body


class BytesMessage(Message):
    """A message whose body is `bytes`."""

    __slots__ = ()

    def _checked(self, body: Any) -> Any:
        if isinstance(body, bytearray):
            return bytes(body)
        if body is not None and not isinstance(body, bytes):
            raise MessageFormatError(f"A BytesMessage holds bytes, not {type(body).__name__}.")
        return body
