"""MESSAGE frames as messages."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from jmsjca.destinations import Destination, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, DeliveryMode, Message, Properties, PropertyValue, TextMessage, typed
from jmsjca.providers.bodies import DECODERS
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.reserved import ABSENT, OURS, is_property
from jmsjca.providers.values import as_text

__all__ = ["Content", "decode"]

_IDS = ("amqp-message-id", "NATIVE_MESSAGE_ID", "message-id")  # as RabbitMQ and Artemis show what came over AMQP
_NAMED = 2  # kind and name; a third value marks a temporary destination
_UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


class Content(Enum):
    """What the body of a message is that does not say so itself."""

    TEXT = 1
    BYTES = 2
    GUESS = 3  #: text if it is UTF-8
    NONE = 4  #: there should be none


def decode(
    frame: Frame,
    content: Content,
    read_address: Callable[[str], Destination | None],
    more: Callable[[], Mapping[str, Any]],
) -> Message:
    """Make the message of a MESSAGE frame, read-only. Its headers are decoded when the first of them is asked for.

    Args:
        frame: The frame.
        content: What its body is if it does not say so itself.
        read_address: Reads the destination of replies.
        more: The headers that stand not in the frame alone: the destination and the count.

    Raises:
        MessageFormatError: The frame does not hold what it says; of its headers it is raised where they are asked for.
    """

    def headers() -> Mapping[str, Any]:
        """All of them by the names of the attributes of `Message`."""
        try:
            return {**_decode_headers(frame.headers, ours, read_address), **more()}
        except _UNDECODABLE as error:
            raise _undecodable(error) from error

    try:
        ours = _ours(frame.headers)
        made, body = _decode_body(ours.get("k"), content, frame.body)
        return made.received(body, headers)
    except _UNDECODABLE as error:
        raise _undecodable(error) from error


def _undecodable(error: Exception) -> MessageFormatError:
    return MessageFormatError(f"The received message cannot be decoded: {error}.")


def _ours(headers: Mapping[str, str]) -> dict[str, Any]:
    pieces: list[str] = []
    while (piece := headers.get(f"{OURS}{len(pieces) or ''}")) is not None:
        pieces.append(piece)
    ours: dict[str, Any] = dict(json.loads("".join(pieces))) if pieces else {}
    return ours


def _decode_headers(
    headers: Mapping[str, str], ours: Mapping[str, Any], read_address: Callable[[str], Destination | None]
) -> dict[str, Any]:
    persistent = headers.get("persistent") == "true"
    return {
        "properties": Properties.received(_decode_properties(headers, ours)),
        "message_id": as_text(ours.get("i") or next(headers[name] for name in _IDS if name in headers)),
        "correlation_id": as_text(ours.get("c", headers.get("correlation-id"))),
        "type": as_text(ours.get("y", headers.get("type"))),
        "reply_to": _reply_to(ours.get("r"), headers.get("reply-to"), read_address),
        "delivery_mode": DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT,
        "priority": int(headers.get("priority", "4")),
        "timestamp": _moment(ours.get("s") or int(headers.get("timestamp", "0"))),
        "expiration": _moment(ours.get("x") or int(headers.get("expires", "0"))),
        "delivery_time": _moment(ours.get("d")),
    }


def _decode_properties(headers: Mapping[str, str], ours: Mapping[str, Any]) -> dict[str, PropertyValue]:
    values: dict[str, Any] = {name: value for name, value in headers.items() if is_property(name)}
    values.update(ours.get("p", {}))
    types = ours.get("t", {})
    return {name: _value(as_text(value), types.get(name)) for name, value in values.items()}


def _value(text: str | None, kind: str | None) -> PropertyValue:
    if text is None or kind is None:
        return text
    return text == "true" if kind == "boolean" else typed(text, kind)


def _reply_to(
    ours: list[Any] | None, theirs: str | None, read_address: Callable[[str], Destination | None]
) -> Destination | None:
    if ours:
        return destination(as_text(ours[1]) or "", ours[0], temporary=len(ours) > _NAMED)
    return read_address(theirs) if theirs else None


def _decode_body(kind: str | None, content: Content, body: bytes) -> tuple[type[Message], Any]:
    if kind is not None:
        made, decoder = DECODERS[kind.removeprefix(ABSENT)]
        return made, decoder(None if kind.startswith(ABSENT) else body)
    if content is Content.BYTES:
        return BytesMessage, body
    if content is Content.NONE and not body:
        return Message, None
    return _guess(body) if content in {Content.GUESS, Content.NONE} else (TextMessage, body.decode())


def _guess(body: bytes) -> tuple[type[Message], str | bytes]:
    try:
        return TextMessage, body.decode()
    except UnicodeDecodeError:
        return BytesMessage, body


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
