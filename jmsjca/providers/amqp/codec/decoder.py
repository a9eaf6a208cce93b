"""Decodes received messages: the body at once, headers when they are asked for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PlainData,
    StreamMessage,
    TextMessage,
)
from jmsjca.providers.amqp.codec.addresses import REPLY_TO, TO, Origin, received_destination
from jmsjca.providers.amqp.codec.jms_mapping import (
    JAVA_NULL,
    KIND,
    KINDS,
    OBJECT,
    OCTETS,
    as_correlation_id,
    as_entry,
    as_message_id,
    charset_of,
    decoded,
    received_properties,
)
from jmsjca.providers.amqp.codec.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Incoming,
    Sections,
    end_of,
    expected,
    header_of,
    values,
)
from jmsjca.providers.common.amqp_types import MALFORMED, read, read_uint32

__all__ = ["UNDECODABLE", "ReceivedHeaders", "decode", "received_body", "undecodable", "usual_body"]

UNDECODABLE = (*MALFORMED, OSError)
"""What bytes may provoke: they may be anything, and tell of any time."""

_DUE = "x-opt-delivery-time"
_HIGHEST, _NORMAL = 9, 4


class ReceivedHeaders(Incoming, Mapping[str, Any]):
    """The headers by the names of the attributes of `Message`. Asking raises `MessageFormatError` if they are damaged.

    They are the message as it came: one object less for each.
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        try:
            return _DECODERS[name](self)
        except UNDECODABLE as error:
            raise undecodable(self.origin.source, error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(_DECODERS)

    def __len__(self) -> int:
        return len(_DECODERS)

    def __call__(self) -> Mapping[str, Any]:
        """Give them, as `Message.received` asks for them."""
        return self


def undecodable(source: Destination | None, error: Exception) -> MessageFormatError:
    """The error of a message that cannot be decoded."""
    return MessageFormatError(f"A message from {source} cannot be decoded: {error}.")


def _destination(incoming: Incoming) -> Destination | None:
    to = received_destination(incoming.fields[2], incoming.annotations, TO, incoming.origin)
    return to or incoming.origin.source


def _reply_to(incoming: Incoming) -> Destination | None:
    return received_destination(incoming.fields[4], incoming.annotations, REPLY_TO, incoming.origin)


def _delivery_mode(incoming: Incoming) -> DeliveryMode:
    return DeliveryMode.PERSISTENT if incoming.header[0] else DeliveryMode.NON_PERSISTENT


def _priority(incoming: Incoming) -> int:
    priority = incoming.header[1]
    return _NORMAL if priority is None else min(int(priority), _HIGHEST)


def _expiration(incoming: Incoming) -> datetime | None:
    """As it is told; else the time to live counts from the arrival."""
    told, time_to_live = incoming.fields[8], incoming.header[2]
    if told or not time_to_live:
        return _moment(told)
    return _moment(round(incoming.arrived * 1000) + time_to_live)


def _properties(incoming: Incoming) -> Any:
    values = incoming.mapping(APPLICATION_PROPERTIES)
    return received_properties(values, incoming.fields, typed=incoming.typed)


def _delivery_count(incoming: Incoming) -> int:
    return header_of(incoming.raw).deliveries(incoming.failures, counts=incoming.origin.counts) or 0


def _redelivered(incoming: Incoming) -> bool:
    return header_of(incoming.raw).redelivered(incoming.failures, counts=incoming.origin.counts)


_DECODERS: dict[str, Callable[[Incoming], Any]] = {
    "message_id": lambda incoming: as_message_id(incoming.fields[0]),
    "correlation_id": lambda incoming: as_correlation_id(incoming.fields[5]),
    "destination": _destination,
    "reply_to": _reply_to,
    "type": lambda incoming: _text(incoming.fields[3]),
    "delivery_mode": _delivery_mode,
    "priority": _priority,
    "timestamp": lambda incoming: _moment(incoming.fields[9]),
    "expiration": _expiration,
    "delivery_time": lambda incoming: _moment(incoming.annotations.get(_DUE)),
    "properties": _properties,
    "delivery_count": _delivery_count,
    "redelivered": _redelivered,
}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def received_body(incoming: Incoming) -> tuple[type[Message], Any]:
    """Tell the type of a message and decode its body, as `Message.received` takes it.

    Raises:
        MessageFormatError: No such type is known, or the body does not fit it.
        MALFORMED: The bytes are no body.
    """
    return usual_body(incoming) or _any(incoming)


def _any(incoming: Incoming) -> tuple[type[Message], Any]:
    section = _section(incoming.sections)
    content = None if section is None else _content(incoming, section)
    number = incoming.annotations.get(KIND)
    kind = _guessed(incoming, section, content) if number is None else KINDS.get(number)
    if kind is None:
        raise MessageFormatError(f"its annotation {KIND} is {number!r:.100}, which names no type of messages")
    return kind, _BODY_DECODERS[kind](incoming, section, content)


def _section(sections: Sections) -> int | None:
    """Where the body is; None if there is none."""
    data, sequence, value = DATA in sections, SEQUENCE in sections, VALUE in sections
    if data + sequence + value > 1:
        raise MessageFormatError("it has bodies of several kinds")
    if data:
        return DATA
    return SEQUENCE if sequence else VALUE if value else None


def _content(incoming: Incoming, section: int) -> Any:
    begin = incoming.sections[section]
    if section == DATA:
        return incoming.data(begin)
    if section == VALUE:
        return read(incoming.raw, begin)[0]
    return [item for value in values(incoming.raw, SEQUENCE, begin) for item in _expected(value, list) or ()]


def _guessed(incoming: Incoming, section: int | None, content: Any) -> type[Message]:
    """What a message without annotations is."""
    if section == VALUE:
        if content is None or isinstance(content, str):
            return TextMessage
        return BytesMessage if isinstance(content, bytes) else ObjectMessage
    if section == SEQUENCE:
        return ObjectMessage
    told = incoming.content_type
    if told == OBJECT:
        return ObjectMessage
    if told is not None and _charset(told):
        return TextMessage
    return BytesMessage if section == DATA or told in {None, OCTETS} else Message


def _charset(content_type: str) -> str | None:
    """The encoding of a text; None if it is none, or if nobody can say."""
    with suppress(MessageFormatError):
        return charset_of(content_type)
    return None


def _text_body(incoming: Incoming, section: int | None, content: Any) -> str | None:
    if section == DATA:
        return decoded(content, _charset(incoming.content_type or "") or "utf-8")
    return cast("str | None", _expected(content, str))


def _bytes(incoming: Incoming, section: int | None, content: Any) -> bytes | None:  # noqa: ARG001
    return content if content is None or isinstance(content, bytes) else expected(content, bytes)


def _map(incoming: Incoming, section: int | None, content: Any) -> dict[str, EntryValue]:  # noqa: ARG001
    entries: dict[str, Any] = _expected(content, dict) or {}
    return {name: as_entry(value) for name, value in entries.items()}


def _stream(incoming: Incoming, section: int | None, content: Any) -> list[EntryValue]:  # noqa: ARG001
    return [as_entry(value) for value in _expected(content, list) or ()]


def _object(incoming: Incoming, section: int | None, content: Any) -> bytes | PlainData | None:
    if section == DATA:
        return None if content in {b"", JAVA_NULL} else content
    if incoming.content_type == OBJECT:
        _expected(content, bytes)
    incoming.typed = incoming.content_type != OBJECT
    return PlainData(content) if incoming.typed and section is not None else content


def _nothing(incoming: Incoming, section: int | None, content: Any) -> None:
    """What a message without a body has there, nobody asks for."""


_BODY_DECODERS: dict[type[Message], Callable[[Incoming, int | None, Any], Any]] = {
    TextMessage: _text_body,
    BytesMessage: _bytes,
    MapMessage: _map,
    StreamMessage: _stream,
    ObjectMessage: _object,
    Message: _nothing,
}


def _expected(content: Any, kind: type) -> Any:
    return None if content is None else expected(content, kind)


Usual = tuple[type[Message], Any]

_MARK = 3  # bytes before the value of a section, as all write them
_SHORT, _LONG = 2, 5  # bytes before a content: its code and its size
_LONGEST = 256  # bytes that are remembered
_APPLICATION_PROPERTIES = bytes((0, 0x53, APPLICATION_PROPERTIES))


class _Form(NamedTuple):
    """How a body is written that is one piece, at the end."""

    kind: type[Message]
    section: int
    mark: bytes  #: before it
    heads: Mapping[int, int]  #: by its code: how many bytes that and its size are


_BYTES = _Form(BytesMessage, DATA, bytes((0, 0x53, DATA)), {0xA0: _SHORT, 0xB0: _LONG})
_TEXT = _Form(TextMessage, VALUE, bytes((0, 0x53, VALUE)), {0xA1: _SHORT, 0xB1: _LONG})
_NOTHING_YET = (b"", _BYTES)
_latest: list[tuple[bytes, _Form]] = [_NOTHING_YET]  # how one began, up to its properties


def usual_body(incoming: Incoming) -> Usual | None:
    """Tell the type of a message and its body, at a part of the usual cost.

    That is bytes or a text in one piece at the end, behind annotations that tell which. If it begins as the one before
    did, its sections are looked for only when a header is asked for.

    Returns:
        The type and the body; None if the message is another.

    Raises:
        MALFORMED: The bytes are no message.
    """
    return _known(incoming.raw) or _found(incoming)


def _known(raw: bytes) -> Usual | None:
    beginning, form = _latest[0]
    if not beginning or not raw.startswith(beginning):
        return None
    at = end_of(raw, len(beginning))
    if raw.startswith(_APPLICATION_PROPERTIES, at):
        at = end_of(raw, at + _MARK)
    return _fast_content(raw, at + _MARK, form) if raw.startswith(form.mark, at) else None


def _found(incoming: Incoming) -> Usual | None:
    raw, sections = incoming.raw, incoming.sections
    form = _BYTES if DATA in sections else _TEXT
    number: Any = incoming.annotations.get(KIND)
    begin = sections.get(form.section)
    if begin is None or SEQUENCE in sections or KINDS.get(number) is not form.kind:
        return None
    if PROPERTIES in sections and sections[PROPERTIES] <= _LONGEST:
        _latest[0] = raw[: sections[PROPERTIES]], form
    return _fast_content(raw, begin, form)


def _fast_content(raw: bytes, begin: int, form: _Form) -> Usual | None:
    head = form.heads.get(raw[begin])
    if head is None:
        return None
    content = raw[begin + head :]
    if len(content) != (raw[begin + 1] if head == _SHORT else read_uint32(raw, begin + 1)[0]):
        return None  # more follows, or too little
    return form.kind, content.decode() if form is _TEXT else content


def decode(raw: bytes, origin: Origin, arrived: float = 0.0, failures: int = 0) -> Message:
    """Make the message that bytes hold, read-only. Each header is decoded when it is asked for.

    Args:
        raw: The bytes.
        origin: Where it was received.
        arrived: When, in seconds since the epoch: from then its time to live counts if it tells no more.
        failures: How often it failed here, which the broker does not know.

    Raises:
        MessageFormatError: The bytes are no message; of damaged headers it is raised where they are asked for.
    """
    try:
        headers = ReceivedHeaders(raw, origin, arrived, failures)
        kind, body = received_body(headers)
        return kind.received(body, headers)
    except UNDECODABLE as error:
        raise undecodable(origin.source, error) from error
