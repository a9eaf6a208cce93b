"""Dispatches proton's events to the handlers of connections, sessions and links."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from proton import Collector, Connection, Event, Transport

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine.heartbeat import idle_timeout_error
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
    """Handler of the events of a link and its session. All methods are called on the engine thread."""

    def on_attached(self) -> None:
        """The broker attached the link."""
        ...

    def on_detached(self) -> None:
        """The broker detached the link."""
        ...

    def on_session_ended(self) -> None:
        """The broker ended the link's session."""
        ...

    def on_flow(self) -> None:
        """The credit of the link changed."""
        ...

    def on_delivery(self, delivery: Pointer) -> bool:
        """A transfer or a disposition arrived.

        Returns:
            True if the handler has processed all pending deliveries of the link, so that their events can be skipped.
        """
        ...

    def on_connection_lost(self, error: Any) -> None:
        """The connection is lost."""
        ...


class EventDispatcher:
    """Dispatches proton's events to the handler of the link, session or connection that they concern.

    Args:
        collector: Proton's queue of events.
        connection_handlers: Handlers of the connection's own events, by event type.
        on_unexpected_endpoint: Called when the broker begins a session or attaches a link on its own initiative.

    Attributes:
        handlers: By link and session.
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
        """Return True if events are pending."""
        return bool(next_event(self._collector))

    def dispatch(self) -> None:
        """Dispatch all pending events.

        A receiver that has read one message has read all that are available, so the remaining events of its link are
        skipped.
        """
        collector = self._collector
        drained_link: Pointer = None
        while event := next_event(collector):
            kind = event_type(event)
            if kind == _DELIVERY:
                if (link := link_of(event)) != drained_link:
                    handler = self.handlers.get(link)
                    drained_link = link if handler and handler.on_delivery(delivery_of(event)) else None
            elif kind in self._handled_events:  # events of other types carry nothing that is not written anyway
                self._dispatch_one(kind, event)
            pop_event(collector)

    def _dispatch_one(self, kind: int, event: Pointer) -> None:
        if kind in self._connection_handlers:
            self._connection_handlers[kind]()
            return
        handler = self.handlers.get(link_of(event) or session_of(event))
        if handler is None:
            if kind in _REMOTE_OPENS:
                self._on_unexpected_endpoint()
        elif kind == _LINK_FLOW:
            handler.on_flow()
        elif kind == _LINK_OPEN:
            handler.on_attached()
        elif kind in _LINK_DETACHES:
            handler.on_detached()
        elif kind == _SESSION_CLOSE:
            handler.on_session_ended()


class ConnectionHandler:
    """Handles the events of the connection itself. Engine thread only.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        fail_connection: Called with the reason why the connection must be aborted.

    Attributes:
        opened: Done when the broker has opened the connection.
        properties: The connection properties of the broker's open frame.
        closing: True once this side closes the connection.
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
        """Whether the loss of the connection must be reported."""
        return not (self.closing or self._loss_suppressed)

    def suppress_loss_report(self, *, on: bool) -> None:
        """Suppress the report of a lost connection, or enable it again."""
        self._loss_suppressed = on

    def event_handlers(self) -> Mapping[int, Callable[[], None]]:
        """Return the handlers of the connection's events, by event type."""
        return {
            Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
            Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
            Event.TRANSPORT_ERROR.number: self._on_error,
        }

    def on_unexpected_endpoint(self) -> None:
        """Abort the connection of a broker that begins sessions or attaches links: this client would never end them."""
        self._fail_connection(
            ConnectionLostError("The broker opened a session or link on its own initiative, which no broker should.")
        )

    def fail_opening(self, error: JMSError) -> None:
        """Fail the future of the opening, if it is still pending."""
        if not self.opened.done():
            self.opened.set_exception(error)

    def _on_open(self) -> None:
        if self._transport.sasl().outcome != SASL_OK:  # proton accepts an open frame in the middle of the login
            self._fail_connection(ConnectionLostError("The broker opened the connection before it answered the login."))
            return
        idle_error = idle_timeout_error(self._transport)
        if idle_error is not None:
            self._fail_connection(idle_error)
            return
        properties: Any = self._connection.remote_properties  # any value that the broker sent
        self.properties = dict(properties) if hasattr(properties, "items") else {}
        failed = "amqp:connection-establishment-failed" in self.properties
        if not failed and not self.opened.done():  # otherwise a close frame with the reason follows
            self.opened.set_result(None)

    def _on_close(self) -> None:
        if not self.closing:
            self._fail_connection(connection_error(self._connection.remote_condition, self._connection.container))

    def _on_error(self) -> None:
        if not self.closing:
            self._fail_connection(transport_error(self._transport, self._connection.container))
