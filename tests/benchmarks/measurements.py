"""What a benchmark measures: values by case and contender, one per round; told as medians, printed and written."""

import json
import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["Measurements", "Summary", "alternating", "clocks", "environment", "timed", "write"]

_CLOCKS = {"elapsed": time.perf_counter, "processor": time.process_time}
Case = TypeVar("Case", bound=Hashable)


class Summary(NamedTuple):
    """One line of a table.

    Args:
        median: Of the values of all rounds.
        ratio: The median of the quotients with the reference's value in the same round, which what else the machine
            did in that round hit as well.
        difference: The median of the differences from the reference's value in the same round.
    """

    median: float
    ratio: float
    difference: float


class Measurements(Generic[Case]):
    """Collects values in rounds."""

    def __init__(self) -> None:
        self._values: dict[Case, dict[str, list[float]]] = {}

    def note(self, case: Case, contender: str, value: float) -> None:
        """Add the value of another round."""
        self._values.setdefault(case, {}).setdefault(contender, []).append(value)

    def forget_first_round(self) -> None:
        """Drop what only warmed up."""
        for contenders in self._values.values():
            for values in contenders.values():
                del values[0]

    def summaries(self, reference: str) -> Iterator[tuple[Case, str, Summary]]:
        """The lines of the table, in the order in which they were measured first."""
        for case, contenders in self._values.items():
            for contender, values in contenders.items():
                yield case, contender, _summary(values, contenders[reference])


def _summary(values: Sequence[float], references: Sequence[float]) -> Summary:
    pairs = list(zip(values, references, strict=True))
    ratio = statistics.median(value / reference for value, reference in pairs)
    return Summary(statistics.median(values), ratio, statistics.median(value - reference for value, reference in pairs))


def alternating(names: Sequence[str], rounds: int) -> Iterator[Sequence[str]]:
    """The order of each round: forwards, then backwards, so that nobody is always the last."""
    return (names[:: -1 if number % 2 else 1] for number in range(rounds))


def clocks() -> dict[str, float]:
    """What the clocks show now, in seconds: what else the machine does hardly touches the processor's."""
    return {name: clock() for name, clock in _CLOCKS.items()}


def timed(action: Callable[[], None]) -> dict[str, float]:
    """Seconds that something took, by clock."""
    began = clocks()
    action()
    return {name: now - began[name] for name, now in clocks().items()}


def environment() -> dict[str, Any]:
    """Where figures come from: without it they mean little."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()],
    }


def write(path: Path | None, about: Mapping[str, Any], figures: Sequence[Mapping[str, Any]]) -> None:
    """Write figures as JSON, one line each, if asked to."""
    if path is None:
        return
    values = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in {**about, **environment()}.items()]
    rows = ",\n    ".join(json.dumps(figure) for figure in figures)
    path.write_text("{\n  " + ",\n  ".join([*values, f'"figures": [\n    {rows}\n  ]']) + "\n}\n")
