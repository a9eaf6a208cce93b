"""The event loop of a connection's thread: selector, timers, proton's events, and heartbeats.

The idle time-outs of AMQP (AMQP 1.0 section 2.4.5): the offered one, the broker's, and the heartbeats for both.

Each side announces how long it tolerates silence. Proton sends an empty frame after half of the broker's
idle time-out, and fails the transport when the broker is silent for longer than this side's.
"""

import heapq
import itertools
import selectors
import socket
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from proton import Collector, Connection, Event, Link, ProtonException, Session, Transport

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.amqp.engine.proton_ffi import (
    SASL_OK,
    Buffer,
    Pointer,
    capacity,
    delivery_of,
    event_type,
    is_closed,
    link_of,
    next_event,
    peek,
    pending,
    pointer_to,
    pop,
    pop_event,
    push,
    session_of,
    tick,
)
from jmsjca.providers.amqp.engine.task_queue import TaskQueue
from jmsjca.providers.amqp.errors import connection_error, transport_error
from jmsjca.providers.common.network import request_quick_ack

__all__ = [
    "ConnectionHandler",
    "EndpointHandler",
    "EventDispatcher",
    "EventLoop",
    "Heartbeat",
    "SocketTransport",
    "Timers",
    "idle_timeout_error",
    "offer_idle_timeout",
]

_MIN_IDLE_TIMEOUT = 0.01  # seconds; half of a shorter time-out is close to 0, and the loop would only send heartbeats

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
        sasl = self._transport.sasl()
        if sasl.outcome != SASL_OK or not sasl.mech:  # proton accepts an open frame, or an outcome, before the login
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


