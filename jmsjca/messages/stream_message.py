"""The stream message: its body is a sequence of typed values."""

from collections.abc import Iterable
from typing import Any, cast

from jmsjca.errors import MessageEOFError, MessageFormatError
from jmsjca.messages.sequential_message import SequentialMessage, slice_bytes
from jmsjca.messages.value_types import EntryValue, as_bytes, convert, typed_entry

__all__ = ["StreamMessage"]


class StreamMessage(SequentialMessage):
    """A message with a body that is a sequence of typed values, `bytes` and None among them.

    `body` is a tuple of all values, in read and write mode; it can be set to any sequence of values. The methods write
    and read one value after the other, and convert by the table of JMS 3.1, section 3.11.3.
    """

    __slots__ = ("_bytes_read",)

    _body: list[EntryValue]
    _bytes_read: int | None  # of the value at the position; None if its read has not begun

    @property
    def body(self) -> tuple[EntryValue, ...]:
        """All values, as a tuple."""
        return tuple(self._body)

    @body.setter
    def body(self, value: Iterable[object] | None) -> None:
        """Set the body."""
        self._check_writeable()
        self._body = self._checked(value)

    def reset(self) -> None:
        """Make the body read-only, and set the position to its beginning."""
        super().reset()
        self._bytes_read = None

    def read_string(self) -> str | None:
        """Read a string; None if the value is null."""
        return cast("str | None", self._read("string"))

    def write_string(self, value: str | None) -> None:
        """Write a string."""
        self._append(typed_entry(value, "string"))

    def read_object(self) -> EntryValue:
        """Read a value with the type that it was written with."""
        value = self._next()
        self._position += 1
        return value

    def read_bytes(self, size: int | None = None) -> bytes | None:
        """Read a value of bytes, as a whole or in pieces.

        Args:
            size: The maximum number of bytes; None reads the rest of this value. If the result has exactly `size`
                bytes, call again: None then means the end of this value. The next value can be read only after that.

        Returns:
            The bytes; None if the value is null, or has no remaining bytes.
        """
        value, given = as_bytes(self._current()), self._bytes_read
        read = None if value is None else slice_bytes(value, given or 0, size)
        if read and len(read) == size:
            self._bytes_read = (given or 0) + len(read)
            return read
        self._position, self._bytes_read = self._position + 1, None
        return read if given is None else read or None

    def _read(self, kind: str) -> Any:
        value = convert(self._next(), kind)
        self._position += 1
        return value

    def _write(self, value: EntryValue) -> None:
        self._body.append(value)

    def _next(self) -> EntryValue:
        value = self._current()
        if self._bytes_read is not None:
            raise MessageFormatError("Only a part of the bytes here was read: read_bytes() until there are no more.")
        return value

    def _current(self) -> EntryValue:
        position = self._begin()
        if position == len(self._body):
            raise MessageEOFError(f"All {position} values of this message are read; reset() begins again.")
        return self._body[position]

    def _content(self) -> Any:
        return list(self._body)

    def _checked(self, body: Any) -> Any:
        if body is None:
            return []
        if isinstance(body, str | bytes) or not isinstance(body, Iterable):
            raise MessageFormatError(
                f"A StreamMessage holds a sequence of values, such as a list, not {type(body).__name__}."
            )
        return [typed_entry(value) for value in cast("Iterable[object]", body)]
