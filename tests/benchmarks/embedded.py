"""How fast the embedded broker sends and receives, beside bare SQLite loops of the same shape, in one run.

``python -m tests.benchmarks.embedded --rounds 7 --json figures.json``

The contenders take turns within every round, so that what else the machine does hits all of them alike. "session" is
the public API, "unit" the provider's interface below it; kombu and persist-queue are what others use (see `queues`).
"""

import argparse
import gc
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.bare import BareStore
from tests.benchmarks.contenders import Contender, SessionContender, UnitContender
from tests.benchmarks.measurements import Measurements, timed, write
from tests.benchmarks.pair import Pair
from tests.benchmarks.queues import KombuContender, PersistQueueContender

# Messages per turn: enough to time, few enough that every commit can wait for the disk.
COUNTS = {
    ("memory", 1): 2000,
    ("memory", 100): 10_000,
    ("file", 1): 300,
    ("file", 100): 10_000,
    ("two processes", 1): 300,
    ("two processes", 100): 10_000,
}


class Case(NamedTuple):
    """One block of the table."""

    store: str
    batch: int
    operation: str
    clock: str


def measure(rounds: int, folder: Path) -> Measurements[Case]:
    """Time every contender in every case, in messages per second of each clock."""
    rates = Measurements[Case]()
    for (store, batch), count in COUNTS.items():
        with _contenders(store, batch, folder / f"{store}-{batch}".replace(" ", "-")) as contenders:
            for _ in range(rounds + 1):
                for name, contender in contenders.items():
                    for operation in (contender.send, contender.receive):
                        gc.collect()
                        for clock, seconds in timed(partial(operation, count, batch)).items():
                            rates.note(Case(store, batch, operation.__name__, clock), name, count / seconds)
    rates.forget_first_round()
    return rates


@contextmanager
def _contenders(store: str, batch: int, folder: Path) -> Generator[dict[str, Contender]]:
    folder.mkdir()
    contenders = _in_memory(batch) if store == "memory" else _in_files(batch, folder, pairs=store == "two processes")
    try:
        yield contenders
    finally:
        for contender in contenders.values():
            contender.close()


def _in_memory(batch: int) -> dict[str, Contender]:
    contenders: dict[str, Contender] = {
        "bare": BareStore(None),
        "unit": UnitContender(f"embedded://unit-{batch}"),
        "session": SessionContender(f"embedded://session-{batch}"),
    }
    if batch == 1:
        return contenders | {"kombu": KombuContender()}
    return contenders | {"session, all ahead": SessionContender(f"embedded://ahead-{batch}", ahead=batch)}


def _in_files(batch: int, folder: Path, *, pairs: bool) -> dict[str, Contender]:
    makers: dict[str, partial[Contender]] = {
        "bare": partial(BareStore, folder / "bare.db"),
        "bare, lazy claims": partial(BareStore, folder / "lazy.db", lazily=True),
        "unit": partial(UnitContender, f"embedded://{folder}/unit.db"),
        "session": partial(SessionContender, f"embedded://{folder}/session.db"),
    }
    if batch > 1:
        makers["session, all ahead"] = partial(SessionContender, f"embedded://{folder}/ahead.db", ahead=batch)
    elif not pairs:
        makers["persist-queue"] = partial(PersistQueueContender, folder / "persist-queue")
    return {name: Pair(make) if pairs else make() for name, make in makers.items()}


def figures(rates: Measurements[Case]) -> list[dict[str, Any]]:
    """The medians, each beside that of bare SQLite."""
    return [
        {
            **case._asdict(),
            "contender": name,
            "messages_per_second": round(summary.median),
            "ratio_to_bare": round(summary.ratio, 3),
        }
        for case, name, summary in rates.summaries("bare")
        if (case.store, case.clock) != ("two processes", "processor")  # it is the other processes that work
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        table = figures(measure(options.rounds, Path(folder)))
    print(f"{'store':15}{'batch':>6}  {'operation':10}{'clock':11}{'contender':20}{'msg/s':>10}{'of bare':>9}")
    for row in table:
        print(
            f"{row['store']:15}{row['batch']:>6}  {row['operation']:10}{row['clock']:11}{row['contender']:20}"
            f"{row['messages_per_second']:>10,}{row['ratio_to_bare']:>9.2f}"
        )
    write(options.json, {"rounds": options.rounds}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
