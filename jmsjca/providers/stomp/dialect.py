"""What each broker wants differently: addresses, subscriptions, acknowledgements."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from urllib.parse import quote, unquote

from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.messages import Message
from jmsjca.providers.evidence import Broker
from jmsjca.providers.stomp.brokers import ACTIVEMQ, ARTEMIS, RABBITMQ, UNKNOWN
from jmsjca.providers.stomp.codec import Content, Outgoing, decode, encode
from jmsjca.providers.stomp.frames import Frame, encode_frame

__all__ = ["TRANSACTION", "Dialect", "choose_dialect"]

TRANSACTION = {"transaction": "t"}
"""The header that makes a frame part of the one transaction that a connection has at a time."""

_PREFIXED = re.compile(r"/(queue|topic)/(.+)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dialect(ABC):
    """How to talk to one kind of broker.

    Args:
        broker: What it can do.
        version: The version of STOMP that was agreed on.
    """

    broker: Broker
    version: str

    #: True if acknowledgements may stand inside a transaction.
    acknowledges_in_transaction = True
    #: True if the receipt of a SEND comes before the COMMIT of its transaction.
    confirms_before_commit = True
    #: True if messages go back to the broker by NACK, and not by the end of their subscription.
    returns_by_nack = False
    #: True if the broker remembers what was acknowledged in transactions until one is aborted, and slows down by it.
    hoards_acknowledgements = False

    def encode(self, message: Message, to: Destination) -> Outgoing:
        """Write a message for the wire."""
        return encode(message, {**self.address(to), **self.extras(message)}, self.reply_to(message))

    def send_frame(self, outgoing: Outgoing, receipt: str) -> bytes:
        """Write a SEND frame of a transaction.

        It asks for a receipt of its own: what a broker refuses inside a transaction it may forget at the COMMIT.
        """
        headers = {**outgoing.headers, **TRANSACTION, "receipt": receipt}
        if outgoing.sized:
            return encode_frame("SEND", headers, outgoing.body, version=self.version)
        return encode_frame("SEND", headers, version=self.version)[:-1] + outgoing.body + b"\0"

    def decode(self, frame: Frame, source: Destination) -> Message:
        """Read a MESSAGE frame."""
        message = decode(frame, self.content(frame), self.read_address)
        message.destination = self.read_address(frame.headers["destination"]) or source
        if isinstance(source, Queue) is not isinstance(message.destination, Queue):
            message.destination = source
        return message

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """The headers that acknowledge a MESSAGE frame."""
        if self.version == "1.1":
            return {name: frame.headers[name] for name in ("message-id", "subscription")}
        return {"id": frame.headers["ack"]}

    def address(self, to: Destination) -> dict[str, str]:
        """The headers of SEND that say where to."""
        return {"destination": f"/{to.kind}/{self.checked(to)}"}

    def read_address(self, text: str) -> Destination | None:
        """The destination that the broker names; None if it is none that could be used."""
        found = _PREFIXED.match(text)
        return destination(found[2], found[1]) if found else None

    def reply_to(self, message: Message) -> str | None:
        """Where a reply should go, as others on this broker read it."""
        return self.address(message.reply_to)["destination"] if message.reply_to else None

    def extras(self, message: Message) -> dict[str, str]:
        """Headers of SEND that only this broker knows."""
        expires = message.expiration
        return {"expires": str(round(expires.timestamp() * 1000))} if expires else {}

    def content(self, frame: Frame) -> Content:
        """What kind of body it is that another client sent."""
        return Content.BYTES if "content-length" in frame.headers else Content.TEXT

    def checked(self, to: Destination) -> str:
        """The name, which the broker must take literally.

        Raises:
            InvalidDestinationError: The broker would read something into it.
        """
        if self.special().search(to.name):
            raise InvalidDestinationError(f"{self.broker.name} would not take the name of {to} literally over STOMP.")
        return to.name

    @abstractmethod
    def special(self) -> re.Pattern[str]:
        """What a name cannot hold."""

    @abstractmethod
    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """The headers of SUBSCRIBE; the window is how many messages may be unsettled."""

    def refuses_all_of(self, text: str, sends: int) -> bool:
        """True if an ERROR that names no frame says that none of so many sends happened."""
        del text, sends
        return False

    def selector(self, text: str) -> dict[str, str]:
        """The header of SUBSCRIBE that selects."""
        return {"selector": text}

    def is_full(self, held: int, size: int, window: int) -> bool:
        """True if so many unsettled messages, of so many bytes, are all that the broker sends for this window."""
        del size
        return held >= window

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """The headers of UNSUBSCRIBE that also remove a durable subscription."""
        raise NotImplementedError


class ActiveMQ(Dialect):
    """ActiveMQ Classic."""

    __slots__ = ()
    hoards_acknowledgements = True

    def special(self) -> re.Pattern[str]:
        """Lists, wildcards, options, and blanks that it strips."""
        return _ACTIVEMQ_SPECIAL

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Prefetch in messages; a durable subscription belongs to the client id of CONNECT."""
        headers = {**self.address(_destination(source)), "activemq.prefetchSize": str(window)}
        if isinstance(source, Subscription) and source.name is not None:
            headers["activemq.subscriptionName"] = source.name
        return headers

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By its name."""
        return {"activemq.subscriptionName": source.name or ""}


class Artemis(Dialect):
    """Apache Artemis, whose acceptor needs no prefixes."""

    __slots__ = ()
    acknowledges_in_transaction = False

    def special(self) -> re.Pattern[str]:
        """Wildcards, and queues named together with their address."""
        return _ARTEMIS_SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """The bare name, and how it is routed."""
        return {"destination": self.checked(to), "destination-type": _ROUTING[to.kind]}

    def read_address(self, text: str) -> Destination | None:
        """As Artemis' JMS client writes it; a bare name does not tell the kind."""
        kind, mark, name = text.partition("://")
        return destination(name, kind) if mark and name and kind in _ROUTING else None

    def reply_to(self, message: Message) -> str | None:
        """As Artemis' JMS client writes it."""
        return f"{message.reply_to.kind}://{message.reply_to.name}" if message.reply_to else None

    def extras(self, message: Message) -> dict[str, str]:
        """It also holds messages back."""
        due = message.delivery_time
        delay = {"AMQ_SCHEDULED_TIME": str(round(due.timestamp() * 1000))} if due else {}
        return {**Dialect.extras(self, message), **delay}

    def content(self, frame: Frame) -> Content:
        """It gives every body a length and no type, so the bytes decide."""
        del frame
        return Content.GUESS

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """The window counts bytes."""
        to = _destination(source)
        headers = {
            "destination": self.checked(to),
            "subscription-type": _ROUTING[to.kind],
            "consumer-window-size": str(window * _ARTEMIS_BYTES),
        }
        if isinstance(source, Subscription) and source.name is not None:
            headers["durable-subscription-name"] = _artemis_name(source)
        return headers

    def selector(self, text: str) -> dict[str, str]:
        """As ActiveMQ does by itself: what came over STOMP is text, and compares as the number that it holds."""
        return {"selector": f"convert_string_expressions:{text}"}

    def is_full(self, held: int, size: int, window: int) -> bool:
        """By bytes. It counts them its own way, so half of the window is taken for all of it."""
        del held
        return 2 * size >= window * _ARTEMIS_BYTES

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By its name."""
        return {"durable-subscription-name": _artemis_name(source)}


class RabbitMQ(Dialect):
    """RabbitMQ with its STOMP plug-in."""

    __slots__ = ()
    returns_by_nack = True
    confirms_before_commit = False

    def special(self) -> re.Pattern[str]:
        """Wildcards, and what it would decode."""
        return _RABBITMQ_SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """A slash in a name is the one character that it decodes."""
        name = self.checked(to).replace("/", "%2F")
        return {"destination": f"/{to.kind}/{name}"}

    def read_address(self, text: str) -> Destination | None:
        """What it writes itself is encoded as in a URL."""
        found = _PREFIXED.match(text)
        return destination(unquote(found[2]), found[1]) if found else None

    def extras(self, message: Message) -> dict[str, str]:
        """The message id as AMQP knows it, and what is left of the message's time, in milliseconds."""
        name = {"amqp-message-id": message.message_id} if message.message_id else {}
        if message.expiration is None:
            return name
        left = message.expiration.timestamp() - (message.timestamp or message.expiration).timestamp()
        return {**name, "expiration": str(max(round(left * 1000), 0))}

    def content(self, frame: Frame) -> Content:
        """By its MIME type."""
        return Content.TEXT if frame.headers.get("content-type", "").startswith("text/") else Content.BYTES

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """A durable subscription is a queue, named after the client id and the subscription."""
        headers = {**self.address(_destination(source)), "prefetch-count": str(window)}
        if isinstance(source, Subscription) and source.name is not None:
            headers |= {"durable": "true", "auto-delete": "false", **self.unsubscribe(source)}
        return headers

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By the name of its queue, which names the topic too, so that two topics never share one."""
        return {"durable": "true", "x-queue-name": self.queue_of(source)}

    def refuses_all_of(self, text: str, sends: int) -> bool:
        """It stops at the first one that it refuses; only of a single one is it known which that was."""
        return sends == 1 and "access_refused" in text

    def look_for(self, source: Subscription) -> dict[str, str]:
        """The headers of a SUBSCRIBE that fails if there is no such subscription."""
        return {
            "destination": f"/amq/queue/{self.queue_of(source)}",
            "ack": "client-individual",
            "prefetch-count": "1",
        }

    def queue_of(self, source: Subscription) -> str:
        """The queue of a durable subscription; a percent sign would be decoded."""
        return ":".join(
            quote(part or "", safe="").replace("%", "=") for part in (source.topic.name, source.client_id, source.name)
        )


_ACTIVEMQ_SPECIAL = re.compile(r"[,*>?]|\A\s|\s\Z")
_ARTEMIS_SPECIAL = re.compile(r"[*#]|::")
_RABBITMQ_SPECIAL = re.compile(r"[*#]|%2[Ff]")
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
_ARTEMIS_BYTES = 1024  # of its window for each message that may be unsettled


def choose_dialect(server: str, version: str) -> Dialect:
    """Choose by the header ``server`` of CONNECTED; one that nobody knows gets the conservative minimum."""
    product = server.partition("/")[0]
    kind, broker = _KNOWN.get(product, (ActiveMQ, UNKNOWN))
    return kind(broker, version)


_KNOWN: dict[str, tuple[type[Dialect], Broker]] = {
    "ActiveMQ": (ActiveMQ, ACTIVEMQ),
    "ActiveMQ-Artemis": (Artemis, ARTEMIS),
    "RabbitMQ": (RabbitMQ, RABBITMQ),
}


def _destination(source: Destination | Subscription) -> Destination:
    return source.topic if isinstance(source, Subscription) else source


def _artemis_name(source: Subscription) -> str:
    """The name, its dots escaped: Artemis joins it to the client id with a dot."""
    return (source.name or "").replace("\\", "\\\\").replace(".", "\\.")
