"""Staged messages: durable before they are settled, and kept by exactly one partition, so that replays are equal.

::

    <location>/v1/<gen>/OWNER                        the query that reads this generation
    <location>/v1/<gen>/LOW                          the highest epoch that is committed; only grows
    <location>/v1/<gen>/e-0000000017/                created by the driver only: its absence fences late attempts
    …/p-00003.arrow                                  the rows of the partition; appears once, never changes
    …/p-00003.acked                                  the broker confirmed the settlement
    …/p-00003.ok                                     keys of messages that other partitions keep; must precede use
    <location>/v1/<gen>/doubt/0000000017-00003.ids   keys of messages whose settlement was never confirmed

Each partition decides after it is published, and a written decision is final. A partition leaves a message to a smaller
partition that has it, and to a larger one that has decided to keep it. No partition waits: if the larger one has not
decided, for instance because its attempt crashed, its decision is made here, from the same files.

At least one keeps the message: the smallest partition that has it leaves it only to one that keeps it. At most one
keeps it: of two, the one published later sees the other, and either leaves the message to it or records that the other
left it.
"""

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jmsjca.errors import IllegalStateError, JMSError, StoreError
from jmsjca.spark.part_file import Counts, StagedPart, encode, read_counts, read_keys, read_part, seal, unseal

__all__ = [
    "EpochPartition",
    "Staging",
    "StaleEpochError",
    "orphans",
    "replace",
    "resolve_duplicates",
    "sync_folder",
]

_VERSION = "v1"
_SYNCED_PARENTS = 4  # above an epoch: the generation, the version, the location, and its parent


class StaleEpochError(JMSError):
    """A late attempt at a batch that is committed already. It consumed nothing."""


class EpochPartition(NamedTuple):
    """One partition of one epoch. The order decides which partition keeps a message that two of them have."""

    epoch: int
    number: int

    @property
    def name(self) -> str:
        """The file name, without extension."""
        return f"p-{self.number:05d}"


