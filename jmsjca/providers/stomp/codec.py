"""Messages as SEND frames.

What STOMP has a header for stands there, so that others can read and select it. Types, absent bodies and what no header
can hold stand in one header of our own, JSON in pieces, which others ignore. Maps and streams are JSON, too.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from jmsjca.errors import MessageFormatError
from jmsjca.messages import DeliveryMode, Message, Properties, convert, type_name
from jmsjca.providers.bodies import encode_body
from jmsjca.providers.stomp.reserved import ABSENT, OURS, is_property

__all__ = ["Outgoing", "encode"]

_PIECE = 4000  # characters; escaped twice as many, which all brokers take as one header
_LONGEST = 2000  # characters of a property that travels as a header
_MOST = 200  # properties that do
_HARD_TO_CARRY = re.compile(r"[\0\r]|\A[\s\x01-\x1f]|[\s\x01-\x1f]\Z|\A\Z")  # brokers strip blanks, and controls
_to_json = json.JSONEncoder(separators=(",", ":")).encode


class Outgoing(NamedTuple):
    """A message on its way out, encoded when the unit noted it."""

    headers: dict[str, str]
    body: bytes
    sized: bool  #: False for a text, which brokers recognise by its missing content-length


def encode(
    message: Message, address: Mapping[str, str], reply_to: str | None, carries: Callable[[str], bool] = is_property
) -> Outgoing:
    """Encode a message whose headers the producer has set.

    Args:
        message: The message.
        address: The headers that only this broker has.
        reply_to: Where a reply should go, as this broker writes it.
        carries: True for the name of a property that may be a header.

    Raises:
        MessageFormatError: Some text in it is not Unicode.
    """
    try:
        return _encode(message, address, reply_to, carries)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"The message cannot be sent: {error}.") from error


def _encode(
    message: Message, address: Mapping[str, str], reply_to: str | None, carries: Callable[[str], bool]
) -> Outgoing:
    kind, body = _body_of(message)
    ours: dict[str, Any] = {"k": kind, "i": message.message_id}
    headers = {
        "persistent": "true" if message.delivery_mode is DeliveryMode.PERSISTENT else "false",
        "priority": str(message.priority),
    }
    _encode_headers(message, reply_to, headers, ours)
    _encode_properties(message.properties, headers, ours, carries)
    headers.update(address)
    headers.update(_pieces(_to_json({name: value for name, value in ours.items() if value not in (None, {})})))
    return Outgoing(headers, body or b"", kind != "text" or body is None or b"\0" in body)


def _encode_headers(message: Message, reply_to: str | None, headers: dict[str, str], ours: dict[str, Any]) -> None:
    for name, short, text in (
        ("correlation-id", "c", message.correlation_id),
        ("type", "y", message.type),
        ("reply-to", "r", reply_to),
    ):
        if text is not None:
            _put(name, text, headers, ours, short)
    if message.reply_to:
        to = message.reply_to
        ours["r"] = [to.kind, to.name, True] if to.temporary else [to.kind, to.name]
    ours["s"], ours["x"], ours["d"] = (
        _milliseconds(moment) for moment in (message.timestamp, message.expiration, message.delivery_time)
    )
    if message.timestamp is not None:
        headers["timestamp"] = str(ours["s"])


def _put(name: str, text: str, headers: dict[str, str], ours: dict[str, Any], short: str) -> None:
    if len(text) > _LONGEST or _HARD_TO_CARRY.search(text):
        text.encode()
        ours[short] = text
    else:
        headers[name] = text


def _encode_properties(
    properties: Properties, headers: dict[str, str], ours: dict[str, Any], carries: Callable[[str], bool]
) -> None:
    types: dict[str, str] = {}
    hidden: dict[str, str | None] = {}
    for name, value in properties.items():
        text = None if value is None else str(convert(value, "string"))
        if value is not None and type_name(value) != "string":
            types[name] = type_name(value)
        if text is None or len(headers) > _MOST or not carries(name):
            hidden[name] = text
        else:
            _put(name, text, headers, hidden, name)
        if text is not None and name.startswith("JMS"):  # brokers take some of them for themselves
            hidden[name] = text
    ours["t"], ours["p"] = types, hidden


def _pieces(text: str) -> dict[str, str]:
    return {f"{OURS}{n or ''}": text[n * _PIECE : (n + 1) * _PIECE] for n in range(len(text) // _PIECE + 1)}


def _body_of(message: Message) -> tuple[str, bytes | None]:
    """Name the kind of a message and encode its body; what has none says so, as an empty frame does not."""
    kind, body = encode_body(message)
    return (f"{ABSENT}{kind}" if body is None and kind != "plain" else kind), body


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
