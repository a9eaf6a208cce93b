"""One AMQP connection: proton's protocol engine, its socket, and the only thread that touches either."""

import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, TypeVar

from proton import Collector, Connection, Event, ProtonException, Transport

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.conditions import connection_error, transport_error
from jmsjca.providers.amqp.constants import LOGGED_IN
from jmsjca.providers.amqp.forks import left_by_forks
from jmsjca.providers.amqp.loop import Loop
from jmsjca.providers.amqp.mailbox import Errand, Mailbox
from jmsjca.providers.amqp.owners import Events, Owner
from jmsjca.providers.amqp.proton_calls import Buffer, pointer_to
from jmsjca.providers.amqp.pump import Pump
from jmsjca.providers.network import broken

__all__ = ["Engine"]

logger = logging.getLogger("jmsjca.amqp")

T = TypeVar("T")

_BUFFER_BYTES = 256 * 1024


class Engine:
    """Runs on a thread of its own from `start` until the connection is closed or lost.

    Other threads reach proton's objects only through `call`, `post` and `tell`. Handlers of messages never run here, so
    a slow one costs no heartbeat.

    Args:
        sock: The connected socket.
        connection: Proton's connection, configured.
        transport: Proton's transport, configured.
        clock: Tells when a heartbeat is due.
        lost: Is told once if the connection breaks.

    Attributes:
        buffer: For bytes on their way between proton and us, on the engine's thread.
        opened: Done when the broker has opened the connection.
        properties: What the broker tells of itself.
        left: Why nothing works here any more, in a forked child.
    """

    def __init__(
        self,
        sock: socket.socket,
        connection: Connection,
        transport: Transport,
        clock: Clock,
        lost: Callable[[JMSError], None],
    ) -> None:
        self._socket = sock
        self._transport = transport
        self.buffer = Buffer(_BUFFER_BYTES)
        self._collector = Collector()
        self._events = Events(
            self._collector,
            {
                Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
                Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
                Event.TRANSPORT_ERROR.number: self._on_error,
            },
            self._on_stranger,
        )
        self._clock = clock
        self._lost = lost
        self._mailbox = Mailbox()
        self._owners: set[Owner] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="jmsjca-amqp", daemon=True)
        self.connection = connection
        self.opened: Future[None] = Future()
        self.properties: dict[Any, Any] = {}
        self.left: ConnectionLostError | None = None
        self._pump = Pump(sock, transport, self.buffer)
        self._loop = Loop(
            sock,
            transport=transport,
            pump=self._pump,
            mailbox=self._mailbox,
            events=self._events,
            clock=clock,
            opened=self.opened,
        )

    def start(self) -> None:
        """Open the connection."""
        self._socket.setblocking(False)
        self.connection.collect(self._collector)
        self._transport.bind(self.connection)
        self.connection.open()
        left_by_forks(self)
        self._thread.start()

    def post(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function on the engine's thread, soon and in order.

        What it writes is written before anything that comes later. Of what is written together proton puts credit
        before settlement, whatever the order of the calls; then a broker would send what comes later before it has
        taken back what comes first.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        reply: Future[T] = Future()
        self._mailbox.post(Errand(lambda: reply.set_result(function()), reply, alone=True))
        return reply

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the engine's thread and wait for it.

        Raises:
            ConnectionLostError: The connection is gone; the function did not run.
        """
        return self.post(function).result()

    def tell(self, function: Callable[[], None], reply: "Future[Any] | None" = None) -> None:
        """Run a function on the engine's thread; what it writes may be joined with what comes later.

        Args:
            function: What to do.
            reply: What it sees to that somebody answers; hears of it if the function fails or will not run.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        self._mailbox.post(Errand(function, reply, alone=False))

    def check(self) -> None:
        """Raise `ConnectionLostError` if the connection is gone."""
        self._mailbox.check()

    def wait(self, reply: "Future[T]", timeout: float, what: str) -> T:
        """Wait for an answer of the broker.

        Raises:
            ConnectionLostError: It did not come in time; the connection is given up, for the answer may still come.
        """
        try:
            return reply.result(timeout)
        except FutureTimeoutError as error:
            lost = ConnectionLostError(f"The broker did not answer within {timeout:g} s: {what}.")
            self.abort(lost)
            raise lost from error

    def adopt(self, owner: Owner) -> None:
        """Tell this owner when the connection is lost. On the engine's thread.

        Raises:
            ResourceAllocationError: It would need one session more than the broker allows.
        """
        most = self._transport.remote_channel_max + 1
        if len(self._owners) >= most:
            raise ResourceAllocationError(
                f"The broker allows {most} sessions on a connection, and each destination takes one:"
                " use fewer destinations in a unit, or several connections."
            )
        self._owners.add(owner)

    def watch(self, end: Any, owner: Owner) -> None:
        """Tell this owner what happens to a session or a link, too. On the engine's thread."""
        self._events.owners[pointer_to(end)] = owner

    def release(self, owner: Owner, session: Any, link: Any) -> None:
        """Forget an owner, whose link and session are closed. On the engine's thread."""
        self._owners.discard(owner)
        for end in (session, link):
            self._events.owners.pop(pointer_to(end), None)
        self._loop.closed.append(session)

    def at(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of `now`, if the connection lasts. On the engine's thread."""
        self._loop.alarms.set(when, function)

    def now(self) -> float:
        """The monotonic clock."""
        return self._clock.monotonic()

    def abort(self, error: JMSError) -> None:
        """Give the connection up, even if the broker reads nothing any more and what was posted cannot be written."""
        self._mailbox.refuse(error)
        self._mailbox.ring()

    def close(self, timeout: float) -> None:
        """Close in order; give up after so many seconds."""
        self._closing = True
        with suppress(ConnectionLostError):
            self.post(self.connection.close)
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.abort(ConnectionLostError("The broker did not answer the close."))
            self._thread.join(timeout)

    def leave(self, error: ConnectionLostError) -> None:
        """Let go of the parent's connection, without a word to the broker. In a forked child."""
        self._closing = True
        self.left = error
        self._mailbox.leave(error)
        self._socket.close()

    def check_process(self) -> None:
        """Raise `ConnectionLostError` in a forked child, where a thread may hold locks that is not there."""
        if self.left is not None:
            raise self.left

    def _run(self) -> None:
        try:
            self._loop.run()
        except (OSError, ProtonException) as error:
            self._break(broken("The connection to the broker broke", self._last_word() or error))
        except Exception as error:  # whatever it is, nobody may wait for ever
            logger.exception("The AMQP engine failed; its connection is given up.")
            self._break(ConnectionLostError(f"The connection was given up: {error!r}"))
        finally:
            self._end()

    def _last_word(self) -> ssl.SSLError | None:
        """The alert with which the broker hung up; a write that fails hides it."""
        try:
            self._pump.read()
        except ssl.SSLError as alert:
            return alert
        except (OSError, ProtonException):
            pass
        return None

    def _on_open(self) -> None:
        if self._transport.sasl().outcome != LOGGED_IN:  # proton takes an open frame in the midst of the login
            self._break(ConnectionLostError("The broker opened the connection before it answered the login."))
            return
        properties: Any = self.connection.remote_properties  # whatever the broker sent for them
        self.properties = dict(properties) if hasattr(properties, "items") else {}
        failed = "amqp:connection-establishment-failed" in self.properties
        if not failed and not self.opened.done():  # else the reason follows
            self.opened.set_result(None)

    def _on_close(self) -> None:
        if not self._closing:
            self._break(connection_error(self.connection.remote_condition, self.connection.container))

    def _on_error(self) -> None:
        if not self._closing:
            self._break(transport_error(self._transport, self.connection.container))

    def _on_stranger(self) -> None:
        """Leave a broker that opens sessions or links of its own: nobody would ever close them."""
        self._break(ConnectionLostError("The broker opened a session or link of its own, which none should."))

    def _break(self, error: JMSError) -> None:
        self._mailbox.refuse(error)

    def _end(self) -> None:
        """Tell everybody, and let go of proton's objects on the thread that owned them."""
        self._break(ConnectionLostError("The connection is closed."))
        error = self._mailbox.error or ConnectionLostError("The connection is closed.")
        self._socket.close()
        if not self.opened.done():
            self.opened.set_exception(error)
        self._mailbox.close()
        for owner in self._owners:
            owner.on_lost(error)
        self._owners.clear()
        self._events.owners.clear()
        if not self._closing:
            self._lost(error)
