"""Dialects: the differences between brokers over STOMP."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from jmsjca.config.connection_url import check_text
from jmsjca.destinations import Destination, Queue, Subscription, Topic, destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.messages import Message
from jmsjca.messages.message import time_of_send
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.stomp.codec import Content, HeaderRules, Outgoing, decode, encode, is_header_value, is_property
from jmsjca.providers.stomp.errors import translating_errors
from jmsjca.providers.stomp.protocol.frames import Frame, encode_frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = [
    "INDIVIDUAL_ACK_PREFIX",
    "TRANSACTION",
    "Dialect",
    "destination_of",
    "quote_client_id",
    "time_to_live",
]

TRANSACTION = {"transaction": "t"}
"""The header that makes a frame part of the only transaction of a connection."""

INDIVIDUAL_ACK_PREFIX = "i"
"""Prefix of the ids of subscriptions whose messages are acknowledged one by one."""

_PREFIXED = re.compile(r"/(queue|topic)/(.+)\Z", re.DOTALL)
"""The form of destination names of most brokers."""


@dataclass(frozen=True, slots=True)
class Dialect(ABC):
    """The differences of one kind of broker: headers, names, and semantics of transactions and acknowledgements.

    Args:
        broker: The profile of the broker.
        version: The version of STOMP of the connection.
        java_maps: True to exchange maps with Java clients.
        server: The header ``server`` of the login response: product and version.
        existing: By name, whether a queue was declared by clients of another protocol. Of this connection.
    """

    broker: BrokerProfile
    version: str
    java_maps: bool = False
    server: str = ""
    existing: dict[str, bool] = field(default_factory=dict[str, bool], compare=False)

    #: True if a transaction may contain acknowledgements.
    acknowledges_in_transaction = True
    #: True if the receipt of a SEND arrives before the COMMIT of its transaction.
    confirms_before_commit = True
    #: True if the receipt of the last SEND confirms those before it, or else the COMMIT fails.
    confirms_in_order = False
    #: True if the ERROR of a refused SEND names its receipt, or says in its text that a SEND was refused.
    names_refused = True
    #: True if a refused SEND makes the COMMIT fail, and is also reported by an ERROR that names no frame, at any time.
    refuses_commit_after_failed_send = False
    #: True if one ACK in a transaction settles all messages of its subscription up to that one.
    acks_cumulatively = False
    #: The headers of a SUBSCRIBE that excludes messages sent by its own connection.
    no_local: ClassVar[Mapping[str, str]] = {}
    #: True if the broker recreates a durable subscription that changes its topic or selector, as JMS requires.
    recreates_changed_subscriptions = False
    #: True if a transaction fails for a message with a known duplicate id. Messages with such ids are sent before the
    #: transaction, where the broker drops duplicates.
    duplicate_ids_before_transaction = False
    #: True if the broker confirms the removal of durable subscriptions that do not exist.
    confirms_unknown_unsubscribe = False
    #: True if messages return to the broker by NACK, and not by the end of their subscription.
    returns_by_nack = False
    #: True if the broker may withhold the first message of a subscription until another one arrives.
    may_withhold_first_message = False
    #: Text in an ERROR without a frame that shows that the only SEND of a unit was refused; None if there is no text.
    refusal_of_send: ClassVar[str | None] = None
    #: The largest size of a destination's name in UTF-8, in bytes; None for no limit.
    max_name_bytes: ClassVar[int | None] = None
    #: True if the broker keeps a list of transacted acknowledgements until an abort, and slows down by it.
    needs_abort_after_commit = False

    #: The words that are wildcards in the name of a subscribed topic.
    wildcards: ClassVar[tuple[str, ...]] = ()

    def encode(self, message: Message, to: Destination) -> Outgoing:
        """Encode a message."""
        return encode(
            message,
            {**self.address(to), **self.broker_headers(message)},
            self.reply_to(message),
            HeaderRules(self.is_header_property, self.is_header_value),
        )

    def send_frame(self, outgoing: Outgoing) -> bytes:
        """Encode a SEND frame without a transaction."""
        if outgoing.sized:
            return encode_frame("SEND", outgoing.headers, outgoing.body, version=self.version)
        return encode_frame("SEND", outgoing.headers, version=self.version)[:-1] + outgoing.body + b"\0"

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Decode a MESSAGE frame from a source. The other arguments become delivery headers."""

        def more() -> dict[str, object]:
            """Return the headers that the frame alone does not give."""
            named = self.read_address(frame.headers["destination"])
            same_kind = named is not None and isinstance(named, Queue) is isinstance(source, Queue)
            return {"destination": named if same_kind else source, **delivered}

        return decode(frame, self.content(frame), self.read_address, more)

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """Return the headers of the ACK of a MESSAGE frame."""
        if self.version == "1.1":
            return {name: frame.headers[name] for name in ("message-id", "subscription")}
        return {"id": frame.headers["ack"]}

    def address(self, to: Destination, *, subscribed: bool = False) -> dict[str, str]:
        """Return the headers of a SEND to a destination, or of a SUBSCRIBE, in which a topic may have wildcards."""
        return {"destination": f"/{to.kind}/{self.checked_name(to, subscribed=subscribed)}"}

    def look_up(self, to: Destination, open_side_session: Callable[[], STOMPSession]) -> None:  # noqa: B027
        """Find out how a destination is addressed, before it is first used.

        Args:
            to: The destination.
            open_side_session: Opens another session, for requests that the broker may refuse.
        """

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination as the broker writes it; None if it cannot be used."""
        found = _PREFIXED.match(text)
        return destination(found[2], found[1]) if found else None

    def reply_to(self, message: Message) -> str | None:
        """Return the destination of replies in the form that other clients of this broker read."""
        return self.address(message.reply_to)["destination"] if message.reply_to else None

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Return the headers of SEND that are specific to this broker."""
        expires = message.expiration
        return {"expires": str(round(expires.timestamp() * 1000))} if expires else {}

    def is_header_property(self, name: str) -> bool:
        """Return True if a property of this name may travel as a separate header."""
        return is_property(name)

    def is_header_value(self, text: str) -> bool:
        """Return True if the broker hands a header with this value over as it is."""
        return is_header_value(text)

    def content(self, frame: Frame) -> Content:
        """Return the kind of a body that another client sent."""
        return Content.BYTES if "content-length" in frame.headers else Content.TEXT

    def checked_name(self, to: Destination, *, subscribed: bool = False) -> str:
        """Return the name of a destination, which the broker must take literally.

        Args:
            to: The destination.
            subscribed: True if words of a topic's name may be wildcards of the broker.

        Raises:
            InvalidDestinationError: The broker would interpret it, or it is too long, or holds NUL or half of a
                surrogate pair.
        """
        check_text(to.name, f"The name {to.name!a:.200}", InvalidDestinationError)
        is_pattern = subscribed and self.wildcards and isinstance(to, Topic) and not to.temporary
        words = [word for word in to.name.split(".") if not is_pattern or word not in self.wildcards]
        if self.forbidden_in_names().search(".".join(words)):
            raise InvalidDestinationError(
                f"{self.broker.name} would not take the name of {to} literally over STOMP: choose another name."
            )
        if self.max_name_bytes is not None and len(to.name.encode()) > self.max_name_bytes:
            raise InvalidDestinationError(f"{self.broker.name} has no names of more than {self.max_name_bytes} bytes.")
        return to.name

    @abstractmethod
    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern of what a name cannot hold."""

    @abstractmethod
    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE for a window of unsettled messages."""

    def receipt_confirmed_by(self, error: Frame) -> str | None:
        """Return the receipt that an ERROR stands for; None if it is a real error."""
        del error
        return None

    def selector(self, text: str) -> dict[str, str]:
        """Return the selector headers of SUBSCRIBE."""
        return {"selector": text}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """Return True if `held` unsettled messages of `size` bytes exhaust a window."""
        del size
        return held >= window

    def parking_subscription(self) -> dict[str, str]:
        """Return the headers of a SUBSCRIBE that receives nothing, for brokers that return messages by NACK."""
        raise NotImplementedError

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the headers of an UNSUBSCRIBE that removes a durable subscription."""
        raise NotImplementedError

    def recreates_changed(
        self, source: Subscription, selector: str | None, open_side_session: Callable[[], STOMPSession]
    ) -> bool:
        """Return True if a durable subscription is recreated where it has another topic or selector (JMS 3.1, 8.3.3).

        Args:
            source: The subscription, of which a consumer is to be opened.
            selector: Its selector.
            open_side_session: Opens another session, for requests that the broker may refuse.

        Raises:
            JMSError: It exists with another topic or selector, and cannot be replaced.
        """
        del source, selector, open_side_session
        return self.recreates_changed_subscriptions

    def check_subscribable(self, side: STOMPSession, topic: Topic, chosen: Mapping[str, str]) -> None:
        """Raise an error if the broker refuses a topic or the headers of a selector.

        A side session subscribes to the topic: a durable subscription may be removed only if its successor is accepted.

        Raises:
            JMSError: The broker refuses.
        """
        with translating_errors(f"consume from {topic}"):
            side.request("SUBSCRIBE", {"id": "probe", "ack": "client", **chosen, **self.subscribe(topic, 1)})

    def remove_subscription(
        self, session: STOMPSession, source: Subscription, open_side_session: Callable[[], STOMPSession]
    ) -> None:
        """Remove a durable subscription at the broker.

        Args:
            session: The session of the connection.
            source: The subscription.
            open_side_session: Opens another session, for requests that the broker may refuse.

        Raises:
            InvalidDestinationError: The broker has no such subscription.
            ConnectionLostError: The broker refused, or the connection broke.
        """
        del open_side_session
        session.request("UNSUBSCRIBE", {"id": "none", **self.unsubscribe(source)})


def quote_client_id(client_id: str) -> str:
    """Quote a client id that has outer blanks, which ActiveMQ strips, or looks quoted: ids must stay distinct."""
    quoted = client_id.startswith("'") and client_id.endswith("'")
    return f"'{client_id}'" if quoted or client_id != client_id.strip() else client_id


def destination_of(source: Destination | Subscription) -> Destination:
    """Return the destination of a source: the topic of a subscription, else the destination itself."""
    return source.topic if isinstance(source, Subscription) else source


def time_to_live(message: Message, expiration: datetime) -> int:
    """Return the milliseconds from the timestamp of a message, or from now if it has none, to its expiration."""
    return round((expiration - (message.timestamp or time_of_send())).total_seconds() * 1000)
