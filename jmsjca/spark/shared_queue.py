"""Several queries in one staging location: a message that one of them has staged is not received by another one.

If a task fails between staging and settling, its messages are redelivered to any consumer of the queue. That may be one
of another query. It recognises them by the keys in doubt of all queries of the queue in its staging location, and
settles and drops them, because the query that staged them has their rows.
A query that is never run again leaves orphans.
"""

from collections.abc import Iterator
from pathlib import Path

from jmsjca.spark.staging import Staging, generations
from jmsjca.spark.staging_origin import Origin
from jmsjca.spark.store import Store

__all__ = ["keys_in_doubt", "orphans"]


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
        if theirs is not None and theirs.source == mine.source and theirs.name not in ("", mine.name):
            yield other
