"""Faults between jmsjca and a broker, for tests: cut commits, a stopped broker, a slow disk."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Literal, cast
from weakref import WeakSet

from jmsjca.errors import ConnectionLostError, InvalidArgumentError, JMSError, TransactionInDoubtError
from jmsjca.providers import find_provider

if TYPE_CHECKING:
    import pytest

    from jmsjca.spi import Capabilities, Connection, Consumer, Delivery, Provider, Unit

__all__ = ["CutPoint", "FaultInjection"]

CutPoint = Literal["before", "during", "after"]
"""When a connection is lost: before the commit reaches the broker, before the broker commits, or before its reply."""


@dataclass
class _Cut:
    """Commits that are cut.

    Attributes:
        when: When the connection is lost.
        times: Number of further commits to cut.
    """

    when: CutPoint
    times: int


class FaultInjection:
    """Injects faults into connections that are opened afterwards, over any provider. Thread-safe.

    ::

        def test_an_order_survives_a_lost_connection(jms_faults, jms_adapter, jms_calls):
            jms_adapter.listener("orders")(on_order)
            jms_faults.cut("before")
            jms_adapter.send("orders", "a pear")
            jms_calls.wait_for("orders")

    Args:
        patch: The fixture that removes the faults after the test.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._lock = Lock()
        self._cuts: list[_Cut] = []
        self._delay = 0.0
        self._down = False
        self._connections: WeakSet[_FaultyConnection] = WeakSet()
        patch.setattr("jmsjca.reconnection.find_provider", self._provider)

    def cut(self, when: CutPoint, times: int = 1) -> None:
        """Lose the connection at the next commits that send or acknowledge.

        Args:
            when: "before": the broker never sees the commit, and the caller gets `ConnectionLostError`. "during": the
                broker does not commit. "after": the broker commits. In the last two cases the caller cannot know the
                outcome, and gets `TransactionInDoubtError`.
            times: Number of commits to cut.

        Raises:
            InvalidArgumentError: ``when`` has another value, or the number is less than 1.
        """
        if when not in {"before", "during", "after"}:
            raise InvalidArgumentError(f'when={when!r}: a commit is cut "before", "during" or "after".')
        if times < 1:
            raise InvalidArgumentError(f"times={times!r}: give the number of commits that are cut, from 1 on.")
        with self._lock:
            self._cuts.append(_Cut(when, times))

    def slow_disk(self, seconds: float) -> None:
        """Make each commit take longer, as a slow disk of the broker does.

        Args:
            seconds: Seconds of real time for each commit; 0 ends the fault.

        Raises:
            InvalidArgumentError: The number is negative, or not finite.
        """
        if not 0 <= seconds < float("inf"):
            raise InvalidArgumentError(f"slow_disk({seconds!r}): give a number of seconds from 0 on.")
        self._delay = seconds

    def stop_broker(self) -> None:
        """Lose all connections, and refuse new ones until `start_broker`."""
        with self._lock:
            self._down = True
            opened = list(self._connections)
        for connection in opened:
            connection.lose(ConnectionLostError("The test has stopped the broker."))

    def start_broker(self) -> None:
        """Accept connections again after `stop_broker`. Messages are kept, also those that are not persistent."""
        self._down = False

    def restart_broker(self) -> None:
        """Lose all connections. New ones are accepted at once."""
        self.stop_broker()
        self.start_broker()

    @contextmanager
    def broker_down(self) -> Generator[None]:
        """Stop the broker during a block.

        Yields:
            Nothing; new connections are refused during the block.
        """
        self.stop_broker()
        try:
            yield
        finally:
            self.start_broker()

    def register(self, connection: _FaultyConnection) -> None:
        """Register a connection that `stop_broker` loses.

        Raises:
            ConnectionLostError: The broker was stopped while the connection was opened.
        """
        with self._lock:
            self.check_up()
            self._connections.add(connection)

    def check_up(self) -> None:
        """Raise an error while the broker is stopped.

        Raises:
            ConnectionLostError: The broker is stopped.
        """
        if self._down:
            raise ConnectionLostError("The test has stopped the broker.")

    def next_cut(self) -> CutPoint | None:
        """Return when to cut the next commit; None does not cut it."""
        with self._lock:
            if not self._cuts:
                return None
            cut = self._cuts[0]
            cut.times -= 1
            if not cut.times:
                self._cuts.pop(0)
            return cut.when

    def wait_for_disk(self) -> None:
        """Wait for the delay of the slow disk."""
        if self._delay:
            Event().wait(self._delay)

    def _provider(self, scheme: str) -> Provider:
        return _FaultyProvider(find_provider(scheme), self)


