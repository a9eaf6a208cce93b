"""Dialects: the differences between brokers over STOMP."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from jmsjca.config.text import check_text
from jmsjca.destinations import Destination, Queue, Subscription, destination
from jmsjca.errors import InvalidDestinationError
from jmsjca.messages import Message
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.stomp.codec import Content, Outgoing, decode, encode, is_property
from jmsjca.providers.stomp.protocol.frames import Frame, encode_frame
from jmsjca.providers.stomp.protocol.session import STOMPSession

__all__ = [
    "INDIVIDUAL_ACK_PREFIX",
    "TRANSACTION",
    "Dialect",
    "destination_of",
]

TRANSACTION = {"transaction": "t"}
"""The header that makes a frame part of the one transaction that a connection has at a time."""

INDIVIDUAL_ACK_PREFIX = "i"
"""How the names of subscriptions begin whose messages are acknowledged one by one."""

_PREFIXED = re.compile(r"/(queue|topic)/(.+)\Z", re.DOTALL)
"""How most brokers name a destination."""


@dataclass(frozen=True, slots=True)
class Dialect(ABC):
    """How to talk to one kind of broker.

    Args:
        broker: What it can do.
        version: The version of STOMP that was agreed on.
        java_maps: True if maps travel as Java's clients see them.
    """

    broker: BrokerProfile
    version: str
    java_maps: bool = False

    #: True if acknowledgements may stand inside a transaction.
    acknowledges_in_transaction = True
    #: True if the receipt of a SEND comes before the COMMIT of its transaction.
    confirms_before_commit = True
    #: True if that of the last SEND tells that those before it were taken too, or the COMMIT will fail.
    confirms_in_order = False
    #: True if the ERROR of a refused SEND names its receipt, or says that it is what was refused.
    names_refused = True
    #: True if a refused SEND makes the COMMIT fail, and is told besides by an ERROR that names no frame, at any time.
    refuses_commit_after_failed_send = False
    #: True if one ACK in a transaction settles all that its subscription has sent up to that message.
    acks_cumulatively = False
    #: The headers of a SUBSCRIBE that spares a consumer what its own connection sends.
    no_local: ClassVar[Mapping[str, str]] = {}
    #: True if a subscription that changes its topic is made anew, as JMS wants it.
    recreates_moved_subscriptions = False
    #: True if a transaction fails for a message whose duplicate id is known. Those with such ids are sent before it,
    #: where the broker drops what it knows.
    duplicate_ids_before_transaction = False
    #: True if the broker confirms the removal of durable subscriptions that do not exist.
    confirms_unknown_unsubscribe = False
    #: True if messages go back to the broker by NACK, and not by the end of their subscription.
    returns_by_nack = False
    #: True if the first message of a subscription may be kept back, until another one comes.
    may_withhold_first_message = False
    #: True if the broker remembers what was acknowledged in transactions until one is aborted, and slows down by it.
    needs_abort_after_commit = False

    def encode(self, message: Message, to: Destination) -> Outgoing:
        """Write a message for the wire."""
        return encode(
            message,
            {**self.address(to), **self.broker_headers(message)},
            self.reply_to(message),
            self.is_header_property,
        )

    def send_frame(self, outgoing: Outgoing) -> bytes:
        """Write a SEND frame, which names no transaction."""
        if outgoing.sized:
            return encode_frame("SEND", outgoing.headers, outgoing.body, version=self.version)
        return encode_frame("SEND", outgoing.headers, version=self.version)[:-1] + outgoing.body + b"\0"

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Read a MESSAGE frame that came from a source; of how it was delivered the rest is given."""

        def more() -> dict[str, object]:
            """The headers that do not stand in the frame alone."""
            named = self.read_address(frame.headers["destination"])
            same_kind = named is not None and isinstance(named, Queue) is isinstance(source, Queue)
            return {"destination": named if same_kind else source, **delivered}

        return decode(frame, self.content(frame), self.read_address, more)

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """The headers that acknowledge a MESSAGE frame."""
        if self.version == "1.1":
            return {name: frame.headers[name] for name in ("message-id", "subscription")}
        return {"id": frame.headers["ack"]}

    def address(self, to: Destination) -> dict[str, str]:
        """The headers of SEND that say where to."""
        return {"destination": f"/{to.kind}/{self.checked_name(to)}"}

    def read_address(self, text: str) -> Destination | None:
        """The destination that the broker names; None if it is none that could be used."""
        found = _PREFIXED.match(text)
        return destination(found[2], found[1]) if found else None

    def reply_to(self, message: Message) -> str | None:
        """Where a reply should go, as others on this broker read it."""
        return self.address(message.reply_to)["destination"] if message.reply_to else None

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Headers of SEND that only this broker knows."""
        expires = message.expiration
        return {"expires": str(round(expires.timestamp() * 1000))} if expires else {}

    def is_header_property(self, name: str) -> bool:
        """True if the property of this name may travel as a header of its own."""
        return is_property(name)

    def content(self, frame: Frame) -> Content:
        """What kind of body it is that another client sent."""
        return Content.BYTES if "content-length" in frame.headers else Content.TEXT

    def checked_name(self, to: Destination) -> str:
        """The name, which the broker must take literally.

        Raises:
            InvalidDestinationError: The broker would read something into it, or it cannot be written.
        """
        check_text(to.name, f"The name {to.name!a:.200}", InvalidDestinationError)
        if self.forbidden_in_names().search(to.name):
            raise InvalidDestinationError(f"{self.broker.name} would not take the name of {to} literally over STOMP.")
        return to.name

    @abstractmethod
    def forbidden_in_names(self) -> re.Pattern[str]:
        """What a name cannot hold."""

    @abstractmethod
    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """The headers of SUBSCRIBE; the window is how many messages may be unsettled."""

    def receipt_confirmed_by(self, error: Frame) -> str | None:
        """The receipt that an ERROR stands for, if that is all that it means."""
        del error
        return None

    def refuses_all_of(self, text: str, sends: int) -> bool:
        """True if an ERROR that names no frame says that none of so many sends happened."""
        del text, sends
        return False

    def selector(self, text: str) -> dict[str, str]:
        """The header of SUBSCRIBE that selects."""
        return {"selector": text}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """True if so many unsettled messages, of so many bytes, are all that the broker sends for this window."""
        del size
        return held >= window

    def parking_subscription(self) -> dict[str, str]:
        """The headers of a SUBSCRIBE that nothing is sent to, for brokers that return by NACK."""
        raise NotImplementedError

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """The headers of UNSUBSCRIBE that also remove a durable subscription."""
        raise NotImplementedError

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


def destination_of(source: Destination | Subscription) -> Destination:
    """Where the messages of a source were sent to."""
    return source.topic if isinstance(source, Subscription) else source
