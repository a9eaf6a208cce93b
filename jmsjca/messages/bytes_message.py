"""The bytes message: its body is uninterpreted bytes; strings are in Java's modified UTF-8."""

import struct
from typing import Any, cast

from jmsjca.errors import MessageEOFError, MessageFormatError
from jmsjca.messages.sequential_message import SequentialMessage, slice_bytes
from jmsjca.messages.value_types import Char, EntryValue, type_name, typed_entry

__all__ = ["BytesMessage"]

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

    _body: bytes | bytearray | None  # a bytearray in write mode

    @property
    def body(self) -> bytes:
        """The bytes; None only if the sender set none, which is so rare that the type does not mention it."""
        return cast("bytes", None) if self._body is None else bytes(self._body)

    @body.setter
    def body(self, value: bytes | bytearray | None) -> None:
        """Set the body."""
        self._check_writeable()
        self._body = self._checked(value)

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

    def _checked(self, body: Any) -> Any:
        if body is None or isinstance(body, bytes):
            return body
        if isinstance(body, bytearray):
            return bytes(body)
        raise MessageFormatError(
            f"A BytesMessage holds bytes, not {type(body).__name__}; encode it, or use another kind of message."
        )

    _decoded = _checked  # an alias saves a call per message


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
