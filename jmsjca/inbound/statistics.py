"""What an activation counts."""

import threading
from types import TracebackType

__all__ = ["Statistics"]


class Statistics:
    """Counters of one activation, with the manual's names.

    Attributes:
        n_messages: Messages handed to the endpoint, moved or deleted, whatever came of them; ends of batches, too.
        n_active_endpoints: Handlers at work now.
        n_highest_active_endpoints: The most at work at one time.
        n_total_endpoints: Endpoints that exist; 0 while nothing is delivered.
        n_configured_endpoints: Endpoints that may exist.
        n_redeliveries: Deliveries of messages that had been delivered before.
        n_redelivered_messages: Messages that came again.
    """

    def __init__(self, configured: int) -> None:
        self._lock = threading.Lock()
        self.n_messages = 0
        self.n_active_endpoints = 0
        self.n_highest_active_endpoints = 0
        self.n_total_endpoints = 0
        self.n_configured_endpoints = configured
        self.n_redeliveries = 0
        self.n_redelivered_messages = 0

    def delivering(self, messages: int = 1) -> "_Delivering":
        """Count messages, and their handler as active during the block."""
        return _Delivering(self, messages)

    def endpoint(self) -> "_Existing":
        """Count an endpoint while it exists, during the block."""
        return _Existing(self)

    def bypassed(self) -> None:
        """Count a message that was moved or deleted instead of being handed over."""
        with self._lock:
            self.n_messages += 1

    def redelivered(self, *, new: bool) -> None:
        """Count a delivery of a message that came again."""
        with self._lock:
            self.n_redeliveries += 1
            self.n_redelivered_messages += new

    def as_dict(self) -> dict[str, object]:
        """Give all counters by name."""
        return {name: value for name, value in vars(self).items() if name.startswith("n_")}

    def began(self, messages: int) -> None:
        """Count messages, and their handler as active. For `delivering`."""
        with self._lock:
            self.n_messages += messages
            self.n_active_endpoints += 1
            self.n_highest_active_endpoints = max(self.n_highest_active_endpoints, self.n_active_endpoints)

    def ended(self) -> None:
        """Count the handler as active no more. For `delivering`."""
        with self._lock:
            self.n_active_endpoints -= 1

    def exists(self, change: int) -> None:
        """Count endpoints that come or go. For `endpoint`."""
        with self._lock:
            self.n_total_endpoints += change

    def __repr__(self) -> str:
        return f"<Statistics {' '.join(f'{name}={value}' for name, value in self.as_dict().items())}>"


class _Delivering:
    __slots__ = ("_messages", "_statistics")

    def __init__(self, statistics: Statistics, messages: int) -> None:
        self._statistics = statistics
        self._messages = messages

    def __enter__(self) -> None:
        self._statistics.began(self._messages)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._statistics.ended()


class _Existing:
    __slots__ = ("_statistics",)

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def __enter__(self) -> None:
        self._statistics.exists(1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._statistics.exists(-1)
