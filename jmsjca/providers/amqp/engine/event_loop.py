"""The event loop of a connection's thread: selector, timers, and bytes between socket and proton."""

import heapq
import itertools
import selectors
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from proton import ProtonException, Session, Transport

from jmsjca.config import Clock
from jmsjca.providers.amqp.engine.events import EventDispatcher
from jmsjca.providers.amqp.engine.proton_ffi import (
    Buffer,
    capacity,
    is_closed,
    peek,
    pending,
    pointer_to,
    pop,
    push,
    tick,
)
from jmsjca.providers.amqp.engine.task_queue import TaskQueue
from jmsjca.providers.common.network import request_quick_ack

__all__ = ["EventLoop", "SocketTransport", "Timers"]


class Timers:
    """Belongs on the engine's thread."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def schedule(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of the monotonic clock."""
        heapq.heappush(self._heap, (when, next(self._numbers), function))

    def run_due(self, now: float) -> None:
        """Run what is due."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

    def next_deadline(self, otherwise: float) -> float:
        """When the first is due, if that is before another time; 0 there is never."""
        first = self._heap[0][0] if self._heap else 0.0
        return min(first or otherwise, otherwise or first)


_READS_PER_ITERATION = 4
_OUTPUT_BUFFER_BYTES = 8192  # bytes; it encodes all that there is as long as its buffer is not full
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SocketTransport:
    """Reads and writes as far as that goes without waiting.

    Args:
        sock: The socket, not blocking.
        transport: Proton's transport.
        buffer: What to read into and to write from; others may use it in between.
    """

    def __init__(self, sock: socket.socket, transport: Transport, buffer: Buffer) -> None:
        self._socket = sock
        self._transport = transport
        self._pointer = pointer_to(transport)
        self._buffer = buffer
        self._ack_due = False
        # Less than that, and nothing more is there; but TLS gives a record at a time.
        self._full_read = 0 if isinstance(sock, ssl.SSLSocket) else buffer.size

    def check_readable(self) -> None:
        """Raise `ProtonException` if proton reads no more, which it does not always say."""
        if capacity(self._pointer) < 0 and self._transport.capacity() < 0:  # which may tell more
            raise ProtonException("what the broker sent is no AMQP")

    def read(self, times: int = _READS_PER_ITERATION) -> None:
        """Read what there is, in so many pieces at most."""
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

    def request_quick_ack(self) -> None:
        """Let TCP acknowledge what was read, before a wait; what was written since has done so."""
        if self._ack_due:
            self._ack_due = False
            request_quick_ack(self._socket)

    def last_tls_alert(self) -> ssl.SSLError | None:
        """The alert with which the broker hung up; a write that fails hides it."""
        try:
            self.read()
        except ssl.SSLError as alert:
            return alert
        except (OSError, ProtonException):
            pass
        return None

    def _push(self, size: int) -> None:
        """Proton takes some 16 KB at a time."""
        at = 0
        while at < size:
            taken = push(self._pointer, self._buffer, at, size)
            if taken < 0:  # it has failed, and its events tell why
                return
            if not taken:
                raise ProtonException("proton takes nothing more of what the broker sent")
            at += taken

    def ensure_encoded(self) -> bool:
        """Let proton encode what is to be written, so that it is written before what comes later.

        False if that is more than proton surely has room for, and the socket did not take all of it, either.
        """
        return 0 <= pending(self._pointer) < _OUTPUT_BUFFER_BYTES or not self.flush()

    def flush(self) -> bool:
        """Write within a step, so that the broker has something to do meanwhile; True if not all was taken."""
        with suppress(OSError):  # the end of the turn meets it again, and the connection ends
            return self.write()
        return True

    def write(self) -> bool:
        """Write what there is; True if the socket did not take all of it."""
        while (size := peek(self._pointer, self._buffer)) > 0:
            try:
                pop(self._pointer, self._socket.send(self._buffer.view[:size]))
                self._ack_due = False
            except _WOULD_BLOCK:
                return True
        return False


class EventLoop:
    """Runs errands, tells of events, reads, writes, and shows that we live.

    Args:
        sock: The socket, not blocking.
        transport: Proton's transport.
        pump: Moves bytes between both.
        mailbox: The errands.
        events: What proton has noticed.
        clock: Tells when a heartbeat is due.
        opened: Done when the broker has opened the connection.

    Attributes:
        alarms: What is to be done later.
        closed: Sessions of which proton is to keep nothing once their end is written.
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
        self._socket_transport = socket_transport
        self._task_queue = task_queue
        self._events = events
        self._clock = clock
        self._opened = opened
        self._deadline = 0.0  # when the thread should have turned; 0 for no time
        self._write_pending = False  # whether something waits for room to write
        self.timers = Timers()
        self.ended_sessions: list[Session] = []

    def run(self) -> None:
        """Turn until the connection is closed or nothing more is to be done on it."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._task_queue.wakeup_socket, selectors.EVENT_READ)
            while self._task_queue.error is None and not is_closed(self._transport):
                self._run_once(selector)
            self._events.dispatch()  # why it ended

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
        """Write, and tell of what that brings up; True if the socket did not take all of it."""
        pending = self._socket_transport.write()
        while self._events.has_events() and self._task_queue.error is None:
            self._events.dispatch()
            pending = self._socket_transport.write()
        return pending

    def _run_timers(self) -> float:
        """Show that we live, and judge whether the broker does; tells the time."""
        now = self._clock.monotonic()
        if 0 < self._deadline <= now:  # this thread may have been held up: what waits in the socket is a sign of life
            self._read()
            self._events.dispatch()
        self.timers.run_due(now)
        self._deadline = self.timers.next_deadline(tick(self._transport, now))
        return now

    def _free_ended_sessions(self) -> None:
        """Free sessions with their links; that settles what is not, which the broker must not hear."""
        while self.ended_sessions:
            self.ended_sessions.pop().free()

    def _set_interest(self, selector: selectors.BaseSelector, pending: bool) -> None:
        """Hear of room to write only where something waits for it."""
        if pending != self._write_pending:
            self._write_pending = pending
            selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if pending else 0))

    def _poll(self, selector: selectors.BaseSelector, seconds: float | None) -> None:
        """Wait for the socket or an errand, and read."""
        ready = selector.select(self._task_queue.prepare_wait(seconds))
        self._task_queue.end_wait()
        for key, events in ready:
            if key.fileobj is self._task_queue.wakeup_socket:
                self._task_queue.clear_wakeup()
            elif events & selectors.EVENT_READ:
                self._read()

    def _read(self) -> None:
        """Read what there is. A refused login and the end behind it are two things: the first says why."""
        self._socket_transport.read() if self._opened.done() else self._socket_transport.read(times=1)
