"""How fast jmsjca drives AMQP when the broker costs next to nothing, beside proton's own loops, in one run.

``PYTHONPATH=tests/support python -m tests.benchmarks.amqp_engine --rounds 5 --json figures.json``

The broker is the peer of ``peer.c``, which is built first: it keeps nothing, so it is the client that is timed; no
real broker is as fast. All send and receive the same durable message of 1 KiB, receive 1,000 ahead, and take turns
within every round, each time in a process of their own, which does a tenth of it first to warm up: in one for all, what
one leaves in the memory slows the next down by a third. A ratio is the median of the quotients with proton's handler in
the same round; CPU is that of the process, which what else the machine does hardly touches. Client and peer have a core
each, as far as there are several: a client with two threads costs a third more where both wander (``--spread``). What
each does:

- proton handler: `MessagingHandler` in a `Container`; sends as credit allows, accepts each message when it comes.
  "atomic" does so in transactions of 100 messages.
- proton blocking: `BlockingConnection`; each send waits for its answer.
- lean loop: what of `lean_loop.py` is the least that a client in Python does; nobody gets below that by much. "atomic"
  does the same in transactions of 100 messages, or, receiving, of what comes at once, if that is more. "one by one"
  waits for the answer to each send.
- lean client: what of `lean_client.py` is the least that a client does that sends messages of JMS, and has a thread for
  its connection.
- unit, plain: units of 100 without transactions; a batch of sends waits for its answers, acknowledgements do not.
- unit, atomic: one transaction for each 100 messages. The peer calls itself Broker-J, which has to answer only the last
  message that is sent in a transaction; "each answered" is the same with one that calls itself Artemis.
- undecoded: the same as "unit, plain" and "unit, atomic", without looking at the messages.
- session, transacted: the public API, message by message, a commit for each 100.
- session, auto: the public API, message by message; each send waits for its answer, each receipt until the broker has
  noted it. "dups ok" does not wait for that.
"""

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from brokers import BrokerMissing
from proton.utils import BlockingConnection

from jmsjca import AcknowledgeMode, BytesMessage, ConnectionFactory, Limits, Queue
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.reconnection import ConnectionSettings, connect
from tests.benchmarks.c_peer import running
from tests.benchmarks.lean_client import lean_client_sends
from tests.benchmarks.lean_loop import lean_receives, lean_sends
from tests.benchmarks.measurements import Measurements, alternating, write
from tests.benchmarks.proton_loops import BASE, BATCH, BODY, PATIENCE, Figures, HandlerReceives, HandlerSends, Stopwatch
from tests.benchmarks.proton_transactions import AtomicHandlerReceives, AtomicHandlerSends

QUEUE = Queue("bench")
AHEAD = 1000
# Transactions are asked only of a broker that is known to have them.
BROKER_J, ARTEMIS = "Apache Qpid Broker-J Core", "apache-activemq-artemis"
BLOCKING = "proton blocking"
SLOW = 10  # what waits for each message gets so many times fewer
WARMING = 10  # the part of the messages that come before those that count


def handler_receives(url: str, count: int) -> Figures:
    return HandlerReceives(url, QUEUE.name, count, AHEAD).run()


def handler_sends(url: str, count: int) -> Figures:
    return HandlerSends(url, QUEUE.name, count).run()


def blocking_receives(url: str, count: int) -> Figures:
    connection = BlockingConnection(url, allowed_mechs="ANONYMOUS")
    watch, receiver = Stopwatch(), connection.create_receiver(QUEUE.name, credit=AHEAD)
    for _ in range(count):
        assert len(receiver.receive(PATIENCE).body) == len(BODY)
        receiver.accept()
    figures = watch.read(count)
    connection.close()
    return figures


def blocking_sends(url: str, count: int) -> Figures:
    connection, handler = BlockingConnection(url, allowed_mechs="ANONYMOUS"), HandlerSends(url, QUEUE.name, count)
    watch, sender = Stopwatch(), connection.create_sender(QUEUE.name)
    for _ in range(count):
        sender.send(handler.message())
    figures = watch.read(count)
    connection.close()
    return figures


