"""The event loop of a connection's thread: selector, timers, and bytes between the socket and proton."""

import heapq
import itertools
import selectors
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from proton import Link, ProtonException, Session, Transport

from jmsjca.config import Clock
from jmsjca.providers.amqp.engine.events import EventDispatcher
from jmsjca.providers.amqp.engine.heartbeat import Heartbeat
from jmsjca.providers.amqp.engine.proton_ffi import (
    Buffer,
    capacity,
    is_closed,
    peek,
    pending,
    pointer_to,
    pop,
    push,
)
from jmsjca.providers.amqp.engine.task_queue import TaskQueue
from jmsjca.providers.common.network import request_quick_ack

__all__ = ["EventLoop", "SocketTransport", "Timers"]


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

    def check_readable(self) -> None:
        """Raise `ProtonException` if proton has stopped reading, which it does not always report as an event."""
        if capacity(self._pointer) < 0 and self._transport.capacity() < 0:  # the second call may raise the reason
            raise ProtonException("what the broker sent is no AMQP")

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

    def request_quick_ack(self) -> None:
        """Make TCP acknowledge what was read, before a wait.

        Output written since then carried the acknowledgement already.
        """
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
        """Write within a task, so that the broker can start processing meanwhile. Return True if output is left."""
        with suppress(OSError):  # the write at the end of the iteration fails, too, and ends the connection
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
        self._socket_transport.check_readable()
        self._socket_transport.request_quick_ack()
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
