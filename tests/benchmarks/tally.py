"""What the handlers of all contenders do: count the messages, and look at the clocks at the first and the last."""

import threading

from tests.benchmarks.measurements import clocks

__all__ = ["TEXT", "Tally"]

TEXT = "x" * 1024
_PATIENCE = 300


class Tally:
    """Called with the text of each message, by any number of threads."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._expected = 0
        self._lengths: list[int] = []

    def __call__(self, text: str) -> None:
        if not self._lengths:
            self._began = clocks()
        self._lengths.append(len(text))
        if len(self._lengths) == self._expected:
            self._ended = clocks()
            self._done.set()

    def expect(self, count: int) -> None:
        """Begin again, to count so many."""
        self._expected = count
        self._lengths.clear()
        self._done.clear()

    @property
    def complete(self) -> bool:
        """True if they have come."""
        return self._done.is_set()

    def wait(self) -> None:
        """Wait until they have come."""
        assert self._done.wait(_PATIENCE), f"{len(self._lengths)} of {self._expected} messages came"

    def seconds(self) -> dict[str, float]:
        """From the first message to the last, by clock; without what happened before and after.

        None may have come twice.
        """
        came = self._lengths
        assert came == [len(TEXT)] * self._expected, f"{len(came)} of {self._expected} came, of lengths {set(came)}"
        return {name: ended - self._began[name] for name, ended in self._ended.items()}
