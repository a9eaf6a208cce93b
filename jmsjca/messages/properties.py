"""The properties of a message: a mapping from names to typed values."""

from collections.abc import Mapping

from jmsjca.errors import MessageFormatError
from jmsjca.messages.conversion import PropertyValue, typed
from jmsjca.messages.names import CLIENT_JMSX, PROVIDER_JMSX, check_name
from jmsjca.messages.typed_mapping import TypedMapping

__all__ = ["DUPLICATE_ID", "GROUP_ID", "Properties"]

DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property by which a message that is sent again is recognised; the name is Artemis'."""

GROUP_ID = "JMSXGroupID"
"""The property by which messages belong together: one consumer gets them all (JMS 3.1, section 3.5.9)."""


class Properties(TypedMapping[PropertyValue]):
    """Names and typed values (JMS 3.1, section 3.5). Values keep the JMS type that they were set with.

    Properties made from those of another message take over all but what its provider set.

    Raises:
        MessageFormatError: On setting: the name is no identifier or reserved, or the value's type cannot be a property.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ()

    _refusal = "The properties of a received message are read-only; call clear_properties()."

    def _fill(self, values: Mapping[str, object]) -> None:
        if isinstance(values, Properties):  # checked by whoever set them, maybe less strictly
            self._values = {name: value for name, value in values.items() if name not in PROVIDER_JMSX}
        else:
            super()._fill(values)

    def _checked(self, name: object, value: object) -> PropertyValue:
        if not isinstance(name, str):
            raise MessageFormatError(f"A property is named by a text, not by {type(name).__name__}.")
        check_name(name)
        return typed(value, CLIENT_JMSX.get(name))
