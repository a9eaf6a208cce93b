"""Walks the state machine: ``python -m tests.model.run --steps 1000000``.

Most steps are taken in memory; those in a file have two processes, which crash.
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import FileMachine, Machine, MemoryMachine

__all__ = ["STEPS", "Report", "walk"]

STEPS = 1_000_000
IN_FILE = 0.2  # of the steps
EXAMPLES, LENGTH = 50, 100  # of one round: a new broker for each example, so many steps with it


@dataclass
class Report:
    """What was done; it raised if the broker and the model did not agree."""

    asked: int
    seed: int
    visited: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        words = ", ".join(f"{word} {count}" for word, count in sorted(self.done.items()))
        places = " and ".join(f"{count} in {place}" for place, count in self.visited.items())
        return (
            f"model: {self.visited.total()} steps visited of {self.asked} asked, {places} "
            f"({self.seconds:.0f} s of one core, seed {self.seed})\n{words}"
        )


def walk(steps: int, start: int, *, shrink: bool = True) -> Report:
    """Walk so many steps at least.

    Args:
        steps: How many.
        start: What the dice are made from.
        shrink: True to look for the shortest way to a difference.
    """
    report = Report(steps, start)
    began = time.process_time()
    in_file = round(steps * IN_FILE)
    for machine, place, share in ((MemoryMachine, "memory", steps - in_file), (FileMachine, "a file", in_file)):
        machine.steps, machine.done = 0, Counter()
        while machine.steps < share:
            _round(machine, start + machine.steps, shrink=shrink)
        report.visited[place] = machine.steps
        report.done += machine.done
    report.seconds = time.process_time() - began
    return report


def _round(machine: type[Machine], number: int, *, shrink: bool) -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=LENGTH,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(machine), settings=chosen)


def main() -> int:
    """Print one report; a difference is an error that shows the way to it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--no-shrink", action="store_true", help="show the first way to a difference, not the shortest")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    print(walk(options.steps, options.seed, shrink=not options.no_shrink))
    return 0


if __name__ == "__main__":
    sys.exit(main())
