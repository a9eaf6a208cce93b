"""Messages that came to RabbitMQ over AMQP 1.0, read back into the form of our own.

Its STOMP plug-in shows what it has no header for as whole sections, and so the body unless it is binary.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import convert, type_name
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.reserved import OURS
from jmsjca.providers.stomp.sections import read_section

__all__ = ["translate"]

_SECTIONS = ("properties", "app-properties", "message-annotations")
_ENCODED = "amqp-1.0"
_SUBJECT = 3  # the place in the section
_BODILESS = {3: "no bytes", 5: "no text"}


def translate(frame: Frame) -> Frame:
    """Translate the frame of a message that came over AMQP 1.0; leave others as they are.

    Raises:
        MessageFormatError: A section cannot be read.
    """
    found = {name: frame.headers.get(f"x-amqp-1.0-{name}") for name in _SECTIONS}
    if not any(found.values()) and frame.headers.get("type") != _ENCODED:
        return frame
    try:
        sections = {name: read_section(text.encode("latin-1")) for name, text in found.items() if text}
        return _translated(frame, sections)
    except (struct.error, AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise MessageFormatError(f"The received message cannot be decoded: {error}.") from error


def _translated(frame: Frame, sections: Mapping[str, Any]) -> Frame:
    kind, body = _body(frame, sections.get("message-annotations", {}))
    properties = sections.get("app-properties", {}).items()
    ours = {
        "k": kind,
        "t": {name: type_name(value) for name, value in properties if value is not None},
        "p": {name: None if value is None else convert(value, "string") for name, value in properties},
    }
    fields = sections.get("properties", [])
    subject = {"type": fields[_SUBJECT]} if len(fields) > _SUBJECT and fields[_SUBJECT] else {}
    headers = {name: value for name, value in frame.headers.items() if name != "type"}
    return frame._replace(headers={**headers, **subject, OURS: json.dumps(ours)}, body=body)


def _body(frame: Frame, annotations: Mapping[str, Any]) -> tuple[str, bytes]:
    value: Any = frame.body
    if frame.headers.get("type") == _ENCODED:
        value = read_section(frame.body)
    elif not value and "type" not in frame.headers:
        value = None
    if value is None:
        return _BODILESS.get(annotations.get("x-opt-jms-msg-type", 0), "plain"), b""
    if isinstance(value, str):
        return "text", value.encode()
    if not isinstance(value, bytes):
        raise TypeError(f"this release reads text and bytes; the body is {type(value).__name__}")
    return ("text" if frame.headers.get("content-type", "").startswith("text/") else "bytes"), value
