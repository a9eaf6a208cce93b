"""Shared parts of codecs: bodies as bytes, values as JSON, headers that are decoded on access, and modified UTF-8.

Strings of a peer that are UTF-8, or Java's modified UTF-8 where they are not.

ActiveMQ keeps strings as `DataOutput.writeUTF` of Java writes them, and may pass those bytes on in AMQP strings: NUL is
0xC0 0x80, and a character beyond 16 bits is a pair of surrogates of three bytes each.
"""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

from jmsjca.destinations import Destination, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PropertyValue,
    StreamMessage,
    TextMessage,
    type_name,
    typed_entry,
    typed_property,
)
from jmsjca.messages.message import to_datetime as datetime_of_milliseconds

__all__ = [
    "BODY_DECODERS",
    "CROSSING_ANNOTATION",
    "METADATA_HEADER",
    "NO_BODY",
    "UNDECODABLE",
    "BodyDecoder",
    "LazyHeaders",
    "ReadingHabit",
    "decode_kind",
    "decode_modified",
    "decode_string",
    "destination_from_json",
    "destination_to_json",
    "encode_body",
    "encoding_of",
    "expect_text",
    "from_json",
    "metadata_in",
    "property_from_text",
    "to_datetime",
    "to_json",
    "to_json_with_infinities",
    "to_milliseconds",
    "type_tag",
]

BodyDecoder: TypeAlias = tuple[type[Message], Callable[[bytes | None], Any]]
"""A message type and the decoder of its body. The decoder may raise any exception for an invalid body."""

# Also writes infinities, because only this module reads these bodies.
_dump_body = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def encode_body(message: Message) -> tuple[str, bytes | None]:
    """Return the kind of a message and its encoded body."""
    if isinstance(message, TextMessage):
        # `body` may be None, although its type does not mention it.
        return "text", None if message.body is None else message.body.encode()  # type: ignore[redundant-expr]
    if isinstance(message, BytesMessage):
        return "bytes", message.body
    if isinstance(message, MapMessage):
        return "map", _dump_body({name: _to_json_value(value) for name, value in message.body.items()}).encode()
    if isinstance(message, StreamMessage):
        return "stream", _dump_body([_to_json_value(value) for value in message.body]).encode()
    return ("object", message.pickled) if isinstance(message, ObjectMessage) else ("plain", None)


def _decode_text(body: bytes | None) -> str | None:
    return None if body is None else body.decode()


def _decode_map(body: bytes | None) -> dict[str, EntryValue]:
    return {name: _from_json_value(value) for name, value in _parse_json(body, dict).items()}


def _decode_stream(body: bytes | None) -> list[EntryValue]:
    return [_from_json_value(value) for value in _parse_json(body, list)]


def _decode_bytes(body: bytes | None) -> bytes | None:
    return body


def _decode_no_body(body: bytes | None) -> None:
    del body


BODY_DECODERS: dict[str, BodyDecoder] = {
    "text": (TextMessage, _decode_text),
    "bytes": (BytesMessage, _decode_bytes),
    "map": (MapMessage, _decode_map),
    "stream": (StreamMessage, _decode_stream),
    "object": (ObjectMessage, _decode_bytes),
    "plain": (Message, _decode_no_body),
}
"""The message type and body decoder of each kind."""


METADATA_HEADER = "_jmsjca"
"""The header, or property, of the metadata over STOMP; the second and later pieces have a number appended."""

CROSSING_ANNOTATION = "x-opt-jmsjca"
"""The message annotation of AMQP with the metadata that a broker drops when it delivers the message over STOMP."""

_CROSSING_HEADERS = (CROSSING_ANNOTATION, f"JMS_AMQP_MA_{CROSSING_ANNOTATION}")  # of RabbitMQ 4, of Artemis

NO_BODY = "no "
"""Prefix of the kind of a message without a body, as distinct from an empty one."""


