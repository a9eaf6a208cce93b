"""The map message: its body is a mapping from names to typed values."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages.message import Message
from jmsjca.messages.properties import (
    EntryValue,
    TypedMapping,
    as_boolean,
    as_bytes,
    as_char,
    as_integer,
    as_real,
    as_text,
    typed_entry,
)

__all__ = ["MapBody", "MapMessage"]


class MapBody(TypedMapping[EntryValue]):
    """The entries of a map message: names are non-empty strings, values have any JMS type."""

    __slots__ = ()

    _refusal = "The body of a received message is read-only; call clear_body() first."
    _noun = "The entries of a map message"

    def _typed(self, name: object, value: object) -> EntryValue:
        if not isinstance(name, str) or not name:
            raise MessageFormatError(f"{name!r:.100} cannot name an entry of a map message: it must be a text.")
        return typed_entry(value)


class MapMessage(Message):
    """A message with a body that is a mapping from names to typed values, `bytes` and None among them.

    ``message.body["size"] = Short(3)`` and ``message.body["size"]`` preserve types. ``get_…`` converts a value by the
    table of JMS 3.1, section 3.11.3; ``set_…`` fixes its type. A missing name reads as null.

    Getters raise `MessageFormatError` where the table forbids the conversion, setters where the name or the value does
    not fit, and `MessageNotWriteableError` on a received message.
    """

    __slots__ = ()
    _body_kinds = (Mapping,)
    _body_error = "A MapMessage holds a mapping, not {}; use another kind of message."

    _body: MapBody

    @property
    def body(self) -> MutableMapping[str, EntryValue]:
        """The entries, as a mapping."""
        return self._body

    @body.setter
    def body(self, value: Mapping[str, object] | None) -> None:
        """Set the body."""
        self._set_body(value)

    def _freeze(self) -> None:
        """Make a decoded message read-only."""
        super()._freeze()
        self._body.read_only = True

    def get_map_names(self) -> list[str]:
        """Return the names of the entries."""
        return list(self._body)

    def item_exists(self, name: str) -> bool:
        """Return True if an entry of that name exists."""
        return name in self._body

    def get_object(self, name: str) -> EntryValue:
        """Return an entry with the type that it was set with; None if it is missing."""
        return self._body.get(name)

    def set_object(self, name: str, value: object) -> None:
        """Set an entry; its JMS type follows from the Python type."""
        self._body[name] = value

    def get_boolean(self, name: str) -> bool:
        """Read an entry as boolean; False if it is missing."""
        return as_boolean(self._body.get(name))

    def set_boolean(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self._body[name] = typed_entry(value, "boolean")

    def get_byte(self, name: str) -> int:
        """Read an entry as byte."""
        return as_integer(self._body.get(name), "byte")

    def set_byte(self, name: str, value: int) -> None:
        """Set a byte (8 bits, signed)."""
        self._body[name] = typed_entry(value, "byte")

    def get_short(self, name: str) -> int:
        """Read an entry as short."""
        return as_integer(self._body.get(name), "short")

    def set_short(self, name: str, value: int) -> None:
        """Set a short (16 bits, signed)."""
        self._body[name] = typed_entry(value, "short")

    def get_char(self, name: str) -> str:
        """Read an entry as char."""
        return as_char(self._body.get(name))

    def set_char(self, name: str, value: str) -> None:
        """Set a char (one character up to U+FFFF)."""
        self._body[name] = typed_entry(value, "char")

    def get_int(self, name: str) -> int:
        """Read an entry as int."""
        return as_integer(self._body.get(name), "int")

    def set_int(self, name: str, value: int) -> None:
        """Set an int (32 bits, signed)."""
        self._body[name] = typed_entry(value, "int")

    def get_long(self, name: str) -> int:
        """Read an entry as long."""
        return as_integer(self._body.get(name), "long")

    def set_long(self, name: str, value: int) -> None:
        """Set a long (64 bits, signed)."""
        self._body[name] = typed_entry(value, "long")

    def get_float(self, name: str) -> float:
        """Read an entry as float."""
        return as_real(self._body.get(name), "float")

    def set_float(self, name: str, value: float) -> None:
        """Set a float (single precision)."""
        self._body[name] = typed_entry(value, "float")

    def get_double(self, name: str) -> float:
        """Read an entry as double."""
        return as_real(self._body.get(name), "double")

    def set_double(self, name: str, value: float) -> None:
        """Set a double."""
        self._body[name] = typed_entry(value, "double")

    def get_string(self, name: str) -> str | None:
        """Read an entry as string; None if it is missing."""
        return as_text(self._body.get(name))

    def set_string(self, name: str, value: str | None) -> None:
        """Set a string."""
        self._body[name] = typed_entry(value, "string")

    def get_bytes(self, name: str) -> bytes | None:
        """Read an entry as bytes; None if it is missing."""
        return as_bytes(self._body.get(name))

    def set_bytes(self, name: str, value: bytes | bytearray | None) -> None:
        """Set bytes."""
        self._body[name] = typed_entry(value, "bytes")

    def _content(self) -> Any:
        return dict(self._body)

    def _stored(self, body: Any) -> Any:
        return MapBody(super()._stored(body))

    _decoded = _stored
