"""The extra message that marks the end of a batch."""

from typing import Any, NoReturn

from jmsjca.errors import IllegalStateError, excerpt
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.messages.properties import Properties
from jmsjca.messages.vendor_properties import vendor_property

__all__ = ["EndOfBatch", "end_of_batch_message"]


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
