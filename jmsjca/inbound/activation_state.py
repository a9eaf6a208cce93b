"""The states of an activation, and waiting for their changes."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from jmsjca.config.settings import SYSTEM_CLOCK, Clock

__all__ = ["ActivationState", "Status", "StatusMonitor"]

Status = Literal["Up", "Down", "Connecting", "Disconnecting"]

R = TypeVar("R")

Event = Literal["start", "stop", "connected", "broken", "ended"]

_NEXT: dict[tuple[Event, Status], Status] = {
    ("start", "Down"): "Connecting",
    ("connected", "Connecting"): "Up",
    ("broken", "Up"): "Connecting",
    ("stop", "Connecting"): "Disconnecting",
    ("stop", "Up"): "Disconnecting",
    ("ended", "Connecting"): "Down",  # a permanent error: a retry cannot help
    ("ended", "Up"): "Down",
    ("ended", "Disconnecting"): "Down",
}  # all other events are ignored


def _always() -> bool:
    return True


class StatusMonitor:
    """Wakes waiting threads when the status of an activation changes. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def notify(self) -> None:
        """Make waiting threads check what they wait for."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until a condition is true.

        Args:
            condition: Checked at first and at each `notify`.
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
        on_change: Called with each new status, in order, one call at a time, without a lock: it may call back.
        clock: The source of time.

    Attributes:
        current_run: The run that was started last.
        changed_at: The time of the monotonic clock at which the status changed last.
    """

    def __init__(self, on_change: Callable[[Status], None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.changed_at = clock.monotonic()
        self._on_change = on_change
        self._lock = threading.Lock()
        self._status: Status = "Down"
        self.current_run: R | None = None
        self._pending: deque[Status] = deque()
        self._reporter: object | None = None  # the call that reports

    @property
    def status(self) -> Status:
        """The current status."""
        return self._status

    def fire(self, event: Event, run: R, guard: Callable[[], bool] = _always) -> bool:
        """Process an event.

        Args:
            event: The event.
            run: The run it belongs to. An event of any other run than the current one is ignored.
            guard: Called under the lock; the event is ignored if it returns False.

        Returns:
            True if the event changed the status.
        """
        try:
            with self._lock:
                following = _NEXT.get((event, self._status))
                if following is None or (event != "start" and run is not self.current_run) or not guard():
                    return False
                self._change(following, run)
        finally:  # also if a signal handler interrupts this call, or has interrupted an earlier one
            self._notify_all()
        return True

    def _change(self, status: Status, run: R) -> None:
        changed_at = self._clock.monotonic()  # first: a signal handler can interrupt no line between here and the last
        self._status, self.current_run, self.changed_at = status, run, changed_at
        self._pending.append(status)

    def _notify_all(self) -> None:
        """Report all pending status changes, unless another thread does: it continues until none is left.

        A signal handler may interrupt a report. Then the later ones, which other threads left to this one, follow.
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
                self._notify_all()  # a change may have come since
