"""Apache Artemis over STOMP: its dialect."""

import re

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import NotSupportedError
from jmsjca.messages import Message
from jmsjca.providers.common.artemis_filter import identifiers_in, to_artemis_filter
from jmsjca.providers.common.broker_profile import BrokerProfile
from jmsjca.providers.stomp.brokers.dialect import (
    Dialect,
    destination_of,
)
from jmsjca.providers.stomp.codec import Content
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Capabilities

__all__ = ["ARTEMIS", "Artemis"]

_SPECIAL = re.compile(r"[*#]|::")
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
_KINDS: dict[str | None, Content] = {"0": Content.NONE, "3": Content.BYTES, "5": Content.TEXT}
_BYTES = 1024  # of its window for each message that may be unsettled


class Artemis(Dialect):
    """Apache Artemis, whose acceptor needs no prefixes."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_in_order = True  # it ends the connection at the first that it refuses
    duplicate_ids_before_transaction = True
    confirms_unknown_unsubscribe = True

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Wildcards, and queues named together with their address."""
        return _SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """The bare name, and how it is routed."""
        return {"destination": self.checked_name(to), "destination-type": _ROUTING[to.kind]}

    def read_address(self, text: str) -> Destination | None:
        """As Artemis' JMS client writes it; a bare name does not tell the kind."""
        kind, mark, name = text.partition("://")
        return destination(name, kind) if mark and name and kind in _ROUTING else None

    def reply_to(self, message: Message) -> str | None:
        """As Artemis' JMS client writes it."""
        return f"{message.reply_to.kind}://{message.reply_to.name}" if message.reply_to else None

    def broker_headers(self, message: Message) -> dict[str, str]:
        """It also holds messages back."""
        due = message.delivery_time
        delay = {"AMQ_SCHEDULED_TIME": str(round(due.timestamp() * 1000))} if due else {}
        return {**Dialect.broker_headers(self, message), **delay}

    def content(self, frame: Frame) -> Content:
        """It gives every body a length and no type, so the bytes decide, unless it came over AMQP, which tells."""
        if frame.headers.get("JMS_AMQP_ContentType", "").startswith("text/"):
            return Content.TEXT
        return _KINDS.get(frame.headers.get("JMS_AMQP_MA_x-opt-jms-msg-type"), Content.GUESS)

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """The window counts bytes."""
        to = destination_of(source)
        headers = {
            "destination": self.checked_name(to),
            "subscription-type": _ROUTING[to.kind],
            "consumer-window-size": str(window * _BYTES),
        }
        if isinstance(source, Subscription) and source.name is not None:
            headers["durable-subscription-name"] = _name(source)
        return headers

    def selector(self, text: str) -> dict[str, str]:
        """As ActiveMQ does by itself: what came over STOMP is text, and compares as the number that it holds.

        Raises:
            NotSupportedError: It is about message ids, which the broker is not told over STOMP.
        """
        if "JMSMessageID" in identifiers_in(text):
            raise NotSupportedError("Over STOMP Artemis knows no JMSMessageID: select by a property, or use amqp://.")
        return {"selector": f"convert_string_expressions:{to_artemis_filter(text)}"}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """By bytes. It counts them its own way, so half of the window is taken for all of it."""
        del held
        return 2 * size >= window * _BYTES

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By its name."""
        return {"durable-subscription-name": _name(source)}


def _name(source: Subscription) -> str:
    """The name, its dots escaped: Artemis joins it to the client id with a dot."""
    return (source.name or "").replace("\\", "\\\\").replace(".", "\\.")


ARTEMIS = BrokerProfile(
    "ActiveMQ-Artemis",
    "STOMP",
    "2.56.0",
    Capabilities(
        transacted_send=True,
        give_back="local",
        counts_lost=True,
        selectors=True,
        delivery_delay=True,
        priority=True,
        durable=True,
        duplicate_detection=True,
        structured=True,
        shared_between_processes=True,
    ),
)
