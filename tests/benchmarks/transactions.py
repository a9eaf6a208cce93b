"""What a message costs with a database beside the broker, in each way to commit both, in one run.

``python -m tests.benchmarks.transactions --rounds 5 --json docs/figures/transactions.json``

Each listener writes a row and sends a message for each of the messages that wait. "local" commits the row by itself,
before the receipt; "required" joins the row to the unit; "inbox" recognises messages as well; "outbox" writes what it
sends into the database, and a relay sends it. The broker and the database are files.
"""

import argparse
import gc
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from tests.benchmarks.measurements import Measurements, alternating, timed, write
from tests.unit.transactions.statements import WAYS, Work

COUNT = 300


def measure(rounds, folder):
    """Time each way by turns; return the costs in microseconds per message, and the statements per message."""
    costs, statements = Measurements(), {}
    with ExitStack() as stack:
        works = {
            way: stack.enter_context(
                closing(Work(way, f"embedded://{folder}/{way}.db", f"sqlite:///{folder}/{way}.sql"))
            )
            for way in WAYS
        }
        for order in alternating(list(WAYS), rounds + 1):
            for way in order:
                works[way].fill(COUNT, "x" * 1024)
                gc.collect()
                before = works[way].statements
                with works[way].ready(COUNT) as act:
                    seconds = timed(act)
                statements[way] = (works[way].statements - before) / COUNT
                for clock, spent in seconds.items():
                    costs.note(clock, way, spent / COUNT * 1e6)
    costs.forget_first_round()
    return costs, statements


def main():
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        costs, statements = measure(options.rounds, Path(folder))
    rows = [
        {
            "clock": clock,
            "way": way,
            "microseconds": round(summary.median, 1),
            "ratio": round(summary.ratio, 2),
            "SQL statements": round(statements[way], 2),
        }
        for clock, way, summary in costs.summaries("local")
    ]
    print(f"{'clock':11}{'way':10}{'µs/msg':>9}{'over local':>12}{'SQL/msg':>9}")
    for row in rows:
        cost = f"{row['microseconds']:>9,.1f}{row['ratio']:>11}x"
        print(f"{row['clock']:11}{row['way']:10}{cost}{row['SQL statements']:>9}")
    write(options.json, {"rounds": options.rounds, "messages": COUNT}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
