"""How fast jmsjca sends and receives over AMQP, beside proton's own handlers on the same Artemis, in one run.

``python -m tests.benchmarks.amqp amqp://127.0.0.1:5672 --rounds 5 --json figures.json``

The URL may also stand in ``JMSJCA_ARTEMIS_AMQP_URL``. All send the same durable message of 1 KiB, with the same
headers, to a queue of their own, and receive and decode as many, 100 ahead. The contenders take turns within every
round, so that what else the machine does hits all of them alike; the figures are medians, CPU is that of this process.
What each does:

- proton handler: `MessagingHandler` in a `Container`. Sends as credit allows and waits for all answers at the end;
  accepts each message when it comes. No transactions.
- unit, atomic: one transaction of the broker for each 100 messages.
- unit, plain: the same without transactions; a batch of sends waits for its answers, acknowledgements wait for none.
- session, transacted: the public API, message by message, a commit for each 100.
- session, auto: the public API, message by message: each send waits for its answer, each receipt is acknowledged.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from proton import Message, byte, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption

from jmsjca import BytesMessage, ConnectionFactory, Limits, Queue
from jmsjca.links import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare

BODY = b"x" * 1024
BATCH = 100
PATIENCE = 120
BASE = "proton handler"


class Figures(NamedTuple):
    """One measurement."""

    rate: float  # messages per second
    cpu: float  # microseconds of this process per message


class Stopwatch:
    """Wall and CPU time from its making."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self, count: int) -> Figures:
        return Figures(
            count / (time.perf_counter() - self._wall), (time.process_time() - self._cpu) / count * 1_000_000
        )


class _InQueue(LinkOption):
    def apply(self, link: Any) -> None:
        (link.target if link.is_sender else link.source).capabilities.put_object(symbol("queue"))


class Handler(MessagingHandler):
    """Proton as its documentation shows it.

    Args:
        url: The broker.
        queue: The queue's name.
        count: How many messages.
        ahead: How many are taken ahead.
    """

    def __init__(self, url: str, queue: str, count: int, ahead: int = BATCH) -> None:
        super().__init__(prefetch=ahead)
        self._url, self._queue, self._count = url, queue, count
        self._done = self._sent = 0
        self._link: Any = None
        self._watch: Any = None
        self.figures: Any = None

    def run(self) -> Figures:
        Container(self).run()
        return self.figures  # type: ignore[no-any-return]

    def on_start(self, event: Any) -> None:
        event.container.connect(self._url, allowed_mechs="ANONYMOUS", reconnect=False)

    def count(self, event: Any) -> None:
        self._done += 1
        if self._done == self._count:
            self.figures = self._watch.read(self._count)
            event.connection.close()


class HandlerSends(Handler):
    def on_connection_opened(self, event: Any) -> None:
        self._watch = Stopwatch()
        event.container.create_sender(event.connection, self._queue, options=_InQueue())

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self._sent < self._count:
            event.sender.send(self._message())
            self._sent += 1

    def on_accepted(self, event: Any) -> None:
        self.count(event)

    def _message(self) -> Message:
        annotations = {symbol("x-opt-jms-dest"): byte(0), symbol("x-opt-jms-msg-type"): byte(3)}
        return Message(
            body=BODY,
            inferred=True,
            durable=True,
            id=f"ID:{self._sent}-{self._queue}",
            address=self._queue,
            creation_time=time.time(),
            content_type=symbol("application/octet-stream"),
            annotations=annotations,
        )


class HandlerReceives(Handler):
    def on_connection_opened(self, event: Any) -> None:
        self._watch = Stopwatch()
        event.container.create_receiver(event.connection, self._queue, options=_InQueue())

    def on_message(self, event: Any) -> None:
        assert len(event.message.body) == len(BODY)
        self.count(event)


def proton_handler(url: str, count: int) -> dict[str, Figures]:
    queue = f"bench.{uuid.uuid4().hex}"
    return {
        "send": HandlerSends(url, queue, count).run(),
        "receive": HandlerReceives(url, queue, count).run(),
    }


