"""State that a connection shares with its sessions: started or stopped, limits, hooks."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.hooks import HookChain

__all__ = ["Closeable", "ConnectionContext", "ConnectionState"]


class ConnectionState:
    """Started and stopped by the connection, waited for by its consumers (JMS 3.1, sections 6.1.4 and 6.1.5).

    Attributes:
        started: True while the connection is started.
    """

    def __init__(self, *, started: bool = False) -> None:
        self._changed = threading.Condition()
        self.started = started

    def start(self) -> None:
        """Let consumers go on."""
        self.started = True
        self.notify()

    def stop(self) -> None:
        """Let consumers wait from now on."""
        self.started = False

    def wait(self, timeout: float | None, ended: Callable[[], bool]) -> bool:
        """Wait for the start.

        Args:
            timeout: Seconds to wait; None waits for ever.
            ended: Tells whether the waiting consumer was closed meanwhile.

        Returns:
            True if the connection is started.
        """
        if not self.started:
            with self._changed:
                self._changed.wait_for(lambda: self.started or ended(), timeout)
        return self.started

    def notify(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What a session stands on.

    Args:
        connection: The provider's connection.
        limits: The bounds of what its consumers take ahead.
        state: Whether the connection is started.
        client_id: What durable subscriptions belong to; None if the connection has none.
        hooks: What surrounds sends.
    """

    connection: spi.Connection
    limits: Limits
    state: ConnectionState
    client_id: str | None = None
    hooks: HookChain = field(default_factory=HookChain)


class Closeable(ABC):
    """Leaving it closes it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
