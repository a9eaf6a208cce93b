"""ActiveMQ Classic over STOMP: its dialect, and maps as XML of XStream."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import EntryValue, MapMessage, Message, TextMessage, convert, type_name, typed_entry
from jmsjca.providers.brokers.activemq import OVER_STOMP, RELEASE
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.common.codec import METADATA_HEADER, encode_body
from jmsjca.providers.stomp.codec import Outgoing
from jmsjca.providers.stomp.dialect import Dialect, destination_of
from jmsjca.providers.stomp.protocol.frames import ESCAPES, Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = [
    "ACTIVEMQ",
    "REQUEST_HEADERS",
    "ActiveMQ",
    "RecentActiveMQ",
    "decode_java_map",
    "encode_java_map",
    "from_xml",
    "to_xml",
]

_TEMPORARY = re.compile(r"/remote-temp-(queue|topic)/(.+)\Z", re.DOTALL)
_SPECIAL = re.compile(r"[,*>?]|\A\s|\s\Z")
_TEXT = {"amq-msg-type": "text"}

# The broker ends the connection over a line of more than 10 KiB: the name of a header, its value, and their escapes.
_MAX_NAME = 500  # characters of up to 4 bytes
_MAX_VALUE_BYTES = 8000
_SURELY_FITS = _MAX_VALUE_BYTES // 4  # characters
_ESCAPES = str.maketrans(ESCAPES["1.2"])


class ActiveMQ(Dialect):
    """ActiveMQ Classic.

    A refused SEND without a receipt makes the transaction fail; one with a receipt does not.
    """

    __slots__ = ()
    needs_abort_after_commit = True
    confirms_in_order = True
    wildcards = ("*", ">")
    refuses_commit_after_failed_send = True
    no_local: ClassVar[Mapping[str, str]] = {"activemq.noLocal": "true"}

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern of lists, wildcards, options, and blanks that the broker strips."""
        return _SPECIAL

    def address(self, to: Destination, *, subscribed: bool = False) -> dict[str, str]:
        """Return the headers of a SEND; a temporary destination is addressed by the name that other sessions see."""
        if to.temporary:
            return {"destination": f"/remote-temp-{to.kind}/{self.checked_name(to)}"}
        return Dialect.address(self, to, subscribed=subscribed)

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination, temporary ones in the form that other sessions see."""
        found = _TEMPORARY.match(text)
        return destination(found[2], found[1], temporary=True) if found else Dialect.read_address(self, text)

    def encode(self, message: Message, to: Destination) -> Outgoing:
        """Encode a message; with `java_maps` a map becomes one that Java clients can read.

        A text with NUL needs a length, for which the broker takes it for bytes unless a header says that it is text.
        """
        outgoing = Dialect.encode(self, message, to)
        if outgoing.sized and isinstance(message, TextMessage):
            return outgoing._replace(headers={**outgoing.headers, **_TEXT})
        return encode_java_map(outgoing, message) if self.java_maps and isinstance(message, MapMessage) else outgoing

    def is_header_property(self, name: str) -> bool:
        """Return True if a property of this name may be a header, and leaves room for its value in the line."""
        return len(name) <= _MAX_NAME and Dialect.is_header_property(self, name)

    def is_header_value(self, text: str) -> bool:
        """Return True unless STOMP cannot carry the value, or the broker would end the connection over its length."""
        if "\0" in text or ("\r" in text and self.version == "1.1"):
            return False
        return len(text) <= _SURELY_FITS or len(text.translate(_ESCAPES).encode()) <= _MAX_VALUE_BYTES

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Decode a MESSAGE frame, also one with a map of a Java client.

        Raises:
            MessageFormatError: It was sent over AMQP.
        """
        if "JMS_AMQP_NATIVE" in frame.headers:
            raise MessageFormatError(
                f"A message from {source} was sent over AMQP: ActiveMQ delivers it over STOMP as an encoded message,"
                " and takes no acknowledgement of it. Use one protocol per queue: receive it over amqp://."
            )
        return Dialect.decode(self, decode_java_map(frame), source, **delivered)

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE; a durable subscription belongs to the client id of CONNECT."""
        headers = {**self.address(destination_of(source), subscribed=True), "activemq.prefetchSize": str(window)}
        if self.java_maps:
            headers |= REQUEST_HEADERS
        if isinstance(source, Subscription) and source.name is not None:
            headers["activemq.subscriptionName"] = source.name
        return headers

    def recreates_changed(
        self, source: Subscription, selector: str | None, open_side_session: Callable[[], STOMPSession]
    ) -> bool:
        """Check the selector in a side session: the broker removes the old subscription before it parses the new one.

        Raises:
            InvalidSelectorError: The broker refuses the selector. The subscription stays as it is.
        """
        if selector:
            side = open_side_session()
            try:
                self.check_subscribable(side, source.topic, self.selector(selector))
            finally:
                side.close(side.reply_timeout)
        return True

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the header with the name of the subscription."""
        return {"activemq.subscriptionName": source.name or ""}


