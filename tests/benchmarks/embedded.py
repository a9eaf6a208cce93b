"""How fast the embedded broker sends and receives, beside bare SQLite loops of the same shape, in one run.

``python -m tests.benchmarks.embedded --rounds 7 --json figures.json``

The contenders take turns within every round, so that what else the machine does hits all of them alike; the figures
are medians. "session" is the public API, "unit" the provider's interface below it.
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jmsjca import BytesMessage, ConnectionFactory, Limits, Queue
from jmsjca.links import ConnectionSettings, connect
from tests.benchmarks.bare import BareStore

BODY = b"x" * 1024
QUEUE = Queue("bench")
# Messages per round: enough to time, few enough that every commit can wait for the disk.
COUNTS = {("memory", 1): 2000, ("memory", 100): 5000, ("file", 1): 300, ("file", 100): 5000}


class Contender(Protocol):
    """What can be timed."""

    def send(self, count: int, batch: int, body: bytes) -> None: ...
    def receive(self, count: int, batch: int) -> None: ...
    def close(self) -> None: ...


class SessionContender:
    """Transacted sessions of the public API; a batch is one transaction.

    Args:
        url: The broker.
        batch: How many messages a consumer takes ahead; None for the default.
    """

    def __init__(self, url: str, batch: int | None = None) -> None:
        limits = Limits() if batch is None else Limits(prefetch_messages=batch)
        self._connection = ConnectionFactory(url, limits=limits).create_connection()
        self._connection.start()
        self._session = self._connection.create_session(transacted=True)
        self._producer = self._session.create_producer(QUEUE)
        self._consumer = self._session.create_consumer(QUEUE)

    def send(self, count: int, batch: int, body: bytes) -> None:
        for _ in range(count // batch):
            for _ in range(batch):
                self._producer.send(self._session.create_bytes_message(body))
            self._session.commit()

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            for _ in range(batch):
                message = self._consumer.receive(timeout=0)
                assert message is not None
                assert len(message.body) == len(BODY)
            self._session.commit()

    def close(self) -> None:
        self._connection.close()


class UnitContender:
    """Units and consumers of the provider; a batch is one unit."""

    def __init__(self, url: str) -> None:
        self._link = connect(ConnectionSettings(url))
        self._consumer = self._link.consumer(QUEUE)

    def send(self, count: int, batch: int, body: bytes) -> None:
        for _ in range(count // batch):
            unit = self._link.unit()
            for _ in range(batch):
                unit.send(BytesMessage(body), QUEUE)
            unit.commit()

    def receive(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            deliveries = self._consumer.receive(batch, 0)
            assert len(deliveries) == batch
            assert all(len(d.message.body) == len(BODY) for d in deliveries)
            unit = self._link.unit()
            unit.take(deliveries)
            unit.commit()

    def close(self) -> None:
        self._link.close()


class Case(NamedTuple):
    """One line of the table."""

    store: str
    batch: int
    operation: str


def measure(rounds: int, folder: Path) -> dict[Case, dict[str, list[float]]]:
    """Time every contender in every case.

    Returns:
        For each case and contender the rates of the rounds, in messages per second.
    """
    rates: dict[Case, dict[str, list[float]]] = {}
    for (store, batch), count in COUNTS.items():
        with _contenders(store, batch, folder) as contenders:
            for _ in range(rounds + 1):
                for name, contender in contenders.items():
                    for operation, rate in _turn(contender, count, batch).items():
                        rates.setdefault(Case(store, batch, operation), {}).setdefault(name, []).append(rate)
    return {case: {name: r[1:] for name, r in by.items()} for case, by in rates.items()}  # the first round warms up


def _turn(contender: Contender, count: int, batch: int) -> dict[str, float]:
    gc.collect()
    began = time.perf_counter()
    contender.send(count, batch, BODY)
    sent = time.perf_counter()
    contender.receive(count, batch)
    received = time.perf_counter()
    return {"send": count / (sent - began), "receive": count / (received - sent)}


@contextmanager
def _contenders(store: str, batch: int, folder: Path) -> Iterator[dict[str, Contender]]:
    def url(name: str) -> str:
        return f"embedded://{folder}/{name}-{batch}.db" if store == "file" else f"embedded://{name}-{batch}"

    contenders: dict[str, Contender] = {
        "bare": BareStore(folder / f"bare-{batch}.db" if store == "file" else None),
        "unit": UnitContender(url("unit")),
        "session": SessionContender(url("session")),
    }
    if batch > Limits().prefetch_messages:
        contenders["session, all ahead"] = SessionContender(url("ahead"), batch)
    try:
        yield contenders
    finally:
        for contender in contenders.values():
            contender.close()


def rows(rates: dict[Case, dict[str, list[float]]]) -> list[dict[str, Any]]:
    """The medians, each beside that of bare SQLite in the same rounds."""
    return [
        {
            **case._asdict(),
            "contender": name,
            "messages_per_second": round(statistics.median(values)),
            "ratio_to_bare": round(statistics.median(values) / statistics.median(by["bare"]), 3),
        }
        for case, by in rates.items()
        for name, values in by.items()
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        table = rows(measure(options.rounds, Path(folder)))
    print(f"{'store':8}{'batch':>6}  {'operation':10}{'contender':20}{'msg/s':>10}{'of bare':>9}")
    for row in table:
        print(
            f"{row['store']:8}{row['batch']:>6}  {row['operation']:10}{row['contender']:20}"
            f"{row['messages_per_second']:>10,}{row['ratio_to_bare']:>9.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"rounds": options.rounds, "figures": table}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
