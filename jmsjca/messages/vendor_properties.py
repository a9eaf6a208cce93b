"""JMSJCA's own properties of a delivered message: their names, and the attributes and methods behind them.

They stand beside the message's properties, as if a wrapper had them: they are not listed, can be set although the
message is read-only, and what a sender set under these names controls nothing. Nor does it show here, but for what a
moved copy tells of the failure: that is read where the listener itself remembers nothing, so that one on a dead-letter
queue learns why a message came there. They are compared without regard to case.
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
"""What later releases write: unlike the manual's, such names do not need a vendor's right to the prefix ``JMS_``."""

ROLLBACK = "UserRollbackData"


def vendor_names(name: str) -> tuple[str, str]:
    """Give a name with either prefix."""
    return MANUAL_PREFIX + name, PREFIX + name


def rollback_key(name: str) -> str | None:
    """Tell which user rollback data a property's name means; None if it means none.

    ``JMS_Sun_JMSJCA_UserRollbackData.x``, the same without the dot, and both with the later prefix mean one thing: x.
    They are compared without regard to case, but for x.
    """
    for prefix in vendor_names(ROLLBACK):
        if name[: len(prefix)].lower() == prefix.lower():
            return name[len(prefix) :].removeprefix(".")
    return None


class VendorProperty(NamedTuple):
    """What a name means.

    Attributes:
        read: Gives the value.
        write: Sets it.
        survives_move: True if a moved copy has it, too: that is read where the listener remembers nothing.
    """

    read: Callable[[DeliveryMixin], object]
    write: Callable[[DeliveryMixin, PropertyValue], None]
    survives_move: bool = False


@lru_cache(256)  # programs use few names, again and again
def vendor_property(name: str) -> VendorProperty | None:
    """Tell what a name means where a listener delivers; None if it is that of an ordinary property."""
    return _TABLE.get(name.lower()) or _rollback_data(name)


def _rollback_data(name: str) -> VendorProperty | None:
    key = rollback_key(name)
    if key is None:
        return None

    def write(message: DeliveryMixin, value: PropertyValue) -> None:
        text = as_text(value)
        if text is None:
            message.user_rollback_data.pop(key, None)
        else:
            message.user_rollback_data[key] = text

    def read(message: DeliveryMixin) -> object:
        return message.user_rollback_data.get(key)

    return VendorProperty(read, write, survives_move=True)


def _of_endpoint(read: Callable[[EndpointContext], object]) -> Callable[[DeliveryMixin], object]:
    return lambda message: read(require_endpoint(message, "has this property"))


def _of_failure(attribute: str) -> Callable[[DeliveryMixin], object]:
    """A text of the previous failure; None if there was none."""
    return _of_endpoint(lambda endpoint: getattr(endpoint.failure, attribute, None))


def _end_of_batch(message: DeliveryMixin) -> bool | None:
    return message.end_of_batch or None  # on any other message it is not set


def _read_nothing(_: DeliveryMixin) -> None:
    """What can only be set."""


def _read_only(_: DeliveryMixin, _value: PropertyValue) -> None:
    raise MessageNotWriteableError("This property of JMSJCA tells of the delivery; it can only be read.")


def _set_rollback_only(message: DeliveryMixin, value: PropertyValue) -> None:
    if not as_boolean(value):
        raise IllegalStateError("Rolling back cannot be taken back: this property can only be set to True.")
    message.set_rollback_only()


def _set_redelivery_handling(message: DeliveryMixin, value: PropertyValue) -> None:
    text = as_text(value)
    if text is None:
        raise MessageFormatError("A redelivery handling is a text, not None; the empty one lets messages come again.")
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
    """Refuse what cannot name user rollback data: with the prefix it would be no property's name.

    Raises:
        MessageFormatError: It cannot.
    """
    check_name(_dotted_rollback_name(key))


def rollback_names(key: str) -> tuple[str, ...]:
    """Give the names under which user rollback data travels: with either prefix, and as in the manual with the dot."""
    # Names with dots inside are for the manual's prefix alone.
    return (
        (_dotted_rollback_name(key), MANUAL_PREFIX + ROLLBACK + key)
        if "." in key
        else (_dotted_rollback_name(key), *vendor_names(ROLLBACK + key))
    )


def _dotted_rollback_name(key: str) -> str:
    return f"{MANUAL_PREFIX}{ROLLBACK}.{key}"
