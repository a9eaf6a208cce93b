"""The keys of messages without a confirmed settlement, after their epoch was removed.

::

    doubt/0000000017-00003.ids   the keys of one partition, as its epoch was removed
    doubt/KEYS                   all earlier ones in one file, with the time for which they were kept

Their messages may be redelivered at any time, and are recognised by these keys. The files of the partitions are merged,
so that a task reads one file however many epochs ended in doubt. A reader that finds a merged file gone finds its keys
in ``KEYS``, because it reads that file last.

The age of a key is the running time of the query, by a clock that never jumps: after a long pause, or after somebody
set the clock of the machine, keys are kept too long rather than too short.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from jmsjca.config.settings import SYSTEM_CLOCK, Clock
from jmsjca.log_records import get_logger
from jmsjca.spark.sealed_files import create_sealed, damaged, read_sealed, replace_sealed
from jmsjca.spark.store import Store

__all__ = ["MAX_KEYS", "KeysInDoubt", "read_keys_file"]

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
        return keys.union(_read_merged(self._store))  # last: it has the keys of the files that are gone meanwhile

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
        known = {key for group in groups for key in group.keys}  # of a merge whose files were not removed
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
