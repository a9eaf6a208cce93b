"""Dispatches proton's events to the handlers of connections, sessions and links."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from proton import Collector, Connection, Event, Transport

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine.proton_ffi import (
    SASL_OK,
    Pointer,
    delivery_of,
    event_type,
    link_of,
    next_event,
    pointer_to,
    pop_event,
    session_of,
)
from jmsjca.providers.amqp.errors import connection_error, transport_error

__all__ = ["ConnectionHandler", "EndpointHandler", "EventDispatcher"]

_DELIVERY: int = Event.DELIVERY.number
_SESSION_OPEN: int = Event.SESSION_REMOTE_OPEN.number
_SESSION_CLOSE: int = Event.SESSION_REMOTE_CLOSE.number
_LINK_OPEN: int = Event.LINK_REMOTE_OPEN.number
_REMOTE_OPENS = {_SESSION_OPEN, _LINK_OPEN}
_LINK_FLOW: int = Event.LINK_FLOW.number
_LINK_DETACHES: set[int] = {Event.LINK_REMOTE_CLOSE.number, Event.LINK_REMOTE_DETACH.number}
_ENDPOINT_EVENTS = {_LINK_FLOW, _SESSION_CLOSE} | _REMOTE_OPENS | _LINK_DETACHES


class EndpointHandler(Protocol):
    """Who a link belongs to. It is told what happens, on the engine's thread."""

    def on_attached(self) -> None:
        """The broker attached the link."""
        ...

    def on_detached(self) -> None:
        """The broker ended the link."""
        ...

    def on_session_ended(self) -> None:
        """The broker ended the link's session."""
        ...

    def on_flow(self) -> None:
        """Credit changed."""
        ...

    def on_delivery(self, delivery: Pointer) -> bool:
        """A message came, or the state of one changed. True if nothing else on this link is news any more."""
        ...

    def on_connection_lost(self, error: Any) -> None:
        """The connection is gone."""
        ...


class EventDispatcher:
    """Tells owners and the connection what proton has noticed.

    Args:
        collector: Where proton notes it.
        connection: What to do for the events of the connection itself, by their numbers.
        stranger: What to do when the broker opens a session or a link of its own.

    Attributes:
        owners: By their links and sessions.
    """

    def __init__(
        self,
        collector: Collector,
        connection_handlers: Mapping[int, Callable[[], None]],
        on_unexpected_endpoint: Callable[[], None],
    ) -> None:
        self._collector = pointer_to(collector)
        self._connection_handlers = connection_handlers
        self._handled_events = _ENDPOINT_EVENTS.union(connection_handlers)
        self._on_unexpected_endpoint = on_unexpected_endpoint
        self.handlers: dict[Pointer, EndpointHandler] = {}

    def has_events(self) -> bool:
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
                    owner = self.handlers.get(link)
                    told = link if owner and owner.on_delivery(delivery_of(event)) else None
            elif kind in self._handled_events:  # what else there is comes with everything that is written
                self._dispatch_one(kind, event)
            pop_event(collector)

    def _dispatch_one(self, kind: int, event: Pointer) -> None:
        if kind in self._connection_handlers:
            self._connection_handlers[kind]()
            return
        owner = self.handlers.get(link_of(event) or session_of(event))
        if owner is None:
            if kind in _REMOTE_OPENS:
                self._on_unexpected_endpoint()
        elif kind == _LINK_FLOW:
            owner.on_flow()
        elif kind == _LINK_OPEN:
            owner.on_attached()
        elif kind in _LINK_DETACHES:
            owner.on_detached()
        elif kind == _SESSION_CLOSE:
            owner.on_session_ended()


_MIN_IDLE_TIMEOUT = 0.01  # seconds; half of a shorter one is next to none, and heartbeats would be all that we do
_IDLE_TIMEOUT_TOO_SHORT = (
    "The broker ends connections that are silent for {:g} ms (its idle-time-out): nobody can keep that up."
)


class ConnectionHandler:
    """Everything happens on the engine's thread.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        give_up: Is told why the connection must be given up.

    Attributes:
        opened: Done when the broker has opened the connection.
        properties: What the broker tells of itself.
        closing: True when its end is what we want.
    """

    def __init__(
        self, connection: Connection, transport: Transport, fail_connection: Callable[[JMSError], None]
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._fail_connection = fail_connection
        self.opened: Future[None] = Future()
        self.properties: dict[Any, Any] = {}
        self.closing = False
        self._loss_suppressed = False

    @property
    def reports_loss(self) -> bool:
        """True if somebody is to hear of its end."""
        return not (self.closing or self._loss_suppressed)

    def suppress_loss_report(self, *, on: bool) -> None:
        """From here on nobody is to hear of its end, or somebody is again."""
        self._loss_suppressed = on

    def event_handlers(self) -> Mapping[int, Callable[[], None]]:
        """What to do for the events of the connection, by their numbers."""
        return {
            Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
            Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
            Event.TRANSPORT_ERROR.number: self._on_error,
        }

    def on_unexpected_endpoint(self) -> None:
        """Leave a broker that opens sessions or links of its own: nobody would ever close them."""
        self._fail_connection(ConnectionLostError("The broker opened a session or link of its own, which none should."))

    def fail_opening(self, error: JMSError) -> None:
        """Tell who waits for the opening that it does not come."""
        if not self.opened.done():
            self.opened.set_exception(error)

    def _on_open(self) -> None:
        if self._transport.sasl().outcome != SASL_OK:  # proton takes an open frame in the midst of the login
            self._fail_connection(ConnectionLostError("The broker opened the connection before it answered the login."))
            return
        if 0 < self._transport.remote_idle_timeout < _MIN_IDLE_TIMEOUT:
            self._fail_connection(
                ConnectionLostError(_IDLE_TIMEOUT_TOO_SHORT.format(self._transport.remote_idle_timeout * 1000))
            )
            return
        properties: Any = self._connection.remote_properties  # whatever the broker sent for them
        self.properties = dict(properties) if hasattr(properties, "items") else {}
        failed = "amqp:connection-establishment-failed" in self.properties
        if not failed and not self.opened.done():  # else the reason follows
            self.opened.set_result(None)

    def _on_close(self) -> None:
        if not self.closing:
            self._fail_connection(connection_error(self._connection.remote_condition, self._connection.container))

    def _on_error(self) -> None:
        if not self.closing:
            self._fail_connection(transport_error(self._transport, self._connection.container))
