"""What ActiveMQ Classic wants."""

import re
from collections.abc import Mapping
from typing import ClassVar

from jmsjca.destinations import Destination, Subscription, destination
from jmsjca.messages import MapMessage, Message
from jmsjca.providers.stomp.codec import Outgoing
from jmsjca.providers.stomp.dialect import Dialect, destination_of
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.java_maps import ASKED, read_map, with_map

__all__ = ["ActiveMQ", "RecentActiveMQ"]

_TEMPORARY = re.compile(r"/remote-temp-(queue|topic)/(.+)\Z", re.DOTALL)
_SPECIAL = re.compile(r"[,*>?]|\A\s|\s\Z")


class ActiveMQ(Dialect):
    """ActiveMQ Classic.

    A SEND without a receipt that it refuses dooms the transaction; one with a receipt does not.
    """

    __slots__ = ()
    hoards_acknowledgements = True
    confirms_in_order = True
    refuses_commits = True
    no_local: ClassVar[Mapping[str, str]] = {"activemq.noLocal": "true"}
    moves_subscriptions = True

    def special(self) -> re.Pattern[str]:
        """Lists, wildcards, options, and blanks that it strips."""
        return _SPECIAL

    def address(self, to: Destination) -> dict[str, str]:
        """A temporary destination is addressed by the name that others know."""
        if to.temporary:
            return {"destination": f"/remote-temp-{to.kind}/{self.checked(to)}"}
        return Dialect.address(self, to)

    def read_address(self, text: str) -> Destination | None:
        """As others see it."""
        found = _TEMPORARY.match(text)
        return destination(found[2], found[1], temporary=True) if found else Dialect.read_address(self, text)

    def encode(self, message: Message, to: Destination) -> Outgoing:
        """A map is one for Java, too, if the broker can read it."""
        outgoing = Dialect.encode(self, message, to)
        return with_map(outgoing, message) if self.java_maps and isinstance(message, MapMessage) else outgoing

    def decode(self, frame: Frame, source: Destination, **delivered: object) -> Message:
        """Read a MESSAGE frame, also with a map of Java's."""
        return Dialect.decode(self, read_map(frame), source, **delivered)

    def subscribe(self, source: Destination | Subscription, window: int) -> dict[str, str]:
        """Prefetch in messages; a durable subscription belongs to the client id of CONNECT."""
        headers = {**self.address(destination_of(source)), "activemq.prefetchSize": str(window)}
        if self.java_maps:
            headers |= ASKED
        if isinstance(source, Subscription) and source.name is not None:
            headers["activemq.subscriptionName"] = source.name
        return headers

    def unsubscribe(self, source: Subscription) -> dict[str, str]:
        """By its name."""
        return {"activemq.subscriptionName": source.name or ""}


class RecentActiveMQ(ActiveMQ):
    """Releases whose cumulative acknowledgements are part of the transaction that they name: seen of 6.3."""

    __slots__ = ()
    settles_up_to = True
