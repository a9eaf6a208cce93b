"""State that a connection shares with its sessions: started or stopped, limits, hooks."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from jmsjca import spi
from jmsjca.config.settings import Limits
from jmsjca.errors import JMSError
from jmsjca.hooks import HookChain

__all__ = ["Closeable", "ConnectionContext", "ConnectionState", "Pausable"]


class Pausable(Protocol):
    """A consumer, as its connection sees it."""

    def pause(self) -> None:
        """Wait until no receive is about to return a message."""
        ...


class ConnectionState:
    """Whether a connection is started; its consumers wait for that (JMS 3.1, sections 6.1.4 and 6.1.5).

    Attributes:
        started: True while the connection is started.
    """

    def __init__(self, *, started: bool = False) -> None:
        self._changed = threading.Condition()
        self._consumers: set[Pausable] = set()
        self.started = started

    def add(self, consumer: Pausable) -> None:
        """Register an open consumer, which `stop` pauses."""
        with self._changed:
            self._consumers.add(consumer)

    def remove(self, consumer: Pausable) -> None:
        """Unregister a consumer. Idempotent."""
        with self._changed:
            self._consumers.discard(consumer)

    def start(self) -> None:
        """Resume all consumers."""
        self.started = True
        self.notify()

    def stop(self) -> None:
        """Pause all consumers: when this returns, no receive returns a message before the next `start`."""
        self.started = False
        with self._changed:
            consumers = list(self._consumers)
        for consumer in consumers:
            consumer.pause()

    def wait(self, timeout: float | None, ended: Callable[[], bool]) -> bool:
        """Wait until the connection is started.

        Args:
            timeout: Seconds to wait; None waits forever.
            ended: Returns True once the waiting consumer is closed, which ends the wait.

        Returns:
            True if the connection is started.
        """
        if not self.started:
            with self._changed:
                self._changed.wait_for(lambda: self.started or ended(), timeout)
        return self.started

    def notify(self) -> None:
        """Wake all threads in `wait`, so that they check their conditions again."""
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """Resources that a connection shares with its sessions.

    Args:
        connection: The provider's connection.
        limits: The bounds of what the consumers prefetch.
        state: Whether the connection is started.
        client_id: The owner of durable subscriptions; None if the connection has no client id.
        hooks: The hooks around sends.
        report: Called with an error that no call can raise: that of a message listener which is removed.
    """

    connection: spi.Connection
    limits: Limits
    state: ConnectionState
    client_id: str | None = None
    hooks: HookChain = field(default_factory=HookChain)
    report: Callable[[JMSError], None] = field(default=lambda _: None)

    @classmethod
    def for_listener(cls, connection: spi.Connection, limits: Limits, hooks: HookChain | None = None) -> Self:
        """Return the context of a listener's sessions: started, and without a client id."""
        return cls(connection, limits, ConnectionState(started=True), hooks=hooks or HookChain())


class Closeable(ABC):
    """Context manager that closes itself on exit."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
