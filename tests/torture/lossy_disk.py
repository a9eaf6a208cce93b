"""A disk that loses power: it keeps what was synced, and an arbitrary part of the rest."""

import random
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tests.torture.strace import Event

__all__ = ["Disk", "Image"]

SECTOR = 512  # bytes that are written as a whole or not at all
Image = dict[str, bytes]
"""The files of a folder, by name."""


class _File:
    """A file, whatever its name is now: what of it is on the disk for certain."""

    def __init__(self) -> None:
        self.kept = b""


class _Write(NamedTuple):
    """A write, or a change of length, that was not synced."""

    file: _File
    event: Event


class Disk:
    """Follows the events. A file's name is safe when its folder was synced, its content when it was synced itself."""

    def __init__(self) -> None:
        self._names: dict[str, _File] = {}
        self._safe_names: dict[str, _File] = {}
        self._pending: list[_Write] = []

    def apply(self, event: Event) -> None:
        """Let one system call happen."""
        if event.what == "make":
            self._names.setdefault(event.file, _File())
        elif event.what == "unlink":
            del self._names[event.file]
        elif event.what == "sync" and not event.file:
            self._safe_names = dict(self._names)
        elif event.what == "sync" and event.file in self._names:  # else it is the folder of the lock files
            self._sync(self._names[event.file])
        elif event.what in ("write", "truncate"):
            self._pending.append(_Write(self._names[event.file], event))

    def bare(self) -> Image:
        """Nothing but what is safe."""
        return _image(self._safe_names, [])

    @property
    def pending(self) -> int:
        """How many writes are not safe."""
        return len(self._pending)

    def prefix(self, count: int) -> Image:
        """The first of what is pending, in the order in which it was written."""
        return _image(self._names, self._pending[:count])

    def torn(self, dice: random.Random) -> Image:
        """Some of what is pending, as if it had been written in another order, and some of that in part."""
        some = [_tear(write, dice) for write in self._pending if dice.random() < 0.5]
        return _image(dice.choice([self._names, self._safe_names]), [part for parts in some for part in parts])

    def _sync(self, file: _File) -> None:
        file.kept = _content(file, self._pending)
        self._pending = [write for write in self._pending if write.file is not file]


def _image(names: dict[str, _File], writes: Iterable[_Write]) -> Image:
    return {name: _content(file, writes) for name, file in names.items()}


def _content(file: _File, writes: Iterable[_Write]) -> bytes:
    content = bytearray(file.kept)
    for event in (write.event for write in writes if write.file is file):
        if event.what == "truncate":
            del content[event.position :]
        content.extend(bytes(max(0, event.position - len(content))))
        content[event.position : event.position + len(event.data)] = event.data
    return bytes(content)


def _tear(write: _Write, dice: random.Random) -> list[_Write]:
    """The whole write, or some of its sectors."""
    data, start = write.event.data, write.event.position
    if write.event.what != "write" or dice.random() < 0.7:
        return [write]
    cuts = [start, *range(start - start % SECTOR + SECTOR, start + len(data), SECTOR), start + len(data)]
    sectors = [(a, data[a - start : b - start]) for a, b in pairwise(cuts) if dice.random() < 0.5]
    return [write._replace(event=write.event._replace(position=a, data=part)) for a, part in sectors]
