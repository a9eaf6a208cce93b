"""Message properties: valid names, and a mapping from names to typed values that can be made read-only."""

import re
from abc import abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping
from functools import lru_cache
from itertools import islice
from typing import ClassVar, Generic, Self, TypeVar

from jmsjca.errors import MessageFormatError, MessageNotWriteableError, excerpt
from jmsjca.messages.value_types import PropertyValue, typed_property

__all__ = [
    "DELIVERY_COUNT",
    "DUPLICATE_ID",
    "GROUP_ID",
    "KEYWORDS",
    "Properties",
    "TypedMapping",
    "check_name",
    "is_identifier",
]

V = TypeVar("V")
_NAMES_SHOWN = 10
_MAX_REPR_LENGTH = 1000

DELIVERY_COUNT = "JMSXDeliveryCount"
_CLIENT_JMSX = {"JMSXGroupID": "string", "JMSXGroupSeq": "int"}
"""The JMSX properties that the sender sets, with their types."""
_PROVIDER_JMSX = frozenset(
    {DELIVERY_COUNT, "JMSXUserID", "JMSXAppID", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState"}
)
"""The JMSX properties that the provider sets."""

_ASCII = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)
# Unicode categories as in Java, except for invisible parts (control and format characters).
_START = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"}
_PART = _START | {"Nd", "Mn", "Mc"}
KEYWORDS = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})
"""The keywords of the selector syntax, in upper case; keywords are not case-sensitive."""
# The vendor names of the JMSJCA manual contain dots.
_VENDOR = ("JMSJCA.", "JMS_")
_MAX_CACHED_LENGTH = 128  # characters: property names of forwarded messages come from other programs


def is_identifier(text: str) -> bool:
    """Return True for an identifier of the selector syntax: a Java identifier that is not a keyword."""
    return (_ASCII.match(text) is not None or _is_unicode_identifier(text)) and text.upper() not in KEYWORDS


def check_name(name: str) -> None:
    """Raise an error for a name that a client cannot set as a property.

    Raises:
        MessageFormatError: The name is not an identifier, or reserved for JMS or the provider.
    """
    if problem := (_cached_problem if len(name) <= _MAX_CACHED_LENGTH else _problem)(name):
        raise MessageFormatError(problem)


def _problem(name: str) -> str | None:
    if not is_identifier(name.replace(".", "_") if _is_vendor_name(name) else name):
        return (
            f"{name!r:.100} cannot name a property: it must be an identifier as in Java, and no keyword of selectors."
        )
    if name.startswith("JMS") and not name.startswith(_VENDOR) and name not in _CLIENT_JMSX:
        return _reserved(name)
    return None


_cached_problem = lru_cache(1024)(_problem)  # programs use few names, but often


def _is_vendor_name(name: str) -> bool:
    return name.startswith(_VENDOR) and all(name.split("."))


def _reserved(name: str) -> str:
    if name in _PROVIDER_JMSX:
        return f"{name} cannot name a property that you set: the provider does."
    return (
        f"{name!r:.100} cannot name a property: names that begin with JMS are reserved, but for JMS_<vendor>…,"
        f" {' and '.join(_CLIENT_JMSX)}. Headers are attributes of the message."
    )


def _is_unicode_identifier(text: str) -> bool:
    from unicodedata import category  # most names are ASCII

    categories = [category(character) for character in text]
    return bool(text) and categories[0] in _START and _PART.issuperset(categories)


class TypedMapping(MutableMapping[str, V], Generic[V]):
    """A mapping from names to typed values; subclasses define the allowed names and values.

    Args:
        values: Initial values.

    Attributes:
        read_only: True for a received message, until its body or properties are cleared.

    Raises:
        MessageFormatError: On setting: the name or the value is not allowed.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ("_values", "read_only")

    _refusal: ClassVar[str]
    _noun: ClassVar[str]

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, V] = {}
        self.read_only = False
        if values is not None:
            if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a check
                raise MessageFormatError(
                    f"{self._noun} are a mapping from names to values, not {type(values).__name__}."
                )
            self._fill(values)

    @classmethod
    def received(cls, values: dict[str, V]) -> Self:
        """Return a read-only mapping of values that a provider has decoded and typed."""
        mapping: Self = cls.__new__(cls)
        mapping._values = values
        mapping.read_only = True
        return mapping

    def __getitem__(self, name: str) -> V:
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        if self.read_only:
            raise MessageNotWriteableError(self._refusal)
        self._values[name] = self._typed(name, value)

    def __delitem__(self, name: str) -> None:
        if self.read_only:
            raise MessageNotWriteableError(self._refusal)
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._values.keys()

    def items(self) -> ItemsView[str, V]:
        """Return the names with their values."""
        return self._values.items()  # the inherited method looks up each value

    def __repr__(self) -> str:
        names = ", ".join(excerpt(name) for name in islice(self._values, _NAMES_SHOWN))
        return f"<{type(self).__name__} of {len(self)}: {names}"[:_MAX_REPR_LENGTH] + ">"

    def _fill(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():  # `update` sets each by two calls more
            self._values[name] = self._typed(name, value)

    @abstractmethod
    def _typed(self, name: object, value: object) -> V:
        """Return the typed value; raise an error if the name or the value is not allowed."""


DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property for the detection of duplicates; the name is that of Artemis."""

GROUP_ID = "JMSXGroupID"
"""The property of the message group: one consumer receives all messages of a group (JMS 3.1, section 3.5.9)."""


class Properties(TypedMapping[PropertyValue]):
    """The properties of a message (JMS 3.1, section 3.5). Values keep the JMS type that they were set with.

    A copy of another message's properties has all of them except those set by its provider.

    Raises:
        MessageFormatError: On setting: the name is not an identifier or reserved, or the value has no property type.
        MessageNotWriteableError: On setting or deleting: the message was received and is read-only.
    """

    __slots__ = ()

    _refusal = "The properties of a received message are read-only; call clear_properties()."
    _noun = "Properties"

    def _fill(self, values: Mapping[str, object]) -> None:
        if isinstance(values, Properties):  # checked when they were set, perhaps less strictly
            self._values = {name: value for name, value in values.items() if name not in _PROVIDER_JMSX}
        else:
            super()._fill(values)

    def _typed(self, name: object, value: object) -> PropertyValue:
        if not isinstance(name, str):
            raise MessageFormatError(f"A property is named by a text, not by {type(name).__name__}.")
        check_name(name)
        try:
            return typed_property(value, _CLIENT_JMSX.get(name))
        except MessageFormatError as error:
            raise MessageFormatError(f"The property {name!r:.100} cannot be set: {error}") from error
