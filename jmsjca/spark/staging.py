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

If a settlement was not confirmed, the broker may redeliver the messages at any time. Their keys are kept after their
epoch is removed, so that a redelivery is recognised::

    doubt/0000000017-00003.ids   the keys of one partition, written when its epoch was removed
    doubt/KEYS                   all earlier keys in one file, with the time for which they were kept

The files of the partitions are merged, so that a task reads one file, however many epochs ended in doubt. If a file is
merged while a reader is at work, the reader finds its keys in ``KEYS``, because it reads that file last.

The age of a key is the running time of the query, by a monotonic clock. After a long pause, or a change of the system
clock, keys are kept too long rather than too short.

A generation is the staged files of one checkpoint, with a name and an origin. The name contains the guarantee, so the
guarantee of a generation never changes.

With ``guarantee=exactly-once`` the store decides which of several attempts at a partition is the first. Some stores
cannot decide this. They are used with ``guarantee=at-least-once``:

- Each attempt stages its messages in its own file, unless it finds the file of another attempt. Files never change.
- The attempt settles the messages only if the epoch is not yet committed. The driver records that an epoch is committed
  before it lists the files of the epoch. So either the driver sees the file, or the attempt settles nothing.
- If a partition has several files, the driver does not know which of them Spark has read. The next epoch has the rows
  of all of them: some rows are read twice, and no row is missed.
