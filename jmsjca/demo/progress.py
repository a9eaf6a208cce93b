"""What the query says that it has done: one line per micro-batch."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Batch", "Done", "note", "sum_up"]


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
