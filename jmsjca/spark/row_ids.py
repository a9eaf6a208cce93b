"""Ids that recognise the rows of a partition when a task is repeated, in whatever order Spark repeats them."""

import uuid
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

__all__ = ["RowIds"]

_BOUND = 1_000_000  # ids take about 150 MB then, and no broker recognises so many


class RowIds:
    """Makes an id of the content of a row, and of the number of equal rows before it.

    An id of the position would lose rows: Spark does not promise the order of the rows of a repeated task, and the
    broker would drop a new row that came in the place of one that it has.

    Args:
        prefix: The job and the partition. Equal rows of two partitions are two rows.
        bound: The number of different rows whose ids are the same in each attempt; a row beyond it gets a random id.
    """

    def __init__(self, prefix: str, bound: int = _BOUND) -> None:
        self._prefix = prefix
        self._bound = bound
        self._seen: dict[bytes, int] = {}

    def take(self, row: Mapping[str, Any]) -> str:
        """Return the id of the next row."""
        digest = blake2b(repr(row).encode("utf-8", "backslashreplace"), digest_size=16).digest()
        before = self._seen.get(digest, 0)
        if not before and len(self._seen) >= self._bound:
            return f"{self._prefix}/{uuid.uuid4().hex}"
        self._seen[digest] = before + 1
        return f"{self._prefix}/{digest.hex()}/{before}"
