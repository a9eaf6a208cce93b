"""The properties of a message: a mapping from names to typed values."""

import re
from collections.abc import Iterator, Mapping, MutableMapping

from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages.conversion import PropertyValue, typed

__all__ = ["DUPLICATE_ID", "GROUP_ID", "Properties"]

DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property by which a message that is sent again is recognised; the name is Artemis'."""

GROUP_ID = "JMSXGroupID"
"""The property by which messages belong together: one consumer gets them all (JMS 3.1, section 3.5.9)."""

# An identifier of the selector syntax, or a vendor name of the JMSJCA manual, which holds dots.
_NAME = re.compile(r"(?!\d)[\w$]+(\.[\w$]+)*\Z")
_RESERVED = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})


class Properties(MutableMapping[str, PropertyValue]):
    """Names and typed values. Values keep the JMS type that they were set with.

    Raises:
        MessageFormatError: On setting: the name is no identifier, or the value's type cannot be a property.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ("_values", "read_only")

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, PropertyValue] = {}
        self.read_only = False
        if values:
            self.update(values)  # type: ignore[arg-type]  # typed() looks at every value

    @classmethod
    def received(cls, values: dict[str, PropertyValue]) -> "Properties":
        """Wrap what a provider has decoded and typed already; read-only."""
        properties = cls()
        properties._values = values
        properties.read_only = True
        return properties

    def __getitem__(self, name: str) -> PropertyValue:
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._check_writeable()
        if not _NAME.match(name) or name.upper() in _RESERVED:
            raise MessageFormatError(
                f"{name!r} cannot name a property: it must be an identifier and no selector keyword."
            )
        self._values[name] = typed(value)

    def __delitem__(self, name: str) -> None:
        self._check_writeable()
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Properties {', '.join(self._values)[:200]}>"

    def _check_writeable(self) -> None:
        if self.read_only:
            raise MessageNotWriteableError(
                "The properties of a received message are read-only; call clear_properties()."
            )
