"""The plans of epochs: when the next one begins, how many messages it takes, and what the last ones took.

A driver may begin an epoch before Spark asks for it, see `jmsjca.spark.reader`. Then it records the plan::

    <location>/v1/<gen>/plan-0000000017              the offset at the end of the epoch

The plan of such an epoch is durable before its first message is received, and exactly one process plans the epoch: a
driver begins an epoch only if it has created the folder of the epoch itself. If a driver finds the folder without a
plan, its predecessor crashed or still runs. Then the driver tries to record its own plan. If the predecessor has
recorded one first, the driver uses it.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from jmsjca.errors import StoreError
from jmsjca.log_records import get_logger
from jmsjca.spark.part_file import Counts
from jmsjca.spark.staging import OLDER_CHECKPOINT, Staging, new_generation
from jmsjca.spark.store import create_sealed, damaged, read_sealed, replace_sealed

__all__ = ["AvailableNowLimit", "EmptyEpochBackoff", "EpochPlans", "Offset", "Progress", "Share", "plan_shares"]

logger = get_logger("jmsjca.spark")

_MAX_SKIPPED = 31
_EMPTY_EPOCHS = 2
_STUCK_EPOCHS = 10
_PLAN = re.compile(r"plan-([0-9]{10}|[1-9][0-9]{10,})")


class Share(NamedTuple):
    """The share of one queue in an epoch.

    Attributes:
        parts: The number of partitions that read the queue.
        rows: The maximum number of messages.
        counted: 1 if so many messages were waiting when the epoch was planned, 0 if their number was unknown.
        queue: The name of the queue or subscription; empty in the offsets of a stream of one.
    """

    parts: int
    rows: int
    counted: int = 0
    queue: str = ""

    def quota(self, partition: int) -> int:
        """Return the maximum number of messages of a partition."""
        share, rest = divmod(self.rows, self.parts)
        return share + (partition < rest)


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset in Spark's log. It has the plan of the epoch, so that a replay does not depend on changed options.

    Attributes:
        epoch: The number of the epoch that ends here; 0 before the first.
        gen: The generation: one checkpoint's name for its staged files; None before the first epoch.
        plan: The shares of the queues in the epoch.
        again: With ``guarantee=at-least-once``: attempts at partitions of the epoch before, each with epoch, partition
            and name. This epoch has their rows.
    """

    epoch: int = 0
    gen: str | None = None
    plan: tuple[Share, ...] = ()
    again: tuple[tuple[int, int, str], ...] = ()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the offset of a dictionary from `to_json`."""
        shares: list[dict[str, Any]] = value.get("plan") or ([value] if value.get("parts") else [])
        plan = tuple(Share(s["parts"], s["rows"], s.get("counted", 0), s.get("queue", "")) for s in shares)
        again = tuple((epoch, number, attempt) for epoch, number, attempt in value.get("again", ()))
        return cls(value["epoch"], value.get("gen"), plan, again)

    def to_json(self) -> dict[str, Any]:
        """Return the form for Spark's log. It has no secrets, because the log is plain text."""
        shares = [{name: value for name, value in share._asdict().items() if value} for share in self.plan]
        one = len(shares) == 1 and "queue" not in shares[0]
        plan = shares[0] if one else {"plan": shares} if shares else {}
        again = {"again": [list(part) for part in self.again]} if self.again else {}
        return {"v": 1, "epoch": self.epoch, **({"gen": self.gen} if self.gen else {}), **plan, **again}

    def next(self, plan: Sequence[Share], *, at_least_once: bool = False) -> "Offset":
        """Return the offset at the end of the next epoch.

        Args:
            plan: The shares of the queues.
            at_least_once: The guarantee of the generation, which the first epoch begins.
        """
        return Offset(self.epoch + 1, self.gen or new_generation(at_least_once=at_least_once), tuple(plan))

    def repeated(self, again: Sequence[tuple[int, int, str]]) -> "Offset":
        """Return the offset at the end of a next epoch with rows that were staged before."""
        return Offset(self.epoch + 1, self.gen, (), tuple((epoch, number, name) for epoch, number, name in again))


