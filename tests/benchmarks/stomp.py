"""How fast jmsjca sends and receives over STOMP, beside plain loops of stomp.py on the same ActiveMQ, in one run.

``python -m tests.benchmarks.stomp stomp://127.0.0.1:61613 --rounds 5 --json figures.json``

The URL may also stand in ``JMSJCA_ACTIVEMQ_STOMP_URL``. The contenders take turns within every round, so that what else
the machine does hits all of them alike; the figures are medians. "unit" is jmsjca, a batch being one unit; stomp.py
sends in transactions of the same size, and receives with automatic acknowledgement ("auto") or with one ACK for each
message ("individual"), both outside transactions: it does less, which is what its ratio should be read with.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from jmsjca import BytesMessage, Queue
from jmsjca.links import ConnectionSettings, connect

os.environ.setdefault("STOMP_SKIP_HOSTNAME_SCAN", "1")
import stomp

BODY = b"x" * 1024
COUNTS = {1: 200, 100: 3000}
PATIENCE = 120


class Contender(Protocol):
    """What can be timed."""

    def send(self, count: int, batch: int) -> None: ...
    def receive(self, count: int, batch: int) -> None: ...
    def close(self) -> None: ...


class UnitContender:
    """Units and a consumer of jmsjca."""

    def __init__(self, url: str, batch: int) -> None:
        self._queue = Queue(f"bench.{uuid.uuid4().hex}")
        self._link = connect(ConnectionSettings(url))
        self._window = max(batch, 10)

    def send(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            unit = self._link.unit()
            for _ in range(batch):
                unit.send(BytesMessage(BODY), self._queue)
            unit.commit()

    def receive(self, count: int, batch: int) -> None:
        consumer = self._link.consumer(self._queue, window=self._window)
        for _ in range(count // batch):
            deliveries: list[Any] = []
            while len(deliveries) < batch:
                deliveries.extend(consumer.receive(batch - len(deliveries), PATIENCE))
            assert all(len(d.message.body) == len(BODY) for d in deliveries)
            unit = self._link.unit()
            unit.take(deliveries)
            unit.commit()

    def close(self) -> None:
        self._link.close()


class PlainContender(stomp.ConnectionListener):
    """stomp.py as its documentation shows it."""

    def __init__(self, url: str, batch: int, ack: str) -> None:
        parts = urlsplit(url)
        self._destination = f"/queue/bench.{uuid.uuid4().hex}"
        self._ack = ack
        self._arrived = threading.Semaphore(0)
        self._receipts = threading.Semaphore(0)
        self._link = stomp.Connection12([(parts.hostname, parts.port)], auto_decode=False)
        self._link.set_listener("bench", self)
        self._link.connect(parts.username, parts.password, wait=True)
        self._window = max(batch, 10)

    def on_message(self, frame: Any) -> None:
        if self._ack == "individual":
            self._link.ack(frame.headers["ack"])
        assert len(frame.body) == len(BODY)
        self._arrived.release()

    def on_receipt(self, frame: Any) -> None:
        self._receipts.release()

    def send(self, count: int, batch: int) -> None:
        for _ in range(count // batch):
            name = self._link.begin()
            for _ in range(batch):
                self._link.send(self._destination, BODY, transaction=name, persistent="true")
            self._link.commit(name, receipt="committed")
            assert self._receipts.acquire(timeout=PATIENCE)

    def receive(self, count: int, batch: int) -> None:
        mode = "client-individual" if self._ack == "individual" else self._ack
        self._link.subscribe(self._destination, "1", mode, {"activemq.prefetchSize": str(self._window)})
        for _ in range(count):
            assert self._arrived.acquire(timeout=PATIENCE)

    def close(self) -> None:
        self._link.disconnect()


class Case(NamedTuple):
    """One line of the table."""

    batch: int
    operation: str


def measure(url: str, rounds: int) -> dict[Case, dict[str, list[float]]]:
    """Time every contender in every case.

    Returns:
        For each case and contender the rates of the rounds, in messages per second.
    """
    rates: dict[Case, dict[str, list[float]]] = {}
    for batch, count in COUNTS.items():
        for _ in range(rounds + 1):
            for name, make in _contenders(url, batch).items():
                contender = make()
                try:
                    for operation, rate in _turn(contender, count, batch).items():
                        rates.setdefault(Case(batch, operation), {}).setdefault(name, []).append(rate)
                finally:
                    contender.close()
    return {case: {name: r[1:] for name, r in by.items()} for case, by in rates.items()}  # the first round warms up


def _contenders(url: str, batch: int) -> dict[str, Any]:
    return {
        "unit": lambda: UnitContender(url, batch),
        "stomp.py auto": lambda: PlainContender(url, batch, "auto"),
        "stomp.py individual": lambda: PlainContender(url, batch, "individual"),
    }


def _turn(contender: Contender, count: int, batch: int) -> dict[str, float]:
    """Send everything, then subscribe and receive it."""
    gc.collect()
    began = time.perf_counter()
    contender.send(count, batch)
    sent = time.perf_counter()
    contender.receive(count, batch)
    received = time.perf_counter()
    return {"send": count / (sent - began), "receive": count / (received - sent)}


def rows(rates: dict[Case, dict[str, list[float]]]) -> list[dict[str, Any]]:
    """The medians, each beside that of stomp.py's automatic acknowledgement in the same rounds."""
    return [
        {
            **case._asdict(),
            "contender": name,
            "messages_per_second": round(statistics.median(values)),
            "ratio_to_stomp_py": round(statistics.median(values) / statistics.median(by["stomp.py auto"]), 3),
        }
        for case, by in rates.items()
        for name, values in by.items()
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default=os.environ.get("JMSJCA_ACTIVEMQ_STOMP_URL"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if not options.url:
        parser.error("name ActiveMQ's URL, or set JMSJCA_ACTIVEMQ_STOMP_URL")
    table = rows(measure(options.url, options.rounds))
    print(f"{'batch':>6}  {'operation':10}{'contender':22}{'msg/s':>10}{'of stomp.py':>13}")
    for row in table:
        print(
            f"{row['batch']:>6}  {row['operation']:10}{row['contender']:22}"
            f"{row['messages_per_second']:>10,}{row['ratio_to_stomp_py']:>13.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"rounds": options.rounds, "figures": table}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
