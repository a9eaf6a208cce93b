"""Staged messages: durable before they are settled, and kept by exactly one partition, so that replays are equal.

::

    <location>/v1/<gen>/SOURCE                       the destination and the broker, and the name of the query
    <location>/v1/<gen>/OWNER                        the query that reads this generation
    <location>/v1/<gen>/LOW                          the highest epoch that is committed; only grows
    <location>/v1/<gen>/e-0000000017/                created by the driver only: its absence fences late attempts
    …/p-00003.arrow                                  the rows of the partition; appears once, never changes
    …/p-00003.<attempt>.arrow                        the same with guarantee=at-least-once, of one attempt
    …/p-00003.acked                                  the broker confirmed the settlement
    …/p-00003.ok                                     keys of messages that other partitions keep; must precede use
    …/LOST                                           the loss of files of this epoch was accepted: it has no more rows
    <location>/v1/<gen>/KEEPS_ALL                    the content of .ok of a partition that keeps all its messages
    <location>/v1/<gen>/doubt/                       keys of messages whose settlement was never confirmed

The driver creates the folder of an epoch before Spark writes the offset of the epoch to its log. So a folder that is
missing when a batch is processed was lost, and is an error: messages received instead would get the number of others.
"""

import json
import re
import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from jmsjca.config.settings import SYSTEM_CLOCK, Clock
from jmsjca.errors import IllegalStateError, InvalidOptionError, JMSError, StoreError
from jmsjca.spark.doubt import KeysInDoubt, read_keys_file
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.generation import Origin, is_at_least_once
from jmsjca.spark.part_file import Counts, StagedPart, read_counts, read_keys, read_part, write_part
from jmsjca.spark.sealed_files import create_sealed, damaged, read_sealed, replace_sealed
from jmsjca.spark.staging_names import EpochPartition, epoch_folder, epochs_of, files_of, published_of
from jmsjca.spark.store import Store

__all__ = ["EpochPartition", "Staging", "StaleEpochError", "generations"]

_VERSION = "v1"
_GENERATION = re.compile(r"\w+")
_CRASHED = ("LOW", "OWNER", "KEEPS_ALL")  # the files of a generation that crashed processes may have left incomplete
_OLDER_CHECKPOINT = (
    "the checkpoint is older than its staged files, perhaps because it was restored from a backup. The sink has the"
    " rows of the later epochs, and their messages are no longer in the queue. Restore the last checkpoint of the"
    " query, or begin with a new checkpoint and a new output folder: it reads what is in the queue."
)


class StaleEpochError(JMSError):
    """A late attempt at a batch that is committed already. It consumed nothing."""