- Messages are not recognised by their keys, because the file with the key may be one that Spark never reads.
"""

import json
import re
import socket
import uuid
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.errors import IllegalStateError, InvalidOptionError, JMSError, StoreError
from jmsjca.log_records import get_logger
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.part_file import Counts, StagedPart, read_counts, read_keys, read_part, write_part
from jmsjca.spark.store import (
    EpochPartition,
    Store,
    create_sealed,
    damaged,
    epoch_folder,
    epochs_of,
    files_of,
    published_of,
    read_sealed,
    replace_sealed,
)

__all__ = [
    "DEFAULT_PORTS",
    "MAX_KEYS",
    "OLDER_CHECKPOINT",
    "EpochPartition",
    "KeysInDoubt",
    "Origin",
    "Staging",
    "StaleEpochError",
    "generations",
    "is_at_least_once",
    "new_generation",
    "read_keys_file",
]

logger = get_logger("jmsjca.spark")

MAX_KEYS = 200_000
_MERGED = "KEYS"
_SAVED = 60.0  # seconds after which the age is written again


class _Group(NamedTuple):
    """The keys that were parked together: their age in seconds at the last write, and the keys."""

    age: float
    keys: list[str]


class KeysInDoubt:
    """The parked keys of one generation. Tasks read them; only the driver parks, merges and drops them.

    Args:
        store: The store of the files.
        clock: The clock for the age of the keys.
        limit: The maximum number of keys; the oldest ones are dropped first.
    """

    def __init__(self, store: Store, clock: Clock = SYSTEM_CLOCK, limit: int = MAX_KEYS) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit
        self._last: float | None = None
        self._unsaved = 0.0

    def read(self) -> set[str]:
        """Return all parked keys.

        Raises:
            StoreError: A file is damaged.
        """
        keys: set[str] = set()
        for name in self._parked():
            keys |= read_keys_file(self._store, name) or set()
        return keys.union(_read_merged(self._store))  # last: it has the keys of files that a merge has just removed

    def park(self, name: str, keys: Iterable[str]) -> None:
        """Write the keys of a partition durably.

        Args:
            name: The name of the file, which sorts by age.
            keys: The keys.
        """
        self._store.add_folder()
        create_sealed(self._store, f"{name}.ids", json.dumps(sorted(keys)))

    def merge(self, retention: float) -> None:
        """Merge the parked keys into one file, and drop those that are too old or too many.

        Args:
            retention: The running time of the query, in seconds, after which keys are dropped.
        """
        self._advance()
        parked = self._parked()
        if not parked and self._unsaved < min(_SAVED, retention):
            return
        groups = [group._replace(age=group.age + self._unsaved) for group in _groups(self._store)]
        known = {key for group in groups for key in group.keys}  # of a merge that did not remove its files
        groups += [_Group(0.0, sorted((read_keys_file(self._store, name) or set()) - known)) for name in parked]
        kept = self._bounded([group for group in groups if group.age < retention])
        if parked or groups:
            replace_sealed(self._store, _MERGED, json.dumps({"groups": kept}))
        self._unsaved = 0.0
        for name in parked:
            self._store.delete(name)
        self._store.sweep()

    def _parked(self) -> list[str]:
        return sorted(name for name in self._store.names() if name.endswith(".ids"))

    def _advance(self) -> None:
        now = self._clock.monotonic()
        self._unsaved += 0.0 if self._last is None else now - self._last
        self._last = now

    def _bounded(self, groups: list[_Group]) -> list[_Group]:
        """Return the youngest groups that have no more keys than allowed."""
        kept, room = list[_Group](), self._limit
        for group in reversed(groups):
            kept.append(group._replace(keys=group.keys[:room]))
            room -= len(kept[-1].keys)
        dropped = sum(len(group.keys) for group in groups) - self._limit + room
        if dropped:
            logger.warning(
                "More than %d messages are in doubt: the keys of the oldest %d were dropped. If the broker redelivers"
                " their messages, they become rows a second time.",
                self._limit,
                dropped,
            )
        return [group for group in reversed(kept) if group.keys]


def read_keys_file(store: Store, name: str) -> set[str] | None:
    """Return the keys in a file; None if there is no file.

    Raises:
        StoreError: The file is damaged.
    """
    text = read_sealed(store, name)
    try:
        return None if text is None else set(json.loads(text))
    except (ValueError, TypeError) as error:
        raise damaged(store, name, str(error)) from error


def _read_merged(store: Store) -> frozenset[str]:
    version = store.version(_MERGED)
    return frozenset() if version is None else _cached_keys(store, version)


@lru_cache(4)
def _cached_keys(store: Store, _: str) -> frozenset[str]:
    """Return the keys of one version of a merged file: tasks in one process read it again and again."""
    return frozenset(key for group in _groups(store) for key in group.keys)


def _groups(store: Store) -> list[_Group]:
    text = read_sealed(store, _MERGED)
    try:
        found: list[Any] = [] if text is None else json.loads(text)["groups"]
        return [_Group(float(age), [str(key) for key in keys]) for age, keys in found]
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(store, _MERGED, str(error)) from error


DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671, "stomp": 61613, "stomp+ssl": 61614}

_AT_LEAST_ONCE = "atleastonce_"
_SOURCE = re.compile(r"(.*) at ([\w+.-]+)://([^/]*)(.*)", re.DOTALL)


def new_generation(*, at_least_once: bool = False) -> str:
    """Return a new name.

    Args:
        at_least_once: True for ``guarantee=at-least-once``.
    """
    return f"{_AT_LEAST_ONCE if at_least_once else ''}{uuid.uuid4().hex}"


def is_at_least_once(gen: str) -> bool:
    """Return True for a generation with ``guarantee=at-least-once``."""
    return gen.startswith(_AT_LEAST_ONCE)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the staged messages of a generation.

    Texts that name the same destinations and brokers are equal: their order, the case of hosts, a default port and a
    slash at the end do not matter.

    Attributes:
        source: The destination and the broker, without credentials.
        name: The name that the query has in a shared staging location; empty if it has none.
        identity: The source in the one form that is compared.
    """

    source: str = field(compare=False)
    name: str = ""
    identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", _in_one_form(self.source))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the origin that `str` wrote.

        Raises:
            ValueError: The text was not written by `str`.
        """
        found = json.loads(text)
        return cls(str(found["source"]), str(found["name"]))

    @property
    def described(self) -> str:
        """The source and the name, for messages."""
        return f"{self.source} (stagingName {self.name!r})" if self.name else self.source

    def __str__(self) -> str:
        return json.dumps({"source": self.source, "name": self.name})


def _in_one_form(source: str) -> str:
    match = _SOURCE.fullmatch(source)
    if match is None:
        return source
    destinations, protocol, hosts, path = match.groups()
    if hosts:  # a file has none
        path = path.rstrip("/")
        hosts = ",".join(sorted(_with_port(host.lower(), DEFAULT_PORTS.get(protocol)) for host in hosts.split(",")))
    return f"{', '.join(sorted(re.split(', (?=queue:)', destinations)))} at {protocol}://{hosts}{path}"


def _with_port(host: str, port: int | None) -> str:
    return host if port is None or re.search(r":\d+\Z", host) else f"{host}:{port}"


_VERSION = "v1"
_GENERATION = re.compile(r"\w+")
_CRASHED = ("LOW", "OWNER", "KEEPS_ALL")  # the files of a generation that crashed processes may have left incomplete
OLDER_CHECKPOINT = (
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
        at_least_once: True for a generation with ``guarantee=at-least-once``, see `jmsjca.spark.staging`.
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
        """Create the folder of a new generation, or check the folder of an earlier run, on the driver.

        Raises:
            StoreError: The store cannot be used for reading with this guarantee.
            InvalidOptionError: Another source was read into this generation, and that is not allowed.
        """
        with _unusable(self.location):
            self.store.add_folder()
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
        """Raise an error if an epoch that Spark processes or repeats has no folder.

        Args:
            epoch: The epoch.
            swept: True if the epoch may have been removed as it was committed, and only the generation must be there.

        Raises:
            StoreError: The folder is missing. The message describes what to do.
        """
        needed = [""] if swept else ["", epoch_folder(epoch)]
        lost = next((folder for folder in needed if not self.store.has_folder(folder)), None)
        if lost is not None:
            low = self.low
            older = f" It is committed up to epoch {low}: {OLDER_CHECKPOINT}" if epoch <= low else ""
            raise StoreError(
                f"The staging folder {self.store.address(lost)} is missing, with the messages of epoch {epoch}, which"
                " Spark processes now or again: they were perhaps taken off the queue, and this was their only copy."
                f"{older} Restore the folder, or name the stagingLocation of the earlier run. To accept their loss,"
                f" run: jmsjca spark repair {self.location} --accept-loss {self.gen}/{epoch}"
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

        Each folder is listed once, and an object store once in all, so that the look-ups of an epoch do not grow with
        the square of its partitions. If a partition is confirmed during the listing, it may be reported as unconfirmed.
        Then its keys are compared once more than necessary.

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
                with suppress(FileNotFoundError):  # the epoch was removed after the listing: its keys are parked
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


def check_usable(location: Store) -> None:
    """Find an unusable location before the first message, without creating anything in it.

    Raises:
        StoreError: It is a file, cannot be written, or is a bucket that cannot be reached.
    """
    with _unusable(location):
        location.within(_VERSION).look()


@contextmanager
def _unusable(location: Store) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{location} cannot hold staged messages: {error}. The option stagingLocation must name a folder,"
            " which is made if it does not exist, or a bucket that exists."
        ) from error


def _as_store(location: Store | Path) -> Store:
    return FolderStore(location) if isinstance(location, Path) else location


def generations(location: Store | Path) -> list[Staging]:
    """Return all generations of a staging location."""
    found = _as_store(location).within(_VERSION).folders()
    return [Staging(location, gen) for gen in found if _GENERATION.fullmatch(gen)]
