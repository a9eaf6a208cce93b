"""The bytes message and the stream message: values are written in sequence, and read from the beginning."""

import struct
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, cast

from jmsjca.errors import MessageEOFError, MessageFormatError, MessageNotReadableError
from jmsjca.messages.message import Message
from jmsjca.messages.properties import Char, EntryValue, as_bytes, convert, type_name, typed_entry

__all__ = ["BytesMessage", "SequentialMessage", "StreamMessage", "slice_bytes"]


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


_LAYOUTS = {
    "boolean": struct.Struct(">?"),
    "byte": struct.Struct(">b"),
    "short": struct.Struct(">h"),
    "char": struct.Struct(">H"),
    "int": struct.Struct(">i"),
    "long": struct.Struct(">q"),
    "float": struct.Struct(">f"),
    "double": struct.Struct(">d"),
}
_UNSIGNED_BYTE, _UNSIGNED_SHORT = struct.Struct(">B"), struct.Struct(">H")
_LONGEST_TEXT = 0xFFFF


class BytesMessage(SequentialMessage):
    """A message with a body of `bytes`.

    The methods write and read values like Java's ``DataOutput`` and ``DataInput``: big-endian, without types.
    """

    __slots__ = ()
    _body_error = "A BytesMessage holds bytes, not {}; encode it, or use another kind of message."

    _body: bytes | bytearray | None  # a bytearray in write mode

    @property
    def body(self) -> bytes:
        """The bytes; None only if the sender set none, which is so rare that the type does not mention it."""
        return cast("bytes", None) if self._body is None else bytes(self._body)

    @body.setter
    def body(self, value: bytes | bytearray | None) -> None:
        """Set the body."""
        self._set_body(value)

    @property
    def body_length(self) -> int:
        """The number of bytes of the whole body, wherever the read position is (JMS ``getBodyLength``).

        Raises:
            MessageNotReadableError: The message is in write mode; call `reset`.
        """
        self._begin()
        return len(self._body or b"")

    def _freeze(self) -> None:
        """Make a decoded message read-only."""
        self._read_only = True  # like `reset`, but without another call per message
        self._position = 0

    def read_unsigned_byte(self) -> int:
        """Read 8 bits, unsigned."""
        return int(self._unpack(_UNSIGNED_BYTE))

    def read_unsigned_short(self) -> int:
        """Read 16 bits, unsigned."""
        return int(self._unpack(_UNSIGNED_SHORT))

    def read_utf(self) -> str:
        """Read a string written by `write_utf`."""
        begin = self._begin()
        try:
            return _decode_modified_utf8(self._take(self.read_unsigned_short()))
        except UnicodeDecodeError as error:
            self._position = begin
            raise MessageFormatError(f"At byte {begin} there is no text as write_utf writes it: {error}.") from error
        except MessageEOFError:
            self._position = begin
            raise

    def write_utf(self, value: str) -> None:
        """Write a string: its length in 16 bits, then its modified UTF-8."""
        self._append(typed_entry(value, "string"))

    def read_bytes(self, size: int | None = None) -> bytes | None:
        """Read bytes.

        Args:
            size: The maximum number of bytes; None reads all remaining ones.

        Returns:
            The bytes; None at the end of the body.
        """
        read = slice_bytes(self._body or b"", self._begin(), size)
        self._position += len(read)
        return read or None

    def _read(self, kind: str) -> Any:
        value = self._unpack(_LAYOUTS[kind])
        return chr(value) if kind == "char" else value

    def _unpack(self, layout: struct.Struct) -> Any:
        begin = self._begin()
        try:
            (value,) = layout.unpack_from(self._body or b"", begin)
        except struct.error:
            raise MessageEOFError(_end(begin)) from None
        self._position += layout.size
        return value

    def _take(self, size: int) -> bytes:
        begin = self._begin()
        taken = (self._body or b"")[begin : begin + size]
        if len(taken) < size:
            raise MessageEOFError(_end(begin))
        self._position += size
        return bytes(taken)

    def _write(self, value: EntryValue) -> None:
        if not isinstance(self._body, bytearray):
            self._body = bytearray(self._body or b"")
        self._body += _packed(value)

    def _stored(self, body: Any) -> Any:
        if isinstance(body, bytes):  # without another call per message
            return body
        return bytes(body) if isinstance(body, bytearray) else super()._stored(body)

    _decoded = _stored


def _packed(value: EntryValue) -> bytes:
    if isinstance(value, bytes):
        return value
    kind = type_name(value)  # raises for null, which has no representation
    if kind == "string":
        return _text(str(value))
    return _LAYOUTS[kind].pack(ord(value) if isinstance(value, Char) else value)


def _text(value: str) -> bytes:
    data = _encode_modified_utf8(value)
    if len(data) > _LONGEST_TEXT:
        raise MessageFormatError(f"write_utf takes texts up to {_LONGEST_TEXT} bytes; this one has {len(data)}.")
    return _UNSIGNED_SHORT.pack(len(data)) + data


def _end(position: int) -> str:
    return f"At byte {position} this message has no more bytes for that; reset() begins again."


_NUL = b"\xc0\x80"


def _encode_modified_utf8(text: str) -> bytes:
    """Return a string in modified UTF-8, without its length."""
    halves = text.encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(halves[n : n + 2], "big") for n in range(0, len(halves), 2))
    return "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def _decode_modified_utf8(data: bytes) -> str:
    """Return the string of modified UTF-8.

    Raises:
        UnicodeDecodeError: The bytes are not modified UTF-8.
    """
    halves = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
    return halves.decode("utf-16-be", "surrogatepass")


class StreamMessage(SequentialMessage):
    """A message with a body that is a sequence of typed values, `bytes` and None among them.

    `body` is a tuple of all values, in read and write mode; it can be set to any sequence of values. The methods write
    and read one value after the other, and convert by the table of JMS 3.1, section 3.11.3.
    """

    __slots__ = ("_bytes_read",)
    _body_kinds = (Iterable,)
    _body_error = "A StreamMessage holds a sequence of values, such as a list, not {}."

    _body: list[EntryValue]
    _bytes_read: int | None  # of the value at the position; None if its read has not begun

    @property
    def body(self) -> tuple[EntryValue, ...]:
        """All values, as a tuple."""
        return tuple(self._body)

    @body.setter
    def body(self, value: Iterable[object] | None) -> None:
        """Set the body."""
        self._set_body(value)

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

    def _stored(self, body: Any) -> Any:
        if isinstance(body, str | bytes):  # which are iterable, but no sequences of values
            raise MessageFormatError(self._body_error.format(type(body).__name__))
        return [typed_entry(value) for value in super()._stored(body) or ()]

    _decoded = _stored
