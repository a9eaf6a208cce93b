"""What was found at the broker, told apart from what was only sent again."""

import json
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from jmsjca.management.demo.repeats import Repeats

__all__ = ["Findings"]


class Findings:
    """The events in the messages of one place.

    Attributes:
        events: How often each event was found.
    """

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self._repeats = Repeats()
        self._file: TextIO | None = None

    @classmethod
    def kept_in(cls, file: Path) -> Self:
        """Go on with what a file holds, and add to it."""
        findings = cls()
        for line in file.read_text().splitlines() if file.exists() else ():
            findings.add(*json.loads(line))
        findings._file = file.open("a")
        return findings

    @property
    def repeated(self) -> int:
        """How many messages were recognised as sent again, and dropped."""
        return self._repeats.recognised

    def add(self, id_: str | None, events: list[str]) -> None:
        """Count the events of a message, unless it was sent again.

        Args:
            id_: What recognises the message; None for nothing.
            events: The ids of its events.
        """
        line = json.dumps([id_, events])
        if self._file is not None:
            self._file.write(line + "\n")
        if not self._repeats.is_repeat(id_, line):
            self.events.update(events)

    def hold(self, expected: set[str]) -> bool:
        """Tell whether all of these events were found."""
        return expected <= self.events.keys()

    def flush(self) -> None:
        """Let the file have all that was added."""
        if self._file is not None:
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
