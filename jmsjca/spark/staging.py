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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.spark.schema import ipc, pa

__all__ = [
    "RECEIVED",
    "EpochPartition",
    "Staging",
    "StaleEpochError",
    "orphans",
    "replace",
    "resolve_duplicates",
    "sync_folder",
]

RECEIVED = b"received"
"""The metadata key of a staged file for the number of messages received for it."""

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
        """
        owner = self.folder / "OWNER"
        if not _write_exclusively(owner, query.encode()) and owner.read_text() != query:
            raise IllegalStateError(
                f"{self.folder} is being read by query {owner.read_text()}; each query needs a checkpoint of its own."
            )

    @property
    def low(self) -> int:
        """The highest committed epoch."""
        try:
            return int((self.folder / "LOW").read_text())
        except FileNotFoundError:
            return 0

    def check_live(self, part: EpochPartition) -> None:
        """Raise an error for a partition of an epoch that is over.

        Raises:
            StaleEpochError: The epoch was committed or removed.
        """
        if part.epoch <= self.low or not self._epoch_folder(part.epoch).is_dir():
            raise StaleEpochError(
                f"Epoch {part.epoch} is over; this attempt of partition {part.number} comes too late."
            )

    def publish(self, part: EpochPartition, batch: Any) -> bool:
        """Write the rows of a partition durably, unless another attempt has done so.

        Returns:
            False if another attempt was first; its rows are used.

        Raises:
            StaleEpochError: The epoch is over.
        """
        try:
            return _write_exclusively(self._path(part, "arrow"), _encode(batch))
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

    def rows(self, part: EpochPartition) -> Any:
        """Return the published rows as an Arrow table."""
        with ipc.open_file(pa.memory_map(str(self._path(part, "arrow")))) as reader:
            return reader.read_all()

    def keys(self, part: EpochPartition) -> set[str]:
        """Return the keys of the messages of a partition, without those that have no key."""
        return {key for key in self.rows(part).column("_key").to_pylist() if key is not None}

    def confirm(self, part: EpochPartition) -> None:
        """Record that the broker confirmed the settlement."""
        with suppress(FileNotFoundError):  # the epoch is already removed; its keys remain in doubt/ for a while
            _write_exclusively(self._path(part, "acked"), b"")

    def is_confirmed(self, part: EpochPartition) -> bool:
        """Return True if the broker confirmed the settlement."""
        return self._path(part, "acked").exists()

    def record_decision(self, part: EpochPartition, foreign: Iterable[str]) -> set[str]:
        """Record which messages other partitions keep, and return the first decision, which is final."""
        path = self._path(part, "ok")
        _write_exclusively(path, json.dumps(sorted(foreign)).encode())
        return set(json.loads(path.read_bytes()))

    def decision(self, part: EpochPartition) -> set[str] | None:
        """Return the keys of messages that other partitions keep; None if that is not decided."""
        try:
            return set(json.loads(self._path(part, "ok").read_bytes()))
        except FileNotFoundError:
            return None

    def parts(self) -> list[EpochPartition]:
        """Return all published partitions, in order."""
        return sorted(_partition_of(path) for path in self.folder.glob("e-*/p-*.arrow"))

    def keys_in_doubt(self) -> set[str]:
        """Return the keys of staged messages that may be redelivered."""
        keys: set[str] = set()
        for part in self.parts():
            if not self.is_confirmed(part):
                keys |= self.keys(part)
        for path in self.folder.glob("doubt/*.ids"):
            keys |= set(json.loads(path.read_bytes()))
        return keys

    def count(self, epoch: int) -> int:
        """Return the number of messages that an epoch has consumed, including dropped duplicates."""
        return sum(self.received(part) for part in self.parts() if part.epoch == epoch)

    def received(self, part: EpochPartition) -> int:
        """Return the number of messages that a published partition has consumed, including dropped duplicates."""
        return int(self.rows(part).schema.metadata[RECEIVED])

    def commit(self, epoch: int, *, retain: int, doubt_retention: float) -> None:
        """Record that all epochs up to one are committed, and remove files that are not needed any more.

        Args:
            epoch: The committed epoch.
            retain: The number of committed epochs that remain staged.
            doubt_retention: The retention of the keys of messages that may be redelivered, in seconds.
        """
        if epoch > self.low:
            replace(self.folder / "LOW", str(epoch).encode())
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
                keys = json.dumps(sorted(self.keys(part))).encode()
                _write_exclusively(doubt / f"{part.epoch:010d}-{part.number:05d}.ids", keys)
        folder.rename(self.folder / f"trash-{uuid.uuid4().hex}")

    def _epoch_folder(self, epoch: int) -> Path:
        return self.folder / f"e-{epoch:010d}"

    def _path(self, part: EpochPartition, ending: str) -> Path:
        return self._epoch_folder(part.epoch) / f"{part.name}.{ending}"


def orphans(location: Path) -> Iterator[Path]:
    """Yield the published files of all generations that may be unprocessed."""
    for folder in (location / _VERSION).glob("*"):
        staging = Staging(location, folder.name)
        for part in staging.parts():
            if part.epoch > staging.low and staging.rows(part).num_rows:
                yield folder / f"e-{part.epoch:010d}" / f"{part.name}.arrow"


def _partition_of(path: Path) -> EpochPartition:
    return EpochPartition(_epoch_of(path.parent), int(path.name[2:7]))


def _epoch_of(folder: Path) -> int:
    return int(folder.name.removeprefix("e-"))


def _encode(batch: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, batch.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _write_exclusively(path: Path, data: bytes) -> bool:
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
    _write(temporary, data)
    temporary.replace(path)
    sync_folder(path.parent)


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def resolve_duplicates(staging: Staging, part: EpochPartition) -> set[str]:
    """Return the keys of messages of a published partition that other partitions keep. Decide it if necessary."""
    decision = staging.decision(part)
    return staging.record_decision(part, _find_foreign(staging, part)) if decision is None else decision


def _find_foreign(staging: Staging, part: EpochPartition) -> set[str]:
    mine = staging.keys(part)
    sure = staging.is_confirmed(part)
    foreign: set[str] = set()
    for other in staging.parts():
        # The messages of a confirmed partition are settled; two have the same message only if one is unconfirmed.
        if other == part or (sure and staging.is_confirmed(other)):
            continue
        common = mine & staging.keys(other)
        if common:
            foreign |= common if other < part else common - resolve_duplicates(staging, other)
    return foreign
