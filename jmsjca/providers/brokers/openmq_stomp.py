"""The STOMP bridge of Open MQ: its dialect and capabilities."""

import re
from collections.abc import Mapping
from typing import ClassVar

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.messages import DeliveryMode, Message
from jmsjca.providers.brokers.profile import BrokerProfile
from jmsjca.providers.common.codec import METADATA_HEADER
from jmsjca.providers.stomp.codec import Content, is_property
from jmsjca.providers.stomp.dialect import INDIVIDUAL_ACK_PREFIX, Dialect, destination_of, time_to_live
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.spi import Capabilities

__all__ = ["OPENMQ", "OpenMQ"]

# The name of a destination is a Java identifier that may hold dots. A longer one is too long for a directory: the
# broker shuts down when it must store a message there.
_SPECIAL = re.compile(r"\A(?![^\W\d]|\$)|[^\w.$]|\Amq\.")
_PROPERTY = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)  # Java and Python differ in what is a letter
_TEMPORARY = re.compile(r"/temp-(queue|topic)/(temporary_destination://.+)\Z", re.DOTALL)
_SETTLED = re.compile(r"ACK: \[BSS4028\].*(ID:\S+).* (" + INDIVIDUAL_ACK_PREFIX + r"\d+)\Z", re.DOTALL)
_MODE = f"{METADATA_HEADER}_mode"


class OpenMQ(Dialect):
    """Open MQ, the broker of GlassFish.

    Its bridge sends the whole backlog of a queue, and reports an error for each ``ACK`` of a single message after
    carrying it out: https://github.com/eclipse-ee4j/openmq, StompSubscriberSession.ack.
    """

    __slots__ = ()
    acknowledges_in_transaction = False
    confirms_in_order = True
    names_refused = False
    acks_cumulatively = True
    recreates_changed_subscriptions = True
    may_withhold_first_message = True
    max_name_bytes: ClassVar[int | None] = 200
    no_local: ClassVar[Mapping[str, str]] = {"no-local": "true"}

    def forbidden_in_names(self) -> re.Pattern[str]:
        """Return the pattern that matches invalid identifiers and the broker's own names."""
        return _SPECIAL

    def address(self, to: Destination, *, subscribed: bool = False) -> dict[str, str]:
        """Return the headers of a SEND; a temporary destination has the address of the request's reply-to."""
        if to.temporary:
            return {"destination": f"/temp-{to.kind}/{to.name}"}
        return Dialect.address(self, to, subscribed=subscribed)

    def read_address(self, text: str) -> Destination | None:
        """Parse a destination in the form of its JMS clients."""
        found = _TEMPORARY.match(text)
        return destination(found[2], found[1], temporary=True) if found else Dialect.read_address(self, text)

    def broker_headers(self, message: Message) -> dict[str, str]:
        """Return the time to live in milliseconds, and the delivery mode, which the broker does not pass on."""
        mode = {_MODE: "true" if message.delivery_mode is DeliveryMode.PERSISTENT else "false"}
        if message.expiration is None:
            return mode
        return {**mode, "expires": str(max(time_to_live(message, message.expiration), 1))}

    def is_header_property(self, name: str) -> bool:
        """Return True if the name is an identifier: the bridge makes a property of each header, or refuses it."""
        return is_property(name) and bool(_PROPERTY.match(name))

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Decode a MESSAGE frame. Messages of other clients are taken for persistent, their default."""
        headers = {**frame.headers, "persistent": frame.headers.get(_MODE, "true")}
        return Dialect.decode(self, frame._replace(headers=headers), source, **delivered)

    def content(self, frame: Frame) -> Content:
        """Return GUESS: each body has a length and no type."""
        del frame
        return Content.GUESS

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Return the headers of SUBSCRIBE, without a window. A durable subscription belongs to CONNECT's client id."""
        del window
        return {**self.address(destination_of(source)), **self._named(source)}

    def is_window_full(self, held: int, size: int, window: int) -> bool:
        """Return False: the window is unlimited."""
        del held, size, window
        return False

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """Return the header with the name of the subscription."""
        return self._named(source)

    def acknowledgement(self, frame: Frame) -> dict[str, str]:
        """Return the headers of an ACK. One of a single message has a receipt that `receipt_confirmed_by` can find."""
        name = frame.headers["ack"]
        return (
            {"id": name, "receipt": name}
            if frame.headers["subscription"].startswith(INDIVIDUAL_ACK_PREFIX)
            else {"id": name}
        )

    def receipt_confirmed_by(self, error: Frame) -> str | None:
        """Return the receipt of an ACK that the bridge carried out before it reported that the message is unknown."""
        found = _SETTLED.match(error.headers.get("message", ""))
        return found[2] + found[1] if found else None

    def _named(self, source: Destination | Subscription) -> dict[str, str]:
        name = source.name if isinstance(source, Subscription) else None
        return {} if name is None else {"durable-subscriber-name": name}


OPENMQ = BrokerProfile(
    "Eclipse OpenMQ(tm)",
    "STOMP",
    "6.5.1",
    Capabilities(
        transacted_send=True,
        give_back="local",
        priority=True,
        durable=True,
        subscription_lock=True,
        client_ids=True,
        no_local=True,
        durable_no_local=True,
        structured=True,
        shared_between_processes=True,
    ),
)
