"""One AMQP connection: proton's protocol engine, its socket, and the only thread that touches either."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from proton import Collector, Connection, ProtonException, Transport

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.forking import forked_error
from jmsjca.providers.amqp.engine.event_loop import EventLoop, SocketTransport
from jmsjca.providers.amqp.engine.events import ConnectionHandler, EventDispatcher
from jmsjca.providers.amqp.engine.proton_ffi import Buffer
from jmsjca.providers.amqp.engine.sessions import Sessions
from jmsjca.providers.amqp.engine.task_queue import Task, TaskQueue
from jmsjca.providers.common.network import connection_error

__all__ = ["Engine", "abandon_in_forked_children"]

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
        check: Raises `ConnectionLostError` if the connection is gone.
        mailbox: What other threads want done, and why nothing is any more.
        buffer: For bytes on their way between proton and us, on the engine's thread.
        pump: Moves these, on the engine's thread.
        now: The monotonic clock.
        remote: What the broker says of the connection.
        sessions: Who has which session.
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
        """Open the connection."""
        self._socket.setblocking(False)
        self._connection.collect(self._collector)
        self._transport.bind(self._connection)
        self._connection.open()
        abandon_in_forked_children(self)
        self._thread.start()

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function on the engine's thread, soon and in order.

        What it writes is written before anything that comes later: of what is written together proton puts credit
        before settlement, and a broker would send what comes later before it takes back what comes first.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        reply: Future[T] = Future()
        self.task_queue.put(Task(lambda: reply.set_result(function()), reply, flush_after=True))
        return reply

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the engine's thread and wait for it.

        Raises:
            ConnectionLostError: The connection is gone; the function did not run.
        """
        return self.submit(function).result()

    def submit_nowait(
        self, function: Callable[[], None], reply: "Future[Any] | None" = None, *, urgent: bool = True
    ) -> None:
        """Run a function on the engine's thread; what it writes may be joined with what comes later.

        Args:
            function: What to do.
            reply: What it sees to that somebody answers; hears of it if the function fails or will not run.
            urgent: False if it may wait a millisecond, so that the thread wakes once for many.

        Raises:
            ConnectionLostError: The connection is gone; the function will not run.
        """
        self.task_queue.put(Task(function, reply, flush_after=False, urgent=urgent))

    def wait(self, reply: "Future[T]", timeout: float, what: str, latest: Callable[[], float] = lambda: 0.0) -> T:
        """Wait for an answer of the broker.

        Args:
            reply: The answer.
            timeout: Seconds to wait for it.
            what: What it is about.
            latest: Where there are several answers, tells when the last one came, as `now` does: each has its time.

        Raises:
            ConnectionLostError: It did not come in time; the connection is given up, for the answer may still come.
            BaseException: What a signal handler raised; the connection is given up, too.
        """
        try:
            return self._await(reply, timeout, latest)
        except TimeoutError as error:
            lost = ConnectionLostError(f"The broker did not answer within {timeout:g} s: {what}.")
            self.abort(lost)
            raise lost from error
        except JMSError:
            raise
        except BaseException:  # of a signal handler, say: nobody hears the answer any more
            self.abort(ConnectionLostError(f"The wait for the broker was interrupted: {what}."))
            raise

    def call_at(self, when: float, function: Callable[[], None]) -> None:
        """Run a function at a time of `now`, if the connection lasts. On the engine's thread."""
        self._loop.timers.schedule(when, function)

    def abort(self, error: JMSError) -> None:
        """Give the connection up, even if the broker reads nothing any more and what was posted cannot be written."""
        self.task_queue.close_with(error)
        self.task_queue.wake()

    def close(self, timeout: float) -> None:
        """Close in order; give up after so many seconds."""
        self.connection_handler.closing = True
        with suppress(ConnectionLostError):
            self.submit(self._connection.close)
        try:
            self._thread.join(timeout)
        finally:  # also if a signal handler raises: nobody closes it a second time
            self.abort(ConnectionLostError("The broker did not answer the close."))
        self._thread.join(timeout)

    def abandon_after_fork(self, error: ConnectionLostError) -> None:
        """Let go of the parent's connection, without a word to the broker. In a forked child."""
        self.connection_handler.closing = True
        self.task_queue.abandon_after_fork(error)
        self._socket.close()

    def _await(self, reply: "Future[T]", timeout: float, latest: Callable[[], float]) -> T:
        heard = self.now()
        while True:
            try:
                return reply.result(max(heard + timeout - self.now(), 0))
            except TimeoutError:
                if latest() <= heard:
                    raise
                heard = latest()

    def _run(self) -> None:
        try:
            self._loop.run()
        except (OSError, ProtonException) as error:
            self.task_queue.close_with(
                connection_error("The connection to the broker broke", self.socket_transport.last_tls_alert() or error)
            )
        except Exception as error:  # whatever it is, nobody may wait for ever
            logger.exception("The AMQP engine failed; its connection is given up.")
            self.task_queue.close_with(ConnectionLostError(f"The connection was given up: {error!r}"))
        finally:
            self._finish()

    def _finish(self) -> None:
        """Tell everybody, and let go of proton's objects on the thread that owned them."""
        self.task_queue.close_with(ConnectionLostError("The connection is closed."))
        error = self.task_queue.error or ConnectionLostError("The connection is closed.")
        with suppress(OSError):  # whatever it is, all are told
            self._socket.close()
        self.connection_handler.fail_opening(error)
        self.task_queue.close()
        self.sessions.on_connection_lost(error)
        if self.connection_handler.reports_loss:
            self._on_lost(error)


class _Abandonable(Protocol):
    def abandon_after_fork(self, error: ConnectionLostError) -> None: ...


_registered: WeakSet[_Abandonable] = WeakSet()


def abandon_in_forked_children(connection: _Abandonable) -> None:
    """Let a connection be left by whoever is forked off this process from now on."""
    _registered.add(connection)


def _abandon_all() -> None:
    for connection in list(_registered):
        connection.abandon_after_fork(forked_error())


os.register_at_fork(after_in_child=_abandon_all)