class RecentActiveMQ(ActiveMQ):
    """Releases with cumulative acknowledgements in the transaction that they name; observed with 6.3."""

    __slots__ = ()
    acks_cumulatively = True


REQUEST_HEADERS = {"transformation": "jms-xml"}
"""The header of a SUBSCRIBE that requests Java maps as XML."""

_MAP = {"transformation": "jms-map-xml"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xd;"})
_BYTES = "byte-array"


def encode_java_map(outgoing: Outgoing, message: MapMessage) -> Outgoing:
    """Return an encoded message with a body that Java clients read as a map.

    Raises:
        MessageFormatError: A text in it holds a character that XML cannot carry.
    """
    return outgoing._replace(headers={**outgoing.headers, **_MAP}, body=to_xml(message.body), sized=False)


def decode_java_map(frame: Frame) -> Frame:
    """Convert a map of a Java client to our own form; other frames are returned unchanged.

    Raises:
        MessageFormatError: The body is not a map.
    """
    if frame.headers.get("transformation") != _MAP["transformation"]:
        return frame
    kind, body = encode_body(MapMessage(from_xml(frame.body)))
    return frame._replace(headers={METADATA_HEADER: json.dumps({"k": kind}), **frame.headers}, body=body or b"")


def to_xml(body: Mapping[str, EntryValue]) -> bytes:
    """Encode a map as XML of XStream.

    Raises:
        MessageFormatError: A text in it holds a character that XML cannot carry.
    """
    return f"<map>{''.join(map(_entry, body.items()))}</map>".encode()


def from_xml(body: bytes) -> dict[str, EntryValue]:
    """Read a map that XStream wrote.

    Raises:
        MessageFormatError: The body is not a map, or holds XML that XStream does not write, such as a document type.
    """
    from xml.etree import ElementTree as ET  # takes 10 ms to import, and is needed by java_maps alone

    try:
        text = body.decode()
        if "<!" not in text:
            return dict(_entries(ET.fromstring(text)))  # noqa: S314  # which is safe without declarations
    except (ET.ParseError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise MessageFormatError(f"The received map cannot be decoded: {error}.") from error
    raise MessageFormatError("The received map cannot be decoded: it holds a declaration.")


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
    return text.translate(_XML_ESCAPES)


def _entries(root: "Element") -> Iterator[tuple[str, EntryValue]]:
    if root.tag != "map":
        raise ValueError(f"it is no map, but {root.tag[:50]!r}")
    for each in root:
        name, value = each
        yield _plain(name), _read(value)


def _read(value: "Element") -> EntryValue:
    if value.tag == "null":
        return None
    if value.tag == _BYTES:
        return b64decode(_plain(value))
    return typed_entry(_plain(value) == "true" if value.tag == "boolean" else _plain(value), value.tag)


def _plain(element: "Element") -> str:
    return element.text or ""


ACTIVEMQ = BrokerProfile(
    "ActiveMQ",
    "STOMP",
    RELEASE,
    OVER_STOMP,
)
