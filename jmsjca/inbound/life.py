"""The states of an activation, and what leads from one to the next."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

__all__ = ["Life", "Status"]

Status = Literal["Up", "Down", "Connecting", "Disconnecting"]

R = TypeVar("R")

Event = Literal["start", "stop", "connected", "broken", "ended"]

_NEXT: dict[tuple[Event, Status], Status] = {
    ("start", "Down"): "Connecting",
    ("connected", "Connecting"): "Up",
    ("broken", "Up"): "Connecting",
    ("stop", "Connecting"): "Disconnecting",
    ("stop", "Up"): "Disconnecting",
    ("ended", "Connecting"): "Down",  # by itself: trying again could not help
    ("ended", "Up"): "Down",
    ("ended", "Disconnecting"): "Down",
}  # whatever else happens changes nothing


def _always() -> bool:
    return True


class Life(Generic[R]):
    """The state machine of an activation; for any number of threads.

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
        tell: Told of each new status, in order, one at a time, without a lock: it may call back.

    Attributes:
        run: What was started last.
    """

    def __init__(self, tell: Callable[[Status], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._status: Status = "Down"
        self.run: R | None = None
        self._untold: deque[Status] = deque()
        self._telling = threading.Lock()

    @property
    def status(self) -> Status:
        """Where it stands."""
        return self._status

    def happens(self, event: Event, run: R, still: Callable[[], bool] = _always) -> bool:
        """Let something happen.

        Args:
            event: What happens.
            run: What it happens to: that which was started last, or it means nothing any more.
            still: Asked at that moment; False if it means nothing any more.

        Returns:
            True if that changed the status.
        """
        with self._lock:
            following = _NEXT.get((event, self._status))
            if following is None or (event != "start" and run is not self.run) or not still():
                return False
            self._status, self.run = following, run
            self._untold.append(following)
        self._tell_all()
        return True

    def _tell_all(self) -> None:
        """Tell what is untold, unless somebody is at it: they go on until there is nothing left."""
        while self._untold and self._telling.acquire(blocking=False):
            try:
                while self._untold:
                    self._tell(self._untold.popleft())
            finally:
                self._telling.release()
