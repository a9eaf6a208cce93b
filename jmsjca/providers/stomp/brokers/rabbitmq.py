"""RabbitMQ's STOMP plug-in: its dialect and messages that were sent over AMQP 1.0.

Of a message that came over AMQP 1.0 the plug-in shows what it has no header for as whole sections, and so the body
unless it is binary.
"""

import json
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import InvalidDestinationError, MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, Message, Short, TextMessage, convert, type_name
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.stomp.brokers.dialect import (
    Dialect,
    destination_of,
)
from jmsjca.providers.stomp.codec import METADATA_HEADER, Content
from jmsjca.providers.stomp.errors import BrokerRefusedError
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.spi import Capabilities

__all__ = ["RABBITMQ", "RabbitMQ", "from_amqp_sections", "read_section"]

_READ = re.compile(r"/(?:reply-)?(queue|topic)/(.+)\Z", re.DOTALL)
_SPECIAL = re.compile(r"[*#]|%2[Ff]")


class RabbitMQ(Dialect):
    """RabbitMQ with its STOMP plug-in."""

    __slots__ = ()
    returns_by_nack = True
    confirms_before_commit = False

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Wildcards, and what it would decode."""
        return _SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """A slash in a name is the one character that it decodes."""
        name = self.checked_name(to).replace("/", "%2F")
        return {"destination": f"/{to.kind}/{name}"}

    def read_address(self, text: str) -> Destination | None:
        """What it writes itself is encoded as in a URL."""
        found = _READ.match(text)
        return destination(unquote(found[2]), found[1]) if found else None

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Read a MESSAGE frame, also of what came over AMQP 1.0."""
        return Dialect.decode(self, from_amqp_sections(frame), source, **delivered)

    def broker_headers(self, message: Message) -> dict[str, str]:
        """The message id and the MIME type as AMQP knows them, and what is left of its time, in milliseconds."""
        name = {"amqp-message-id": message.message_id} if message.message_id else {}
        if isinstance(message, TextMessage):
            name["content-type"] = "text/plain"
        if message.expiration is None:
            return name
        left = message.expiration.timestamp() - (message.timestamp or message.expiration).timestamp()
        return {**name, "expiration": str(max(round(left * 1000), 0))}

    def content(self, frame: Frame) -> Content:
        """By its MIME type."""
        return Content.TEXT if frame.headers.get("content-type", "").startswith("text/") else Content.BYTES

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """A durable subscription is a queue, named after the client id and the subscription."""
        headers = {**self.address(destination_of(source)), "prefetch-count": str(window)}
        if isinstance(source, Subscription) and source.name is not None:
            headers |= {"durable": "true", "auto-delete": "false", **self.unsubscribe(source)}
        return headers

    def parking_subscription(self) -> dict[str, str]:
        """The queue of direct replies, which nobody knows the address of. It is always there and needs no rights."""
        return {"destination": "/amq/queue/amq.rabbitmq.reply-to", "ack": "auto"}

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """The same id stands in two headers; what still comes to a silenced subscription has one of them only."""
        if self.version == "1.1":
            return Dialect.acknowledgement(self, frame)
        return {"id": frame.headers["message-id"]}

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By the name of its queue, which names the topic too, so that two topics never share one."""
        return {"durable": "true", "x-queue-name": self.queue_of(source)}

    def refuses_all_of(self, text: str, sends: int) -> bool:
        """It stops at the first one that it refuses; only of a single one is it known which that was."""
        return sends == 1 and "access_refused" in text

    def existence_probe(self, source: Subscription) -> dict[str, str]:
        """The headers of a SUBSCRIBE that fails if there is no such subscription."""
        return {
            "destination": f"/amq/queue/{self.queue_of(source)}",
            "ack": "client-individual",
            "prefetch-count": "1",
        }

    def remove_subscription(
        self, session: STOMPSession, source: Subscription, open_side_session: Callable[[], STOMPSession]
    ) -> None:
        """Check that the queue exists, subscribe to it, and unsubscribe with the headers that delete it.

        No other frame ends a durable subscription. The probe's subscription stays: if a message were in flight when it
        ended, the broker would end the session.
        """
        del session
        side = open_side_session()
        try:
            try:
                side.request("SUBSCRIBE", {"id": "look", **self.existence_probe(source)})
            except BrokerRefusedError as error:
                raise InvalidDestinationError(
                    f"{source.client_id!r} has no durable subscription {source.name!r} to remove."
                ) from error
            side.request("SUBSCRIBE", {"id": "end", "ack": "client-individual", **self.subscribe(source, 1)})
            side.request("UNSUBSCRIBE", {"id": "end", **self.unsubscribe(source)})
        finally:
            side.close(side.reply_timeout)

    def queue_of(self, source: Subscription) -> str:
        """The queue of a durable subscription; a percent sign would be decoded."""
        return ":".join(
            quote(part or "", safe="").replace("%", "=") for part in (source.topic.name, source.client_id, source.name)
        )


_SECTIONS = ("properties", "app-properties", "message-annotations")
_ENCODED = "amqp-1.0"
_SUBJECT = 3  # the place in the section
_BODILESS = {3: "no bytes", 5: "no text"}


def from_amqp_sections(frame: Frame) -> Frame:
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
    return frame._replace(headers={**headers, **subject, METADATA_HEADER: json.dumps(ours)}, body=body)


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


# For each constructor the form of its value and what is made of it. Unsigned numbers take the next wider type.
_FIXED: dict[int, tuple[str, Callable[[Any], Any]]] = {
    0x50: (">B", Short),
    0x51: (">b", Byte),
    0x52: (">B", Long),
    0x53: (">B", Long),
    0x54: (">b", Int),
    0x55: (">b", Long),
    0x56: (">?", bool),
    0x60: (">H", Int),
    0x61: (">h", Short),
    0x70: (">I", Long),
    0x71: (">i", Int),
    0x72: (">f", Float),
    0x80: (">Q", Long),
    0x81: (">q", Long),
    0x82: (">d", Double),
    0x83: (">q", Long),
    0x98: (">16s", lambda value: str(uuid.UUID(bytes=value))),
}
_EMPTY: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: Long(0), 0x44: Long(0), 0x45: []}
_TEXT, _BINARY = {0xA1, 0xB1, 0xA3, 0xB3}, {0xA0, 0xB0}
_LISTS, _MAPS = {0xC0, 0xD0}, {0xC1, 0xD1}
_WIDE = 0x10  # the bit of a constructor that says whether sizes have four bytes or one


def read_section(data: bytes) -> Any:
    """Read the value of a section: a list, a map, or a plain value.

    Raises:
        ValueError: It is none, or holds what no message property can.
        struct.error: It is cut short.
    """
    if data[:1] != b"\0":
        raise ValueError("no section")
    _, begin = _read(data, 1)  # its descriptor
    return _read(data, begin)[0]


def _read(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    (code,) = struct.unpack_from(">B", data, at)
    at += 1
    if code in _EMPTY:
        return _EMPTY[code], at
    if code in _FIXED:
        form, made = _FIXED[code]
        return made(struct.unpack_from(form, data, at)[0]), at + struct.calcsize(form)
    if code in _TEXT or code in _BINARY:
        size, at = _size(data, at, code)
        (value,) = struct.unpack_from(f"{size}s", data, at)
        return (value.decode() if code in _TEXT else value), at + size
    if code not in _LISTS | _MAPS or depth:
        raise ValueError(f"a value with the constructor {code:#x}")
    return _compound(data, at, code)


def _compound(data: bytes, at: int, code: int) -> tuple[Any, int]:
    size, begin = _size(data, at, code)
    count, at = _size(data, begin, code)
    items: list[Any] = []
    while len(items) < count:
        item, at = _read(data, at, 1)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if code in _MAPS else items), begin + size


def _size(data: bytes, at: int, code: int) -> tuple[int, int]:
    form = ">I" if code & _WIDE else ">B"
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


RABBITMQ = BrokerProfile(
    "RabbitMQ",
    "STOMP",
    "3.10.8",
    Capabilities(give_back="local", counts_lost=True, durable=True, structured=True, shared_between_processes=True),
)
