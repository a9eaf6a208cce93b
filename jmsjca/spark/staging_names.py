"""The names of staged epochs and partitions. Other names beside them, such as those of copies, are ignored."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["EpochPartition", "epoch_folder", "epochs_of", "files_of", "published_of"]

_FOLDER = re.compile(r"e-([0-9]{10}|[1-9][0-9]{10,})")
_FILE = re.compile(r"p-([0-9]{5}|[1-9][0-9]{5,})(?:\.(\w+))?\.(arrow|acked|ok)")


class EpochPartition(NamedTuple):
    """One partition of one epoch. The order decides which partition keeps a message that two of them have.

    Attributes:
        epoch: The number of the epoch.
        number: The number of the partition in it.
        attempt: The attempt that has a file of its own, with ``guarantee=at-least-once``; else empty.
    """

    epoch: int
    number: int
    attempt: str = ""

    @property
    def name(self) -> str:
        """The file name, without extension."""
        return f"p-{self.number:05d}{'.' if self.attempt else ''}{self.attempt}"

    def file(self, ending: str) -> str:
        """Return the name of a file below its generation."""
        return f"{epoch_folder(self.epoch)}/{self.name}.{ending}"


def epoch_folder(epoch: int) -> str:
    """Return the name of the folder of an epoch."""
    return f"e-{epoch:010d}"


def epochs_of(folders: Mapping[str, set[str]]) -> dict[int, set[str]]:
    """Return the epochs among folders with the names of their files."""
    found = ((_FOLDER.fullmatch(folder), names) for folder, names in folders.items())
    return {int(match[1]): names for match, names in found if match}


def files_of(epoch: int, names: Iterable[str]) -> Iterator[tuple[EpochPartition, str]]:
    """Yield the partition and the ending of each file of partitions among the files of an epoch."""
    for match in map(_FILE.fullmatch, names):
        if match:
            yield EpochPartition(epoch, int(match[1]), match[2] or ""), match[3]


def published_of(epoch: int, names: set[str]) -> dict[EpochPartition, bool]:
    """Return the published partitions among the files of an epoch, in order, and whether each is confirmed."""
    return {part: f"{part.name}.acked" in names for part, ending in sorted(files_of(epoch, names)) if ending == "arrow"}