class Staging:
    """The staged files of one generation.

    Args:
        location: The folder that driver and executors share.
        gen: The generation: the name of one checkpoint's staged files.
    """

    def __init__(self, location: Path, gen: str) -> None:
        self.folder = location / _VERSION / gen

    def create_epoch(self, epoch: int) -> None:
        """Create the folder of an epoch. Only the driver calls this, before it plans the partitions of the epoch."""
        folder = self._epoch_folder(epoch)
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            for parent in list(folder.parents)[:_SYNCED_PARENTS]:
                sync_folder(parent)

    def claim(self, query: str) -> None:
        """Make a query the owner of this generation.

        Raises:
            IllegalStateError: Another query is the owner.
            StoreError: The file that names the owner is damaged.
        """
        path = self.folder / "OWNER"
        owner = _read_sealed(path)
        if owner is None and not _write_exclusively(path, [seal(query.encode())]):
            owner = _read_sealed(path)
        if owner not in (None, query):
            raise IllegalStateError(
                f"{self.folder} is being read by query {owner}; each query needs a checkpoint of its own."
            )

    @property
    def low(self) -> int:
        """The highest committed epoch.

        Raises:
            StoreError: The file that has the number is damaged.
        """
        path = self.folder / "LOW"
        low = _read_sealed(path)
        if low is not None and not low.isdecimal():
            raise _damaged(path, f"it should be a number, not {low!r:.50}")
        return int(low or 0)

    def check_live(self, part: EpochPartition) -> None:
        """Raise an error for a partition of an epoch that is over.

        Raises:
            StaleEpochError: The epoch was committed or removed.
        """
        if part.epoch <= self.low or not self._epoch_folder(part.epoch).is_dir():
            raise StaleEpochError(
                f"Epoch {part.epoch} is over; this attempt of partition {part.number} comes too late."
            )

    def publish(self, part: EpochPartition, staged: StagedPart) -> bool:
        """Write the rows of a partition durably, unless another attempt has done so.

        Returns:
            False if another attempt was first; its rows are used.

        Raises:
            StaleEpochError: The epoch is over.
        """
        try:
            return _write_exclusively(self._path(part, "arrow"), encode(staged))
        except FileNotFoundError:
            raise StaleEpochError(
                f"Epoch {part.epoch} was removed while partition {part.number} was at work."
            ) from None

    def withdraw(self, part: EpochPartition) -> None:
        """Remove the published rows of a partition after its epoch turned out to be over."""
        self._path(part, "arrow").unlink(missing_ok=True)

    def is_published(self, part: EpochPartition) -> bool:
        """Return True if the rows of a partition are published."""
        return self._path(part, "arrow").exists()

    def content(self, part: EpochPartition) -> StagedPart:
        """Return the published rows, their keys and counts.

        Raises:
            StoreError: The file is damaged.
        """
        return read_part(self._path(part, "arrow"))

    def keys(self, part: EpochPartition) -> set[str]:
        """Return the keys of the messages of a partition, without those that have no key.

        Raises:
            StoreError: The file is damaged.
        """
        return {key for key in read_keys(self._path(part, "arrow")) if key is not None}

    def confirm(self, part: EpochPartition) -> None:
        """Record that the broker confirmed the settlement."""
        # Not flushed to disk: if a power failure removes the file, the messages are in doubt, and nothing is lost.
        with suppress(FileNotFoundError):  # the epoch is already removed; its keys remain in doubt/ for a while
            self._path(part, "acked").touch(0o600)

    def is_confirmed(self, part: EpochPartition) -> bool:
        """Return True if the broker confirmed the settlement."""
        return self._path(part, "acked").exists()

    def record_decision(self, part: EpochPartition, foreign: Iterable[str]) -> set[str]:
        """Record which messages other partitions keep, and return the first decision, which is final."""
        decision = set(foreign)
        if _write_exclusively(self._path(part, "ok"), [seal(json.dumps(sorted(decision)).encode())]):
            return decision
        return self.decision(part) or set()

    def decision(self, part: EpochPartition) -> set[str] | None:
        """Return the keys of messages that other partitions keep; None if that is not decided.

        Raises:
            StoreError: The file is damaged.
        """
        return _read_keys(self._path(part, "ok"))

    def published(self, epoch: int | None = None) -> dict[EpochPartition, bool]:
        """Return all published partitions, in order, and whether the broker confirmed the settlement of each.

        Each folder is listed once, so that the look-ups of an epoch do not grow with the square of its partitions. A
        partition that is confirmed meanwhile may be reported as unconfirmed: its keys are compared once too often.

        Args:
            epoch: The only epoch to report; None for all.
        """
        folders = sorted(self.folder.glob("e-*")) if epoch is None else [self._epoch_folder(epoch)]
        found: dict[EpochPartition, bool] = {}
        for folder in folders:
            names = _names_in(folder)
            numbers = sorted(int(name[2:7]) for name in names if name.startswith("p-") and name.endswith(".arrow"))
            for part in (EpochPartition(_epoch_of(folder), number) for number in numbers):
                found[part] = f"{part.name}.acked" in names
        return found

    def parts(self) -> list[EpochPartition]:
        """Return all published partitions, in order."""
        return list(self.published())

    def keys_in_doubt(self) -> set[str]:
        """Return the keys of staged messages that may be redelivered.

        Raises:
            StoreError: A file is damaged.
        """
        keys: set[str] = set()
        for part, confirmed in self.published().items():
            if not confirmed:
                keys |= self.keys(part)
        for path in self.folder.glob("doubt/*.ids"):
            keys |= _read_keys(path) or set()
        return keys

    def counts(self, part: EpochPartition) -> Counts:
        """Return the counts of a published partition, without reading its rows.

        Raises:
            StoreError: The file is damaged.
        """
        return read_counts(self._path(part, "arrow"))

    def counts_of(self, epoch: int) -> list[Counts]:
        """Return the counts of all published partitions of an epoch.

        Raises:
            StoreError: A file is damaged.
        """
        return [self.counts(part) for part in self.published(epoch)]

    def commit(self, epoch: int, *, retain: int, doubt_retention: float) -> None:
        """Record that all epochs up to one are committed, and remove files that are not needed any more.

        Args:
            epoch: The committed epoch.
            retain: The number of committed epochs that remain staged.
            doubt_retention: The retention of the keys of messages that may be redelivered, in seconds.
        """
        if epoch > self.low:
            replace(self.folder / "LOW", seal(str(epoch).encode()))
        for folder in sorted(self.folder.glob("e-*")):
            if _epoch_of(folder) <= epoch - retain:
                self._remove(folder)
        for folder in self.folder.glob("trash-*"):
            shutil.rmtree(folder, ignore_errors=True)
        limit = time.time() - doubt_retention
        for path in self.folder.glob("doubt/*.ids"):
            if path.stat().st_mtime < limit:
                path.unlink(missing_ok=True)

    def _remove(self, folder: Path) -> None:
        """Rename a folder for its removal, atomically, so that a late attempt never finds a partial folder."""
        for path in folder.glob("p-*.arrow"):
            part = _partition_of(path)
            if not self.is_confirmed(part):
                doubt = self.folder / "doubt"
                doubt.mkdir(exist_ok=True)
                sync_folder(self.folder)
                keys = seal(json.dumps(sorted(self.keys(part))).encode())
                _write_exclusively(doubt / f"{part.epoch:010d}-{part.number:05d}.ids", [keys])
        folder.rename(self.folder / f"trash-{uuid.uuid4().hex}")

    def _epoch_folder(self, epoch: int) -> Path:
        return self.folder / f"e-{epoch:010d}"

    def _path(self, part: EpochPartition, ending: str) -> Path:
        return self._epoch_folder(part.epoch) / f"{part.name}.{ending}"


