"""The options of producers: their validation, and the attributes that hold the defaults of all sends."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Self, TypeVar, cast, overload

from jmsjca.arguments import (
    GuardedAttributes,
    check_flag,
    check_instance,
    check_text_or_none,
)
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError, MessageFormatError
from jmsjca.messages.header_values import checked_mode, checked_priority, checked_seconds
from jmsjca.messages.message import DeliveryMode
from jmsjca.messages.properties import Properties

__all__ = [
    "DeliveryOptions",
    "SendOption",
    "checked_properties",
    "checked_reply_to",
    "checked_text",
]

T = TypeVar("T")
Given = TypeVar("Given")


def _check_flag(name: str, value: object) -> bool:
    check_flag(name, value)
    return bool(value)


def checked_properties(name: str, value: object) -> Properties:
    """Return a copy of a mapping as properties, after validation.

    Raises:
        MessageFormatError: The value is no mapping, or a name or a value is not allowed.
    """
    check_instance(name, value, Mapping, "a mapping from names to values", MessageFormatError)
    return Properties(cast("Mapping[str, object]", value))


def checked_text(name: str, value: object) -> str | None:
    """Return text or None after validation.

    Raises:
        ArgumentTypeError: The value has another type.
    """
    check_text_or_none(name, value)
    return cast("str | None", value)


def checked_reply_to(name: str, value: object) -> Destination | None:
    """Return a destination or None after validation.

    Raises:
        InvalidDestinationError: The value has another type.
    """
    if value is not None:
        check_instance(name, value, Destination, "a Queue(…), a Topic(…) or None", InvalidDestinationError)
    return cast("Destination | None", value)


class SendOption(Generic[T, Given]):
    """A default option of a producer: validated when it is set, refused once the producer is closed.

    Args:
        check: Returns the valid value for one that was given, or raises an error.
    """

    def __init__(self, check: Callable[[str, object], T]) -> None:
        self._check = check

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
        setattr(producer, f"_{self._name}", self._check(self._name, value))


class DeliveryOptions(GuardedAttributes, ABC):
    """Default options of a producer's sends (JMS 3.1, section 7.4). Values are validated when they are set.

    Attributes:
        delivery_mode: Whether messages survive a restart of the broker, a `DeliveryMode` or its name; persistent by
            default.
        priority: 0 to 9; 4, the default, is normal.
        time_to_live: Seconds until messages expire; 0, the default, means never.
        delivery_delay: Seconds until messages may be delivered; 0 by default.
        disable_message_id: True to send messages without message ids (section 3.4.3).
        disable_timestamp: True to send messages without timestamps (section 3.4.4).

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

    delivery_mode = SendOption[DeliveryMode, DeliveryMode | str](checked_mode)
    priority = SendOption[int, int](checked_priority)
    time_to_live = SendOption[float, float](checked_seconds)
    delivery_delay = SendOption[float, float](checked_seconds)
    disable_message_id = SendOption[bool, bool](_check_flag)
    disable_timestamp = SendOption[bool, bool](_check_flag)

    @abstractmethod
    def check_open(self) -> None:
        """Raise an error if the producer or its session is closed.

        Raises:
            IllegalStateError: It is closed.
        """
