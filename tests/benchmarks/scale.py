"""What a message costs while 10 thousand to 5 million others wait: it should not depend on that.

``python -m tests.benchmarks.scale --rounds 9 --json docs/figures/scale.json``

There is one file per backlog. They take turns: each gets as many messages as are then taken out of it, by consumers
without a selector, with one that half of the messages match, and with one that 1 in 100 matches. The largest file
needs about 3 GB in the folder for temporary files (``TMPDIR``).
"""

import argparse
import gc
import itertools
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca import BytesMessage, Queue
from jmsjca.reconnection import ConnectionSettings, connect
from tests.benchmarks.measurements import Measurements, alternating, timed, write

BACKLOGS = (10_000, 100_000, 1_000_000, 5_000_000)
QUEUE = Queue("bench")
SELECTORS = {"none": None, "half": "side = 1", "1 in 100": "part = 0"}
# They are sent again and again. No message matches both selectors, or their consumers would get in each other's way.
MESSAGES = [BytesMessage(b"x" * 200, properties={"side": n % 2, "part": n % 100}) for n in range(100)]
PER_FILLING = 10_000


class Work(NamedTuple):
    """One part of a turn: so many messages, in units of a batch."""

    operation: str
    selector: str
    batch: int
    messages: int


class Case(NamedTuple):
    """What is compared between the files: the work, and by which clock."""

    work: Work
    clock: str


# Sums to nothing, so that the backlog stays; no consumer runs dry while the smallest backlog lasts.
TURN = (
    Work("send", "none", 1, 100),
    Work("send", "none", 100, 12_000),
    Work("receive", "1 in 100", 1, 20),
    Work("receive", "1 in 100", 100, 100),
    Work("receive", "half", 1, 80),
    Work("receive", "half", 100, 1_900),
    Work("receive", "none", 1, 100),
    Work("receive", "none", 100, 9_900),
)


class Backlog:
    """A broker's file in which messages wait.

    Args:
        path: The file.
        size: How many messages.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._link = connect(ConnectionSettings(f"embedded://{path}"))
        self._messages = itertools.cycle(MESSAGES)
        self._send(size, min(size, PER_FILLING))
        self._consumers = {name: self._link.consumer(QUEUE, selector=text) for name, text in SELECTORS.items()}

    def do(self, work: Work) -> None:
        if work.operation == "send":
            self._send(work.messages, work.batch)
        else:
            self._receive(work)

    def close(self) -> None:
        self._link.close()

    def _send(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            unit = self._link.unit()
            for message in itertools.islice(self._messages, batch):
                unit.send(message, QUEUE)
            unit.commit()

    def _receive(self, work: Work) -> None:
        consumer = self._consumers[work.selector]
        for _ in range(work.messages // work.batch):
            deliveries = consumer.receive(work.batch, 0)
            assert len(deliveries) == work.batch
            assert all(d.message.body for d in deliveries)
            unit = self._link.unit()
            unit.take(deliveries)
            unit.commit()


def measure(backlogs: Sequence[int], rounds: int, folder: Path) -> Measurements[Case]:
    """Let all files take turns, in microseconds per message."""
    files = {str(size): Backlog(folder / f"{size}.db", size) for size in backlogs}
    costs = Measurements[Case]()
    for order in alternating(list(files), rounds + 1):
        for work in TURN:
            for size in order:
                gc.collect()
                for clock, seconds in timed(partial(files[size].do, work)).items():
                    costs.note(Case(work, clock), size, seconds / work.messages * 1e6)
    for file in files.values():
        file.close()
    costs.forget_first_round()
    return costs


def figures(costs: Measurements[Case], reference: str) -> list[dict[str, Any]]:
    """The medians, each beside that of the smallest backlog."""
    return [
        {
            "operation": case.work.operation,
            "selector": case.work.selector,
            "batch": case.work.batch,
            "clock": case.clock,
            "backlog": int(size),
            "microseconds": round(summary.median, 1),
            "ratio": round(summary.ratio, 3),
        }
        for case, size, summary in costs.summaries(reference)
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--backlogs", type=int, nargs="+", default=BACKLOGS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    backlogs = sorted(options.backlogs)
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        table = figures(measure(backlogs, options.rounds, Path(folder)), str(backlogs[0]))
    print(f"{'operation':10}{'selector':10}{'batch':>6}  {'clock':10}{'backlog':>12}{'µs/message':>12}{'ratio':>8}")
    for row in table:
        print(
            f"{row['operation']:10}{row['selector']:10}{row['batch']:>6}  {row['clock']:10}{row['backlog']:>12,}"
            f"{row['microseconds']:>12,.1f}{row['ratio']:>8.2f}"
        )
    write(options.json, {"rounds": options.rounds}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
