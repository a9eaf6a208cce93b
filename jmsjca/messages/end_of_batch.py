"""The extra message at the end of a batch."""

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
    """Tells a listener that its batch is over. Nobody sent it, so it has no id, no destination and no properties.

    The accessors know JMSJCA's own properties and refuse all others; `properties` is empty, whoever looks there.
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
        """Give one of JMSJCA's own properties, as all getters do.

        Raises:
            IllegalStateError: It is another one.
        """
        vendor = vendor_property(name)
        if vendor is None:
            raise IllegalStateError(
                f"The message at the end of a batch has no property {excerpt(name)}; nobody sent it."
            )
        return vendor.read(self)

    def get_property_names(self) -> NoReturn:
        """Refused.

        Raises:
            IllegalStateError: Always.
        """
        raise IllegalStateError("The message at the end of a batch has no properties to name; nobody sent it.")

    def clear_properties(self) -> None:
        """Nothing to do: it has none."""


def end_of_batch_message() -> EndOfBatch:
    """Return a new message for the end of a batch."""
    return EndOfBatch()
