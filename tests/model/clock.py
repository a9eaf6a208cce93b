"""The time of the model and its broker."""

__all__ = ["Time"]


class Time:
    """A clock that stands still until it is moved; its monotonic side runs, so that nothing is put off."""

    def __init__(self, now: int) -> None:
        self.milliseconds = now
        self._looks = 0

    def now(self) -> float:
        return self.milliseconds / 1000

    def monotonic(self) -> float:
        self._looks += 1
        return float(self._looks)