def metadata_in(headers: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the metadata in the headers of a message that crossed protocols or came over STOMP; empty without any."""
    pieces: list[str] = []
    while (piece := headers.get(f"{METADATA_HEADER}{len(pieces) or ''}")) is not None:
        pieces.append(piece)
    if not pieces:
        pieces = [headers[name] for name in _CROSSING_HEADERS if name in headers]
    ours: dict[str, Any] = dict(json.loads("".join(pieces))) if pieces else {}
    return ours


def property_from_text(text: str | None, kind: str | None) -> PropertyValue:
    """Return the value of a property that travelled as text, of the type that the metadata names."""
    if text is None or kind is None:
        return text
    return text == "true" if kind == "boolean" else typed_property(text, kind)


def decode_kind(kind: str, body: bytes) -> tuple[type[Message], Any]:
    """Return the message type and the decoded body of a kind in the metadata."""
    made, decoder = BODY_DECODERS[kind.removeprefix(NO_BODY)]
    return made, decoder(None if kind.startswith(NO_BODY) else body)


def _parse_json(body: bytes | None, kind: type) -> Any:
    parsed = from_json((body or b"").decode())
    if not isinstance(parsed, kind):
        raise TypeError(f"the body is no {kind.__name__}")
    return parsed


def _to_json_value(value: EntryValue) -> Any:
    """Return a value as JSON: plain, or as a pair of type and value if JSON does not imply the type."""
    name = type_tag(value)
    if name is None:
        return value
    return [name, b64encode(value).decode() if isinstance(value, bytes) else value]


def _from_json_value(written: EntryValue | list[Any]) -> EntryValue:
    if not isinstance(written, list):
        return typed_entry(written)
    name, value = written
    return typed_entry(b64decode(value, validate=True) if name == "bytes" else value, name)


_UNTAGGED_TYPES = {"boolean", "int", "long", "double", "string"}
_INFINITY_LITERALS = {math.inf: "9e999", -math.inf: "-9e999"}

# Created once: json.dumps() and json.loads() evaluate their options at every call.
to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_DECODER = json.JSONDecoder()


def from_json(text: str) -> Any:
    """Return the value of a JSON text."""
    try:
        value, end = _DECODER.raw_decode(text)  # decode() also skips surrounding whitespace, which costs 50 % more
    except json.JSONDecodeError:
        return _DECODER.decode(text)
    return value if end == len(text) else _DECODER.decode(text)


def expect_text(value: object) -> str | None:
    """Return a decoded JSON value that must be a string or null.

    Raises:
        TypeError: The value has another type.
    """
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"it has {type(value).__name__} where a text should be")


def destination_to_json(of: Destination) -> list[str | bool]:
    """Return a destination as a JSON value: kind and name, and a third element for a temporary destination."""
    return [of.kind, of.name, True] if of.temporary else [of.kind, of.name]


def destination_from_json(address: Any) -> Destination:
    """Return the destination of a JSON value.

    Raises:
        ValueError: The value has no kind and name.
        TypeError: The value is not a list, or the name is not a string.
        InvalidDestinationError: The kind is unknown, or the name empty.
    """
    return _destination(*address)


@lru_cache(1024)  # programs use few, but name them in each message
def _destination(kind: str, name: object, *temporary: object) -> Destination:
    if not isinstance(name, str):
        raise TypeError(f"it has {type(name).__name__} where the name of a destination should be")
    return destination(name, kind, temporary=bool(temporary))


def encoding_of(told: object) -> str | None:
    """Return the content encoding that a header names; None without one, and for "identity", which changes nothing."""
    return str(told) if told and str(told).lower() != "identity" else None


def type_tag(value: EntryValue) -> str | None:
    """Return the type name of a value, or None if its JSON form implies the type."""
    if value is None:
        return None
    name = type_name(value)
    plain = name in _UNTAGGED_TYPES and (name != "long" or not -(1 << 31) <= int(value) < 1 << 31)
    return None if plain else name


def to_json_with_infinities(values: Mapping[str, PropertyValue]) -> str:
    """Return properties as JSON that SQLite can read, although some values are not finite.

    Infinities become literals that are out of range, which SQLite reads as infinite; NaN becomes null.
    """
    return f"{{{','.join(f'{to_json(name)}:{_number_text(value)}' for name, value in values.items())}}}"


def _number_text(value: PropertyValue) -> str:
    if not isinstance(value, float) or math.isfinite(value):
        return to_json(value)
    return _INFINITY_LITERALS.get(value, "null")


UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""Errors that decoding a received message may raise: its text may hold any value, of any depth and size."""


to_datetime = lru_cache(64)(datetime_of_milliseconds)  # many messages are sent in the same millisecond
_MAX_AHEAD = 32  # messages; the next one, which is decoded on access, costs three times as much


class ReadingHabit:
    """How the application reads the messages of a consumer.

    After it has read many headers of one message, the headers of some messages are decoded at once with the body: that
    costs a third of lazy access. Then one message is decoded on access, which shows whether the habit has changed.

    Attributes:
        ahead: How many messages are decoded at once.
    """

    __slots__ = ("ahead",)

    def __init__(self) -> None:
        self.ahead = 0

    def note(self) -> None:
        """Record that the application has read many headers of a message."""
        self.ahead = _MAX_AHEAD


class LazyHeaders(Mapping[str, Any]):
    """Headers by the names of the attributes of `Message`, decoded on access.

    Access to a damaged header raises `MessageFormatError`. A subclass sets `decoders`, and defines `decoding_error`.

    Attributes:
        decoders: The decoder of each header, which takes the mapping itself.
        whole: None, or a method that takes the name of a header and returns all headers; it returns None if that header
            is cheaper alone.
        undecodable: The errors that damaged data may raise in decoders.
    """

    __slots__ = ()

    decoders: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    undecodable: ClassVar[tuple[type[Exception], ...]] = UNDECODABLE
    whole: Callable[[str], Mapping[str, Any] | None] | None = None

    def decoding_error(self, error: Exception) -> MessageFormatError:
        """Return the error for a header that cannot be decoded."""
        raise NotImplementedError from error

    def __getitem__(self, name: str) -> Any:
        try:
            return self.decoders[name](self)
        except self.undecodable as error:
            raise self.decoding_error(error) from error

    def select(self, names: Iterable[str]) -> list[Any]:
        """Return some headers, in the order of their names: cheaper than one access for each."""
        decoders = self.decoders
        try:
            return [decoders[name](self) for name in names]
        except self.undecodable as error:
            raise self.decoding_error(error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.decoders)

    def __len__(self) -> int:
        return len(self.decoders)

    def __call__(self) -> Self:
        """Return the headers themselves: `Message.received` takes a function that returns them."""
        return self


def to_milliseconds(moment: datetime | None) -> int | None:
    """Return the milliseconds since the epoch of a time; None for None."""
    return None if moment is None else round(moment.timestamp() * 1000)


_NUL = b"\xc0\x80"
_LAST_OF_16_BITS = "\uffff"


def decode_string(encoded: bytes) -> str:
    """Return a string from UTF-8, or from modified UTF-8 if it is not valid UTF-8.

    Raises:
        UnicodeDecodeError: The bytes are neither.
    """
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        return decode_modified(encoded, error)


def decode_modified(encoded: bytes, error: UnicodeDecodeError) -> str:
    """Return a string from modified UTF-8.

    An unpaired surrogate is refused, although Java writes it: the string could not be sent on as UTF-8.

    Args:
        encoded: Bytes that are not UTF-8.
        error: Raised if they are not modified UTF-8 either; it names the first byte that is not UTF-8.

    Raises:
        UnicodeDecodeError: The bytes are not modified UTF-8.
    """
    try:
        units = encoded.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        if b"\0" not in encoded and max(units) <= _LAST_OF_16_BITS:
            return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        pass
    raise error
