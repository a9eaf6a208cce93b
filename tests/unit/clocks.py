"""Clocks that tests set."""

__all__ = ["HandClock"]


class HandClock:
    """Stands still until it is moved; both of its times are the same."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time
