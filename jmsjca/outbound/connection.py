"""Connections: sessions over one provider connection, metadata, and the exception listener."""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self, TypeVar

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, ConnectionURL
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.forking import ForkGuard
from jmsjca.hooks import HookChain
from jmsjca.outbound.connection_state import Closeable, ConnectionContext, ConnectionState
from jmsjca.outbound.session import BaseSession, Session
from jmsjca.reconnection import ConnectionSettings, connect

__all__ = ["Connection", "ConnectionMetaData", "ExceptionListener", "ExceptionNotifier"]

logger = logging.getLogger("jmsjca.outbound")

ExceptionListener = Callable[[JMSError], object]
"""Called with what happened to a connection."""


class ExceptionNotifier:
    """Calls the exception listener of a connection (JMS 3.1, section 6.1.7).

    Attributes:
        listener: Whom to call; None for nobody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.listener: ExceptionListener | None = None

    def notify(self, error: JMSError) -> None:
        """Let the listener know, on a thread of its own: it may close the connection, whose thread this is."""
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
    """Given by `Connection.metadata` (JMS 3.1, section 6.1.6).

    Args:
        protocol: How the broker is reached: the scheme of the connection URL.
        provider_name: The library.
        provider_version: Its version.
        jms_version: The version of Jakarta Messaging whose semantics it keeps.
        jmsx_property_names: The properties of the specification that messages of this connection may have.
    """

    protocol: str
    provider_name: str
    provider_version: str
    jms_version: str
    jmsx_property_names: tuple[str, ...]

    @classmethod
    def of(cls, protocol: str, capabilities: spi.Capabilities) -> "ConnectionMetaData":
        """Gather it for a connection."""
        from importlib.metadata import version  # noqa: PLC0415  # slow to import, and rarely asked for

        names = ["JMSXGroupID", "JMSXGroupSeq", *(["JMSXDeliveryCount"] if capabilities.delivery_count else [])]
        return cls(protocol, "jmsjca", version("jmsjca"), "3.1", tuple(names))


S = TypeVar("S", bound=BaseSession)


class Connection(Closeable):
    """Made by `ConnectionFactory.create_connection`. Thread-safe; the sessions that it makes are not.

    Entering it with ``with`` starts it. It belongs to the process that opened it: in a forked child every call on it,
    and on what was made from it, raises `ConnectionLostError`, and closing does nothing.

    Args:
        settings: What it is made from.
        hooks: What surrounds sends.

    Raises:
        JMSError: The broker cannot be reached, or refuses.
    """

    def __init__(self, settings: ConnectionSettings, hooks: HookChain) -> None:
        self._fork_guard = ForkGuard()
        self._notifier = ExceptionNotifier()
        self._protocol = ConnectionURL.parse(settings.url).protocol
        self._provider_connection = connect(settings, self._notifier.notify)
        self._state = ConnectionState()
        self._context = ConnectionContext(
            self._provider_connection, settings.limits, self._state, settings.client_id, hooks
        )
        self._lock = threading.Lock()
        self._sessions: list[BaseSession] = []
        self._closed = False

    @property
    def client_id(self) -> str | None:
        """What durable subscriptions belong to; given to the `ConnectionFactory` (JMS 3.1, section 6.1.2)."""
        return self._context.client_id

    @property
    def capabilities(self) -> spi.Capabilities:
        """What the broker behind this connection can do."""
        return self._provider_connection.capabilities

    @property
    def metadata(self) -> ConnectionMetaData:
        """What this connection is: protocol, versions, properties (JMS 3.1, section 6.1.6)."""
        return ConnectionMetaData.of(self._protocol, self._provider_connection.capabilities)

    @property
    def admin(self) -> spi.Admin | None:
        """What an operator can see and do; None if the broker offers nothing."""
        return self._provider_connection.admin()

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called, on a thread of its own, with the error when the connection is lost (JMS 3.1, section 6.1.7).

        What a call of this library raises is not told again. A lost connection stays lost: make a new one.
        """
        return self._notifier.listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        """Set it; None for nobody."""
        self._notifier.listener = listener

    def start(self) -> None:
        """Let consumers receive. Again is harmless.

        Raises:
            IllegalStateError: The connection is closed.
        """
        self._check_open()
        self._state.start()

    def stop(self) -> None:
        """Let consumers wait (JMS 3.1, section 6.1.5). Again is harmless.

        When this returns, no receive will return with a message before the next `start`; their time goes on running.

        Raises:
            IllegalStateError: The connection is closed.
        """
        self._check_open()
        self._state.stop()
        for session in self._open_sessions():
            session.pause()

    def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO
    ) -> Session:
        """Make a session.

        Args:
            transacted: True if what it receives and sends is committed together.
            acknowledge_mode: How receipt is acknowledged otherwise; ignored if transacted.

        Raises:
            IllegalStateError: The connection is closed.
            NotSupportedError: The broker has no transactions.
        """
        return self.open_session(
            lambda context: Session(context, transacted=transacted, acknowledge_mode=acknowledge_mode)
        )

    def open_session(self, make: Callable[[ConnectionContext], S]) -> S:
        """Make a session of any kind, which is closed with the connection. For contexts."""
        self._fork_guard.check()
        with self._lock:
            self._check_open()
            session = make(self._context)
            self._sessions = [s for s in self._sessions if not s.closed] + [session]
        return session

    def close_if_idle(self) -> None:
        """Close the connection if all its sessions are closed. For contexts, which share it."""
        if not self._fork_guard.in_child and not self._open_sessions():
            self.close()

    def close(self) -> None:
        """Close all sessions, rolling back what is open, and the connection (JMS 3.1, section 6.1.8).

        A receive that waits returns None; what other threads are about is waited for. Temporary destinations are
        deleted. Closing twice does nothing.
        """
        if self._fork_guard.in_child:
            return  # a forked child: its parent closes it
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with ExitStack() as stack:  # whatever fails, the rest is closed: the connection gives back what is still held
            stack.callback(self._provider_connection.close)
            for session in self._sessions:
                stack.callback(session.close)

    def _open_sessions(self) -> list[BaseSession]:
        with self._lock:
            return [session for session in self._sessions if not session.closed]

    def _check_open(self) -> None:
        self._fork_guard.check()
        if self._closed:
            raise IllegalStateError("The connection is closed.")

    def __enter__(self) -> Self:
        self.start()
        return self
