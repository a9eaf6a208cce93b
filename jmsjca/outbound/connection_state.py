"""State that a connection shares with its sessions: started or stopped, limits, hooks."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar, cast

from jmsjca import spi
from jmsjca.config.limits import Limits
from jmsjca.config.naming import NamingContext, is_reference
from jmsjca.destinations import Destination, DestinationKind
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.forking import ProcessBound
from jmsjca.hooks import HookChain
from jmsjca.log_records import get_logger
from jmsjca.outbound.unit_of_work import ConnectionAbort, Enlistment

__all__ = ["Closeable", "ConnectionContext", "ConnectionState", "Pausable"]

logger = get_logger("jmsjca.outbound")

D = TypeVar("D", bound=Destination)


class Pausable(Protocol):
    """A consumer, as its connection sees it."""

    def pause(self) -> None:
        """Wait until no receive is about to return a message."""
        ...

    def interrupt(self) -> None:
        """Wake the waiting calls, so that they check whether to continue."""
        ...


class ConnectionState:
    """Whether a connection is started; its consumers wait for that (JMS 3.1, sections 6.1.4 and 6.1.5).

    Attributes:
        started: True while the connection is started.
        failure: The error with which the connection was lost; None before.
    """

    def __init__(self, *, started: bool = False) -> None:
        self._changed = threading.Condition()
        self._consumers: set[Pausable] = set()
        self._warns = not started
        self.started = started
        self.failure: JMSError | None = None

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
        self._warns = False
        self.notify()

    def stop(self) -> None:
        """Pause all consumers: when this returns, no receive returns a message before the next `start`."""
        self.started = False
        with self._changed:
            consumers = list(self._consumers)
        for consumer in consumers:
            consumer.pause()

    def interrupt(self) -> None:
        """Wake all receives: the connection was aborted."""
        with self._changed:
            consumers = list(self._consumers)
        for consumer in consumers:
            with suppress(JMSError):  # it is closed
                consumer.interrupt()

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

    def wait_while_connected(self, timeout: float | None, ended: Callable[[], bool]) -> bool:
        """Wait as `wait` does, but not beyond the loss of the connection.

        Raises:
            ConnectionLostError: The connection was lost while it was not started.
        """
        if self.wait(timeout, lambda: ended() or self.failure is not None):
            return True
        if self.failure is not None and not ended():
            raise ConnectionLostError(str(self.failure)) from self.failure
        return False

    def fail(self, error: JMSError) -> None:
        """Record the loss of the connection, which ends the waits of receives."""
        self.failure = error
        self.notify()

    def warn_if_never_started(self) -> None:
        """Log once that a receive ended without a message because the connection was never started."""
        if self._warns:
            self._warns = False
            logger.warning(
                "A receive ended without a message, because its connection was never started: call connection.start(), "
                "or enter the connection with 'with'."
            )

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
        abort: Aborts the connection; None where the listener does.
        client_id: The owner of durable subscriptions; None if the connection has no client id.
        hooks: The hooks around sends.
        report: Called with an error that no call can raise, for example when a message listener is removed.
        domain: "queue" or "topic" for connections of one messaging domain; None for both.
        naming: Where the destinations of ``lookup://`` names are looked up.
        ignore_transacted: True if each session is transacted, whatever its creation asks for.
        enlistment: Joins the sessions to the transactions of a transaction manager; None without one.
        strict: True to refuse what Jakarta EE forbids in its containers.
        producer_pooling: True if each session pools its closed producers.
        temporaries: The temporary destinations that the sessions have created and not deleted.
    """

    connection: spi.Connection
    limits: Limits
    state: ConnectionState
    abort: ConnectionAbort | None = None
    client_id: str | None = None
    hooks: HookChain = field(default_factory=HookChain)
    domain: DestinationKind | None = None
    naming: NamingContext = field(default_factory=NamingContext.default)
    ignore_transacted: bool = False
    enlistment: Enlistment | None = None
    strict: bool = False
    producer_pooling: bool = False
    temporaries: set[Destination] = field(default_factory=set[Destination])
    report: Callable[[JMSError], None] = field(default=lambda _: None)

    @classmethod
    def for_listener(
        cls,
        connection: spi.Connection,
        limits: Limits,
        hooks: HookChain | None = None,
        naming: NamingContext | None = None,
    ) -> Self:
        """Return the context of a listener's sessions: started, and without a client id."""
        state = ConnectionState(started=True)
        return cls(connection, limits, state, hooks=hooks or HookChain(), naming=naming or NamingContext.default())

    def check_allowed(self, call: str) -> None:
        """Raise an error for a call that Jakarta EE forbids in its containers, if the connection is strict.

        Args:
            call: The call, for the error message.

        Raises:
            IllegalStateError: The connection is strict.
        """
        if self.strict:
            raise IllegalStateError(
                f"{call} is forbidden in a container of Jakarta EE, which the option JMSJCA.Strict keeps to."
            )

    def create_temporary(self, kind: DestinationKind) -> str:
        """Create a temporary destination, and return its name."""
        created = self.connection.temporary(kind)
        self.temporaries.add(created)
        return created.name

    def delete_temporary(self, temporary: Destination) -> None:
        """Delete a temporary destination.

        Raises:
            JMSError: As ``remove`` of the provider's connection.
        """
        self.connection.remove(temporary)
        self.temporaries.discard(temporary)

    def resolve(self, target: D) -> D:
        """Return a destination as it is at the broker: a name such as ``lookup://jms/orders`` is looked up.

        Raises:
            IllegalStateError: The destination is of the other messaging domain than the connection.
            NameNotFoundError: The name is not bound.
            InvalidDestinationError: The object that is bound to the name is not a destination of this kind.
        """
        if self.domain is not None and target.kind != self.domain:
            raise IllegalStateError(f"{target}: the connection is for {self.domain}s only; use a ConnectionFactory.")
        if not is_reference(target.name):
            return target
        return cast("D", self.naming.destination(target.name, target.kind))


class Closeable(ProcessBound, ABC):
    """Context manager that closes itself on exit."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
