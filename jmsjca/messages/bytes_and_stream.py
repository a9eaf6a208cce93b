"""The base of bytes and stream messages: values are written in sequence, and read from the beginning after a reset."""

from abc import abstractmethod
from typing import Any

from jmsjca.errors import MessageFormatError, MessageNotReadableError
from jmsjca.messages.message import Message
from jmsjca.messages.value_types import EntryValue, typed_entry

__all__ = ["SequentialMessage", "slice_bytes"]


class SequentialMessage(Message):
    """The base of `StreamMessage` and `BytesMessage`.

    A new message, and one with a cleared body, is in write mode. `reset` switches to read mode; a received message
    is in read mode. The method name states the type that is written or read. A failed read does not advance the
    position.

    ``read_…`` raises `MessageNotReadableError` before `reset`, `MessageEOFError` at the end, and `MessageFormatError`
    where the value cannot be converted to that type. ``write_…`` raises `MessageNotWriteableError` after `reset`, and
    `MessageFormatError` where the value does not fit.
    """

    __slots__ = ("_position",)

    _position: int

    def reset(self) -> None:
        """Make the body read-only, and set the position to its beginning."""
        self._read_only = True
        self._position = 0

    def _freeze(self) -> None:
        """Make a decoded message read-only."""
        self.reset()

    def read_boolean(self) -> bool:
        """Read a boolean."""
        return bool(self._read("boolean"))

    def write_boolean(self, value: bool) -> None:
        """Write a boolean."""
        self._append(typed_entry(value, "boolean"))

    def read_byte(self) -> int:
        """Read a byte (8 bits, signed)."""
        return int(self._read("byte"))

    def write_byte(self, value: int) -> None:
        """Write a byte (8 bits, signed)."""
        self._append(typed_entry(value, "byte"))

    def read_short(self) -> int:
        """Read a short (16 bits, signed)."""
        return int(self._read("short"))

    def write_short(self, value: int) -> None:
        """Write a short (16 bits, signed)."""
        self._append(typed_entry(value, "short"))

    def read_char(self) -> str:
        """Read a char (one character up to U+FFFF)."""
        return str(self._read("char"))

    def write_char(self, value: str) -> None:
        """Write a char (one character up to U+FFFF)."""
        self._append(typed_entry(value, "char"))

    def read_int(self) -> int:
        """Read an int (32 bits, signed)."""
        return int(self._read("int"))

    def write_int(self, value: int) -> None:
        """Write an int (32 bits, signed)."""
        self._append(typed_entry(value, "int"))

    def read_long(self) -> int:
        """Read a long (64 bits, signed)."""
        return int(self._read("long"))

    def write_long(self, value: int) -> None:
        """Write a long (64 bits, signed)."""
        self._append(typed_entry(value, "long"))

    def read_float(self) -> float:
        """Read a float (single precision)."""
        return float(self._read("float"))

    def write_float(self, value: float) -> None:
        """Write a float (single precision)."""
        self._append(typed_entry(value, "float"))

    def read_double(self) -> float:
        """Read a double."""
        return float(self._read("double"))

    def write_double(self, value: float) -> None:
        """Write a double."""
        self._append(typed_entry(value, "double"))

    def write_bytes(self, value: bytes | bytearray) -> None:
        """Write bytes."""
        self._append(typed_entry(value, "bytes"))

    def write_object(self, value: object) -> None:
        """Write a value; its JMS type follows from the Python type."""
        self._append(typed_entry(value))

    @abstractmethod
    def _read(self, kind: str) -> Any:
        """Return the next value, converted to a type, and advance the position."""

    @abstractmethod
    def _write(self, value: EntryValue) -> None:
        """Append a typed value."""

    def _append(self, value: EntryValue) -> None:
        self._check_writeable()
        self._write(value)

    def _begin(self) -> int:
        """Return the position of the next read; raise an error in write mode."""
        if not self._read_only:
            raise MessageNotReadableError("This message is being written; call reset() to read what was written.")
        return self._position


def slice_bytes(data: bytes | bytearray, begin: int, size: int | None) -> bytes:
    """Return up to `size` bytes from a position on; None for the size returns all remaining ones."""
    if size is not None and not _is_size(size):
        raise MessageFormatError(
            f"A piece has at least one byte: size is a number from 1 on, or None for all, not {size!r:.100}."
        )
    return bytes(memoryview(data)[begin:][:size])


def _is_size(value: object) -> bool:
    return isinstance(value, int) and value >= 1
