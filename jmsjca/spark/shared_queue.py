"""Several queries of one queue: a message that one of them has staged is not received by another one.

If a task fails between staging and settling, its messages are redelivered to any consumer of the queue. That may be one
of another query. It recognises them by the keys in doubt of all queries of the queue in its staging location, and
settles and drops them, because the query that staged them has their rows.
"""

from collections.abc import Iterator

from jmsjca.spark.staging import Staging, generations

__all__ = ["keys_in_doubt"]


def keys_in_doubt(staging: Staging) -> set[str]:
    """Return the keys of staged messages that may be redelivered to a query.

    Args:
        staging: The staged files of the query. Other queries of its queue count if they have another ``stagingName``;
            without a name, a query shares its queue with none.

    Raises:
        StoreError: A file is damaged.
    """
    return staging.keys_in_doubt().union(*(other.keys_in_doubt() for other in _others(staging)))


def _others(staging: Staging) -> Iterator[Staging]:
    mine = staging.origin()
    if mine is None or not mine.name:
        return
    for other in generations(staging.location):
        theirs = other.origin()
        if theirs is not None and theirs.source == mine.source and theirs.name not in ("", mine.name):
            yield other