class Staging:
    """The staged files of one generation.

    Args:
        location: The folder or other store that driver and executors share.
        gen: The generation: the name of one checkpoint's staged files.
        clock: The clock for the age of the keys of messages in doubt.

    Attributes:
        location: The store of all generations.
        gen: The generation.
        at_least_once: True for a generation with ``guarantee=at-least-once``, see `jmsjca.spark.generation`.
        store: The store of its files.
    """

    def __init__(self, location: Store | Path, gen: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self.gen = gen
        self.at_least_once = is_at_least_once(gen)
        self.location = _as_store(location)
        store = self.location.relaxed() if self.at_least_once else self.location
        self.store = store.within(_VERSION).within(gen)
        self._doubt = KeysInDoubt(self.store.within("doubt"), clock)

    def create_epoch(self, epoch: int) -> bool:
        """Create the folder of an epoch, on the driver, before Spark logs its offset. Return False if it exists."""
        return self.store.add_folder(epoch_folder(epoch))

    def begin(self, origin: Origin, *, allow_change: bool = False) -> None:
        """Create the folder of a new generation, or check that of an earlier run, on the driver.

        Raises:
            StoreError: The store cannot be used for reading with this guarantee.
            InvalidOptionError: Another source was read into this generation, and that is not allowed.
        """
        try:
            self.store.add_folder()
        except OSError as error:
            raise StoreError(
                f"{self.location} cannot hold staged messages: {error}. The option stagingLocation must name a folder,"
                " which is made if it does not exist, or a bucket that exists."
            ) from error
        self.store.probe()
        self.store.sweep(name="SOURCE")
        self.store.sweep(name="probe")
        known = self.origin()
        if known is None:
            create_sealed(self.store, "SOURCE", str(origin))
        elif known != origin and not allow_change:
            raise InvalidOptionError(
                f"This checkpoint belongs to {known.described}, and the options name {origin.described}. Use a new"
                " checkpoint for another source. If it is the same source at a new address or with a new name, set"
                " sourceChange=allow for one run."
            )
        elif known != origin:
            replace_sealed(self.store, "SOURCE", str(origin))

    def check_present(self, epoch: int, *, swept: bool = False) -> None:
        """Raise an error if the folder of an epoch is missing that Spark processes now or again.

        Args:
            epoch: The epoch.
            swept: True if the epoch may have been removed as it was committed, and only the generation must be there.

        Raises:
            StoreError: The folder is missing; the message has the remedy.
        """
        needed = [""] if swept else ["", epoch_folder(epoch)]
        lost = next((folder for folder in needed if not self.store.has_folder(folder)), None)
        if lost is not None:
            low = self.low
            older = f" It is committed up to epoch {low}: {_OLDER_CHECKPOINT}" if epoch <= low else ""
            raise StoreError(
                f"The staging folder {self.store.address(lost)} is missing, with the messages of epoch {epoch}, which"
                " Spark processes now or again: they were perhaps taken off the queue, and this was their only copy."
                f"{older} Restore the folder, or name the stagingLocation of the earlier run. To accept their loss,"
                f" run: jmsjca spark repair {self.location} --accept-loss {self.gen}/{epoch}"
            )

    def check_new(self, epoch: int) -> None:
        """Raise an error for an epoch that begins now, and was committed before.

        Raises:
            StoreError: The checkpoint was set back; the message has the remedy.
        """
        low = self.low
        if epoch <= low:
            raise StoreError(
                f"The checkpoint goes on with epoch {epoch}, but {self.store} is committed up to epoch {low}:"
                f" {_OLDER_CHECKPOINT}"
            )

    def accept_loss(self, epoch: int) -> None:
        """End an epoch without the messages of its missing files. An administrator decides this."""
        self.create_epoch(epoch)
        create_sealed(self.store, f"{epoch_folder(epoch)}/LOST", "")

    def is_lost(self, part: EpochPartition) -> bool:
        """Return True if the loss of the missing files of an epoch was accepted.

        Raises:
            StoreError: The rows of the partition were staged and are missing, and their loss is not accepted.
        """
        names = self.store.names(epoch_folder(part.epoch))
        if "LOST" in names:
            return True
        for each, _ in sorted(files_of(part.epoch, names)):
            if each.number == part.number and f"{each.name}.arrow" not in names:
                raise self.missing(each.file("arrow"), part.epoch)
        return False

    def missing(self, name: str, epoch: int) -> StoreError:
        """Return the error for a file with messages of an epoch that is missing."""
        return StoreError(
            f"The file {self.store.address(name)} is missing. Its messages were taken off the queue, and this was their"
            " only copy: restore the file from a backup. To accept their loss, run:"
            f" jmsjca spark repair {self.location} --accept-loss {self.gen}/{epoch}"
        )

    def claim(self, query: str) -> None:
        """Make a query the owner of this generation.

        Raises:
            IllegalStateError: Another query is the owner.
            StoreError: The file that names the owner is damaged.
        """
        owner = read_sealed(self.store, "OWNER")
        if owner is None and not create_sealed(self.store, "OWNER", query):
            owner = read_sealed(self.store, "OWNER")
        if owner not in (None, query):
            raise IllegalStateError(
                f"{self.store} is being read by query {owner}; each query needs a checkpoint of its own."
            )

    @property
    def low(self) -> int:
        """The highest committed epoch.

        Raises:
            StoreError: The file that has the number is damaged.
        """
        low = read_sealed(self.store, "LOW")
        if low is not None and not low.isdecimal():
            raise damaged(self.store, "LOW", f"it should be a number, not {low!r:.50}")
        return int(low or 0)

    def check_live(self, part: EpochPartition) -> None:
        """Raise an error for a partition of an epoch that is over, unless the loss of its files was accepted.

        Raises:
            StaleEpochError: The epoch was committed or removed.
            StoreError: This machine does not see the folder that the driver created. Or the epoch was committed, and
                the rows of the partition are missing.
        """
        if not self.store.has_folder():
            raise StoreError(
                f"The staging folder {self.store} does not exist on {socket.gethostname()}: the driver has created it,"
                " so this executor sees another file system or store. The option stagingLocation must name a folder"
                " that the driver and all executors share, for instance on NFS, or a bucket."
            )
        is_live = self.has_epoch(part.epoch) if part.epoch > self.low else self.is_lost(part)
        if not is_live:
            raise StaleEpochError(
                f"Epoch {part.epoch} is over; this attempt of partition {part.number} comes too late."
            )

    def has_epoch(self, epoch: int) -> bool:
        """Return True if the folder of an epoch was created and not removed."""
        return self.store.has_folder(epoch_folder(epoch))

    def publish(self, part: EpochPartition, staged: StagedPart) -> bool:
        """Write the rows of a partition durably, unless another attempt has done so.

        Returns:
            False if another attempt was first; its rows are used.

        Raises:
            StaleEpochError: The epoch is over.
        """
        if self.at_least_once and self.attempts(part):
            return False
        try:
            return self.store.create(part.file("arrow"), lambda file: write_part(file, staged))
        except FileNotFoundError:
            raise StaleEpochError(
                f"Epoch {part.epoch} was removed while partition {part.number} was at work."
            ) from None

    def withdraw(self, part: EpochPartition) -> None:
        """Remove the published rows of a partition after its epoch turned out to be over."""
        self.store.delete(part.file("arrow"))

    def is_published(self, part: EpochPartition) -> bool:
        """Return True if the rows of a partition are published."""
        if self.at_least_once:
            return bool(self.attempts(part))
        return self.store.version(part.file("arrow")) is not None

    def attempts(self, part: EpochPartition) -> list[EpochPartition]:
        """Return the attempts at a partition that have published rows, in the order of their names."""
        return [other for other in self.published(part.epoch) if other.number == part.number]

    def unsure(self, epoch: int) -> list[EpochPartition]:
        """Return the attempts of a committed epoch that Spark has perhaps not read.

        Spark has read one attempt at each partition. If several have published rows, the driver does not know which.
        """
        published = self.published(epoch) if self.at_least_once else ()
        attempts = Counter(part.number for part in published)
        return [part for part in published if attempts[part.number] > 1]

    def content(self, part: EpochPartition) -> StagedPart:
        """Return the published rows, their keys and counts.

        Raises:
            StoreError: The file is damaged.
        """
        return read_part(self.store, part.file("arrow"))

    def keys(self, part: EpochPartition) -> set[str]:
        """Return the keys of the messages of a partition, without those that have no key.

        Raises:
            StoreError: The file is damaged.
            FileNotFoundError: The epoch was removed.
        """
        keys = {key for key in read_keys(self.store, part.file("arrow")) if key is not None}
        # Afterwards: in an object store a late attempt may create the file in an epoch that was removed before. It
        # releases these messages, so they must not be taken for staged ones.
        if not self.store.has_folder(epoch_folder(part.epoch)):
            raise FileNotFoundError(self.store.address(part.file("arrow")))
        return keys

    def confirm(self, part: EpochPartition) -> None:
        """Record that the broker confirmed the settlement."""
        # Not flushed to disk: if a power failure removes the file, the messages are in doubt, and nothing is lost.
        # If the epoch is already removed, its keys remain in doubt/ for a while.
        self.store.mark(part.file("acked"))

    def is_confirmed(self, part: EpochPartition) -> bool:
        """Return True if the broker confirmed the settlement."""
        return self.store.version(part.file("acked")) is not None

    def record_decision(self, part: EpochPartition, foreign: Iterable[str]) -> set[str]:
        """Record which messages other partitions keep, and return the first decision, which is final."""
        decision = set(foreign)
        common = None if decision else "KEEPS_ALL"  # nearly always: this is made from the same files after a crash
        if create_sealed(self.store, part.file("ok"), json.dumps(sorted(decision)), common):
            return decision
        return self.decision(part) or set()

    def flush_decision(self, part: EpochPartition) -> None:
        """Flush the decision of a partition to disk, before another one relies on it."""
        self.store.flush(epoch_folder(part.epoch))

    def decision(self, part: EpochPartition) -> set[str] | None:
        """Return the keys of messages that other partitions keep; None if that is not decided.

        Raises:
            StoreError: The file is damaged.
        """
        return read_keys_file(self.store, part.file("ok"))

    def published(self, epoch: int | None = None) -> dict[EpochPartition, bool]:
        """Return all published partitions, in order, and whether the broker confirmed the settlement of each.

        A folder is listed once, and an object store once in all, so that the look-ups of an epoch do not grow with the
        square of its partitions. A partition that is confirmed meanwhile may be reported as unconfirmed: its keys are
        compared once too often.

        Args:
            epoch: The only epoch to report; None for all.
        """
        found: dict[EpochPartition, bool] = {}
        for number, names in self.epochs(epoch).items():
            found.update(published_of(number, names))
        return found

    def epochs(self, epoch: int | None = None) -> dict[int, set[str]]:
        """Return the epochs that are staged, in order, with the names of the files of each.

        Args:
            epoch: The only epoch to report; None for all.
        """
        return epochs_of(self.store.folders("e-" if epoch is None else epoch_folder(epoch)))

    def keys_in_doubt(self) -> set[str]:
        """Return the keys of staged messages that may be redelivered; none with ``guarantee=at-least-once``.

        Raises:
            StoreError: A file is damaged.
        """
        keys: set[str] = set()
        if self.at_least_once:
            return keys
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
        return read_counts(self.store, part.file("arrow"))

    def counts_of(self, epoch: int, *, settled: bool = False) -> list[Counts]:
        """Return the counts of the published partitions of an epoch.

        Args:
            epoch: The epoch.
            settled: True for those with a confirmed settlement only.

        Raises:
            StoreError: A file is damaged.
        """
        return [self.counts(part) for part, confirmed in self.published(epoch).items() if confirmed or not settled]

    def complete(self, epoch: int) -> None:
        """Record that Spark has committed all epochs up to one, durably."""
        if epoch > self.low:
            replace_sealed(self.store, "LOW", str(epoch))

    def commit(self, epoch: int, *, retain: int, doubt_retention: float) -> None:
        """Record that all epochs up to one are committed, and remove files that are not needed any more.

        Args:
            epoch: The committed epoch.
            retain: The number of committed epochs that remain staged.
            doubt_retention: The running time of the query, in seconds, for which the keys of messages that may be
                redelivered are kept.
        """
        self.complete(epoch)
        oldest = epoch - max(retain, int(self.at_least_once))  # the next epoch may have rows of this one
        for number, names in self.epochs().items():
            folder = epoch_folder(number)
            if number <= oldest:
                self._park(number, names)
                self.store.remove_folder(folder)
            elif number <= epoch:
                self.store.sweep(folder)  # an attempt that comes too late loses its file, and releases its messages
        self.store.sweep_folders("e-", epoch_folder(max(oldest, 0)))
        for name in _CRASHED:
            self.store.sweep(name=name)
        if self.store.has_folder("doubt"):
            self._doubt.merge(doubt_retention)

    def _park(self, epoch: int, names: set[str]) -> None:
        """Park the keys in doubt of an epoch before it is removed."""
        for part, confirmed in published_of(epoch, names).items():
            if not confirmed and not self.at_least_once:
                self._doubt.park(f"{part.epoch:010d}-{part.number:05d}", self.keys(part))

    def origin(self) -> Origin | None:
        """Return the source of this generation; None if it was begun by an earlier release.

        Raises:
            StoreError: The file that names it is damaged.
        """
        text = read_sealed(self.store, "SOURCE")
        try:
            return None if text is None else Origin.parse(text)
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(self.store, "SOURCE", str(error)) from error

    def may_concern(self, origin: Origin) -> bool:
        """Return True if the messages of this generation may be those that a query with this origin would read."""
        known = self.origin()
        return known is None or known == origin


def _as_store(location: Store | Path) -> Store:
    return FolderStore(location) if isinstance(location, Path) else location


def generations(location: Store | Path) -> list[Staging]:
    """Return all generations of a staging location."""
    found = _as_store(location).within(_VERSION).folders()
    return [Staging(location, gen) for gen in found if _GENERATION.fullmatch(gen)]
