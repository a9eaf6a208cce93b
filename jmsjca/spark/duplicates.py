"""Messages that the broker delivered to several partitions or queries: exactly one of them keeps each.

**Partitions.** Each partition decides after it is published, and a written decision is final. A partition leaves a
message to a smaller partition that has it, and to a larger one that has decided to keep it. No partition waits: if the
larger one has not decided, for instance because its attempt crashed, its decision is made here, from the same files.

A partition that leaves nothing to others does not flush that to disk: if a power failure removes the decision, the
batch is repeated, and the same decision is made from the same files. A decision that another partition has relied on
must stay, so that partition flushes it before its own.

At least one keeps the message: the smallest partition that has it leaves it only to one that keeps it. At most one
keeps it: of two, the one published later sees the other, and either leaves the message to it or records that the other
left it.

**Queries.** A message that one query of a staging location has staged is not received by another one. If a task fails
between staging and settling, its messages are redelivered to any consumer of the queue, which may be one of another
query. That one recognises them by the keys in doubt of all queries of the queue in its staging location, and settles
and drops them, because the query that staged them has their rows. A query that is never run again leaves orphans.
"""

from collections.abc import Iterator
from pathlib import Path

from jmsjca.spark.generation import Origin
from jmsjca.spark.staging import EpochPartition, Staging, generations
from jmsjca.spark.store import Store

__all__ = ["count_kept_by_others", "keys_in_doubt", "orphans", "resolve_duplicates"]


def resolve_duplicates(staging: Staging, part: EpochPartition, keys: set[str] | None = None) -> set[str]:
    """Return the keys of messages of a published partition that other partitions keep. Decide it if necessary.

    Args:
        staging: The staged files.
        part: The partition.
        keys: The keys of its messages; None reads them from its file.

    Returns:
        The keys; none with ``guarantee=at-least-once``.
    """
    if staging.at_least_once:  # the other partition may be an attempt with rows that are never read
        return set()
    decision = staging.decision(part)
    return staging.record_decision(part, _find_foreign(staging, part, keys)) if decision is None else decision


def count_kept_by_others(staging: Staging, epoch: int) -> int:
    """Return how many messages the partitions of an epoch received that other partitions keep.

    Args:
        staging: The staged files.
        epoch: The number of the epoch.
    """
    published = staging.published(epoch)
    if staging.at_least_once or all(published.values()):  # the messages of a confirmed partition are settled
        return 0
    return sum(len(staging.decision(part) or ()) for part in published)


def _find_foreign(staging: Staging, part: EpochPartition, keys: set[str] | None) -> set[str]:
    published = staging.published()
    # The messages of a confirmed partition are settled; two have the same message only if one is unconfirmed.
    others = [other for other, sure in published.items() if other != part and not (sure and published.get(part))]
    if not others:
        return set()
    mine = staging.keys(part) if keys is None else keys
    foreign: set[str] = set()
    for other in others:
        common = mine & _keys_of(staging, other)
        if common and other < part:
            foreign |= common
        elif kept := common and common - resolve_duplicates(staging, other):
            staging.flush_decision(other)
            foreign |= kept
    return foreign


def _keys_of(staging: Staging, part: EpochPartition) -> set[str]:
    """Return the keys of a partition; none if its epoch was removed meanwhile, and therefore decided."""
    try:
        return staging.keys(part)
    except FileNotFoundError:
        return set()


def keys_in_doubt(staging: Staging) -> set[str]:
    """Return the keys of staged messages that may be redelivered to a query.

    Args:
        staging: The staged files of the query. Other queries of its queue count if they have another ``stagingName``;
            without a name, a query shares its queue with none.

    Raises:
        StoreError: A file is damaged.
    """
    return staging.keys_in_doubt().union(*(other.keys_in_doubt() for other in _others(staging)))


def orphans(location: Store | Path, origin: Origin | None = None) -> Iterator[str]:
    """Yield the addresses of the published files that may be unprocessed.

    Args:
        location: The staging location.
        origin: The source whose generations are searched; None for all.
    """
    for staging in generations(location):
        if origin is None or staging.may_concern(origin):
            low = staging.low
            unsure = staging.unsure(low)
            for part in staging.published():
                if (part.epoch > low or part in unsure) and staging.counts(part).rows:
                    yield staging.store.address(part.file("arrow"))


def _others(staging: Staging) -> Iterator[Staging]:
    mine = staging.origin()
    if mine is None or not mine.name:
        return
    for other in generations(staging.location):
        theirs = other.origin()
        if theirs is not None and theirs.identity == mine.identity and theirs.name not in ("", mine.name):
            yield other
