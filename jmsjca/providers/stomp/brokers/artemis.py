"""Apache Artemis over STOMP: its dialect and capabilities."""

import re

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.errors import NotSupportedError
from jmsjca.messages import Message
from jmsjca.providers.common.broker_profile import BrokerProfile, identifiers_in, to_artemis_filter
from jmsjca.providers.stomp.brokers.dialect import Dialect, destination_of
from jmsjca.providers.stomp.codec import Content
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Capabilities

__all__ = ["ARTEMIS", "Artemis"]

_SPECIAL = re.compile(r"[*#]|::")
_ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
_KINDS: dict[str | None, Content] = {"0": Content.NONE, "3": Content.BYTES, "5": Content.TEXT}
_BYTES = 1024  # of the window for each message that may be unsettled


class Artemis(Dialect):
    """Apache Artemis. Its destination names have no prefixes."""

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_in_order = True  # it ends the connection at the first SEND that it refuses
    duplicate_ids_before_transaction = True
    confirms_unknown_unsubscribe = True

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern of wildcards, and of queues named together with their address."""
        return _SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """Return the bare name and the routing type."""
        return {"destination": self.checked_name(to), "destination-type": _ROUTING[to.kind]}

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination in the form of Artemis' JMS client; a bare name has no kind, so it returns None."""
        kind, mark, name = text.partition("://")
        return destination(name, kind) if mark and name and kind in _ROUTING else None

    def reply_to(self, message: Message) -> str | None:
        """Return the destination of replies in the form of Artemis' JMS client."""
        return f"{message.reply_to.kind}://{message.reply_to.name}" if message.reply_to else None

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Return the expiration and delivery time."""
        due = message.delivery_time
        delay = {"AMQ_SCHEDULED_TIME": str(round(due.timestamp() * 1000))} if due else {}
        return {**Dialect.broker_headers(self, message), **delay}

    def content(self, frame: Frame) -> Content:
        """Return the kind of a body: the bytes decide, unless a header of AMQP gives it. Each body has a length."""
        if frame.headers.get("JMS_AMQP_ContentType", "").startswith("text/"):
            return Content.TEXT
        return _KINDS.get(frame.headers.get("JMS_AMQP_MA_x-opt-jms-msg-type"), Content.GUESS)

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE; the window counts bytes."""
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
        """Return the selector. Text that holds a number compares as that number, as in ActiveMQ: STOMP sends only text.

        Raises:
            NotSupportedError: It selects by message id, which the broker does not know over STOMP.
        """
        if "JMSMessageID" in identifiers_in(text):
            raise NotSupportedError("Over STOMP Artemis knows no JMSMessageID: select by a property, or use amqp://.")
        return {"selector": f"convert_string_expressions:{to_artemis_filter(text)}"}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """Compare bytes. The broker counts them differently, so half of the window is taken for all of it."""
        del held
        return 2 * size >= window * _BYTES

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the header with the name of the subscription."""
        return {"durable-subscription-name": _name(source)}


def _name(source: Subscription) -> str:
    """Return the name with escaped dots: Artemis joins it to the client id with a dot."""
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
