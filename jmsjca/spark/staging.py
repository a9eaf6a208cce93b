"""Staged messages: durable before they are settled, and kept by exactly one partition, so that replays are equal.

::

    <location>/v1/<gen>/SOURCE                       the destination and the broker, and the name of the query
    <location>/v1/<gen>/OWNER                        the query that reads this generation
    <location>/v1/<gen>/LOW                          the highest epoch that is committed; only grows
    <location>/v1/<gen>/e-0000000017/                created by the driver only: its absence fences late attempts
    …/p-00003.arrow                                  the rows of the partition; appears once, never changes
    …/p-00003.acked                                  the broker confirmed the settlement
    …/p-00003.ok                                     keys of messages that other partitions keep; must precede use
    …/LOST                                           the loss of files of this epoch was accepted: it has no more rows
    <location>/v1/<gen>/doubt/                       keys of messages whose settlement was never confirmed

The driver creates the folder of an epoch before Spark writes the offset of the epoch to its log. So a folder that is
missing when a batch is processed was lost, and is an error: messages received instead would get the number of others.
"""

import json
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Self

from jmsjca.config.settings import SYSTEM_CLOCK, Clock
from jmsjca.errors import IllegalStateError, InvalidOptionError, JMSError, StoreError
from jmsjca.spark.doubt import KeysInDoubt, read_keys_file
from jmsjca.spark.durable_files import (
    create,
    create_sealed,
    damaged,
    list_names,
    probe,
    read_sealed,
    replace,
    replace_sealed,
    sweep,
    sync_folder,
)
from jmsjca.spark.part_file import Counts, StagedPart, read_counts, read_keys, read_part, write_part

__all__ = [
    "EpochPartition",
    "Origin",
    "Staging",
    "StaleEpochError",
    "generations",
    "orphans",
    "replace",
    "sync_folder",
]

_VERSION = "v1"
_SYNCED_PARENTS = 4  # above an epoch: the generation, the version, the location, and its parent


