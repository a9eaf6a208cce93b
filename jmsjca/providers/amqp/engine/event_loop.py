"""What the thread of a connection does, turn by turn."""

import selectors
import socket
from concurrent.futures import Future

from proton import Session, Transport

from jmsjca.config import Clock
from jmsjca.providers.amqp.alarms import Alarms
from jmsjca.providers.amqp.mailbox import Mailbox
from jmsjca.providers.amqp.owners import Events
from jmsjca.providers.amqp.proton_calls import is_closed, pointer_to, tick
from jmsjca.providers.amqp.pump import Pump

__all__ = ["Loop"]


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
