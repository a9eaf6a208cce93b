"""Whether a connection is started: consumers receive only then."""

import threading
from collections.abc import Callable

__all__ = ["Flow"]


class Flow:
    """Started and stopped by the connection, waited for by its consumers (JMS 3.1, sections 6.1.4 and 6.1.5).

    Attributes:
        running: True while the connection is started.
    """

    def __init__(self, *, running: bool = False) -> None:
        self._changed = threading.Condition()
        self.running = running

    def start(self) -> None:
        """Let consumers go on."""
        self.running = True
        self.nudge()

    def stop(self) -> None:
        """Let consumers wait from now on."""
        self.running = False

    def wait(self, timeout: float | None, ended: Callable[[], bool]) -> bool:
        """Wait for the start.

        Args:
            timeout: Seconds to wait; None waits for ever.
            ended: Tells whether the waiting consumer was closed meanwhile.

        Returns:
            True if the connection is started.
        """
        if not self.running:
            with self._changed:
                self._changed.wait_for(lambda: self.running or ended(), timeout)
        return self.running

    def nudge(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()