def unit_receives(url: str, count: int, *, atomic: bool, decoded: bool = True) -> Figures:
    link, received = connect(ConnectionSettings(url)), 0
    watch, consumer = Stopwatch(), link.consumer(QUEUE, window=AHEAD)
    while received < count:
        deliveries = consumer.receive(BATCH, PATIENCE)
        assert not decoded or all(len(d.message.body) == len(BODY) for d in deliveries)
        unit = link.unit(atomic=atomic)
        unit.take(deliveries)
        unit.commit(confirmed=atomic)
        received += len(deliveries)
    figures = watch.read(received)
    link.close()
    return figures


def unit_sends(url: str, count: int, *, atomic: bool) -> Figures:
    link = connect(ConnectionSettings(url))
    watch = Stopwatch()
    for _ in range(count // BATCH):
        unit = link.unit(atomic=atomic)
        for number in range(BATCH):
            unit.send(_made(number), QUEUE)
        unit.commit()
    figures = watch.read(count)
    link.close()
    return figures


def _made(number: int) -> BytesMessage:
    """A message with the headers that a producer sets, and that proton's handler sets here."""
    message = BytesMessage(BODY)
    message.message_id, message.destination, message.timestamp = f"ID:{number}-bench", QUEUE, datetime.now(UTC)
    return message


def session_receives(url: str, count: int, mode: AcknowledgeMode | None) -> Figures:
    with ConnectionFactory(url, limits=Limits(prefetch_messages=AHEAD)).create_connection() as connection:
        connection.start()
        session = _session(connection, mode)
        watch, consumer = Stopwatch(), session.create_consumer(QUEUE)
        for number in range(count):
            message = consumer.receive(timeout=PATIENCE)
            assert message is not None
            assert len(message.body) == len(BODY)
            if mode is None and number % BATCH == BATCH - 1:
                session.commit()
        return watch.read(count)


def session_sends(url: str, count: int, mode: AcknowledgeMode | None) -> Figures:
    with ConnectionFactory(url).create_connection() as connection:
        session = _session(connection, mode)
        watch, producer = Stopwatch(), session.create_producer(QUEUE)
        for number in range(count):
            producer.send(session.create_bytes_message(BODY))
            if mode is None and number % BATCH == BATCH - 1:
                session.commit()
        return watch.read(count)


def _session(connection: Any, mode: AcknowledgeMode | None) -> Any:
    return connection.create_session(transacted=True) if mode is None else connection.create_session(False, mode)


Contender = Callable[[str, int], Figures]
CONTENDERS: dict[str, dict[str, Contender]] = {
    "receive": {
        BASE: handler_receives,
        f"{BASE}, atomic": lambda url, count: AtomicHandlerReceives(url, QUEUE.name, count).run(),
        BLOCKING: blocking_receives,
        "lean loop": lambda url, count: lean_receives(url, QUEUE.name, count, AHEAD),
        "lean loop, atomic": lambda url, count: lean_receives(url, QUEUE.name, count, AHEAD, atomic=True),
        "unit, plain": lambda url, count: unit_receives(url, count, atomic=False),
        "unit, atomic": lambda url, count: unit_receives(url, count, atomic=True),
        "undecoded, plain": lambda url, count: unit_receives(url, count, atomic=False, decoded=False),
        "undecoded, atomic": lambda url, count: unit_receives(url, count, atomic=True, decoded=False),
        "session, transacted": lambda url, count: session_receives(url, count, None),
        "session, auto": lambda url, count: session_receives(url, count // SLOW, AcknowledgeMode.AUTO),
        "session, dups ok": lambda url, count: session_receives(url, count, AcknowledgeMode.DUPS_OK),
    },
    "send": {
        BASE: handler_sends,
        f"{BASE}, atomic": lambda url, count: AtomicHandlerSends(url, QUEUE.name, count).run(),
        BLOCKING: lambda url, count: blocking_sends(url, count // SLOW),
        "lean loop": lambda url, count: lean_sends(url, QUEUE.name, count),
        "lean loop, atomic": lambda url, count: lean_sends(url, QUEUE.name, count, atomic=True),
        "lean client": lambda url, count: lean_client_sends(url, QUEUE.name, _made, count),
        "lean client, atomic": lambda url, count: lean_client_sends(url, QUEUE.name, _made, count, atomic=True),
        "lean loop, one by one": lambda url, count: lean_sends(url, QUEUE.name, count // SLOW, together=1),
        "unit, plain": lambda url, count: unit_sends(url, count, atomic=False),
        "unit, atomic": lambda url, count: unit_sends(url, count, atomic=True),
        "unit, atomic, each answered": lambda url, count: unit_sends(url, count, atomic=True),
        "session, transacted": lambda url, count: session_sends(url, count, None),
        "session, auto": lambda url, count: session_sends(url, count // SLOW, AcknowledgeMode.AUTO),
    },
}


#: What the peer of a contender calls itself, if not Broker-J.
PRODUCTS = {"unit, atomic, each answered": ARTEMIS}


def measure(urls: Mapping[str, str], rounds: int, count: int) -> Measurements[tuple[str, str]]:
    """Let the contenders take turns, each with the peer of its product."""
    costs = Measurements[tuple[str, str]]()
    for operation, contenders in CONTENDERS.items():
        for order in alternating(list(contenders), rounds):
            for name in order:
                rate, cpu = _alone(operation, name, urls[PRODUCTS.get(name, BROKER_J)], count)
                costs.note((operation, "elapsed"), name, 1e6 / rate)
                costs.note((operation, "processor"), name, cpu)
    return costs


def _alone(operation: str, name: str, url: str, count: int) -> Figures:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_warmed_up, operation, name, url, count).result()


def _warmed_up(operation: str, name: str, url: str, count: int) -> Figures:
    CONTENDERS[operation][name](url, count // WARMING)
    gc.collect()
    return CONTENDERS[operation][name](url, count)


def figures(costs: Measurements[tuple[str, str]]) -> list[dict[str, Any]]:
    """Each beside proton's handler: how many times as fast."""
    return [
        {
            "operation": operation,
            "clock": clock,
            "contender": name,
            "messages_per_second": round(1e6 / summary.median),
            "microseconds": round(summary.median, 1),
            "times_as_fast": round(1 / summary.ratio, 2),
        }
        for (operation, clock), name, summary in costs.summaries(BASE)
    ]


@contextmanager
def peers(message: bytes, *, spread: bool) -> Generator[dict[str, str]]:
    """Build and start a peer for each product, and give their URLs.

    From then on this process has another core than they, unless all are to spread.
    """
    cores = sorted(os.sched_getaffinity(0))
    if not spread:
        os.sched_setaffinity(0, cores[-1:])
    with ExitStack() as stack:
        urls: dict[str, str] = {}
        for product in (BROKER_J, ARTEMIS):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            urls[product] = stack.enter_context(running(folder, product, message))
        os.sched_setaffinity(0, cores if spread else cores[:1])
        yield urls


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=20_000, help="messages per turn, a multiple of 1,000")
    parser.add_argument("--spread", action="store_true", help="let client and peer use all cores")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    message = encode(_made(0), QUEUE, 0)
    try:
        with peers(message, spread=options.spread) as urls:
            table = figures(measure(urls, options.rounds, options.count))
    except BrokerMissing as problem:
        print(f"The peer in C is left out: {problem}", file=sys.stderr)
        return 0
    for row in table:
        print("{:9}{:11}{:28}{:>9,} msg/s{:>8.1f} us{:>8.2f} of proton".format(*row.values()))
    write(options.json, {"rounds": options.rounds, "count": options.count}, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
