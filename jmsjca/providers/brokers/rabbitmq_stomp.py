"""RabbitMQ's STOMP plug-in: its dialect and messages that were sent over AMQP 1.0.

The plug-in shows a message that was sent over AMQP 1.0 as encoded sections, where it has no header for them,
and the body too unless it is binary.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import InvalidDestinationError, MessageFormatError
from jmsjca.log_records import get_logger
from jmsjca.messages import (
    GROUP_ID,
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    Short,
    StreamMessage,
    TextMessage,
    convert,
    type_name,
)
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.brokers.rabbitmq import OVER_STOMP
from jmsjca.providers.common.amqp_types import (
    MALFORMED,
    Described,
    RawDecimal,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    read,
)
from jmsjca.providers.common.codec import METADATA_HEADER, encode_body, metadata_in
from jmsjca.providers.stomp.codec import Content, is_encoded
from jmsjca.providers.stomp.dialect import TRANSACTION, Dialect, destination_of, time_to_live
from jmsjca.providers.stomp.errors import BrokerRefusedError
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = ["RABBITMQ", "RABBITMQ4", "RabbitMQ", "from_amqp_sections", "read_section"]

logger = get_logger("jmsjca.stomp")

_READ = re.compile(r"/(?:reply-|amq/)?(queue|topic)/(.+)\Z", re.DOTALL)
_READ_OF_AMQP = re.compile(r"(?:/reply-queue)?(/queues|/exchanges/amq\.topic)/(.+)\Z", re.DOTALL)
_DECLARED_ELSEWHERE = re.compile(r"precondition_failed|resource_locked")
_DEAD_CHANNEL = "Processing error"  # the refused declaration ended the channel while it was used
_TRIES = 5
_FIRST_MILLISECONDS = 10**11  # less would be a time before 1974
_SPECIAL = re.compile(r"[*#]|%2[Ff]")
_DELIVERY_TAG = re.compile(r"[TQ]_.*@@session-.*@@\d+\Z", re.DOTALL)  # the subscription, the session, and a number


class RabbitMQ(Dialect):
    """RabbitMQ with its STOMP plug-in."""

    __slots__ = ()
    returns_by_nack = True
    confirms_before_commit = False
    wildcards = ("*", "#")
    refusal_of_send: ClassVar[str | None] = "access_refused"

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern of wildcards, and of escapes that the broker would decode."""
        return _SPECIAL

    def address(self, to: Destination, *, subscribed: bool = False) -> dict[str, str]:
        """Return the headers of a SEND. A slash in the name is escaped; the broker decodes no other character."""
        name = self.checked_name(to, subscribed=subscribed).replace("/", "%2F")
        declared_elsewhere = isinstance(to, Queue) and self.existing.get(to.name)
        return {"destination": f"/amq/queue/{name}" if declared_elsewhere else f"/{to.kind}/{name}"}

    def look_up(self, to: Destination, open_side_session: Callable[[], STOMPSession]) -> None:
        """Find out whether a queue has other arguments than the plug-in declares, such as the quorum queues of AMQP.

        The plug-in declares a queue at each first SUBSCRIBE and SEND, and ends the session over an existing queue with
        other arguments.
        """
        if (
            self.broker.release != RABBITMQ4.release
            or not isinstance(to, Queue)
            or to.temporary
            or to.name in self.existing
        ):
            return
        refusal = _DEAD_CHANNEL
        for _ in range(_TRIES):
            if refusal.startswith(_DEAD_CHANNEL):
                refusal = self._refusal_of_declaration(to, open_side_session())
        self.existing[to.name] = _DECLARED_ELSEWHERE.match(refusal) is not None  # others are reported at the first use

    def _refusal_of_declaration(self, to: Queue, side: STOMPSession) -> str:
        """Declare a queue by a SEND in a transaction that is never committed. Return the broker's refusal, or empty.

        The broker answers that SEND only after a commit, and declares without waiting for the result. So another SEND,
        to a queue that does not exist, asks whether the channel is still open.
        """
        sent = side.encode("SEND", {**self.address(to), **TRANSACTION}, b"")
        nowhere = {"destination": f"/amq/queue/jmsjca.{uuid.uuid4().hex}"}
        try:
            side.request("SEND", nowhere, head=side.encode("BEGIN", TRANSACTION) + sent)
        except BrokerRefusedError as error:
            return error.text
        finally:
            side.close(side.reply_timeout)
        return ""

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination, which the broker percent-encodes."""
        if found := _READ_OF_AMQP.match(text):
            return destination(unquote(found[2]), "queue" if found[1] == "/queues" else "topic")
        found = _READ.match(text)
        return destination(unquote(found[2]), found[1]) if found else None

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Decode a MESSAGE frame, also of a message that was sent over AMQP 1.0."""
        return Dialect.decode(self, from_amqp_sections(_without_delivery_tag(_with_times(frame))), source, **delivered)

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Return the message id and the MIME type as in AMQP, and the time to live in milliseconds."""
        name = {"amqp-message-id": message.message_id} if message.message_id else {}
        if isinstance(message, TextMessage):
            name["content-type"] = "text/plain"
        if message.expiration is None:
            return name
        return {**name, "expiration": str(max(time_to_live(message, message.expiration), 0))}

    def content(self, frame: Frame) -> Content:
        """Return the kind of a body by its MIME type."""
        return Content.TEXT if frame.headers.get("content-type", "").startswith("text/") else Content.BYTES

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE. A durable subscription is a queue named after topic, client id and name."""
        to = destination_of(source)
        headers = {**self.address(to, subscribed=True), "prefetch-count": str(window)}
        if self.existing.get(to.name) and isinstance(to, Queue):
            _warn_of_limit(to.name)
        if isinstance(source, Subscription) and source.name is not None:
            headers |= {"durable": "true", "auto-delete": "false", **self.unsubscribe(source)}
        return headers

    def parking_subscription(self) -> dict[str, str]:
        """Return the queue of direct replies, which always exists, needs no permission, and has no known address."""
        return {"destination": "/amq/queue/amq.rabbitmq.reply-to", "ack": "auto"}

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """Return the headers of an ACK. A message to a parked subscription has its id in `message-id` only."""
        if self.version == "1.1":
            return Dialect.acknowledgement(self, frame)
        return {"id": frame.headers["message-id"]}

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the headers with the name of its queue, which includes the topic, so that topics never share one."""
        return {"durable": "true", "x-queue-name": self.queue_of(source)}

    def existence_probe(self, source: Subscription) -> dict[str, str]:
        """Return the headers of a SUBSCRIBE that fails if the subscription does not exist."""
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

    def queue_name(self, source: Destination | Subscription) -> str:
        """Return the name of the broker's queue of a queue or a durable subscription.

        Raises:
            InvalidDestinationError: It is a topic, or the broker would not take the name literally.
        """
        if isinstance(source, Subscription):
            return self.queue_of(source)
        if not isinstance(source, Queue):
            raise InvalidDestinationError(f"{source} stores no messages itself; name one of its subscriptions.")
        return self.checked_name(source)

    def queue_of(self, source: Subscription) -> str:
        """Return the name of the queue of a durable subscription, without percent signs, which would be decoded."""
        return ":".join(
            quote(part or "", safe="").replace("%", "=") for part in (source.topic.name, source.client_id, source.name)
        )


@lru_cache(maxsize=1000)  # once for each queue
def _warn_of_limit(name: str) -> None:
    logger.warning(
        "The queue %s was not declared over STOMP: it is used as it is. A quorum queue drops a message that was"
        " returned more often than its delivery limit says (20 by default), also one that no handler saw, and over"
        " STOMP the limit is not known. Consume it over amqp:// unless this library declared it there, which sets no"
        " such limit.",
        name,
    )


def _with_times(frame: Frame) -> Frame:
    """Return a frame with the times of other clients in milliseconds; RabbitMQ 4 shows AMQP times in seconds."""
    life, told = frame.headers.get("expiration", ""), frame.headers.get("timestamp", "")
    if not told.isdecimal() or METADATA_HEADER in frame.headers:
        return frame
    sent = int(told) * (1000 if int(told) < _FIRST_MILLISECONDS else 1)
    times = {"timestamp": str(sent), **({"expires": str(sent + int(life))} if life.isdecimal() else {})}
    return frame._replace(headers={**frame.headers, **times})


def _without_delivery_tag(frame: Frame) -> Frame:
    """Return a frame without a message-id that the broker made for this delivery of the message only.

    As a message id it would make each redelivery look like a different message.
    """
    if not _DELIVERY_TAG.match(frame.headers.get("message-id", "")):
        return frame
    return frame._replace(headers={name: value for name, value in frame.headers.items() if name != "message-id"})


_SECTIONS = ("properties", "app-properties", "message-annotations")
_ENCODED = "amqp-1.0"
_SUBJECT, _GROUP = 3, 10  # their indices in the properties section
_STRUCTURED: dict[str | None, Callable[[Any], Message]] = {"map": MapMessage, "stream": StreamMessage}
_KINDS = {2: "map", 4: "stream"}  # by the number in the annotation
_BODILESS = {3: "no bytes", 5: "no text"}


def from_amqp_sections(frame: Frame) -> Frame:
    """Convert the frame of a message that was sent over AMQP 1.0 to our own form; return others unchanged.

    Raises:
        MessageFormatError: A section is malformed.
    """
    found = {name: frame.headers.get(f"x-amqp-1.0-{name}") for name in _SECTIONS}
    if not any(found.values()) and frame.headers.get("type") != _ENCODED:
        return frame
    try:
        sections = {name: read_section(text.encode("latin-1")) for name, text in found.items() if text}
        return _translated(frame, sections)
    except (AttributeError, *MALFORMED) as error:
        raise MessageFormatError(f"The received message cannot be decoded: {error}.") from error


def _translated(frame: Frame, sections: Mapping[str, Any]) -> Frame:
    properties = sections.get("app-properties", {}).items()
    ours: dict[str, Any] = metadata_in(frame.headers)  # of RabbitMQ 4, which shows properties as headers
    if properties:
        ours["t"] = {name: type_name(value) for name, value in properties if value is not None}
        ours["p"] = {name: None if value is None else convert(value, "string") for name, value in properties}
    annotations = sections.get("message-annotations", {})
    told = ours.get("k") or _KINDS.get(annotations.get("x-opt-jms-msg-type"))
    kind, body = _body(frame, annotations, told)
    ours["k"] = kind
    fields = sections.get("properties", [])
    if len(fields) > _GROUP and fields[_GROUP]:
        ours["p"] = {**ours.get("p", {}), GROUP_ID: str(fields[_GROUP])}
    subject = {"type": fields[_SUBJECT]} if len(fields) > _SUBJECT and fields[_SUBJECT] else {}
    headers = {name: value for name, value in frame.headers.items() if name != "type"}
    return frame._replace(headers={**headers, **subject, METADATA_HEADER: json.dumps(ours)}, body=body)


def _body(frame: Frame, annotations: Mapping[str, Any], kind: str | None) -> tuple[str, bytes]:
    """Return the kind and the body of a message, in our own form.

    Args:
        frame: The frame.
        annotations: The message annotations.
        kind: The kind in the metadata or in the annotation of a JMS client; None for others.
    """
    value: Any = frame.body
    if frame.headers.get("type") == _ENCODED:
        value = read_section(frame.body)
    elif not value and "type" not in frame.headers:
        value = None
    if value is None:
        return _BODILESS.get(annotations.get("x-opt-jms-msg-type", 0), "plain"), b""
    if isinstance(value, str):
        return "text", value.encode()
    if kind is not None and kind in _STRUCTURED:
        return kind, encode_body(_STRUCTURED[kind](value))[1] or b""
    if not isinstance(value, bytes):
        raise TypeError(
            f"a body of AMQP that is a {type(value).__name__} can be read over STOMP only if this library sent it as a"
            " map or stream message; receive it over amqp://"
        )
    is_text = frame.headers.get("content-type", "").startswith("text/") and not is_encoded(frame.headers)
    return ("text" if is_text else "bytes"), value


# JMS types of AMQP values without an equivalent JMS type: unsigned integers become the next wider type.
_CONVERTERS: dict[type, Callable[[Any], Any]] = {
    UByte: Short,
    UShort: Int,
    UInt: Long,
    ULong: Long,
    Timestamp: Long,
    Symbol: str,
    Char: str,
    RawDecimal: str,
    uuid.UUID: str,
}
_JMS_TYPES = {type(None), bool, str, bytes, Byte, Short, Int, Long, Float, Double}


def read_section(data: bytes) -> Any:
    """Read the value of a section: a list, a map, or a plain value.

    Raises:
        MALFORMED: The bytes are not a section, are cut short, or hold a value that no message property can have.
    """
    section, end = read(data)
    if not isinstance(section, Described) or end > len(data):
        raise ValueError("no section")
    value: Any = section.value
    kind: type = value.__class__
    if kind is dict:
        return {_to_jms_value(name): _to_jms_value(each) for name, each in value.items()}
    return [_to_jms_value(each) for each in value] if kind is list else _to_jms_value(value)


def _to_jms_value(value: Any) -> Any:
    kind: type = value.__class__
    if kind in _JMS_TYPES:
        return value
    if kind not in _CONVERTERS:
        raise ValueError(f"a value of the type {kind.__name__}")
    return _CONVERTERS[kind](value)


RABBITMQ = BrokerProfile("RabbitMQ", "STOMP", "3.10.8", OVER_STOMP)
RABBITMQ4 = BrokerProfile("RabbitMQ 4", "STOMP", "4.0.5", OVER_STOMP)
