"""The states of an activation, and how threads wait for them: until messages can flow, or until none can."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.errors import ActivationFailedError, ActivationTimeoutError

__all__ = [
    "Account",
    "ActivationState",
    "ActivationView",
    "Status",
    "StatusMonitor",
    "have_all_failed",
    "raise_failures",
    "wait_until_up",
]

Status = Literal["Up", "Down", "Connecting", "Disconnecting"]

R = TypeVar("R")

Event = Literal["start", "stop", "connected", "broken", "ended"]

_NEXT: dict[tuple[Event, Status], Status] = {
    ("start", "Down"): "Connecting",
    ("connected", "Connecting"): "Up",
    ("broken", "Up"): "Connecting",
    ("stop", "Connecting"): "Disconnecting",
    ("stop", "Up"): "Disconnecting",
    ("ended", "Connecting"): "Down",  # a permanent error: retrying cannot help
    ("ended", "Up"): "Down",
    ("ended", "Disconnecting"): "Down",
}  # in all other cases the event is ignored


def _always() -> bool:
    return True


class StatusMonitor:
    """Wakes waiting threads when the status of an activation changes. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def notify(self) -> None:
        """Make waiting threads check their conditions."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until a condition is true.

        Args:
            condition: Checked at the beginning and at each `notify`.
            timeout: Seconds to wait; None waits forever.

        Returns:
            The last result of the condition.
        """
        with self._changed:
            return self._changed.wait_for(condition, timeout)


class ActivationState(Generic[R]):
    """The state machine of an activation. Thread-safe.

    ============= ========== ========== ============= =============
    event         Down       Connecting Up            Disconnecting
    ============= ========== ========== ============= =============
    start         Connecting            .             .
    connected                Up         .             .
    broken                              Connecting    .
    stop                     Disconnecting (both)     .
    ended                    Down       Down          Down
    ============= ========== ========== ============= =============

    Args:
        on_change: Called with each new status, in order, one call at a time, without a lock, so it may call back.
        clock: The source of time.

    Attributes:
        current_run: The run that was started last.
        changed_at: The time of the last change of the status, of the monotonic clock.
    """

    def __init__(self, on_change: Callable[[Status], None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.changed_at = clock.monotonic()
        self._on_change = on_change
        self._lock = threading.Lock()
        self._status: Status = "Down"
        self.current_run: R | None = None
        self._pending: deque[Status] = deque()
        self._reporter: object | None = None  # the call that is reporting

    @property
    def status(self) -> Status:
        """The current status."""
        return self._status

    def fire(self, event: Event, run: R, guard: Callable[[], bool] = _always) -> bool:
        """Process an event.

        Args:
            event: The event.
            run: The run that the event belongs to. It is ignored if this is not the current run.
            guard: Called under the lock; if it returns False, the event is ignored.

        Returns:
            True if the event changed the status.
        """
        try:
            with self._lock:
                following = _NEXT.get((event, self._status))
                if following is None or (event != "start" and run is not self.current_run) or not guard():
                    return False
                self._change(following, run)
        finally:  # also if a signal handler interrupts this call, or interrupted an earlier one
            self._notify_all()
        return True

    def _change(self, status: Status, run: R) -> None:
        changed_at = self._clock.monotonic()  # first: signal handlers cannot interrupt between here and the last line
        self._status, self.current_run, self.changed_at = status, run, changed_at
        self._pending.append(status)

    def _notify_all(self) -> None:
        """Report all pending status changes, unless another thread is reporting: that thread continues until the end.

        A signal handler may interrupt a report. The changes that other threads left to it are then reported after it.
        """
        if not self._pending:
            return
        reporter = object()
        try:
            with self._lock:
                self._reporter = self._reporter or reporter
            while self._reporter is reporter and self._pending:
                self._on_change(self._pending.popleft())
        finally:
            if self._reporter is reporter:
                self._reporter = None
                self._notify_all()  # a change may have been added since the last check


@dataclass(frozen=True, slots=True)
class Account:
    """The numbers of messages of an activation by their outcome, since it was created.

    Attributes:
        finished: As of `StopReport`.
        returned: As of `StopReport`.
        in_doubt: As of `StopReport`.
        lost: Messages of units with a lost connection.
        active: Messages that handlers are processing now, although their connection was closed.
    """

    finished: int = 0
    returned: int = 0
    in_doubt: int = 0
    lost: int = 0
    active: int = 0


class ActivationView(Protocol):
    """An activation, as it is started and stopped."""

    @property
    def name(self) -> str:
        """The display name."""
        ...

    @property
    def status(self) -> Status:
        """The status."""
        ...

    @property
    def failure(self) -> Exception | None:
        """The error that stopped it permanently; None otherwise."""
        ...

    @property
    def last_error(self) -> Exception | None:
        """The error of its latest attempt to connect; None if the attempt succeeded."""
        ...

    def account(self) -> Account:
        """Return the numbers of its messages by outcome."""
        ...

    def stop_intake(self) -> object:
        """Begin to stop, and return at once."""
        ...

    def stop(self, timeout: float | None = None) -> bool:
        """Stop within ``timeout`` seconds."""
        ...


def wait_until_up(activations: Sequence[ActivationView], monitor: StatusMonitor, timeout: float | None) -> None:
    """Wait until all activations are up, one is permanently down, or the time is over.

    Args:
        activations: The activations, which are started. An activation that is stopped during the wait is ignored.
        monitor: Notified of each change of their status.
        timeout: Seconds to wait; None waits forever.

    Raises:
        ActivationFailedError: Activations are permanently down.
        ActivationTimeoutError: Activations are still connecting.
    """

    def _is_decided() -> bool:
        return any(each.failure is not None for each in activations) or all(
            each.status in ("Up", "Down") for each in activations
        )

    decided = monitor.wait_for(_is_decided, timeout)
    failed = [each for each in activations if each.failure is not None]
    if failed:
        raise ActivationFailedError(f"Listeners have stopped permanently: {_reasons(failed)}.") from failed[0].failure
    if not decided:
        waiting = [each for each in activations if each.status not in ("Up", "Down")]
        raise ActivationTimeoutError(
            f"Not all listeners are up after {timeout:g} s; they go on trying until they are stopped: "
            f"{_reasons(waiting)}."
        )


def have_all_failed(activations: Sequence[ActivationView]) -> bool:
    """Return True if all activations are permanently down, so that nothing is delivered. False for no activations."""
    return bool(activations) and all(each.status == "Down" and each.failure is not None for each in activations)


def raise_failures(activations: Sequence[ActivationView]) -> None:
    """Raise an error if all activations are permanently down.

    Raises:
        ActivationFailedError: All are permanently down; the message has the error of each.
    """
    if have_all_failed(activations):
        raise ActivationFailedError(
            f"All listeners have stopped permanently, so nothing is served: {_reasons(activations)}."
        ) from activations[0].failure


def _reasons(activations: Sequence[ActivationView]) -> str:
    return "; ".join(f"{each.name} is {each.status}: {_reason(each)}" for each in activations)


def _reason(activation: ActivationView) -> str:
    error = activation.last_error if activation.failure is None else activation.failure
    if error is None:
        return "the first attempt to connect has not ended"
    return str(error).removesuffix(".") or type(error).__name__