class _FaultyProvider:
    def __init__(self, provider: Provider, faults: FaultInjection) -> None:
        self._provider = provider
        self._faults = faults

    def connect(self, *args: Any, on_lost: Callable[[JMSError], None], **options: Any) -> Connection:
        """Connect, unless the broker is stopped."""
        self._faults.check_up()
        connection = self._provider.connect(*args, on_lost=on_lost, **options)
        faulty = _FaultyConnection(connection, self._faults, on_lost)
        try:
            self._faults.register(faulty)
        except ConnectionLostError:
            connection.close()
            raise
        return cast("Connection", faulty)


class _FaultyConnection:
    """A connection that can be lost. All other methods are delegated to the provider's connection."""

    def __init__(self, connection: Connection, faults: FaultInjection, on_lost: Callable[[JMSError], None]) -> None:
        self._connection = connection
        self._faults = faults
        self._on_lost = on_lost
        self._lock = Lock()
        self._loss: JMSError | None = None

    def __getattr__(self, name: str) -> Any:
        self.raise_if_lost()
        return getattr(self._connection, name)

    @property
    def capabilities(self) -> Capabilities:
        """The features of the connection, also after its loss."""
        return self._connection.capabilities

    def unit(self, *, atomic: bool = True) -> Unit:
        """Create a unit with a commit that can be cut."""
        self.raise_if_lost()
        return cast("Unit", _FaultyUnit(self._connection.unit(atomic=atomic), self, self._faults))

    def consumer(self, *args: Any, **options: Any) -> Consumer:
        """Create a consumer that ends with the connection."""
        self.raise_if_lost()
        return cast("Consumer", _FaultyConsumer(self._connection.consumer(*args, **options), self))

    def close(self, timeout: float | None = None) -> None:
        """Close the connection of the provider."""
        self._connection.close(timeout)

    def lose(self, error: JMSError) -> None:
        """Lose the connection: the broker releases its messages, and `on_lost` is called on another thread."""
        with self._lock:
            if self._loss is not None:
                return
            self._loss = error
        self._connection.close()
        Thread(target=self._on_lost, args=(error,), name="jmsjca lost connection", daemon=True).start()

    def raise_if_lost(self) -> None:
        """Raise an error if the connection is lost."""
        if self._loss is not None:
            raise ConnectionLostError(str(self._loss)) from self._loss


class _FaultyConsumer:
    def __init__(self, consumer: Consumer, connection: _FaultyConnection) -> None:
        self._consumer = consumer
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def receive(self, limit: int, timeout: float | None) -> Sequence[Delivery]:
        """Receive; raise an error if the connection is lost."""
        self._connection.raise_if_lost()
        chunk = self._consumer.receive(limit, timeout)
        if not chunk:
            self._connection.raise_if_lost()  # empty because the connection was lost
        return chunk


class _FaultyUnit:
    def __init__(self, unit: Unit, connection: _FaultyConnection, faults: FaultInjection) -> None:
        self._unit = unit
        self._connection = connection
        self._faults = faults
        self._empty = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Add deliveries."""
        self._unit.take(deliveries)
        self._empty = self._empty and not deliveries

    def send(self, *args: Any) -> None:
        """Add a message to send."""
        self._unit.send(*args)
        self._empty = False

    def commit(self, **options: Any) -> None:
        """Commit; lose the connection if the test has planned it."""
        when = None if self._empty else self._faults.next_cut()
        if not self._empty:
            self._faults.wait_for_disk()
        if when == "before":
            error = ConnectionLostError("The test has cut the connection before the commit.")
            self._connection.lose(error)
            raise error
        if when != "during":
            self._unit.commit(**options)
        if when is not None:
            error = ConnectionLostError(f"The test has cut the connection {when} the commit.")
            self._connection.lose(error)
            raise TransactionInDoubtError(f"The reply to the commit is lost: {error}") from error

    def start_commit(self) -> Callable[[], None]:
        """Commit at once; return a function that raises the error of the commit, if any."""
        try:
            self.commit()
        except JMSError as error:
            return _raiser(error)
        return _nothing


def _nothing() -> None:
    """Do nothing: the commit is confirmed."""


def _raiser(error: JMSError) -> Callable[[], None]:
    def fail() -> None:
        """Raise the error of the commit."""
        raise error

    return fail
