"""Bodies of messages as most are received: what begins as the one before did is known already."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jmsjca.messages import BytesMessage, Message, TextMessage
from jmsjca.providers.amqp.encoding.scalars import four_bytes
from jmsjca.providers.amqp.mapping.incoming import Incoming
from jmsjca.providers.amqp.mapping.kinds import KIND, KINDS
from jmsjca.providers.amqp.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    end_of,
)

__all__ = ["usual_body"]

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
    return _content(raw, at + _MARK, form) if raw.startswith(form.mark, at) else None


def _found(incoming: Incoming) -> Usual | None:
    raw, sections = incoming.raw, incoming.sections
    form = _BYTES if DATA in sections else _TEXT
    number: Any = incoming.annotations.get(KIND)
    begin = sections.get(form.section)
    if begin is None or SEQUENCE in sections or KINDS.get(number) is not form.kind:
        return None
    if PROPERTIES in sections and sections[PROPERTIES] <= _LONGEST:
        _latest[0] = raw[: sections[PROPERTIES]], form
    return _content(raw, begin, form)


def _content(raw: bytes, begin: int, form: _Form) -> Usual | None:
    head = form.heads.get(raw[begin])
    if head is None:
        return None
    content = raw[begin + head :]
    if len(content) != (raw[begin + 1] if head == _SHORT else four_bytes(raw, begin + 1)[0]):
        return None  # more follows, or too little
    return form.kind, content.decode() if form is _TEXT else content
