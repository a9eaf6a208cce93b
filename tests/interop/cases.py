"""The messages that clients exchange, as Apache's interop suite would write them."""

from typing import Any, NamedTuple

from jms_java import describe

from tests.interop.shim.messages import make, tell

__all__ = ["GROUPS", "TYPED", "Group"]


class Group(NamedTuple):
    """Messages of one type with the same headers and properties, which are sent by one command."""

    kind: str
    data: list[dict[str, Any]]
    headers: dict[str, Any]
    properties: dict[str, Any]

    def expected(self):
        """Return what a receiver must tell."""
        messages = (make(self.kind, told, self.headers, self.properties) for told in self.data)
        return [tell(number, describe(message)) for number, message in enumerate(messages)]

    def arguments(self):
        """Return the parts of the command that sends them, by their names."""
        return {"type": self.kind, "data": self.data, "headers": self.headers, "properties": self.properties}


def _group(kind, values, headers=None, properties=None):
    data = [{"index": place, "type": name, "value": value} for place, (name, value) in enumerate(values)]
    return Group(f"JMS_{kind}_TYPE", data, headers or {}, properties or {})


_TYPED = [
    *(("boolean", value) for value in (True, False)),
    *(("byte", value) for value in ("0x00", "0x7f", "0x80", "0xff")),
    *(("short", value) for value in ("0x0000", "0x7fff", "0x8000", "0xffff")),
    *(("int", value) for value in ("0x00000000", "0x7fffffff", "0x80000000", "0xffffffff")),
    *(("long", value) for value in ("0x0000000000000000", "0x7fffffffffffffff", "0x8000000000000000")),
    *(("float", value) for value in ("0x00000000", "0x80000000", "0x00000001", "0x7f7fffff", "0xff800000")),
    *(("double", value) for value in ("0x0000000000000000", "0x0000000000000001", "0xffefffffffffffff")),
    *(("string", value) for value in ("", "Hello, world", "täxt €", "\r\n\t")),
]
_ENTRIES = [*_TYPED, ("bytes", ""), ("bytes", "00ff"), ("char", "QQ=="), ("none", None)]
_TEXTS = ["", "Hello, world", "\"quotes\" and 'apostrophes'", "ñ 日本語 \U0001f389", "a\0b", " \r\n ", "ä" * 10_000]
_BYTES = ["", "00", "48656c6c6f", "000102fdfeff", "ff" * 40_000]
_OF_WORDS = [("string", "Hello"), ("string", "täxt €"), ("string", "")]
_OF_TEXT = [("text", "header-test")]
_PROPERTIES = {f"{name}{place}": {"type": name, "value": value} for place, (name, value) in enumerate(_TYPED)}
_OF_BLANKS = {name: {"type": "string", "value": value} for name, value in (("p", " "), ("q", ""), ("r", "a\n"))}

GROUPS = {
    "message": _group("MESSAGE", [("none", None)]),
    "text": _group("TEXTMESSAGE", [("text", text) for text in _TEXTS]),
    "bytes": _group("BYTESMESSAGE", [("bytes", text) for text in _BYTES]),
    "map": _group("MAPMESSAGE", _OF_WORDS),
    "typed map": _group("MAPMESSAGE", _ENTRIES),
    "map with a character beyond U+FFFF": _group("MAPMESSAGE", [("string", "\U0001f600")]),
    "stream": _group("STREAMMESSAGE", _OF_WORDS),
    "typed stream": _group("STREAMMESSAGE", _ENTRIES),
    "correlation": _group("TEXTMESSAGE", _OF_TEXT, {"JMSCorrelationID": {"type": "string", "value": " an id "}}),
    "correlation of bytes": _group("TEXTMESSAGE", _OF_TEXT, {"JMSCorrelationID": {"type": "bytes", "value": "00ff"}}),
    "reply to a queue": _group("TEXTMESSAGE", _OF_TEXT, {"JMSReplyTo": {"type": "queue", "value": "answers"}}),
    "reply to a topic": _group("TEXTMESSAGE", _OF_TEXT, {"JMSReplyTo": {"type": "topic", "value": "answers"}}),
    "type": _group("TEXTMESSAGE", _OF_TEXT, {"JMSType": {"type": "string", "value": "a type"}}),
    "properties": _group("TEXTMESSAGE", _OF_TEXT, properties=_PROPERTIES),
    "properties of text": _group(
        "TEXTMESSAGE",
        _OF_TEXT,
        properties={"p": {"type": "string", "value": " "}, "q": {"type": "string", "value": ""}},
    ),
}
TYPED = {"typed map", "typed stream"}
"""The groups with numbers, which only shims of JMS clients write as bits."""