class Timers:
    """Functions to run at a later time. Engine thread only."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def schedule(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of the monotonic clock."""
        heapq.heappush(self._heap, (when, next(self._numbers), function))

    def run_due(self, now: float) -> None:
        """Run all functions that are due."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

    def next_deadline(self, other: float) -> float:
        """Return the earlier of the first deadline and `other`; 0 means none, for both."""
        first = self._heap[0][0] if self._heap else 0.0
        return min(first or other, other or first)


_READS_PER_ITERATION = 4
_GREETING_BYTES = 16
_OUTPUT_BUFFER_BYTES = 8192  # bytes; as long as its output buffer is not full, proton encodes everything pending
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SocketTransport:
    """Moves bytes between the socket and proton, without blocking.

    Args:
        sock: The socket, non-blocking.
        transport: Proton's transport.
        buffer: Scratch memory for reading and writing; other code may use it between calls.

    Attributes:
        greeting: The first bytes that the peer sent, which show its protocol.
    """

    def __init__(self, sock: socket.socket, transport: Transport, buffer: Buffer) -> None:
        self._socket = sock
        self._transport = transport
        self._pointer = pointer_to(transport)
        self._buffer = buffer
        self._ack_due = False
        self.greeting = b""
        # A shorter read has emptied the socket; but TLS returns one record at a time.
        self._full_read = 0 if isinstance(sock, ssl.SSLSocket) else buffer.size

    def read(self, times: int = _READS_PER_ITERATION) -> None:
        """Read what is available, in at most `times` calls."""
        for _ in range(times):
            if capacity(self._pointer) <= 0:
                return
            try:
                size = self._socket.recv_into(self._buffer.view)
            except _WOULD_BLOCK:
                return
            if not size:
                self._transport.close_tail()
                return
            self._push(size)
            self._ack_due = True
            if size < self._full_read:
                return

    def read_greeting(self) -> None:
        """Read once while the connection is being opened, and keep the first bytes that the peer sent."""
        beginning = self._buffer.view[:_GREETING_BYTES]
        beginning[:] = bytes(_GREETING_BYTES)  # the buffer is scratch memory
        try:
            self.read(times=1)
        finally:
            self.greeting = self.greeting or bytes(beginning).rstrip(b"\0")

    def prepare_wait(self) -> None:
        """Make TCP acknowledge what was read, before a wait. Output written since then carried it already.

        Raises:
            ProtonException: Proton has stopped reading, which it does not always report as an event.
        """
        if capacity(self._pointer) < 0 and self._transport.capacity() < 0:  # the second call may raise the reason
            raise ProtonException("what the broker sent is no AMQP")
        if self._ack_due:
            self._ack_due = False
            request_quick_ack(self._socket)

    def last_tls_alert(self) -> ssl.SSLError | None:
        """Return the alert with which the broker closed a TLS connection; a failed write hides it."""
        try:
            self.read()
        except ssl.SSLError as alert:
            return alert
        except (OSError, ProtonException):
            pass
        return None

    def _push(self, size: int) -> None:
        """Pass bytes to proton, which accepts about 16 KB at a time."""
        at = 0
        while at < size:
            taken = push(self._pointer, self._buffer, at, size)
            if taken < 0:  # the transport has failed, and its events say why
                return
            if not taken:
                raise ProtonException("proton takes nothing more of what the broker sent")
            at += taken

    def ensure_encoded(self) -> bool:
        """Make proton encode all pending output, so that it is written before any later output.

        Returns:
            False if the output may exceed proton's buffer and the socket did not accept all of it.
        """
        return 0 <= pending(self._pointer) < _OUTPUT_BUFFER_BYTES or not self.flush()

    def flush(self) -> bool:
        """Write during a task, so that the broker can start before the task ends. Return True if output is left."""
        with suppress(OSError):  # the write at the end of the iteration then fails and ends the connection
            return self.write()
        return True

    def write(self) -> bool:
        """Write pending output. Return True if the socket did not accept all of it."""
        while (size := peek(self._pointer, self._buffer)) > 0:
            try:
                pop(self._pointer, self._socket.send(self._buffer.view[:size]))
                self._ack_due = False
            except _WOULD_BLOCK:
                return True
        return False


class EventLoop:
    """Runs tasks, dispatches events, reads, writes and sends heartbeats.

    Args:
        sock: The socket, non-blocking.
        transport: Proton's transport.
        socket_transport: Moves bytes between both.
        task_queue: Tasks submitted by other threads.
        events: Dispatches proton's events.
        clock: Source of the time for heartbeats and timers.
        opened: Done when the broker has opened the connection.

    Attributes:
        timers: Functions to run at a later time.
        ended_sessions: Sessions, and links of sessions that are kept, to free once their end is written.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        transport: Transport,
        socket_transport: SocketTransport,
        task_queue: TaskQueue,
        events: EventDispatcher,
        clock: Clock,
        opened: "Future[None]",
    ) -> None:
        self._socket = sock
        self._transport = pointer_to(transport)
        self._heartbeat = Heartbeat(transport)
        self._socket_transport = socket_transport
        self._task_queue = task_queue
        self._events = events
        self._clock = clock
        self._opened = opened
        self._deadline = 0.0  # when this thread should have run again; 0 means never
        self._write_pending = False  # whether output waits until the socket is writable
        self.timers = Timers()
        self.ended_sessions: list[Session | Link] = []

    def run(self) -> None:
        """Run until the connection is closed or the task queue is."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._task_queue.wakeup_socket, selectors.EVENT_READ)
            while self._task_queue.error is None and not is_closed(self._transport):
                self._run_once(selector)
            self._events.dispatch()  # the events with the reason of the end

    def _run_once(self, selector: selectors.BaseSelector) -> None:
        self._events.dispatch()
        self._task_queue.run_pending(self._socket_transport.write)
        now = self._run_timers()
        pending = self._write()
        if not pending:
            self._free_ended_sessions()
        if self._task_queue.error is not None:
            return
        self._socket_transport.prepare_wait()
        self._set_interest(selector, pending)
        self._poll(selector, max(self._deadline - now, 0) if self._deadline else None)

    def _write(self) -> bool:
        """Write, and dispatch the events that writing causes. Return True if the socket did not accept all output."""
        pending = self._socket_transport.write()
        while self._events.has_events() and self._task_queue.error is None:
            self._events.dispatch()
            pending = self._socket_transport.write()
        return pending

    def _run_timers(self) -> float:
        """Run due timers, send a heartbeat if one is due, and detect a silent broker. Return the current time."""
        now = self._clock.monotonic()
        if (
            0 < self._deadline <= now
        ):  # this thread may have been delayed: bytes that wait in the socket prove that the broker lives
            self._read()
            self._events.dispatch()
        self.timers.run_due(now)
        self._deadline = self.timers.next_deadline(self._heartbeat.run(now))
        return now

    def _free_ended_sessions(self) -> None:
        """Free sessions with their links. That settles open deliveries, which must not be written to the broker."""
        while self.ended_sessions:
            self.ended_sessions.pop().free()

    def _set_interest(self, selector: selectors.BaseSelector, pending: bool) -> None:
        """Wait for a writable socket only while output is pending."""
        if pending != self._write_pending:
            self._write_pending = pending
            selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if pending else 0))

    def _poll(self, selector: selectors.BaseSelector, seconds: float | None) -> None:
        """Wait for the socket or a task, and read."""
        ready = selector.select(self._task_queue.prepare_wait(seconds))
        self._task_queue.end_wait()
        for key, events in ready:
            if key.fileobj is self._task_queue.wakeup_socket:
                self._task_queue.clear_wakeup()
            elif events & selectors.EVENT_READ:
                self._read()

    def _read(self) -> None:
        """Read what is available.

        Before the login, read once: a refusal carries the reason, and the close behind it does not.
        """
        self._socket_transport.read() if self._opened.done() else self._socket_transport.read_greeting()


class Heartbeat:
    """Sends heartbeats and detects a silent broker. Engine thread only.

    Args:
        transport: Proton's transport.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = pointer_to(transport)

    def run(self, now: float) -> float:
        """Send a heartbeat if one is due. Fail the transport if the broker has been silent for too long.

        Args:
            now: The time of the monotonic clock, in seconds.

        Returns:
            When to call again, on the same clock; 0 for never.
        """
        return tick(self._transport, int(now * 1000)) / 1000


def offer_idle_timeout(transport: Transport, heartbeat: float) -> None:
    """Set the idle time-out that this side announces, before the connection is opened.

    Args:
        transport: Proton's transport.
        heartbeat: Seconds between the heartbeats of either side; 0 for none. A broker that is silent for twice as long
            is considered dead.
    """
    if heartbeat:
        transport.idle_timeout = 2 * heartbeat


def idle_timeout_error(transport: Transport) -> ConnectionLostError | None:
    """Return an error if the broker's idle time-out is too short to be kept; None otherwise.

    Args:
        transport: Proton's transport, after the broker has opened the connection.
    """
    seconds = transport.remote_idle_timeout
    if 0 < seconds < _MIN_IDLE_TIMEOUT:
        return ConnectionLostError(
            f"The broker ends connections that are silent for {seconds * 1000:g} ms (its idle-time-out); at least"
            f" {_MIN_IDLE_TIMEOUT * 1000:g} ms are needed."
        )
    return None