class StaleEpochError(JMSError):
    """A late attempt at a batch that is committed already. It consumed nothing."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the staged messages of a generation.

    Attributes:
        source: The destination and the broker, without credentials.
        name: The name that the query has in a shared staging location; empty if it has none.
    """

    source: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the origin that `str` wrote.

        Raises:
            ValueError: The text is no such one.
        """
        found = json.loads(text)
        return cls(str(found["source"]), str(found["name"]))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


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
        clock: The clock for the age of the keys of messages in doubt.
    """

    def __init__(self, location: Path, gen: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self.folder = location / _VERSION / gen
        self._doubt = KeysInDoubt(self.folder / "doubt", clock)

    def create_epoch(self, epoch: int) -> bool:
        """Create the folder of an epoch, on the driver, before Spark logs its offset. Return False if it exists."""
        folder = self._epoch_folder(epoch)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            return False
        for parent in list(folder.parents)[:_SYNCED_PARENTS]:
            sync_folder(parent)
        return True

    def begin(self, origin: Origin, *, allow_change: bool = False) -> None:
        """Create the folder of a new generation, or check that of an earlier run, on the driver.

        Raises:
            StoreError: The folder cannot be used for exactly-once reading; see `probe`.
            InvalidOptionError: Another source was read into this generation, and that is not allowed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        probe(self.folder)
        sweep(self.folder, "SOURCE")
        sweep(self.folder, "probe")
        known = self.origin()
        if known is None:
            create_sealed(self.folder / "SOURCE", str(origin))
        elif known != origin and not allow_change:
            raise InvalidOptionError(
                f"This checkpoint belongs to {_described(known)}, and the options name {_described(origin)}. Use a new"
                " checkpoint for another source. If it is the same source at a new address or with a new name, set"
                " sourceChange=allow for one run."
            )
        elif known != origin:
            replace_sealed(self.folder / "SOURCE", str(origin))

    def check_present(self, epoch: int, *, swept: bool = False) -> None:
        """Raise an error if the folder of an epoch is missing that Spark processes now or again.

        Args:
            epoch: The epoch.
            swept: True if the epoch may have been removed as it was committed, and only the generation must be there.

        Raises:
            StoreError: The folder is missing; the message has the remedy.
        """
        needed = [self.folder] if swept else [self.folder, self._epoch_folder(epoch)]
        lost = next((folder for folder in needed if not folder.is_dir()), None)
        if lost is not None:
            raise StoreError(
                f"The staging folder {lost} is missing, with the messages of epoch {epoch}, which Spark processes now"
                " or again: they were perhaps taken off the queue, and this was their only copy. Restore the folder, or"
                " name the stagingLocation of the earlier run. To accept their loss, run:"
                f" jmsjca spark repair {self.folder.parent.parent} --accept-loss {self.folder.name}/{epoch}"
            )

    def accept_loss(self, epoch: int) -> None:
        """End an epoch without the messages of its missing files. An administrator decides this."""
        self.create_epoch(epoch)
        create_sealed(self._epoch_folder(epoch) / "LOST", "")

    def is_lost(self, part: EpochPartition) -> bool:
        """Return True if the loss of the missing files of an epoch was accepted.

        Raises:
            StoreError: The rows of the partition were staged and are missing, and their loss is not accepted.
        """
        names = list_names(self._epoch_folder(part.epoch))
        if "LOST" in names:
            return True
        if f"{part.name}.arrow" not in names and {f"{part.name}.acked", f"{part.name}.ok"} & names:
            raise StoreError(
                f"The file {self._path(part, 'arrow')} is missing. Its messages were taken off the queue, and this was"
                " their only copy: restore the file from a backup. To accept their loss, run:"
                f" jmsjca spark repair {self.folder.parent.parent} --accept-loss {self.folder.name}/{part.epoch}"
            )
        return False

    def claim(self, query: str) -> None:
        """Make a query the owner of this generation.

        Raises:
            IllegalStateError: Another query is the owner.
            StoreError: The file that names the owner is damaged.
        """
        path = self.folder / "OWNER"
        owner = read_sealed(path)
        if owner is None and not create_sealed(path, query):
            owner = read_sealed(path)
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
        low = read_sealed(path)
        if low is not None and not low.isdecimal():
            raise damaged(path, f"it should be a number, not {low!r:.50}")
        return int(low or 0)

    def check_live(self, part: EpochPartition) -> None:
        """Raise an error for a partition of an epoch that is over.

        Raises:
            StaleEpochError: The epoch was committed or removed.
            StoreError: This machine does not see the folder that the driver created.
        """
        if not self.folder.is_dir():
            raise StoreError(
                f"The staging folder {self.folder} does not exist on {socket.gethostname()}: the driver has created it,"
                " so this executor sees another file system. The option stagingLocation must name a folder that the"
                " driver and all executors share, for instance on NFS."
            )
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
            return create(self._path(part, "arrow"), lambda file: write_part(file, staged))
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
        if create_sealed(self._path(part, "ok"), json.dumps(sorted(decision))):
            return decision
        return self.decision(part) or set()

    def decision(self, part: EpochPartition) -> set[str] | None:
        """Return the keys of messages that other partitions keep; None if that is not decided.

        Raises:
            StoreError: The file is damaged.
        """
        return read_keys_file(self._path(part, "ok"))

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
            names = list_names(folder)
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
                with suppress(FileNotFoundError):  # the epoch was removed meanwhile: its keys are parked
                    keys |= self.keys(part)
        return keys | self.keys_in_doubt_parked()

    def keys_in_doubt_parked(self) -> set[str]:
        """Return the keys in doubt of epochs that were removed.

        Raises:
            StoreError: A file is damaged.
        """
        return self._doubt.read()

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

    def complete(self, epoch: int) -> None:
        """Record that Spark has committed all epochs up to one, durably."""
        if epoch > self.low:
            replace_sealed(self.folder / "LOW", str(epoch))

    def commit(self, epoch: int, *, retain: int, doubt_retention: float) -> None:
        """Record that all epochs up to one are committed, and remove files that are not needed any more.

        Args:
            epoch: The committed epoch.
            retain: The number of committed epochs that remain staged.
            doubt_retention: The running time of the query, in seconds, for which the keys of messages that may be
                redelivered are kept.
        """
        self.complete(epoch)
        for folder in sorted(self.folder.glob("e-*")):
            if _epoch_of(folder) <= epoch - retain:
                self._remove(folder)
            elif _epoch_of(folder) <= epoch:
                sweep(folder)  # an attempt that comes too late loses its file, and releases its messages
        for folder in self.folder.glob("trash-*"):
            shutil.rmtree(folder, ignore_errors=True)
        sweep(self.folder, "LOW")
        if self._doubt_exists():
            self._doubt.merge(doubt_retention)

    def _doubt_exists(self) -> bool:
        return (self.folder / "doubt").is_dir()

    def _remove(self, folder: Path) -> None:
        """Rename a folder for its removal, atomically, so that a late attempt never finds a partial folder."""
        for part, confirmed in self.published(_epoch_of(folder)).items():
            if not confirmed:
                self._doubt.park(f"{part.epoch:010d}-{part.number:05d}", self.keys(part))
        folder.rename(self.folder / f"trash-{uuid.uuid4().hex}")

    def origin(self) -> Origin | None:
        """Return the source of this generation; None if it was begun by an earlier release.

        Raises:
            StoreError: The file that names it is damaged.
        """
        path = self.folder / "SOURCE"
        text = read_sealed(path)
        try:
            return None if text is None else Origin.parse(text)
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, str(error)) from error

    def may_concern(self, origin: Origin) -> bool:
        """Return True if the messages of this generation may be those that a query with this origin would read."""
        known = self.origin()
        return known is None or known == origin

    def _epoch_folder(self, epoch: int) -> Path:
        return self.folder / f"e-{epoch:010d}"

    def _path(self, part: EpochPartition, ending: str) -> Path:
        return self._epoch_folder(part.epoch) / f"{part.name}.{ending}"


def _described(origin: Origin) -> str:
    return f"{origin.source} (stagingName {origin.name!r})" if origin.name else origin.source


def generations(location: Path) -> list[Staging]:
    """Return all generations of a staging location."""
    return [Staging(location, folder.name) for folder in sorted((location / _VERSION).glob("*")) if folder.is_dir()]


def orphans(location: Path, origin: Origin | None = None) -> Iterator[Path]:
    """Yield the published files that may be unprocessed.

    Args:
        location: The staging location.
        origin: The source whose generations are searched; None for all.
    """
    for staging in generations(location):
        if origin is None or staging.may_concern(origin):
            low = staging.low
            for part in staging.parts():
                if part.epoch > low and staging.counts(part).rows:
                    yield staging.folder / f"e-{part.epoch:010d}" / f"{part.name}.arrow"


def _epoch_of(folder: Path) -> int:
    return int(folder.name.removeprefix("e-"))
