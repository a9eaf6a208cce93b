"""The plan of a stream: when the next epoch begins, how many messages it takes, and what the last ones took."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from jmsjca.spark.part_file import Counts

__all__ = ["AvailableNowLimit", "EmptyEpochBackoff", "Offset", "Progress"]

_MAX_SKIPPED = 31


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset in Spark's log. It has the plan of the epoch, so that a replay does not depend on changed options.

    Attributes:
        epoch: The number of the epoch that ends here; 0 before the first.
        gen: The generation: one checkpoint's name for its staged files; None before the first epoch.
        parts: The number of partitions of the epoch.
        rows: The maximum number of messages of the epoch.
        counted: 1 if so many messages were waiting when the epoch was planned, 0 if their number was unknown.
    """

    epoch: int = 0
    gen: str | None = None
    parts: int = 0
    rows: int = 0
    counted: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the offset of a dictionary from `to_json`."""
        numbers = (value.get(name, 0) for name in ("parts", "rows", "counted"))
        return cls(value["epoch"], value.get("gen"), *numbers)

    def to_json(self) -> dict[str, Any]:
        """Return the form for Spark's log. It has no secrets, because the log is plain text."""
        return {"v": 1, **{name: value for name, value in asdict(self).items() if value or name == "epoch"}}

    def next(self, parts: int, rows: int, *, waiting: int | None = None) -> "Offset":
        """Return the offset at the end of the next epoch; the first epoch begins a generation.

        Args:
            parts: The maximum number of partitions; each has at least one message.
            rows: The maximum number of messages.
            waiting: The number of messages that wait; None or 0 if it is unknown.
        """
        rows = min(rows, waiting or rows)
        return Offset(self.epoch + 1, self.gen or uuid.uuid4().hex, min(parts, rows), rows, int(bool(waiting)))

    def quota(self, partition: int) -> int:
        """Return the maximum number of messages of a partition."""
        share, rest = divmod(self.rows, self.parts)
        return share + (partition < rest)


class AvailableNowLimit:
    """The end of a query with trigger AvailableNow: the messages that the queue had when the query began.

    If the broker does not report the queue depth, the query ends with the first epoch that is empty or has a message
    that was sent after the query began.

    Args:
        depth: The queue depth when the query began; None if unknown.
    """

    def __init__(self, depth: int | None) -> None:
        self._remaining = depth
        self._started = time.time_ns() // 1_000_000  # the unit of JMSTimestamp
        self.reached = depth == 0

    def next_limit(self, limit: int) -> int:
        """Return the maximum number of messages of the next epoch."""
        return limit if self._remaining is None else min(limit, max(self._remaining, 1))

    def record_epoch(self, counts: Sequence[Counts]) -> None:
        """Record the messages of an epoch."""
        taken = sum(part.received for part in counts)
        if self._remaining is None:
            self.reached = not taken or any(self._is_late(part) for part in counts)
        else:
            self._remaining -= taken
            self.reached = not taken or self._remaining <= 0

    def _is_late(self, counts: Counts) -> bool:
        return counts.latest is not None and counts.latest >= self._started


class EmptyEpochBackoff:
    """Counts the checks of the queue to skip after empty epochs: 1, 3, 7, 15, and then 31 after each further one.

    An epoch is empty if the driver cannot browse the queue, or saw messages that other consumers have.
    """

    def __init__(self) -> None:
        self._length = 0
        self._left = 0

    def record_epoch(self, taken: int) -> None:
        """Record the number of messages of an epoch."""
        self._length = 0 if taken else min(2 * self._length + 1, _MAX_SKIPPED)
        self._left = self._length

    def must_skip(self) -> bool:
        """Return True if this check must be skipped, and count it."""
        if not self._left:
            return False
        self._left -= 1
        return True


@dataclass(slots=True)
class Progress:
    """The messages of the epochs of this run of a query, for display.

    Attributes:
        received: The number of messages received.
        redelivered: The number of rows whose message was delivered before.
        duplicates: The number of redelivered messages that were recognised and dropped.
    """

    received: int = 0
    redelivered: int = 0
    duplicates: int = 0

    def record_epoch(self, counts: Sequence[Counts]) -> None:
        """Record the messages of an epoch."""
        self.received += sum(part.received for part in counts)
        self.redelivered += sum(part.redelivered for part in counts)
        self.duplicates += sum(part.duplicates for part in counts)
