"""The bodies of received messages: which kind of message they make, and what it holds."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    BytesMessage,
    EntryValue,
    MapMessage,
    Message,
    ObjectMessage,
    PlainData,
    StreamMessage,
    TextMessage,
)
from jmsjca.providers.amqp.encoding.reading import read
from jmsjca.providers.amqp.mapping.content_types import OBJECT, OCTETS, charset_of, decoded
from jmsjca.providers.amqp.mapping.incoming import Incoming
from jmsjca.providers.amqp.mapping.kinds import JAVA_NULL, KIND, KINDS
from jmsjca.providers.amqp.mapping.usual_bodies import usual_body
from jmsjca.providers.amqp.mapping.values import as_entry
from jmsjca.providers.amqp.sections import DATA, SEQUENCE, VALUE, Sections, expected, values

__all__ = ["received_body"]


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
    return kind, _DECODERS[kind](incoming, section, content)


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


def _text(incoming: Incoming, section: int | None, content: Any) -> str | None:
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


_DECODERS: dict[type[Message], Callable[[Incoming, int | None, Any], Any]] = {
    TextMessage: _text,
    BytesMessage: _bytes,
    MapMessage: _map,
    StreamMessage: _stream,
    ObjectMessage: _object,
    Message: _nothing,
}


def _expected(content: Any, kind: type) -> Any:
    return None if content is None else expected(content, kind)
