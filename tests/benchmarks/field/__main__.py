"""How fast clients of AMQP send and receive over one broker, in one run: ours, Java's, proton's in C++ and in Python.

``PYTHONPATH=tests/support python -m tests.benchmarks.field amqp://127.0.0.1:5672 --rounds 5 --json figures.json``

All send and receive durable messages of 1 KiB to and from queues of their own, take 100 ahead, and look at every
body. They take turns within every round, so that what else the machine does hits all of them alike; a ratio is the
median of the quotients with Qpid JMS in the same round. Processor time is that of the client's process. Java's
process lives through all rounds and warms up before the first, which counts for nobody. What cannot run is left out,
and why is said.

- Qpid JMS: a session of Java's, one thread. It does not wait until the broker has noted an acknowledgement;
  "confirmed in the end" it sends with a `CompletionListener`.
- Spring's container: `DefaultMessageListenerContainer` with one consumer, which it keeps, on Qpid JMS.
- proton C++, proton handler: their `messaging_handler`, no transactions. proton blocking: `BlockingConnection`.
- session, listener: our public API. "dups ok" waits for the broker as little as Qpid JMS, "auto" waits until it has
  noted each acknowledgement. unit: the interface of our provider, below it.
"""

import argparse
import gc
import sys
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.benchmarks.field.cases import REFERENCE, Case, cases
from tests.benchmarks.field.ours import fill
from tests.benchmarks.field.programs import Program, cpp_command, java_command
from tests.benchmarks.field.turns import BATCH, Contender, Turn
from tests.benchmarks.measurements import Measurements, alternating, write

WAITING = 10  # what waits for the disk gets so many times fewer messages


class Field:
    """The broker, and what was measured on it.

    Args:
        url: The broker.
        count: How many messages a turn has.
    """

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._count = count
        self.costs = Measurements[tuple[Case, str]]()
        self.left_out: dict[str, str] = {}

    def measure(self, case: Case, contenders: Mapping[str, Contender], rounds: int) -> None:
        """Let the contenders of a case take turns; the first round warms up."""
        for order in alternating(list(contenders), rounds + 1):
            for name in order:
                if name not in self.left_out:
                    self._turn(case, name, contenders[name])

    def _turn(self, case: Case, name: str, contender: Contender) -> None:
        turn = Turn(self._url, f"bench.{uuid.uuid4().hex}", self._count // WAITING if case.waits else self._count)
        if case.operation == "receive":
            fill(turn)
        gc.collect()
        try:
            seconds = contender(turn)
        except Exception as problem:  # noqa: BLE001  # whatever keeps it from running is told in the table
            self.left_out[name] = f"{type(problem).__name__}: {problem}"
            print(f"{name} is left out: {self.left_out[name]}", file=sys.stderr)
            return
        for clock, value in seconds.items():
            self.costs.note((case, clock), name, value / turn.count * 1e6)


def figures(field: Field) -> list[dict[str, Any]]:
    """Each beside Qpid JMS in the same rounds."""
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
        for (case, clock), name, summary in field.costs.summaries(REFERENCE)
    ]


def warm_up(java: Program, turn: Turn) -> None:
    """Let Java's compiler see its loops."""
    for loop in ("receive", "listen"):
        java.does("send", BATCH)(turn)
        java.does(loop, BATCH)(turn)


def measure(url: str, rounds: int, count: int) -> Field:
    """Measure everything."""
    field = Field(url, count)
    with closing(Program(java_command)) as java, closing(Program(cpp_command)) as cpp:
        warm_up(java, Turn(url, f"bench.{uuid.uuid4().hex}", count))
        for case, contenders in cases(java, cpp).items():
            field.measure(case, contenders, rounds)
    field.costs.forget_first_round()
    return field


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=3000, help="messages per turn; a multiple of 1,000")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    field = measure(options.url, options.rounds, options.count)
    table = figures(field)
    for row in table:
        print("{:8}{:27}{:20}{:11}{:>8,} msg/s{:>10,.1f} us{:>7.2f} of Qpid JMS".format(*row.values()))
    write(options.json, {"rounds": options.rounds, "count": options.count, "left_out": field.left_out}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
