"""The decision which partition keeps a message that the broker delivered to several, written once and final.

Each partition decides after it is published, and a written decision is final. A partition leaves a message to a smaller
partition that has it, and to a larger one that has decided to keep it. No partition waits: if the larger one has not
decided, for instance because its attempt crashed, its decision is made here, from the same files.

A partition that leaves nothing to others does not flush that to disk: if a power failure removes the decision, the
batch is repeated, and the same decision is made from the same files. A decision that another partition has relied on
must stay, so that partition flushes it before its own.

At least one keeps the message: the smallest partition that has it leaves it only to one that keeps it. At most one
keeps it: of two, the one published later sees the other, and either leaves the message to it or records that the other
left it.
"""

from jmsjca.spark.staging import EpochPartition, Staging

__all__ = ["count_kept_by_others", "resolve_duplicates"]


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
