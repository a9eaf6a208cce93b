"""What a message costs in a broker with 10, 1,000 or 10,000 queues: it should not depend on their number.

``python -m tests.benchmarks.many_queues --rounds 9 --json docs/figures/many_queues.json``

There is one file per number of queues. Each queue has a consumer, and a message that always waits. The files take
turns: messages pass through one busy queue, then each through the next queue; then consumers come and go.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca import BytesMessage, Queue, spi
from jmsjca.reconnection import ConnectionSettings, connect
from tests.benchmarks.measurements import Measurements, alternating, timed, write

COUNTS = (10, 1_000, 10_000)
MESSAGE = BytesMessage(b"x" * 200)


class Work(NamedTuple):
    """One part of a turn: so many messages, or consumers, in units of a batch."""

    operation: str
    where: str
    batch: int
    times: int


class Case(NamedTuple):
    """What is compared between the files: the work, and by which clock."""

    work: Work
    clock: str


TURN = (
    Work("send", "one busy queue", 1, 100),
    Work("receive", "one busy queue", 1, 100),
    Work("send", "one busy queue", 100, 5_000),
    Work("receive", "one busy queue", 100, 5_000),
    Work("send", "all in turn", 1, 100),
    Work("receive", "all in turn", 1, 100),
    Work("send", "all in turn", 100, 5_000),
    Work("receive", "all in turn", 100, 5_000),
    Work("open and close a consumer", "all in turn", 1, 50),
)


class Queues:
    """A broker's file with many queues.

    Args:
        path: The file.
        count: How many queues.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._link = connect(ConnectionSettings(f"embedded://{path}"))
        queues = [Queue(f"bench.{number}") for number in range(count)]
        self._send_to(queues)
        self._consumers = [self._link.consumer(queue) for queue in queues]
        self._busy = queues[0]
        # Each goes round for itself, so that what was sent to a queue is what is received from there.
        self._targets = itertools.cycle(queues)
        self._sources = itertools.cycle(self._consumers)
        self._visited = itertools.cycle(queues)

    def do(self, work: Work) -> None:
        for _ in range(work.times // work.batch):
            if work.operation == "send":
                self._send_to(self._next_targets(work))
            elif work.operation == "receive":
                self._settle(self._received(work), work.batch)
            else:
                self._link.consumer(next(self._visited)).close()

    def close(self) -> None:
        self._link.close()

    def _next_targets(self, work: Work) -> Iterator[Queue]:
        of = itertools.repeat(self._busy) if work.where == "one busy queue" else self._targets
        return itertools.islice(of, work.batch)

    def _send_to(self, queues: Iterable[Queue]) -> None:
        unit = self._link.unit()
        for queue in queues:
            unit.send(MESSAGE, queue)
        unit.commit()

    def _received(self, work: Work) -> Sequence[spi.Delivery]:
        if work.where == "one busy queue":
            return self._consumers[0].receive(work.batch, 0)
        return [d for consumer in itertools.islice(self._sources, work.batch) for d in consumer.receive(1, 0)]

    def _settle(self, deliveries: Sequence[spi.Delivery], expected: int) -> None:
        assert len(deliveries) == expected
        unit = self._link.unit()
        unit.take(deliveries)
        unit.commit()


def measure(counts: Sequence[int], rounds: int, folder: Path) -> Measurements[Case]:
    """Let all files take turns, in microseconds per message."""
    files = {str(count): Queues(folder / f"{count}.db", count) for count in counts}
    costs = Measurements[Case]()
    for order in alternating(list(files), rounds + 1):
        for work in TURN:
            for name in order:
                for clock, seconds in timed(partial(files[name].do, work)).items():
                    costs.note(Case(work, clock), name, seconds / work.times * 1e6)
    for file in files.values():
        file.close()
    costs.forget_first_round()
    return costs


def figures(costs: Measurements[Case], reference: str) -> list[dict[str, Any]]:
    """The medians, each beside that of the fewest queues."""
    return [
        {
            "operation": case.work.operation,
            "where": case.work.where,
            "batch": case.work.batch,
            "clock": case.clock,
            "queues": int(count),
            "microseconds": round(summary.median, 1),
            "ratio": round(summary.ratio, 3),
        }
        for case, count, summary in costs.summaries(reference)
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--queues", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        table = figures(measure(options.queues, options.rounds, Path(folder)), str(options.queues[0]))
    print(f"{'operation':27}{'where':16}{'batch':>6}  {'clock':10}{'queues':>9}{'µs':>10}{'ratio':>8}")
    for row in table:
        print(
            f"{row['operation']:27}{row['where']:16}{row['batch']:>6}  {row['clock']:10}{row['queues']:>9,}"
            f"{row['microseconds']:>10,.1f}{row['ratio']:>8.2f}"
        )
    write(options.json, {"rounds": options.rounds}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
