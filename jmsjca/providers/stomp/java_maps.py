"""Maps as ActiveMQ shows Java's to STOMP: XML of the library XStream. Its JSON would make a number of the text 007."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from jmsjca.errors import MessageFormatError
from jmsjca.messages import EntryValue, MapMessage, convert, entry, type_name
from jmsjca.providers.bodies import encode_body
from jmsjca.providers.stomp.codec import Outgoing
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.reserved import OURS

__all__ = ["ASKED", "from_xml", "read_map", "to_xml", "with_map"]

ASKED = {"transformation": "jms-xml"}
"""The header of a SUBSCRIBE that wants maps of Java's."""

_MAP = {"transformation": "jms-map-xml"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BYTES = "byte-array"


def with_map(outgoing: Outgoing, message: MapMessage) -> Outgoing:
    """The same message on its way out, its body a map for Java, too.

    Raises:
        MessageFormatError: XML cannot hold a text of it.
    """
    return outgoing._replace(headers={**outgoing.headers, **_MAP}, body=to_xml(message.body), sized=False)


def read_map(frame: Frame) -> Frame:
    """Read a map back into the form of our own; leave other frames as they are.

    Raises:
        MessageFormatError: It is none.
    """
    if frame.headers.get("transformation") != _MAP["transformation"]:
        return frame
    kind, body = encode_body(MapMessage(from_xml(frame.body)))
    return frame._replace(headers={OURS: json.dumps({"k": kind}), **frame.headers}, body=body or b"")


def to_xml(body: Mapping[str, EntryValue]) -> bytes:
    """Write a map.

    Raises:
        MessageFormatError: XML cannot hold a text of it.
    """
    return f"<map>{''.join(map(_entry, body.items()))}</map>".encode()


def from_xml(body: bytes) -> dict[str, EntryValue]:
    """Read a map.

    Raises:
        MessageFormatError: It is none, or holds what XStream does not write, as a document type.
    """
    try:
        text = body.decode()
        if "<!" in text:
            raise ValueError("it holds a declaration")  # noqa: TRY301
        return dict(_entries(ET.fromstring(text)))  # noqa: S314  # which is safe without declarations
    except (ET.ParseError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise MessageFormatError(f"The received map cannot be decoded: {error}.") from error


def _entry(item: tuple[str, EntryValue]) -> str:
    name, value = item
    return f"<entry><string>{_text(name)}</string>{_value(value)}</entry>"


def _value(value: EntryValue) -> str:
    if value is None:
        return "<null/>"
    if isinstance(value, bytes):
        return f"<{_BYTES}>{b64encode(value).decode()}</{_BYTES}>"
    kind = type_name(value)
    return f"<{kind}>{_text(str(convert(value, 'string')))}</{kind}>"


def _text(text: str) -> str:
    if _NO_XML.search(text):
        raise MessageFormatError("A map with java_maps=true travels as XML, which cannot hold a control character.")
    return escape(text, {"\r": "&#xd;"})


def _entries(root: ET.Element) -> Iterator[tuple[str, EntryValue]]:
    if root.tag != "map":
        raise ValueError(f"it is no map, but {root.tag[:50]!r}")
    for each in root:
        name, value = each
        yield _plain(name), _read(value)


def _read(value: ET.Element) -> EntryValue:
    if value.tag == "null":
        return None
    if value.tag == _BYTES:
        return b64decode(_plain(value))
    return entry(_plain(value) == "true" if value.tag == "boolean" else _plain(value), value.tag)


def _plain(element: ET.Element) -> str:
    return element.text or ""
