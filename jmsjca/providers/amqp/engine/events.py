"""Who a link and its session belong to, and how they hear of what happens."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from proton import Collector, Event

from jmsjca.providers.amqp.proton_calls import (
    Pointer,
    delivery_of,
    event_type,
    link_of,
    next_event,
    pointer_to,
    pop_event,
    session_of,
)

__all__ = ["Events", "Owner"]

_DELIVERY: int = Event.DELIVERY.number
_SESSION_OPEN: int = Event.SESSION_REMOTE_OPEN.number
_SESSION_END: int = Event.SESSION_REMOTE_CLOSE.number
_LINK_OPEN: int = Event.LINK_REMOTE_OPEN.number
_OPENINGS = {_SESSION_OPEN, _LINK_OPEN}
_LINK_FLOW: int = Event.LINK_FLOW.number
_LINK_ENDS: set[int] = {Event.LINK_REMOTE_CLOSE.number, Event.LINK_REMOTE_DETACH.number}
_NEWS_OF_OWNERS = {_LINK_FLOW, _SESSION_END} | _OPENINGS | _LINK_ENDS


class Owner(Protocol):
    """Who a link belongs to. It is told what happens, on the engine's thread."""

    def on_open(self) -> None:
        """The broker attached the link."""
        ...

    def on_detach(self) -> None:
        """The broker ended the link."""
        ...

    def on_end(self) -> None:
        """The broker ended the link's session."""
        ...

    def on_flow(self) -> None:
        """Credit changed."""
        ...

    def on_delivery(self, delivery: Pointer) -> bool:
        """A message came, or the state of one changed. True if nothing else on this link is news any more."""
        ...

    def on_lost(self, error: Any) -> None:
        """The connection is gone."""
        ...


class Events:
    """Tells owners and the connection what proton has noticed.

    Args:
        collector: Where proton notes it.
        connection: What to do for the events of the connection itself, by their numbers.
        stranger: What to do when the broker opens a session or a link of its own.

    Attributes:
        owners: By their links and sessions.
    """

    def __init__(
        self, collector: Collector, connection: Mapping[int, Callable[[], None]], stranger: Callable[[], None]
    ) -> None:
        self._collector = pointer_to(collector)
        self._connection = connection
        self._news = _NEWS_OF_OWNERS.union(connection)
        self._stranger = stranger
        self.owners: dict[Pointer, Owner] = {}

    def waiting(self) -> bool:
        """True if there is something to tell."""
        return bool(next_event(self._collector))

    def dispatch(self) -> None:
        """Tell everything.

        A receiver that took one message has taken all that are there: their events are no news.
        """
        collector = self._collector
        told: Pointer = None
        while event := next_event(collector):
            kind = event_type(event)
            if kind == _DELIVERY:
                if (link := link_of(event)) != told:
                    owner = self.owners.get(link)
                    told = link if owner and owner.on_delivery(delivery_of(event)) else None
            elif kind in self._news:  # what else there is comes with everything that is written
                self._tell(kind, event)
            pop_event(collector)

    def _tell(self, kind: int, event: Pointer) -> None:
        if kind in self._connection:
            self._connection[kind]()
            return
        owner = self.owners.get(link_of(event) or session_of(event))
        if owner is None:
            if kind in _OPENINGS:
                self._stranger()
        elif kind == _LINK_FLOW:
            owner.on_flow()
        elif kind == _LINK_OPEN:
            owner.on_open()
        elif kind in _LINK_ENDS:
            owner.on_detach()
        elif kind == _SESSION_END:
            owner.on_end()
