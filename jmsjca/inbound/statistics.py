"""What an activation counts."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["Statistics"]


class Statistics:
    """Counters of one activation, with the manual's names.

    Attributes:
        n_messages: Messages handed to the endpoint, whatever came of them.
        n_active_endpoints: Handlers at work now.
        n_highest_active_endpoints: The most at work at one time.
        n_total_endpoints: Endpoints that exist; 0 while nothing is delivered.
        n_configured_endpoints: Endpoints that may exist.
    """

    def __init__(self, configured: int) -> None:
        self._lock = threading.Lock()
        self.n_messages = 0
        self.n_active_endpoints = 0
        self.n_highest_active_endpoints = 0
        self.n_total_endpoints = 0
        self.n_configured_endpoints = configured

    @contextmanager
    def delivering(self) -> Generator[None]:
        """Count one message, and its handler as active."""
        with self._lock:
            self.n_messages += 1
            self.n_active_endpoints += 1
            self.n_highest_active_endpoints = max(self.n_highest_active_endpoints, self.n_active_endpoints)
        try:
            yield
        finally:
            with self._lock:
                self.n_active_endpoints -= 1

    @contextmanager
    def endpoint(self) -> Generator[None]:
        """Count an endpoint while it exists."""
        with self._lock:
            self.n_total_endpoints += 1
        try:
            yield
        finally:
            with self._lock:
                self.n_total_endpoints -= 1

    def __repr__(self) -> str:
        counters = (f"{name}={value}" for name, value in vars(self).items() if name.startswith("n_"))
        return f"<Statistics {' '.join(counters)}>"
