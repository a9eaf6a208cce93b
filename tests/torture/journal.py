"""What a worker of the kill loop did: one append-only file per process, one line per event.

A line is one `write` to a file opened for appending, so a kill leaves whole lines. What is noted before a commit
(``try``) and not followed by an outcome is in doubt: the process was killed in between.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["Batch", "Entry", "Journal", "Log", "Reader"]

_OUTCOMES = ("ok", "doubt", "rolled-back", "refused")


class Entry(NamedTuple):
    """One line: what happened, and to which ids."""

    verb: str
    ids: Sequence[str]


class Journal:
    """The writing side, in the worker."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, verb: str, ids: Sequence[str] = ()) -> None:
        os.write(self._fd, f"{verb} {' '.join(ids)}\n".encode())


class Reader:
    """The reading side: each call of `new` gives the entries since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    @property
    def size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def new(self) -> Iterator[Entry]:
        if self.size == self._offset:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        self._offset += len(whole) + 1 if whole else 0
        for line in whole.decode().splitlines():
            verb, *ids = line.split()
            yield Entry(verb, ids)


@dataclass
class Batch:
    """The ids that one transaction tried to commit, and what its process noted of the end; None if it was killed."""

    ids: Sequence[str]
    outcome: str | None = None


@dataclass
class Log:
    """All that one process noted."""

    name: str
    opened: bool = False
    took: list[str] = field(default_factory=list)
    handled: list[str] = field(default_factory=list)  # poison, once for each call of a handler
    batches: list[Batch] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Log":
        log = cls(path.stem)
        for entry in Reader(path).new():
            log._add(entry)
        return log

    def _add(self, entry: Entry) -> None:
        if entry.verb == "opened":
            self.opened = True
        elif entry.verb == "took":
            self.took += entry.ids
        elif entry.verb == "handled":
            self.handled += entry.ids
        elif entry.verb == "try":
            self.batches.append(Batch(entry.ids))
        elif entry.verb in _OUTCOMES and self.batches and self.batches[-1].outcome is None:
            self.batches[-1].outcome = entry.verb
