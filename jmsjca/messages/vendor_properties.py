"""JMSJCA's own properties of a delivered message: their names, and the attributes and methods behind them.

They are separate from the message's own properties, as if a wrapper had them: they are not listed, they can be set
although the message is read-only, and properties of these names that a sender sets have no effect and are hidden. The
exception is the failure recorded in a moved copy: it is returned if the listener has no failure of its own, so that a
listener of a dead-letter queue learns the reason. The names are not case-sensitive.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from jmsjca.errors import IllegalStateError, MessageFormatError, MessageNotWriteableError
from jmsjca.messages.delivery import DeliveryMixin, EndpointContext, require_endpoint
from jmsjca.messages.properties import check_name
from jmsjca.messages.value_types import PropertyValue, as_boolean, as_text

__all__ = [
    "MANUAL_PREFIX",
    "PREFIX",
    "ROLLBACK",
    "VendorProperty",
    "check_rollback_key",
    "rollback_key",
    "rollback_names",
    "vendor_names",
    "vendor_property",
]

MANUAL_PREFIX = "JMS_Sun_JMSJCA_"
PREFIX = "_JMSJCA_"
"""The prefix of later releases. Unlike that of the manual it is outside of the reserved prefix ``JMS_``."""

ROLLBACK = "UserRollbackData"


def vendor_names(name: str) -> tuple[str, str]:
    """Return a name with either prefix."""
    return MANUAL_PREFIX + name, PREFIX + name


def rollback_key(name: str) -> str | None:
    """Return the key of the user rollback data that a property name denotes; None for other names.

    ``JMS_Sun_JMSJCA_UserRollbackData.x``, the same without the dot, and both with the later prefix denote the key x.
    Only the key is case-sensitive.
    """
    for prefix in vendor_names(ROLLBACK):
        if name[: len(prefix)].lower() == prefix.lower():
            return name[len(prefix) :].removeprefix(".")
    return None


class VendorProperty(NamedTuple):
    """One of JMSJCA's own properties.

    Attributes:
        read: Returns the value.
        write: Sets the value.
        survives_move: True if a moved copy has the property as well; it is returned if the listener has no value.
    """

    read: Callable[[DeliveryMixin], object]
    write: Callable[[DeliveryMixin, PropertyValue], None]
    survives_move: bool = False


@lru_cache(256)  # programs use few names, but often
def vendor_property(name: str) -> VendorProperty | None:
    """Return JMSJCA's property of that name; None if the name is that of an ordinary property."""
    return _TABLE.get(name.lower()) or _rollback_data(name)


def _rollback_data(name: str) -> VendorProperty | None:
    key = rollback_key(name)
    if key is None:
        return None

    def _write(message: DeliveryMixin, value: PropertyValue) -> None:
        text = as_text(value)
        if text is None:
            message.user_rollback_data.pop(key, None)
        else:
            message.user_rollback_data[key] = text

    def _read(message: DeliveryMixin) -> object:
        return message.user_rollback_data.get(key)

    return VendorProperty(_read, _write, survives_move=True)


def _of_endpoint(read: Callable[[EndpointContext], object]) -> Callable[[DeliveryMixin], object]:
    return lambda message: read(require_endpoint(message, "has this property"))


def _of_failure(attribute: str) -> Callable[[DeliveryMixin], object]:
    """Return a reader of an attribute of the previous failure; it returns None without a failure."""
    return _of_endpoint(lambda endpoint: getattr(endpoint.failure, attribute, None))


def _end_of_batch(message: DeliveryMixin) -> bool | None:
    return message.end_of_batch or None  # not set on other messages


def _read_nothing(_: DeliveryMixin) -> None:
    """Return None: the property is write-only."""


def _read_only(_: DeliveryMixin, _value: PropertyValue) -> None:
    raise MessageNotWriteableError("This property of JMSJCA tells of the delivery; it can only be read.")


def _set_rollback_only(message: DeliveryMixin, value: PropertyValue) -> None:
    if not as_boolean(value):
        raise IllegalStateError("Rolling back cannot be taken back: this property can only be set to True.")
    message.set_rollback_only()


def _set_redelivery_handling(message: DeliveryMixin, value: PropertyValue) -> None:
    text = as_text(value)
    if text is None:
        raise MessageFormatError("A redelivery handling is a text, not None; the empty text has no actions.")
    message.redelivery_handling = text


def _stop(message: DeliveryMixin, value: PropertyValue) -> None:
    message.stop_message_delivery(as_text(value))


_ROLLBACK_ONLY = VendorProperty(attrgetter("rollback_only"), _set_rollback_only)
_UNPREFIXED = {
    "JMSJCA.EndOfBatch": VendorProperty(_end_of_batch, _read_only),
    "JMSJCA.batchIndex": VendorProperty(attrgetter("batch_index"), _read_only),
    "JMSJCA.batchSize": VendorProperty(attrgetter("batch_size"), _read_only),
    "JMSJCA.setRollbackOnly": _ROLLBACK_ONLY,
    "JMSJCA.isRollbackOnly": _ROLLBACK_ONLY,
    "JMSJCA.stats": VendorProperty(_of_endpoint(lambda endpoint: endpoint.stats()), _read_only),
    "JMSJCA.destination": VendorProperty(_of_endpoint(attrgetter("destination_name")), _read_only),
}
_PREFIXED = {
    "RedeliveryCount": VendorProperty(attrgetter("redelivery_count"), _read_only),
    "RedeliveryHandling": VendorProperty(attrgetter("redelivery_handling"), _set_redelivery_handling),
    "StopMessageDelivery": VendorProperty(_read_nothing, _stop),
    "MBeanName": VendorProperty(_of_endpoint(attrgetter("mbean_name")), _read_only),
    "MBeanServer": VendorProperty(_of_endpoint(attrgetter("mbean")), _read_only),
    "ExceptionClass": VendorProperty(_of_failure("error_class"), _read_only, survives_move=True),
    "ExceptionMessage": VendorProperty(_of_failure("message"), _read_only, survives_move=True),
    "ExceptionStackTrace": VendorProperty(_of_failure("stack_trace"), _read_only, survives_move=True),
}
_TABLE = {name.lower(): known for name, known in _UNPREFIXED.items()} | {
    spelling.lower(): known for name, known in _PREFIXED.items() for spelling in vendor_names(name)
}


def check_rollback_key(key: str) -> None:
    """Raise an error for a key of user rollback data that is not a property name once it has its prefix.

    Raises:
        MessageFormatError: The key cannot be used.
    """
    check_name(_dotted_rollback_name(key))


def rollback_names(key: str) -> tuple[str, ...]:
    """Return the property names of user rollback data in a moved copy, in all spellings."""
    # Names with dots are valid only with the manual's prefix.
    return (
        (_dotted_rollback_name(key), MANUAL_PREFIX + ROLLBACK + key)
        if "." in key
        else (_dotted_rollback_name(key), *vendor_names(ROLLBACK + key))
    )


def _dotted_rollback_name(key: str) -> str:
    return f"{MANUAL_PREFIX}{ROLLBACK}.{key}"
