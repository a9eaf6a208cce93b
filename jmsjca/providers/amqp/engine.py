"""One AMQP connection: proton's protocol engine, its socket, and the only thread that touches either."""

import logging
import selectors
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from proton import Collector, Connection, Event, ProtonException, Transport

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.conditions import connection_error, transport_error
from jmsjca.providers.amqp.constants import LOGGED_IN
from jmsjca.providers.amqp.pump import Pump
from jmsjca.providers.network import broken

__all__ = ["Engine", "Owner"]

logger = logging.getLogger("jmsjca.amqp")

T = TypeVar("T")

_WAKES = 4096


class Owner(Protocol):
    """Who a link belongs to. It is told what happens, on the engine's thread."""

    def on_open(self) -> None:
        """The broker attached the link."""
        ...

    def on_close(self, condition: Any) -> None:
        """The broker ended the link or its session; the condition says why, None that it was asked to."""
        ...

    def on_flow(self) -> None:
        """Credit changed."""
        ...

    def on_delivery(self, delivery: Any) -> None:
        """A message came, or the state of one changed."""
        ...

    def on_lost(self, error: JMSError) -> None:
        """The connection is gone."""
        ...


class Engine:
    """Runs on a thread of its own from `start` until the connection is closed or lost.

    Other threads reach proton's objects only through `call` and `post`. Handlers of messages never run here, so a slow
    one costs no heartbeat.

    Args:
        sock: The connected socket.
        connection: Proton's connection, configured.
        transport: Proton's transport, configured.
        clock: Tells when a heartbeat is due.
        lost: Is told once if the connection breaks.
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
        self._pump = Pump(sock, transport)
        self._collector = Collector()
        self._clock = clock
        self._lost = lost
        self._owners: set[Owner] = set()
        self._lock = threading.Lock()
        self._posted: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._waker, self._woken = socket.socketpair()
        self._closing = False
        self._error: JMSError | None = None
        self._thread = threading.Thread(target=self._run, name="jmsjca-amqp", daemon=True)
        self._handlers: dict[Any, Callable[[Any], None]] = {
            Event.CONNECTION_REMOTE_OPEN: self._on_connection_open,
            Event.CONNECTION_REMOTE_CLOSE: self._on_connection_close,
            Event.TRANSPORT_ERROR: self._on_transport_error,
            Event.SESSION_REMOTE_OPEN: self._on_session_open,
            Event.SESSION_REMOTE_CLOSE: self._on_session_close,
            Event.LINK_REMOTE_OPEN: self._on_link_open,
            Event.LINK_REMOTE_CLOSE: self._on_link_close,
            Event.LINK_REMOTE_DETACH: self._on_link_close,
            Event.LINK_FLOW: self._on_link_flow,
            Event.DELIVERY: self._on_delivery,
        }
        self.connection = connection
        self.opened: Future[None] = Future()
        self.properties: dict[Any, Any] = {}  #: what the broker tells of itself

    def start(self) -> None:
        """Open the connection."""
        for end in (self._socket, self._waker, self._woken):
            end.setblocking(False)
        self.connection.collect(self._collector)
        self._transport.bind(self.connection)
        self.connection.open()
        self._thread.start()

    def post(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function on the engine's thread, soon and in order.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        future: Future[T] = Future()
        with self._lock:
            self.check()
            self._posted.append((function, future))
        self._wake()
        return future

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the engine's thread and wait for it.

        Raises:
            ConnectionLostError: The connection is gone; the function did not run.
        """
        return self.post(function).result()

    def check(self) -> None:
        """Raise `ConnectionLostError` if the connection is gone."""
        if self._error is not None:
            raise ConnectionLostError(str(self._error)) from self._error

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
        """Tell this owner, too, when the connection is lost. On the engine's thread.

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

    def release(self, owner: Owner) -> None:
        """Forget an owner whose link is closed. On the engine's thread."""
        self._owners.discard(owner)

    def abort(self, error: JMSError) -> None:
        """Give the connection up, even if the broker reads nothing any more and what was posted cannot be written."""
        self._break(error)
        self._wake()

    def close(self, timeout: float) -> None:
        """Close in order; give up after so many seconds."""
        self._closing = True
        with suppress(ConnectionLostError):
            self.post(self.connection.close)
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.abort(ConnectionLostError("The broker did not answer the close."))
            self._thread.join(timeout)

    def _wake(self) -> None:
        with suppress(OSError):  # full: it is awake anyway; closed: it will fail the call
            self._waker.send(b"\0")

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            try:
                while self._error is None and not self._transport.closed:
                    self._turn(selector)
                self._dispatch_events()  # why it ended
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

    def _turn(self, selector: selectors.BaseSelector) -> None:
        self._run_posted()
        self._dispatch_events()
        now = self._clock.monotonic()
        deadline = self._transport.tick(now)
        pending = self._pump.write()
        if self._error is not None or self._collector.peek():
            return  # it is over, or writing brought something up
        self._pump.check()
        selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if pending else 0))
        for key, events in selector.select(max(deadline - now, 0) if deadline else None):
            if key.fileobj is self._woken:
                self._woken.recv(_WAKES)
            elif events & selectors.EVENT_READ:
                # A refused login and the end behind it are two things: the first says why.
                self._pump.read() if self.opened.done() else self._pump.read(times=1)

    def _run_posted(self) -> None:
        """Run what was posted and write it, one after the other.

        Of what is written together proton puts credit before settlement, whatever the order of the calls; then a broker
        would send what comes later before it has taken back what comes first.
        """
        while self._posted:
            function, future = self._posted.popleft()
            try:
                future.set_result(function())
            except Exception as error:  # noqa: BLE001  # it belongs to whoever called
                future.set_exception(error)
            if self._pump.write():
                return

    def _dispatch_events(self) -> None:
        while event := self._collector.peek():
            handle = self._handlers.get(event.type)
            if handle is not None:
                handle(event)
            self._collector.pop()

    def _on_connection_open(self, event: Any) -> None:
        del event
        if self._transport.sasl().outcome != LOGGED_IN:  # proton takes an open frame in the midst of the login
            self._break(ConnectionLostError("The broker opened the connection before it answered the login."))
            return
        properties: Any = self.connection.remote_properties  # whatever the broker sent for them
        self.properties = dict(properties) if hasattr(properties, "items") else {}
        failed = "amqp:connection-establishment-failed" in self.properties
        if not failed and not self.opened.done():  # else the reason follows
            self.opened.set_result(None)

    def _on_connection_close(self, event: Any) -> None:
        del event
        if not self._closing:
            self._break(connection_error(self.connection.remote_condition, self.connection.container))

    def _on_transport_error(self, event: Any) -> None:
        del event
        if not self._closing:
            self._break(transport_error(self._transport, self.connection.container))

    def _on_session_open(self, event: Any) -> None:
        self._owner_of(event.context)

    def _on_session_close(self, event: Any) -> None:
        if owner := self._owner_of(event.context):
            owner.on_close(event.context.remote_condition)

    def _on_link_open(self, event: Any) -> None:
        if owner := self._owner_of(event.link):
            owner.on_open()

    def _on_link_close(self, event: Any) -> None:
        if owner := self._owner_of(event.link):
            owner.on_close(event.link.remote_condition)

    def _on_link_flow(self, event: Any) -> None:
        if owner := self._owner_of(event.link):
            owner.on_flow()

    def _on_delivery(self, event: Any) -> None:
        if owner := self._owner_of(event.link):
            owner.on_delivery(event.delivery)

    def _owner_of(self, endpoint: Any) -> Owner | None:
        """Whose a session or link is. A broker that opens its own is left: nobody would ever close them."""
        owner: Owner | None = getattr(endpoint, "owner", None)
        if owner is None:
            self._break(ConnectionLostError("The broker opened a session or link of its own, which none should."))
        return owner

    def _break(self, error: JMSError) -> None:
        with self._lock:
            self._error = self._error or error

    def _end(self) -> None:
        """Tell everybody, and let go of proton's objects on the thread that owned them."""
        self._break(ConnectionLostError("The connection is closed."))
        error = self._error or ConnectionLostError("The connection is closed.")
        self._socket.close()
        if not self.opened.done():
            self.opened.set_exception(error)
        for _, future in self._posted:
            future.set_exception(ConnectionLostError(str(error)))
        for owner in self._owners:
            owner.on_lost(error)
        self._owners.clear()
        self._waker.close()
        self._woken.close()
        if not self._closing:
            self._lost(error)
