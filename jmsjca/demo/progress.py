"""The progress of the query: its batches, its staged files, stalls, and the moment for a crash."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from jmsjca.demo.settings import DemoSettings
from jmsjca.spark.staging import Part, Staging

__all__ = ["Batch", "CrashMoment", "Done", "Patience", "count_recognised", "count_unconfirmed", "note", "sum_up"]


@dataclass(frozen=True, slots=True)
class Batch:
    """One processed micro-batch.

    Args:
        batch: Its number.
        flights: How many events went into Parquet and into the results.
        dead: How many messages went to the dead-letter queue.
        again: How many messages the source dropped, because it had them already.
        begin: When it began, in seconds since the epoch.
        end: When it ended.
    """

    batch: int
    flights: int
    dead: int
    again: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Done:
    """All micro-batches together.

    Args:
        flights: Events in Parquet and in the results.
        dead: Messages in the dead-letter queue.
        again: Messages that came again, and were recognised.
        seconds: The time at work on batches.
    """

    flights: int
    dead: int
    again: int
    seconds: float

    @property
    def events(self) -> int:
        """How many events are done with."""
        return self.flights + self.dead


def note(file: Path, batch: Batch) -> None:
    """Add a line."""
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(batch)) + "\n")


def sum_up(file: Path) -> Done:
    """Sum up all batches; of one that was repeated, the last time counts."""
    text = file.read_text() if file.exists() else ""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]  # not the one being written
    batches = {batch.batch: batch for batch in (Batch(**json.loads(line)) for line in lines)}.values()
    return Done(
        flights=sum(b.flights for b in batches),
        dead=sum(b.dead for b in batches),
        again=sum(b.again for b in batches),
        seconds=sum((b.end - b.begin for b in batches), 0.0),
    )


class Patience:
    """Watches a figure that should grow.

    Args:
        seconds: How long it may stay as it is.
        clock: Where time comes from.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._figure: int | None = None
        self._since = clock()

    def is_over(self, figure: int) -> bool:
        """Look at the figure; True if it has not changed for too long."""
        if figure != self._figure:
            self._figure, self._since = figure, self._clock()
        return self._clock() - self._since > self._seconds


def count_unconfirmed(location: Path) -> int:
    """Count the messages that are staged, and whose settlement the broker has not confirmed.

    Args:
        location: The staging location.

    Returns:
        Their number; 0 also if files are being removed at this moment.
    """
    try:
        return sum(staging.received(part) for staging, part in _parts(location) if not staging.is_confirmed(part))
    except FileNotFoundError:
        return 0


def count_recognised(location: Path) -> int:
    """Count the messages in the newest epoch that came again, were recognised and dropped."""
    parts = _parts(location)
    newest = max((part.epoch for _, part in parts), default=0)
    return sum(staging.received(part) - staging.rows(part).num_rows for staging, part in parts if part.epoch == newest)


def _parts(location: Path) -> list[tuple[Staging, Part]]:
    stagings = [Staging(location, folder.name) for folder in location.glob("v1/*")]
    return [(staging, part) for staging in stagings for part in staging.parts()]


class CrashMoment:
    """Tells from the files of the query whether the moment has come, and what it saw then.

    Each partition stages what it received, then settles it, then notes that the broker confirmed that. So what is
    staged without such a note was received and is not settled, as far as anybody can know.

    Args:
        settings: The run.

    Attributes:
        unsettled: How many messages were received and not settled when it looked last.
    """

    def __init__(self, settings: DemoSettings) -> None:
        self._settings = settings
        self.unsettled = 0

    def has_come(self) -> bool:
        """Look at the checkpoint and at the staged messages."""
        if not self.committed_batches:
            return False
        self.unsettled = count_unconfirmed(self._settings.staging)
        return self.unsettled > 0

    @property
    def committed_batches(self) -> int:
        """How many batches the checkpoint calls committed."""
        commits: list[Path] = list(self._settings.checkpoint.glob("commits/*"))
        return sum(path.name.isdigit() for path in commits)

    def figures(self) -> dict[str, int]:
        """What it saw, for the account."""
        return {"committed_batches": self.committed_batches, "unsettled_messages": self.unsettled}
