"""The I/O thread of an AMQP connection: owns the socket, proton's protocol engine, and a session for each link."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from proton import Collector, Connection, ProtonException, Transport

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.forking import forked_error, reset_in_child
from jmsjca.log_records import get_logger
from jmsjca.providers.amqp.engine.event_loop import (
    ConnectionHandler,
    EndpointHandler,
    EventDispatcher,
    EventLoop,
    SocketTransport,
)
from jmsjca.providers.amqp.engine.proton_ffi import REMOTE_CLOSED, Buffer, pointer_to
from jmsjca.providers.amqp.engine.task_queue import Task, TaskQueue
from jmsjca.providers.common.network import connection_error

__all__ = ["Engine", "Sessions"]

logger = get_logger("jmsjca.amqp")

T = TypeVar("T")
_BUFFER_BYTES = 256 * 1024

_END_TIMEOUT = 0.25  # seconds to wait for the broker's answer to an end
_LINGER = 1.0  # seconds for the broker to forget a session that it has ended


class Engine:
    """Drives one AMQP connection on its own thread, from `start` until the connection is closed or lost.

    Other threads reach proton's objects only through `call`, `submit` and `submit_nowait`. Message handlers never run
    on this thread, so a slow handler cannot delay a heartbeat.

    Args:
        sock: The connected socket.
        connection: Proton's connection, configured.
        transport: Proton's transport, configured.
        clock: Source of the time for heartbeats and timers.
        on_lost: Called once, with the reason, if the connection is lost.

    Attributes:
        check_open: Raises `ConnectionLostError` if the connection is gone.
        task_queue: Tasks submitted by other threads; its `error` is the reason why the connection ended.
        buffer: Scratch memory shared by the socket and proton. Engine thread only.
        socket_transport: Moves bytes between the socket and proton. Engine thread only.
        now: The monotonic clock.
        connection_handler: State of the connection as the broker reports it.
        sessions: The AMQP sessions of this connection.
    """

    def __init__(
        self,
        sock: socket.socket,
        connection: Connection,
        transport: Transport,
        clock: Clock,
        on_lost: Callable[[JMSError], None],
    ) -> None:
        self._socket = sock
        self._transport = transport
        self._on_lost = on_lost
        self.task_queue = TaskQueue()
        self._collector = Collector()
        self.connection_handler = ConnectionHandler(connection, transport, self.task_queue.close_with)
        self._thread = threading.Thread(target=self._run, name="jmsjca-amqp", daemon=True)
        self._connection = connection
        self.check_open = self.task_queue.check_open
        self.buffer = Buffer(_BUFFER_BYTES)
        self.now = clock.monotonic
        self.socket_transport = SocketTransport(sock, transport, self.buffer)
        events = EventDispatcher(
            self._collector, self.connection_handler.event_handlers(), self.connection_handler.on_unexpected_endpoint
        )
        self._loop = EventLoop(
            sock,
            transport=transport,
            socket_transport=self.socket_transport,
            task_queue=self.task_queue,
            events=events,
            clock=clock,
            opened=self.connection_handler.opened,
        )
        self.sessions = Sessions(
            connection,
            transport,
            events,
            free=self._loop.ended_sessions.append,
            call_later=lambda s, f: self.call_at(self.now() + s, f),
        )

    def start(self) -> None:
        """Open the connection and start the thread."""
        self._socket.setblocking(False)
        self._connection.collect(self._collector)
        self._transport.bind(self._connection)
        self._connection.open()
        reset_in_child(self, Engine._abandon_after_fork)
        self._thread.start()

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function on the engine thread.

        Tasks run in order, and their output is written before any later task runs.

        When proton encodes several changes together, it writes credit before dispositions. Without the write in
        between, a broker would send further messages before it processes the release of earlier ones.

        Returns:
            A future with the result of the function.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        reply: Future[T] = Future()
        self.task_queue.put(Task(lambda: reply.set_result(function()), reply, flush_after=True))
        return reply

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the engine thread and wait for its result.

        Raises:
            ConnectionLostError: The connection is gone; the function did not run.
        """
        return self.submit(function).result()

    def submit_nowait(
        self, function: Callable[[], None], reply: "Future[Any] | None" = None, *, urgent: bool = True
    ) -> None:
        """Run a function on the engine thread. Its output may be written together with the output of later tasks.

        Args:
            function: The task.
            reply: Future that the function will complete. It fails if the function fails or will not run.
            urgent: False if the task may wait for a millisecond, so that one wakeup serves many tasks.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        self.task_queue.put(Task(function, reply, flush_after=False, urgent=urgent))

    def wait(
        self,
        reply: "Future[T]",
        timeout: float,
        what: str,
        latest: Callable[[], float] = lambda: 0.0,
        waited: float = 0.0,
    ) -> T:
        """Wait for a reply of the broker.

        Args:
            reply: The reply.
            timeout: Seconds to wait.
            what: The operation, as the error message names it.
            latest: Returns the time, on the clock of `now`, at which the latest partial reply arrived. The timeout
                applies to each partial reply.
            waited: Seconds that the caller has waited already, for the error message.

        Raises:
            ConnectionLostError: The reply did not arrive in time. The connection is aborted, since it may still arrive.
        """
        heard = self.now()
        while True:
            try:
                return reply.result(max(heard + timeout - self.now(), 0))
            except TimeoutError as error:
                if latest() <= heard:
                    lost = ConnectionLostError(f"The broker did not answer within {waited + timeout:g} s: {what}.")
                    self.abort(lost)
                    raise lost from error
                heard = latest()

    def call_at(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of `now`, unless the connection ends before. Engine thread only."""
        self._loop.timers.schedule(when, function)

    def abort(self, error: JMSError) -> None:
        """Abort the connection, even if the broker does not read and pending output cannot be written."""
        self.task_queue.close_with(error)
        self.task_queue.wake()

    def close(self, timeout: float) -> None:
        """Close the connection in order; abort it if the broker does not answer within `timeout` seconds."""
        self.connection_handler.closing = True
        with suppress(ConnectionLostError):
            self.submit(self._connection.close)
        try:
            self._thread.join(timeout)
        finally:  # even if a signal handler raises: there is no second call of close
            self.abort(ConnectionLostError("The broker did not answer the close."))
        self._thread.join(timeout)

    def _abandon_after_fork(self) -> None:
        """Drop the parent's connection in a forked child, without writing to the socket."""
        self.connection_handler.closing = True
        self.task_queue.abandon_after_fork(forked_error())
        self._socket.close()

    def _run(self) -> None:
        try:
            self._loop.run()
        except (OSError, ProtonException) as error:
            alert = self.socket_transport.last_tls_alert()
            cause = error if alert is None else alert
            self.task_queue.close_with(connection_error("The connection to the broker broke", cause))
        except Exception as error:  # whatever it is, no thread may wait forever
            logger.exception("The AMQP engine failed; its connection is aborted.")
            self.task_queue.close_with(ConnectionLostError(f"The connection was aborted: {error!r}"))
        finally:
            self._finish()

    def _finish(self) -> None:
        """Fail everything that is pending, and release proton's objects on the thread that owns them."""
        closed = ConnectionLostError("The connection is closed.")
        self.task_queue.close_with(closed)
        error = closed if self.task_queue.error is None else self.task_queue.error
        with suppress(OSError):  # whatever it is, the handlers must be notified
            self._socket.close()
        self.connection_handler.fail_opening(error)
        self.task_queue.close()
        self.sessions.on_connection_lost(error)
        if self.connection_handler.reports_loss:
            self._on_lost(error)


