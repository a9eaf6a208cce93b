"""Rounds of turns: every contender of a case in turn, on a queue of its own, and what each took."""

import argparse
import gc
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.field.ours import empty, fill
from tests.benchmarks.field.turns import AHEAD, Contender, Turn
from tests.benchmarks.measurements import Measurements, alternating, write

__all__ = ["Case", "Rounds", "options_of", "report"]

_WAITING = 10  # what waits for the disk gets so many times fewer messages


class Case(NamedTuple):
    """Some lines of the table.

    Args:
        operation: Receive or send.
        mode: When the broker hears of it, and answers.
        waits: True if every message waits for the broker's disk, which makes it slow.
    """

    operation: str
    mode: str
    waits: bool = False


class Rounds:
    """What was measured on a broker.

    Args:
        url: The broker.
        count: How many messages a turn has.
        ahead: How many are taken ahead.

    Attributes:
        left_out: Why, by the name of who could not run.
    """

    def __init__(self, url: str, count: int, ahead: int = AHEAD) -> None:
        self._url = url
        self._count = count
        self._ahead = ahead
        self._costs = Measurements[tuple[Case, str]]()
        self.left_out: dict[str, str] = {}

    def measure(self, case: Case, contenders: Mapping[str, Contender], rounds: int) -> None:
        """Let the contenders of a case take turns; the first round warms up."""
        for order in alternating(list(contenders), rounds + 1):
            for name in order:
                if name not in self.left_out:
                    self._take_turn(case, name, contenders[name])

    def figures(self, reference: str) -> list[dict[str, Any]]:
        """The medians without the first round, each beside the reference in the same rounds."""
        self._costs.forget_first_round()
        return [
            {
                "operation": case.operation,
                "mode": case.mode,
                "contender": name,
                "clock": clock,
                "messages_per_second": round(1e6 / summary.median),
                "microseconds": round(summary.median, 1),
                "ratio": round(summary.ratio, 2),
            }
            for (case, clock), name, summary in self._costs.summaries(reference)
        ]

    def _take_turn(self, case: Case, name: str, contender: Contender) -> None:
        count = self._count // _WAITING if case.waits else self._count
        turn = Turn(self._url, f"bench.{uuid.uuid4().hex}", count, self._ahead)
        if case.operation == "receive":
            fill(turn)
        gc.collect()
        try:
            seconds = contender(turn)
        except Exception as problem:  # noqa: BLE001  # whatever keeps it from running is told in the table
            self.left_out[name] = f"{type(problem).__name__}: {problem}"
            print(f"{name} is left out: {self.left_out[name]}", file=sys.stderr)
            return
        finally:
            empty(turn)
        for clock, value in seconds.items():
            self._costs.note((case, clock), name, value / turn.count * 1e6)


def options_of(description: str | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=3000, help="messages per turn; a multiple of 1,000")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


def report(rounds: Rounds, reference: str, options: argparse.Namespace) -> None:
    """Print a table, and write JSON if asked to."""
    table = rounds.figures(reference)
    for row in table:
        line = "{:8}{:27}{:22}{:11}{:>8,} msg/s{:>10,.1f} us{:>7.2f} of " + reference
        print(line.format(*row.values()))
    write(options.json, {"rounds": options.rounds, "count": options.count, "left_out": rounds.left_out}, table)
