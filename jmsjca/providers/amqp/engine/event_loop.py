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
from jmsjca.providers.amqp.engine.events import Events
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
from jmsjca.providers.amqp.engine.task_queue import Mailbox
from jmsjca.providers.common.network import request_quick_ack

__all__ = ["Alarms", "Loop", "Pump"]


class Alarms:
    """Belongs on the engine's thread."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def set(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of the monotonic clock."""
        heapq.heappush(self._heap, (when, next(self._numbers), function))

    def run(self, now: float) -> None:
        """Run what is due."""
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()

    def next(self, otherwise: float) -> float:
        """When the first is due, if that is before another time; 0 there is never."""
        first = self._heap[0][0] if self._heap else 0.0
        return min(first or otherwise, otherwise or first)


_READS_PER_TURN = 4
_PROTONS_ROOM = 8192  # bytes; it encodes all that there is as long as its buffer is not full
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Pump:
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
        self._owes_receipt = False
        # Less than that, and nothing more is there; but TLS gives a record at a time.
        self._full = 0 if isinstance(sock, ssl.SSLSocket) else buffer.size

    def check(self) -> None:
        """Raise `ProtonException` if proton reads no more, which it does not always say."""
        if capacity(self._pointer) < 0 and self._transport.capacity() < 0:  # which may tell more
            raise ProtonException("what the broker sent is no AMQP")

    def read(self, times: int = _READS_PER_TURN) -> None:
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
            self._owes_receipt = True
            if size < self._full:
                return

    def acknowledge(self) -> None:
        """Let TCP acknowledge what was read, before a wait; what was written since has done so."""
        if self._owes_receipt:
            self._owes_receipt = False
            request_quick_ack(self._socket)

    def last_word(self) -> ssl.SSLError | None:
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

    def encode(self) -> bool:
        """Let proton encode what is to be written, so that it is written before what comes later.

        False if that is more than proton surely has room for, and the socket did not take all of it, either.
        """
        return 0 <= pending(self._pointer) < _PROTONS_ROOM or not self.write_ahead()

    def write_ahead(self) -> bool:
        """Write within a step, so that the broker has something to do meanwhile; True if not all was taken."""
        with suppress(OSError):  # the end of the turn meets it again, and the connection ends
            return self.write()
        return True

    def write(self) -> bool:
        """Write what there is; True if the socket did not take all of it."""
        while (size := peek(self._pointer, self._buffer)) > 0:
            try:
                pop(self._pointer, self._socket.send(self._buffer.view[:size]))
                self._owes_receipt = False
            except _WOULD_BLOCK:
                return True
        return False


class Loop:
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
        pump: Pump,
        mailbox: Mailbox,
        events: Events,
        clock: Clock,
        opened: "Future[None]",
    ) -> None:
        self._socket = sock
        self._transport = pointer_to(transport)
        self._pump = pump
        self._mailbox = mailbox
        self._events = events
        self._clock = clock
        self._opened = opened
        self._deadline = 0.0  # when the thread should have turned; 0 for no time
        self._pending = False  # whether something waits for room to write
        self.alarms = Alarms()
        self.closed: list[Session] = []

    def run(self) -> None:
        """Turn until the connection is closed or nothing more is to be done on it."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._mailbox.bell, selectors.EVENT_READ)
            while self._mailbox.error is None and not is_closed(self._transport):
                self._turn(selector)
            self._events.dispatch()  # why it ended

    def _turn(self, selector: selectors.BaseSelector) -> None:
        self._events.dispatch()
        self._mailbox.run(self._pump.write)
        now = self._do_what_is_due()
        pending = self._write()
        if not pending:
            self._free_closed()
        if self._mailbox.error is not None:
            return
        self._pump.check()
        self._pump.acknowledge()
        self._listen(selector, pending)
        self._sleep(selector, max(self._deadline - now, 0) if self._deadline else None)

    def _write(self) -> bool:
        """Write, and tell of what that brings up; True if the socket did not take all of it."""
        pending = self._pump.write()
        while self._events.waiting() and self._mailbox.error is None:
            self._events.dispatch()
            pending = self._pump.write()
        return pending

    def _do_what_is_due(self) -> float:
        """Show that we live, and judge whether the broker does; tells the time."""
        now = self._clock.monotonic()
        if 0 < self._deadline <= now:  # this thread may have been held up: what waits in the socket is a sign of life
            self._read()
            self._events.dispatch()
        self.alarms.run(now)
        self._deadline = self.alarms.next(tick(self._transport, now))
        return now

    def _free_closed(self) -> None:
        """Free sessions with their links; that settles what is not, which the broker must not hear."""
        while self.closed:
            self.closed.pop().free()

    def _listen(self, selector: selectors.BaseSelector, pending: bool) -> None:
        """Hear of room to write only where something waits for it."""
        if pending != self._pending:
            self._pending = pending
            selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if pending else 0))

    def _sleep(self, selector: selectors.BaseSelector, seconds: float | None) -> None:
        """Wait for the socket or an errand, and read."""
        ready = selector.select(self._mailbox.rest(seconds))
        self._mailbox.rise()
        for key, events in ready:
            if key.fileobj is self._mailbox.bell:
                self._mailbox.hear()
            elif events & selectors.EVENT_READ:
                self._read()

    def _read(self) -> None:
        """Read what there is. A refused login and the end behind it are two things: the first says why."""
        self._pump.read() if self._opened.done() else self._pump.read(times=1)