def units(url: str, count: int, *, atomic: bool) -> dict[str, Figures]:
    """Units and a consumer of jmsjca."""
    queue, link = Queue(f"bench.{uuid.uuid4().hex}"), connect(ConnectionSettings(url))
    watch = Stopwatch()
    for _ in range(count // BATCH):
        unit = link.unit(atomic=atomic)
        for _ in range(BATCH):
            unit.send(prepare(BytesMessage(BODY), queue), queue)
        unit.commit()
    sent = watch.read(count)
    watch = Stopwatch()
    consumer, received = link.consumer(queue, window=BATCH), 0
    while received < count:
        deliveries = consumer.receive(BATCH, PATIENCE)
        assert all(len(d.message.body) == len(BODY) for d in deliveries)
        unit = link.unit(atomic=atomic)
        unit.take(deliveries)
        unit.commit(confirmed=atomic)
        received += len(deliveries)
    figures = {"send": sent, "receive": watch.read(count)}
    link.close()
    return figures


def sessions(url: str, count: int, *, transacted: bool) -> dict[str, Figures]:
    """The public API of jmsjca."""
    queue = Queue(f"bench.{uuid.uuid4().hex}")
    with ConnectionFactory(url, limits=Limits(prefetch_messages=BATCH)).create_connection() as connection:
        connection.start()
        session = connection.create_session(transacted=transacted)
        watch, producer = Stopwatch(), session.create_producer(queue)
        for number in range(count):
            producer.send(session.create_bytes_message(BODY))
            if transacted and number % BATCH == BATCH - 1:
                session.commit()
        sent = watch.read(count)
        watch, consumer = Stopwatch(), session.create_consumer(queue)
        for number in range(count):
            message = consumer.receive(timeout=PATIENCE)
            assert message is not None
            assert len(message.body) == len(BODY)
            if transacted and number % BATCH == BATCH - 1:
                session.commit()
        return {"send": sent, "receive": watch.read(count)}


CONTENDERS: dict[str, Any] = {
    BASE: proton_handler,
    "unit, atomic": lambda url, count: units(url, count, atomic=True),
    "unit, plain": lambda url, count: units(url, count, atomic=False),
    "session, transacted": lambda url, count: sessions(url, count, transacted=True),
    "session, auto": lambda url, count: sessions(url, count, transacted=False),
}


def measure(url: str, rounds: int, count: int) -> dict[tuple[str, str], list[Figures]]:
    """Let the contenders take turns; the first round warms up."""
    figures: dict[tuple[str, str], list[Figures]] = {}
    for number in range(rounds + 1):
        for name, contender in CONTENDERS.items():
            gc.collect()
            for operation, measured in contender(url, count).items():
                if number:
                    figures.setdefault((operation, name), []).append(measured)
    return figures


def rows(figures: dict[tuple[str, str], list[Figures]]) -> list[dict[str, Any]]:
    """The medians, each beside that of proton's handler in the same rounds."""
    medians = {key: Figures(*map(statistics.median, zip(*v, strict=True))) for key, v in figures.items()}
    return [
        {
            "operation": operation,
            "contender": name,
            "messages_per_second": round(rate),
            "cpu_microseconds_per_message": round(cpu, 1),
            "rate_ratio_to_proton": round(rate / medians[operation, BASE].rate, 2),
            "cpu_ratio_to_proton": round(cpu / medians[operation, BASE].cpu, 2),
        }
        for (operation, name), (rate, cpu) in sorted(medians.items(), key=lambda item: item[0][0])
    ]


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default=os.environ.get("JMSJCA_ARTEMIS_AMQP_URL"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000, help="messages per turn, a multiple of 100")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if not options.url:
        parser.error("name Artemis' URL, or set JMSJCA_ARTEMIS_AMQP_URL")
    table = rows(measure(options.url, options.rounds, options.count))
    print(f"{'operation':11}{'contender':22}{'msg/s':>9}{'of proton':>11}{'CPU us/msg':>12}{'of proton':>11}")
    for operation, name, rate, cpu, rate_ratio, cpu_ratio in (row.values() for row in table):
        print(f"{operation:11}{name:22}{rate:>9,}{rate_ratio:>11.2f}{cpu:>12.1f}{cpu_ratio:>11.2f}")
    if options.json:
        told = {"rounds": options.rounds, "count": options.count, "figures": table}
        options.json.write_text(json.dumps(told, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
