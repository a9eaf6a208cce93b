"""The progress of the query: its batches, its staged files, stalls, and the trigger of the crash."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from jmsjca.demo.settings import DemoSettings
from jmsjca.spark.staging import EpochPartition, Staging

__all__ = [
    "Batch",
    "BatchTotals",
    "CrashTrigger",
    "StallDetector",
    "count_recognised",
    "count_unconfirmed",
    "note",
    "sum_up",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """One processed micro-batch.

    Args:
        batch: The number of the micro-batch.
        flights: Number of events written to Parquet and to the results.
        dead: Number of messages sent to the dead-letter queue.
        again: Number of redelivered messages that the source recognised as duplicates and dropped.
        begin: Start time, in seconds since the epoch.
        end: End time, in seconds since the epoch.
    """

    batch: int
    flights: int
    dead: int
    again: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """The sums over all micro-batches.

    Args:
        flights: Number of events in Parquet and in the results.
        dead: Number of messages in the dead-letter queue.
        again: Number of redelivered messages recognised as duplicates.
        seconds: Total processing time of the batches, in seconds.
    """

    flights: int
    dead: int
    again: int
    seconds: float

    @property
    def events(self) -> int:
        """Number of events that are processed or dead-lettered."""
        return self.flights + self.dead


def note(file: Path, batch: Batch) -> None:
    """Append a micro-batch to the file."""
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(batch)) + "\n")


def sum_up(file: Path) -> BatchTotals:
    """Sum up all batches. Of a repeated batch only the last run counts."""
    text = file.read_text() if file.exists() else ""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]  # not the one being written
    batches = {batch.batch: batch for batch in (Batch(**json.loads(line)) for line in lines)}.values()
    return BatchTotals(
        flights=sum(b.flights for b in batches),
        dead=sum(b.dead for b in batches),
        again=sum(b.again for b in batches),
        seconds=sum((b.end - b.begin for b in batches), 0.0),
    )


class StallDetector:
    """Detects that a figure has stopped changing.

    Args:
        seconds: Time without a change after which progress has stalled.
        clock: Source of monotonic time, in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._figure: int | None = None
        self._since = clock()

    def is_over(self, figure: int) -> bool:
        """Record the figure; return True if it has not changed for longer than the limit."""
        if figure != self._figure:
            self._figure, self._since = figure, self._clock()
        return self._clock() - self._since > self._seconds


def count_unconfirmed(location: Path) -> int:
    """Count the staged messages without a settlement that the broker has confirmed.

    Args:
        location: The staging location.

    Returns:
        The number of messages; 0 also while files are being removed.
    """
    try:
        return sum(
            staging.counts(part).received for staging, part in _parts(location) if not staging.is_confirmed(part)
        )
    except FileNotFoundError:
        return 0


def count_recognised(location: Path) -> int:
    """Count the messages of the newest epoch that were recognised as duplicates and dropped."""
    parts = _parts(location)
    newest = max((part.epoch for _, part in parts), default=0)
    return sum(staging.counts(part).duplicates for staging, part in parts if part.epoch == newest)


def _parts(location: Path) -> list[tuple[Staging, EpochPartition]]:
    stagings = [Staging(location, folder.name) for folder in location.glob("v1/*")]
    return [(staging, part) for staging in stagings for part in staging.published()]


class CrashTrigger:
    """Decides from the files of the query when to crash it, and records the state at that moment.

    Each partition stages the messages it received, settles them, and then records the confirmation of the broker.
    So a message that is staged without this record was received, and is not known to be settled.

    Args:
        settings: The settings of the run.

    Attributes:
        unsettled: Number of messages that were received and not settled at the last check.
    """

    def __init__(self, settings: DemoSettings) -> None:
        self._settings = settings
        self.unsettled = 0

    def has_come(self) -> bool:
        """Check the checkpoint and the staged messages; return True if the query should be killed now."""
        if not self.committed_batches:
            return False
        self.unsettled = count_unconfirmed(self._settings.staging)
        return self.unsettled > 0

    @property
    def committed_batches(self) -> int:
        """Number of batches that the checkpoint records as committed."""
        commits: list[Path] = list(self._settings.checkpoint.glob("commits/*"))
        return sum(path.name.isdigit() for path in commits)

    def figures(self) -> dict[str, int]:
        """Return the recorded state, for the account."""
        return {"committed_batches": self.committed_batches, "unsettled_messages": self.unsettled}
