"""Connections: sessions over one provider connection, metadata, and the exception listener."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self, TypeVar

from jmsjca import spi
from jmsjca.arguments import PLAIN_FUNCTION, GuardedAttributes, wrong_argument
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.config.naming import NamingContext
from jmsjca.destinations import DestinationKind
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.forking import ForkGuard
from jmsjca.hooks import HookChain
from jmsjca.log_records import get_logger
from jmsjca.outbound.connection_state import Closeable, ConnectionContext, ConnectionState
from jmsjca.outbound.session import BaseSession, Session, checked_acknowledge_mode
from jmsjca.outbound.unit_of_work import Abortable, ConnectionAbort, Enlistment, aborts_if_interrupted
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["Connection", "ConnectionMetaData", "ExceptionListener", "SharedConnection"]

logger = get_logger("jmsjca.outbound")

ExceptionListener = Callable[[JMSError], object]
"""Called with the error that broke a connection."""


class ExceptionNotifier:
    """Calls the exception listener of a connection (JMS 3.1, section 6.1.7).

    Args:
        state: The state of the connection, which records its loss.

    Attributes:
        listener: The exception listener; None without one.
        failure: The error with which the connection was lost; None before.
    """

    def __init__(self, state: ConnectionState) -> None:
        self._lock = threading.Lock()
        self._losing = threading.RLock()
        self._state = state
        self.listener: ExceptionListener | None = None
        self.failure: JMSError | None = None

    def use(self, state: ConnectionState) -> None:
        """Notify another connection, which goes on with the connection to the broker, and has no listener yet."""
        self.listener, self._state = None, state
        if self.failure is not None:
            state.fail(self.failure)

    def notify_loss(self, error: JMSError) -> None:
        """Record the loss of the connection, end the waits of its receives, and call the listener; only once."""
        with self._losing:
            is_known, self.failure = self.failure is not None, error if self.failure is None else self.failure
        if not is_known:
            self._state.fail(error)
            self.notify(error)

    def mark_aborted(self, error: JMSError) -> None:
        """Record the loss of the connection without calling the listener: the interrupted call raises the reason."""
        self.failure = error if self.failure is None else self.failure
        self._state.fail(self.failure)

    def report(self, error: JMSError) -> None:
        """Call the listener with an error that no call raises.

        Most providers also report the loss of a connection. The listener is called only once for it.
        """
        (self.notify_loss if isinstance(error, ConnectionLostError) else self.notify)(error)

    def notify(self, error: JMSError) -> None:
        """Call the listener on a new thread: it may close the connection, which waits for the calling I/O thread."""
        if self.listener is not None:
            threading.Thread(
                target=self._call, args=(self.listener, error), name="jmsjca exception listener", daemon=True
            ).start()

    def _call(self, listener: ExceptionListener, error: JMSError) -> None:
        with self._lock:
            try:
                listener(error)
            except Exception:
                logger.exception("The exception listener failed; nothing else changes.")


@dataclass(frozen=True, slots=True)
class ConnectionMetaData:
    """Protocol, versions and properties of a connection, see `Connection.metadata` (JMS 3.1, section 6.1.6).

    Args:
        protocol: The scheme of the connection URL.
        provider_name: The name of this library.
        provider_version: The version of this library.
        jms_version: The version of Jakarta Messaging that the library follows.
        jmsx_property_names: The properties of the specification that messages of this connection may have.
        broker: The product and the version of the broker, as it announces them; empty if it announces none.
    """

    protocol: str
    provider_name: str
    provider_version: str
    jms_version: str
    jmsx_property_names: tuple[str, ...]
    broker: str


def _metadata(protocol: str, connection: spi.Connection) -> ConnectionMetaData:
    from importlib.metadata import version  # slow to import, and rarely needed

    names = ("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")  # the last one also where this process alone counts
    return ConnectionMetaData(protocol, "jmsjca", version("jmsjca"), "3.1", names, connection.broker)


S = TypeVar("S", bound=BaseSession)


class Connection(Abortable, Closeable, GuardedAttributes):
    """A connection to a broker; creates sessions. Thread-safe, in contrast to its sessions.

    `ConnectionFactory.create_connection` creates it. Entering it with ``with`` starts it. It belongs to the process
    that opened it: in a forked child every call on it, and on its sessions, raises `ConnectionLostError`, and closing
    does nothing.

    Args:
        settings: URL, credentials, client id and limits.
        hooks: The hooks around sends.
        domain: "queue" or "topic" for a connection of one messaging domain; None for both.
        naming: Where ``lookup://`` names are looked up; None for `NamingContext.default`.
        ignore_transacted: True if each session is transacted (option ``JMSJCA.IgnoreTx``).
        enlist: Makes the enlistment in the transactions of a transaction manager; None without a manager.
        strict: True to refuse what Jakarta EE forbids in its containers (option ``JMSJCA.Strict``).
        kept: A connection of the same settings that a transaction has kept, to go on with; None to open one.
        producer_pooling: True if each session pools its closed producers (option ``JMSJCA.producerpooling``).

    Raises:
        JMSError: The broker cannot be reached, or refuses the connection.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        hooks: HookChain,
        *,
        domain: DestinationKind | None = None,
        naming: NamingContext | None = None,
        ignore_transacted: bool = False,
        enlist: Callable[[spi.Connection], Enlistment] | None = None,
        strict: bool = False,
        kept: "Connection | None" = None,
        producer_pooling: bool = False,
    ) -> None:
        self._fork_guard = ForkGuard()
        self._abort = ConnectionAbort(self._end_at_once)
        self._settings = settings
        self._protocol = ConnectionURL.parse(settings.url).protocol
        self._state = ConnectionState()
        self._lock = threading.Lock()
        self._sessions: list[BaseSession] = []
        self._closed = False
        opened: spi.Connection | None = None
        try:
            if kept is None:
                self._notifier = ExceptionNotifier(self._state)
                opened = self._provider_connection = connect(settings, self._notifier.notify_loss)
                enlistment: Enlistment | None = None if enlist is None else enlist(self._provider_connection)
            else:
                self._notifier, opened = kept._notifier, kept._provider_connection  # noqa: SLF001
                self._provider_connection = opened
                self._notifier.use(self._state)
                enlistment = kept._context.enlistment  # noqa: SLF001
            self._context: ConnectionContext = ConnectionContext(
                self._provider_connection,
                settings.limits,
                self._state,
                self._abort,
                settings.client_id,
                hooks,
                report=self._notifier.report,
                domain=domain,
                naming=naming or NamingContext.default(),
                ignore_transacted=ignore_transacted,
                enlistment=enlistment,
                strict=strict,
                producer_pooling=producer_pooling,
            )
            opened = None
        finally:
            if opened is not None:  # the caller cannot close it
                opened.close(0)

    @property
    def closed(self) -> bool:
        """True as soon as closing has begun."""
        return self._closed

    @property
    def client_id(self) -> str | None:
        """The client id, which owns durable subscriptions; set in the `ConnectionFactory` (JMS 3.1, section 6.1.2)."""
        self._check_open()
        return self._context.client_id

    @property
    def capabilities(self) -> spi.Capabilities:
        """The capabilities of the broker."""
        self._check_open()
        return self._provider_connection.capabilities

    @property
    def metadata(self) -> ConnectionMetaData:
        """Protocol, versions and properties of this connection (JMS 3.1, section 6.1.6)."""
        self._check_open()
        return _metadata(self._protocol, self._provider_connection)

    @property
    def admin(self) -> spi.Admin | None:
        """Administration of the broker; None if the broker offers none."""
        self._check_open()
        return self._provider_connection.admin()

    @property
    def failure(self) -> JMSError | None:
        """The error with which the connection was lost; None while it can be used."""
        return self._state.failure

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called on a new thread with the error when the connection is lost (JMS 3.1, section 6.1.7); None for none.

        It is also called when a message listener is removed because it has failed too often, or gets no more messages.
        It is not called for an error that a call raises. A lost connection does not reconnect: open a new one.
        """
        self._check_open()
        return self._notifier.listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set or remove the exception listener."""
        self._check_open()
        if listener is not None:
            self._context.check_allowed("An exception listener")
        if listener is not None and not callable(listener):
            raise wrong_argument("exception_listener", listener, "a function that takes the error, or None")
        PLAIN_FUNCTION("exception_listener", listener)
        self._notifier.listener = listener

    @aborts_if_interrupted
    def start(self) -> None:
        """Start the delivery of messages to consumers. Idempotent.

        Raises:
            IllegalStateError: The connection is closed.
        """
        self._check_open()
        self._state.start()

    @aborts_if_interrupted
    def stop(self) -> None:
        """Pause the delivery of messages to consumers (JMS 3.1, section 6.1.5). Idempotent.

        When this returns, no receive returns a message, and no message listener runs, before the next `start`. Timeouts
        of receives keep running.

        Raises:
            IllegalStateError: The connection is closed, or one of its message listeners calls this.
        """
        self._context.check_allowed("stop()")
        self._pause()

    @aborts_if_interrupted
    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode | str = AcknowledgeMode.AUTO
    ) -> Session:
        """Create a session.

        Args:
            transacted: True to commit all receipts and sends together.
            acknowledge_mode: The acknowledgement of receipts, an `AcknowledgeMode` or its name; ignored if transacted.

        Raises:
            IllegalStateError: The connection is closed.
            InvalidArgumentError: There is no such acknowledge mode, or ``transacted`` is neither True nor False.
            NotSupportedError: The broker has no transactions.
        """
        mode = checked_acknowledge_mode("acknowledge_mode", acknowledge_mode, transacted)
        return self._open_session(lambda context: Session(context, transacted=transacted, acknowledge_mode=mode))

    @aborts_if_interrupted
    def close(self) -> None:
        """Close all sessions, which roll back, and the connection to the broker (JMS 3.1, section 6.1.8). Idempotent.

        A waiting receive returns None; calls of other threads are waited for. Temporary destinations are deleted. Under
        a transaction manager, the connection to the broker is kept until the transactions that it has joined are over,
        with its temporary destinations.

        Raises:
            IllegalStateError: A completion listener or message listener of one of the sessions calls it.
        """
        if self._fork_guard.in_child:
            return  # a forked child: the parent closes the connection
        self._check_close_allowed()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with ExitStack() as stack:  # if one fails, the others are closed; the last one releases all deliveries
            stack.callback(self._keep, self._settings, self, self._end)
            for session in self._sessions:
                stack.callback(session.close)

    def _keep(self, key: object, kept: object, release: Callable[[], None]) -> None:
        """Call ``release`` when the transactions that the connection has joined are over; see `Enlistment.keep`."""
        enlistment = self._context.enlistment
        if enlistment is None or self._abort.cause is not None:
            release()
        else:
            enlistment.keep(key, kept, release)

    def _end(self) -> None:
        self._provider_connection.close()

    def _end_at_once(self, _: BaseException) -> None:
        if not self._fork_guard.in_child:  # else the parent uses it
            self._notifier.mark_aborted(self._abort.error())
            self._provider_connection.close(0)
            self._state.interrupt()

    def _pause(self) -> None:
        """Pause the delivery of messages, as `stop`, also where that is forbidden to the application."""
        self._check_open()
        for session in self._open_sessions():
            session._listeners.check_allowed("stop()")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._state.stop()

    def _check_close_allowed(self) -> None:
        for session in self._open_sessions():
            session._check_close_allowed()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # not in the API

    def _close_sessions(self) -> None:
        with self._lock:
            sessions = self._sessions.copy()
        for session in sessions:  # also sessions that a signal handler interrupted in close()
            session.close()
        with self._lock:
            self._sessions = [session for session in self._sessions if session not in sessions]

    @property
    def _is_untouched(self) -> bool:
        """True if nothing has to be cleaned up before a pool lends the connection again."""
        context = self._context
        return not (
            self._sessions
            or self._state.started
            or self._notifier.listener is not None
            or context.temporaries
            or context.enlistment is not None
        )

    def _session_for_single_sends(self) -> Session:
        """Return a session that its pooled connection keeps for sends at once, and that needs no close."""
        return Session(self._context, transacted=False, acknowledge_mode=AcknowledgeMode.AUTO)

    def _delete_temporaries(self) -> None:
        """Delete the temporary destinations that the sessions have created and not deleted."""
        for temporary in self._context.temporaries.copy():
            self._context.delete_temporary(temporary)

    def _open_session(self, create: Callable[[ConnectionContext], S]) -> S:
        self._fork_guard.check()
        with self._lock:
            self._check_open()
            self._sessions = [s for s in self._sessions if not s._released]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if any(not session.closed for session in self._sessions):
                self._context.check_allowed("A second session of a connection")
            session = create(self._context)
            self._sessions.append(session)
        return session

    def _open_sessions(self) -> list[BaseSession]:
        with self._lock:
            return [session for session in self._sessions if not session.closed]

    def _check_open(self) -> None:
        self._fork_guard.check()
        if self._closed:
            raise IllegalStateError("The connection is closed; open another one with create_connection().")
        if self._abort.cause is not None:
            raise self._abort.error()

    def __enter__(self) -> Self:
        self.start()
        return self


class SharedConnection(Connection):
    """The connection of contexts: it is closed with the last of them.

    Args:
        settings: URL, credentials, client id and limits.
        hooks: The hooks around sends.
    """

    @aborts_if_interrupted
    def open_session(self, create: Callable[[ConnectionContext], S]) -> S:
        """Create a session of any kind, which is closed with the connection."""
        return self._open_session(create)

    @aborts_if_interrupted
    def close_if_idle(self) -> None:
        """Close the connection if all its sessions are closed."""
        if not self._fork_guard.in_child and not self._open_sessions():
            self.close()