def plan_shares(waiting: Mapping[str, int | None], parts: int, rows: int) -> list[Share]:
    """Divide an epoch between the queues that have messages, and each share between partitions.

    Args:
        waiting: The number of messages that wait in each queue; None or 0 if it is unknown.
        parts: The maximum number of partitions; each queue has at least one, and each partition at least one message.
        rows: The maximum number of messages, at least one for each queue.
    """
    wanted = {queue: min(number or rows, rows) for queue, number in waiting.items()}
    rest, parts_left, shares = sum(wanted.values()), max(parts, len(wanted)), list[Share]()
    rows_left = max(min(rows, rest), len(wanted))
    # From the shortest queue on, so that what a queue does not need is divided between the longer ones.
    for place, (queue, number) in enumerate(sorted(wanted.items(), key=_by_need), 1):
        later = len(wanted) - place
        taken = min(number, max(rows_left * number // rest, 1), rows_left - later) if later else min(number, rows_left)
        used = min(taken, max(parts_left * number // rest, 1), parts_left - later) if later else min(taken, parts_left)
        shares.append(Share(used, taken, int(bool(waiting[queue])), queue))
        rest, rows_left, parts_left = rest - number, rows_left - taken, parts_left - used
    return shares


def _by_need(wanted: tuple[str, int]) -> tuple[int, str]:
    queue, number = wanted
    return number, queue


class AvailableNowLimit:
    """The end of a query with trigger AvailableNow: the messages that the queues had when the query began.

    If the broker does not report the queue depth, the query ends when two epochs in turn are empty, or with the first
    epoch that has only messages sent after the query began, by the clocks of senders and driver. One empty epoch does
    not end it: the attempt of a speculative task that was killed may hold messages until the broker notices. Nor does
    one late message: it may have overtaken others, or have a wrong time.

    Args:
        depth: The queue depth when the query began; None if unknown.
    """

    def __init__(self, depth: int | None) -> None:
        self._remaining = depth
        self._started = time.time_ns() // 1_000_000  # the unit of JMSTimestamp
        self._empty = 0
        self.reached = depth == 0

    @property
    def is_stuck(self) -> bool:
        """True if so many epochs in turn were empty that a run with a count makes no progress."""
        return self.is_counted and self._empty >= _STUCK_EPOCHS

    @property
    def is_counted(self) -> bool:
        """True if the broker reported the queue depth."""
        return self._remaining is not None

    def next_limit(self, limit: int) -> int:
        """Return the maximum number of messages of the next epoch."""
        return limit if self._remaining is None else min(limit, max(self._remaining, 1))

    def left_after(self, counts: Sequence[Counts], kept_by_others: int = 0) -> int:
        """Return how many messages are left after an epoch that is not recorded yet; 0 if that is unknown."""
        return 0 if self._remaining is None else self._remaining - _taken(counts) + kept_by_others

    def record_epoch(self, counts: Sequence[Counts], kept_by_others: int = 0) -> None:
        """Record the messages of an epoch.

        Args:
            counts: The counts of its partitions.
            kept_by_others: How many of their messages another partition received, too, and keeps.
        """
        received = sum(part.received for part in counts)
        self._empty = 0 if received else self._empty + 1
        if self._remaining is None:
            self.reached = self._empty >= _EMPTY_EPOCHS or self._are_late(counts)
        else:
            self._remaining -= _taken(counts) - kept_by_others
            self.reached = self._remaining <= 0

    def _are_late(self, counts: Sequence[Counts]) -> bool:
        """Return True, and log it, if all messages of an epoch were sent after the query began."""
        sent = [part.earliest for part in counts if part.received]
        late = bool(sent) and all(first is not None and first >= self._started for first in sent)
        if late:
            logger.warning(
                "The run ends, because all messages of its last batch were sent after it began, by their JMSTimestamp."
                " If the clock of the driver is behind those of the senders, earlier messages are left in the queue."
            )
        return late


def _taken(counts: Sequence[Counts]) -> int:
    """Return how many of the messages that the queues had an epoch received.

    A message that this run staged and that was redelivered was in the queue once: counted twice, it would end the run
    with another message left. One of an earlier run is not counted at all, so that the run ends a little later, at the
    latest when the queue is empty.
    """
    return sum(part.received - part.duplicates for part in counts)


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
        redelivered: The number of rows with a message that was delivered before.
        duplicates: The number of redelivered messages that were recognised and dropped.
        sameKey: The number of messages that were dropped because an earlier one of the same batch had the same key.
        unmarked: The number of the duplicates that the broker does not mark as redelivered. They may be different
            messages with the same key.
        withoutKey: The number of rows with a message that has no key: they are read at least once.
    """

    received: int = 0
    redelivered: int = 0
    duplicates: int = 0
    sameKey: int = 0
    unmarked: int = 0
    withoutKey: int = 0

    def record_epoch(self, counts: Sequence[Counts]) -> None:
        """Record the messages of an epoch."""
        self.received += sum(part.received for part in counts)
        self.redelivered += sum(part.redelivered for part in counts)
        self.duplicates += sum(part.duplicates for part in counts)
        self.sameKey += sum(part.same_key for part in counts)
        self.unmarked += sum(part.unmarked for part in counts)
        self.withoutKey += sum(part.without_key for part in counts)


class EpochPlans:
    """The plans of epochs that began before Spark asked for them.

    Args:
        staging: The staged files of the generation.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def open(self, plan: Offset) -> Offset:
        """Create the folder of the epoch that Spark asks for, and return its plan.

        Returns:
            Another plan than the given one if a process has begun the epoch with it.

        Raises:
            StoreError: The epoch was committed before, so the checkpoint is older than its staged files.
        """
        low = self._staging.low
        if plan.epoch <= low:
            raise StoreError(
                f"The checkpoint goes on with epoch {plan.epoch}, but {self._staging.store} is committed up to epoch"
                f" {low}: {OLDER_CHECKPOINT}"
            )
        if self._staging.create_epoch(plan.epoch):  # then no other process begins it
            return plan
        return plan if self._record(plan) else self.find(plan.epoch) or plan

    def begin(self, plan: Offset) -> bool:
        """Create the folder and record the plan of an epoch that Spark has not asked for.

        Returns:
            False if another process was first, or the epoch is over.
        """
        return plan.epoch > self._staging.low and self._staging.create_epoch(plan.epoch) and self._record(plan)

    def find(self, epoch: int) -> Offset | None:
        """Return the plan of an epoch; None if it was not begun.

        Raises:
            StoreError: The plan is damaged, or the folder of the epoch is missing.
        """
        text = read_sealed(self._staging.store, self.name(epoch))
        if text is None:
            return None
        self._staging.check_present(epoch)
        try:
            return Offset.from_json(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(self._staging.store, self.name(epoch), str(error)) from error

    def repair(self, epoch: int) -> str:
        """Replace a damaged plan, and return what was done. A plan is not used any more once Spark's log has it."""
        parts = 1 + max((part.number for part in self._staging.published(epoch)), default=-1)
        if not parts:
            self._staging.store.delete(self.name(epoch))
            return "removed: the epoch has no messages yet"
        plan = Offset(epoch, self._staging.gen, (Share(parts, parts),))
        replace_sealed(self._staging.store, self.name(epoch), json.dumps(plan.to_json()))
        return "set to the partitions that are staged"

    def numbers(self) -> list[int]:
        """Return the epochs that have a plan."""
        return sorted(int(match[1]) for match in map(_PLAN.fullmatch, self._staging.store.names()) if match)

    def remove(self, epoch: int) -> None:
        """Remove the plans of all epochs up to one that Spark has committed."""
        self._staging.store.sweep(name="plan-")
        for number in self.numbers():
            if number <= epoch:
                self._staging.store.delete(self.name(number))

    def name(self, epoch: int) -> str:
        """Return the name of the file of a plan."""
        return f"plan-{epoch:010d}"

    def _record(self, plan: Offset) -> bool:
        return create_sealed(self._staging.store, self.name(plan.epoch), json.dumps(plan.to_json()))
