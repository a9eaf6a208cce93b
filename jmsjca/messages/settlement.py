"""The settlement of a unit of work: its outcome, as the handler of one of its messages sees it."""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from enum import Enum
from threading import Lock
from typing import Any

from jmsjca.arguments import check_timeout
from jmsjca.errors import IllegalStateError

__all__ = ["Outcome", "Settlement", "complete_settlement", "forbid_waiting"]


class Outcome(Enum):
    """The outcome of the unit of work that a message belongs to."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    LOST = "lost"
    IN_DOUBT = "in doubt"

    __hash__ = object.__hash__  # members are counted by outcome for each unit, and `Enum` hashes their names slowly


class Settlement:
    """The result of `Message.acknowledge`: `wait` or ``await`` returns the outcome of the unit of work."""

    __slots__ = ("_future", "_lock", "_outcome", "_would_deadlock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcome: Outcome | None = None
        self._future: Future[Outcome] | None = None  # created on demand: most settlements are never waited for
        self._would_deadlock: Callable[[], bool] | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome; None while the unit is open."""
        return self._outcome

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Wait for the outcome.

        Args:
            timeout: The maximum wait in seconds; None waits forever.

        Returns:
            The outcome; None after the timeout.

        Raises:
            IllegalStateError: The handler waits for its own unit, which is settled only after the handler returns.
            InvalidArgumentError: The timeout is no number of seconds, or negative.
        """
        check_timeout("timeout", timeout)
        if timeout != 0:
            self._refuse_deadlock()
        try:
            return self._get_future().result(timeout)
        except FutureTimeoutError:
            return None

    def __await__(self) -> Generator[Any, None, Outcome]:
        self._refuse_deadlock()
        import asyncio  # noqa: PLC0415  # loaded already where this is awaited

        return asyncio.wrap_future(self._get_future()).__await__()

    def __repr__(self) -> str:
        return f"<Settlement {self.outcome.value if self.outcome else 'open'}>"

    def _complete(self, outcome: Outcome) -> None:
        """Set the outcome. The owner of the unit calls this once."""
        with self._lock:
            self._outcome, self._would_deadlock = outcome, None
            future = self._future
        if future is not None:
            future.set_result(outcome)

    def _forbid_waiting(self, would_deadlock: Callable[[], bool]) -> None:
        """Refuse waits that could never end.

        Args:
            would_deadlock: Returns True if its caller must return before the unit is settled. The same function for all
                messages of one unit.
        """
        with self._lock:
            if self._outcome is None:
                self._would_deadlock = would_deadlock

    def _get_future(self) -> "Future[Outcome]":
        with self._lock:
            if self._future is None:
                self._future = Future()
                # Running from the start, so that a cancelled waiter does not cancel it for the others.
                self._future.set_running_or_notify_cancel()
                if self._outcome is not None:
                    self._future.set_result(self._outcome)
            return self._future

    def _refuse_deadlock(self) -> None:
        would_deadlock = self._would_deadlock
        if would_deadlock is not None and self.outcome is None and would_deadlock():
            raise IllegalStateError(
                "A handler cannot wait for the outcome of its own unit, which is settled after it has returned. Let a "
                "task or a thread of its own wait."
            )


# For what settles units; methods of these names would be offered to every user of a settlement.
complete_settlement = Settlement._complete  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
forbid_waiting = Settlement._forbid_waiting  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