class Sessions:
    """Begins and ends sessions. Engine thread only.

    No session begins while the end of another one is unanswered: it would get the same channel number, and RabbitMQ may
    answer the end after the begin, so that the new session seems to end. RabbitMQ occasionally does not answer an end
    at all; therefore the wait is short.

    RabbitMQ 4 loses a begin that arrives right after the end of a session with the same channel number. There a session
    is kept for the next link, and after the broker has ended one, its number stays in use for a while.

    Args:
        connection: Proton's connection.
        transport: Proton's transport.
        events: Dispatches the events of sessions and links to their handlers.
        free: Frees a session or link after its end is written.
        call_later: Runs a function after a number of seconds.

    Attributes:
        keeps: True to keep sessions for the next link.
    """

    def __init__(
        self,
        connection: Connection,
        transport: Transport,
        events: EventDispatcher,
        *,
        free: Callable[[Any], None],
        call_later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._events = events
        self._free = free
        self._call_later = call_later
        self._handlers: set[EndpointHandler] = set()
        self._ending: dict[EndpointHandler, Any] = {}
        self._queued_begins: deque[Callable[[], None]] = deque()
        self._kept: list[Any] = []
        self.keeps = False

    def begin_or_queue(self, handler: EndpointHandler, begin: Callable[[], None]) -> None:
        """Begin a session, now or once the ends of other sessions are answered.

        Args:
            handler: Handler of its events, which is also notified when the connection is lost.
            begin: Begins the session.

        Raises:
            ResourceAllocationError: The broker does not allow one more session.
        """
        maximum = self._transport.remote_channel_max + 1
        if len(self._handlers) >= maximum:  # begins that wait for ends do not count
            raise ResourceAllocationError(
                f"The broker allows {maximum} sessions on a connection, and each destination takes one:"
                " use fewer destinations in a unit, or several connections."
            )
        self._handlers.add(handler)
        if self._ending:
            self._queued_begins.append(begin)
        else:
            begin()

    def begin(self, handler: EndpointHandler) -> Any:
        """Begin a session, or take one that was kept, and register the handler of its events."""
        while self._kept:
            session = self._kept.pop()
            if not session.state & REMOTE_CLOSED:
                self.register(session, handler)
                return session
            self._linger(session)
        session = self._connection.session()
        self.register(session, handler)
        session.open()
        return session

    def register(self, endpoint: Any, handler: EndpointHandler) -> None:
        """Register the handler of the events of a session or link."""
        self._events.handlers[pointer_to(endpoint)] = handler

    def unregister(self, endpoint: Any) -> None:
        """Forget the handler of a further link of a session."""
        self._events.handlers.pop(pointer_to(endpoint), None)

    def release(self, handler: EndpointHandler, session: Any, link: Any) -> None:
        """Forget a link that is closed on this side, and end its session."""
        self._handlers.discard(handler)
        self._events.handlers.pop(pointer_to(link), None)
        if self.keeps:
            self._keep(session, link)
            return
        session.close()
        self._ending[handler] = session
        if session.state & REMOTE_CLOSED:
            self.on_ended(handler)
        else:
            self._call_later(_END_TIMEOUT, partial(self.on_ended, handler))

    def _keep(self, session: Any, link: Any) -> None:
        """Store a session for reuse, unless the broker has ended it or has requeued deliveries of it."""
        self._events.handlers.pop(pointer_to(session), None)
        if session.state & REMOTE_CLOSED or link.unsettled:
            self._linger(session)
        else:
            self._free(link)
            self._kept.append(session)

    def _linger(self, session: Any) -> None:
        """End a session on this side after a while: until then no other session gets its number."""
        self._call_later(_LINGER, partial(self._end, session))

    def _end(self, session: Any) -> None:
        session.close()
        self._free(session)

    def on_ended(self, handler: EndpointHandler) -> None:
        """Free a released session: the broker has answered its end, or will not."""
        session = self._ending.pop(handler, None)
        if session is None:
            return
        self._events.handlers.pop(pointer_to(session), None)
        self._free(session)
        while self._queued_begins and not self._ending:
            self._queued_begins.popleft()()

    def on_connection_lost(self, error: JMSError) -> None:
        """Notify all handlers that the connection is lost, and forget all sessions."""
        for handler in self._handlers:
            try:
                handler.on_connection_lost(error)
            except Exception:  # the other handlers must still be notified
                logger.exception("A handler failed on the loss of its connection.")
        self._handlers.clear()
        self._ending.clear()
        self._kept.clear()
        self._queued_begins.clear()
        self._events.handlers.clear()
