"""A connection: sessions over one link to a broker."""

import threading
from typing import Self

from jmsjca import spi
from jmsjca.config import AcknowledgeMode, Limits
from jmsjca.errors import IllegalStateError, NotSupportedError
from jmsjca.outbound.closing import Closing
from jmsjca.outbound.session import Session

__all__ = ["Connection"]


class Connection(Closing):
    """Made by `ConnectionFactory.create_connection`. Thread-safe; the sessions that it makes are not.

    Args:
        link: The provider's connection.
        client_id: What durable subscriptions belong to.
        limits: The bounds of its sessions.
    """

    def __init__(self, link: spi.Connection, client_id: str | None, limits: Limits) -> None:
        self._link = link
        self._limits = limits
        self._running = threading.Event()
        self._sessions: list[Session] = []
        self._closed = False
        self.client_id = client_id

    @property
    def capabilities(self) -> spi.Capabilities:
        """What the broker behind this connection can do."""
        return self._link.capabilities

    @property
    def admin(self) -> spi.Admin | None:
        """What an operator can see and do; None if the broker offers nothing."""
        return self._link.admin()

    def start(self) -> None:
        """Let consumers receive."""
        self._running.set()

    def stop(self) -> None:
        """Let consumers wait. What was received already is not affected."""
        self._running.clear()

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
        if self._closed:
            raise IllegalStateError("The connection is closed.")
        if transacted and not self._link.capabilities.atomic:
            raise NotSupportedError(
                "A transacted session needs a broker that sends and acknowledges together or not at all; this one "
                "cannot (its capability atomic says so). Use an acknowledge mode instead."
            )
        session = Session(
            self._link,
            transacted=transacted,
            acknowledge_mode=acknowledge_mode,
            client_id=self.client_id,
            limits=self._limits,
            running=self._running,
        )
        self._sessions = [s for s in self._sessions if not s.closed] + [session]
        return session

    def close(self) -> None:
        """Close all sessions, rolling back what is open, and the link. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._running.set()
        try:
            for session in self._sessions:
                session.close()
        finally:
            self._link.close()  # gives back what is still held, whatever failed before

    def __enter__(self) -> Self:
        self.start()
        return self
