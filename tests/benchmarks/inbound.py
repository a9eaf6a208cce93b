"""What a message costs in each way to listen, beside a bare loop over the provider and beside others, in one run.

``python -m tests.benchmarks.inbound --rounds 7 --json docs/figures/inbound.json``

All have the same messages, text of 1 KiB, which wait when the clocks start; all hand the text to the same function, and
acknowledge. The clocks run from the first message to the last. The contenders take turns within every round.
"bare" receives, takes and commits as the listeners beside it do, in a loop on one thread. The others are in `peers`.
"""

import argparse
import gc
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca import Limits
from tests.benchmarks.listeners import Bare, Contender, Listener
from tests.benchmarks.measurements import Measurements, alternating, timed, write
from tests.benchmarks.peers import CeleryContender, DramatiqContender, FastStreamContender

BATCH = 100
AHEAD = Limits().prefetch_messages
# Messages per turn: enough to time, few enough that every commit can wait for the disk.
COUNTS = {("memory", 1): 3000, ("memory", BATCH): 10_000, ("file", 1): 300, ("file", BATCH): 10_000}
MODES = {1: ("serial", "cc", "sync"), BATCH: ("cc", "sync")}
PEERS = {
    "dramatiq, 8 threads": partial(DramatiqContender, 8),
    "dramatiq, 1 thread": partial(DramatiqContender, 1),
    "Celery": CeleryContender,
    "FastStream": FastStreamContender,
}


class Case(NamedTuple):
    """One block of the table."""

    store: str
    batch: int
    work: str
    clock: str


def measure(rounds: int, folder: Path) -> Measurements[Case]:
    """Time every contender in every case, in microseconds per message."""
    costs = Measurements[Case]()
    for (store, batch), count in COUNTS.items():
        with _contenders(store, batch, folder / f"{store}-{batch}") as contenders:
            for order in alternating(list(contenders), rounds + 1):
                for name in order:
                    for work, seconds in _turn(contenders[name], count).items():
                        for clock, spent in seconds.items():
                            costs.note(Case(store, batch, work, clock), name, spent / count * 1e6)
    costs.forget_first_round()
    return costs


def _turn(contender: Contender, count: int) -> Mapping[str, Mapping[str, float]]:
    """Seconds by clock, of the deliveries alone and with the sends."""
    gc.collect()
    sent = timed(partial(contender.fill, count))
    contender.tally.expect(count)
    contender.work()
    delivered = contender.tally.seconds()
    both = {clock: seconds + delivered[clock] for clock, seconds in sent.items()}
    return {"deliver": delivered, "send and deliver": both}


@contextmanager
def _contenders(store: str, batch: int, folder: Path) -> Generator[Mapping[str, Contender]]:
    folder.mkdir()
    where = f"embedded://{folder.name}-" if store == "memory" else f"embedded://{folder}/"
    makers: dict[str, Any] = {"bare": partial(Bare, ahead=max(AHEAD, batch), batch=batch)}
    if batch == 1:
        makers["bare, 1 ahead"] = partial(Bare, ahead=1, batch=1)
        far_ahead = Limits(prefetch_messages=BATCH)
        makers["cc, 100 ahead"] = partial(Listener, limits=far_ahead, **_spec("cc", batch))
    makers |= {mode: partial(Listener, **_spec(mode, batch)) for mode in MODES[batch]}
    held = {"hold_until_ack": True}
    makers |= {f"{mode}, held": partial(Listener, **_spec(mode, batch), **held) for mode in ("cc", "sync")}
    with ExitStack() as stack:
        made = {name: make(f"{where}{number}") for number, (name, make) in enumerate(makers.items())}
        made |= {name: make() for name, make in PEERS.items() if (store, batch) == ("memory", 1)}
        yield {name: stack.enter_context(closing(contender)) for name, contender in made.items()}


def _spec(mode: str, batch: int) -> dict[str, Any]:
    return {"concurrency_mode": mode} | ({} if batch == 1 else {"batch_size": batch})


def figures(costs: Measurements[Case]) -> list[dict[str, Any]]:
    """The medians, each beside that of the bare loop in the same rounds."""
    return [
        {
            **case._asdict(),
            "contender": name,
            "messages_per_second": round(1e6 / summary.median),
            "microseconds": round(summary.median, 1),
            "overhead": round(summary.difference, 1),
        }
        for case, name, summary in costs.summaries("bare")
        if (name, case.work) != ("FastStream", "deliver")  # it cannot be told from sending
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        table = figures(measure(options.rounds, Path(folder)))
    print(f"{'store':8}{'batch':>5}  {'work':18}{'clock':11}{'contender':21}{'msg/s':>9}{'µs/msg':>9}{'over bare':>11}")
    for row in table:
        print(
            f"{row['store']:8}{row['batch']:>5}  {row['work']:18}{row['clock']:11}{row['contender']:21}"
            f"{row['messages_per_second']:>9,}{row['microseconds']:>9,.1f}{row['overhead']:>+11,.1f}"
        )
    write(options.json, {"rounds": options.rounds}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