def orphans(location: Path) -> Iterator[Path]:
    """Yield the published files of all generations that may be unprocessed."""
    for folder in (location / _VERSION).glob("*"):
        staging = Staging(location, folder.name)
        low = staging.low
        for part in staging.parts():
            if part.epoch > low and staging.counts(part).rows:
                yield folder / f"e-{part.epoch:010d}" / f"{part.name}.arrow"


def _partition_of(path: Path) -> EpochPartition:
    return EpochPartition(_epoch_of(path.parent), int(path.name[2:7]))


def _epoch_of(folder: Path) -> int:
    return int(folder.name.removeprefix("e-"))


def _names_in(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))  # noqa: PTH208  # names are enough
    except FileNotFoundError:
        return set()


def _read_sealed(path: Path) -> str | None:
    """Return a text that has a checksum; None if there is no file. The texts of version 1 have no checksum."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if data.startswith(b"[") or (data and b" " not in data):  # version 1
        return data.decode(errors="replace")
    try:
        return unseal(data).decode()
    except ValueError as error:
        raise _damaged(path, str(error)) from error


def _read_keys(path: Path) -> set[str] | None:
    """Return the keys in a file; None if there is no file."""
    text = _read_sealed(path)
    try:
        return None if text is None else set(json.loads(text))
    except ValueError as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, problem: str) -> StoreError:
    return StoreError(
        f"The file {path} is damaged: {problem}. Restore it from a backup; without it jmsjca cannot know which messages"
        " were processed. To accept that some are lost or repeated, go on with a new checkpoint and stagingLocation."
    )


def _write_exclusively(path: Path, data: Sequence[bytes]) -> bool:
    """Create a file durably and atomically. Return False if it exists already."""
    temporary = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        _write(temporary, data)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def replace(path: Path, data: bytes) -> None:
    """Replace a file durably and atomically."""
    temporary = path.parent / f".{uuid.uuid4().hex}.tmp"
    _write(temporary, [data])
    temporary.replace(path)
    sync_folder(path.parent)


def _write(path: Path, data: Sequence[bytes]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(data)
        file.flush()
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def resolve_duplicates(staging: Staging, part: EpochPartition, keys: set[str] | None = None) -> set[str]:
    """Return the keys of messages of a published partition that other partitions keep. Decide it if necessary.

    Args:
        staging: The staged files.
        part: The partition.
        keys: The keys of its messages; None reads them from its file.
    """
    decision = staging.decision(part)
    return staging.record_decision(part, _find_foreign(staging, part, keys)) if decision is None else decision


def _find_foreign(staging: Staging, part: EpochPartition, keys: set[str] | None) -> set[str]:
    published = staging.published()
    # The messages of a confirmed partition are settled; two have the same message only if one is unconfirmed.
    others = [other for other, sure in published.items() if other != part and not (sure and published.get(part))]
    if not others:
        return set()
    mine = staging.keys(part) if keys is None else keys
    foreign: set[str] = set()
    for other in others:
        common = mine & staging.keys(other)
        if common:
            foreign |= common if other < part else common - resolve_duplicates(staging, other)
    return foreign
