"""How fast threads send single messages, each confirmed: `adapter.send` beside other senders, in one run.

``python -m tests.benchmarks.senders embedded``, or with a broker
``PYTHONPATH=tests/support python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.senders --json f.json``

Durable messages of 1 KiB, from 1, 8 and 50 threads (or as many tasks, where the library is one for coroutines). The
contenders take turns within every round, each on a queue of its own; a ratio is the median of the quotients with
"documented" of the same round. "simplest" connects, sends and closes for each message; "documented" keeps a
connection for each thread, as the library's documentation shows it. Those are proton's BlockingConnection over AMQP,
and bare SQLite for the embedded broker in a file. "units of 100" are transactions of one thread. "borrow" is the time
until a pool has lent a connection, where it has as many as there are threads, while all threads send.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from jmsjca.outbound import ConnectionPool
from tests.benchmarks.bare import BareStore
from tests.benchmarks.contenders import BODY
from tests.benchmarks.field.turns import since
from tests.benchmarks.measurements import Measurements, alternating, clocks, write

THREADS = (1, 8, 50)
BATCH = 100
SIMPLEST, REFERENCE, OURS = "simplest", "documented", "adapter.send"
_LEAST = 150  # messages of a turn from one thread
_PATIENCE = 120.0

Send = Callable[[], object]
Make = Callable[[str, str], AbstractContextManager[Send]]
"""Prepares a thread: yields a function that sends a message and returns when it is confirmed."""


class Case(NamedTuple):
    """A line of the table.

    Args:
        operation: Single messages, units, or borrowing.
        threads: How many threads or tasks.
    """

    operation: str
    threads: int


class Turn(NamedTuple):
    """What a contender does.

    Args:
        url: The broker.
        queue: The name of a queue of this turn's.
        threads: How many threads or tasks.
        count: How many messages all of them send together.
    """

    url: str
    queue: str
    threads: int
    count: int


Contender = Callable[[Turn], Mapping[str, float]]


def threaded(make: Make) -> Contender:
    """Send from threads; each has sent a message when the clocks start."""

    def take_turn(turn: Turn) -> Mapping[str, float]:
        ready, done = threading.Barrier(turn.threads + 1), threading.Barrier(turn.threads + 1)

        def work() -> None:
            try:
                with make(turn.url, turn.queue) as send:
                    send()
                    ready.wait(_PATIENCE)
                    for _ in range(turn.count // turn.threads):
                        send()
                    done.wait(_PATIENCE)
            except BaseException:
                ready.abort()  # nobody waits for a thread that failed
                done.abort()
                raise

        threads = [threading.Thread(target=work) for _ in range(turn.threads)]
        for thread in threads:
            thread.start()
        ready.wait(_PATIENCE)
        began = clocks()
        done.wait(_PATIENCE)
        seconds = since(began)
        for thread in threads:
            thread.join()
        return seconds

    return take_turn


def adapter_sends(turn: Turn) -> Mapping[str, float]:
    """One adapter for all threads."""
    adapter = ResourceAdapter(turn.url)

    @contextmanager
    def shared(_url: str, queue: str) -> Iterator[Send]:
        yield lambda: adapter.send(queue, BODY)

    try:
        return threaded(shared)(turn)
    finally:
        adapter.stop()


def proton_sends(style: str) -> Make:
    """`BlockingConnection`: "simplest" or "documented"."""
    from proton.utils import BlockingConnection

    from tests.benchmarks.proton_loops import HandlerSends, InQueue

    def open_sender(url: str, queue: str) -> tuple[Any, Any]:
        connection = BlockingConnection(url, allowed_mechs="ANONYMOUS", timeout=_PATIENCE)
        return connection, connection.create_sender(queue, options=InQueue())

    @contextmanager
    def make(url: str, queue: str) -> Iterator[Send]:
        message = HandlerSends(url, queue, 1).message

        def connect_send_and_close() -> None:
            connection, sender = open_sender(url, queue)
            with closing(connection):
                sender.send(message())

        if style == SIMPLEST:
            yield connect_send_and_close
            return
        connection, sender = open_sender(url, queue)
        with closing(connection):
            yield lambda: sender.send(message())

    return make


def sqlite_sends(style: str) -> Make:
    """Bare SQLite: "simplest" or "documented"."""

    @contextmanager
    def make(url: str, queue: str) -> Iterator[Send]:
        path = Path(f"{url.removeprefix('embedded://')}.{queue}")

        def open_insert_and_close() -> None:
            with closing(BareStore(path)) as store:
                store.send(1, 1)

        if style == SIMPLEST:
            yield open_insert_and_close
            return
        with closing(BareStore(path)) as store:
            yield lambda: store.send(1, 1)

    return make


def tasks_publish(module: str) -> Contender:
    """A library for coroutines, whose package may be missing: imported in its turn, so that the table tells it."""

    def take_turn(turn: Turn) -> Mapping[str, float]:
        publisher = import_module(f"tests.benchmarks.field.{module}_loop").publisher

        async def publish() -> Mapping[str, float]:
            async with publisher(turn.url, turn.queue, BODY) as send:
                await send()
                began = clocks()

                async def work() -> None:
                    for _ in range(turn.count // turn.threads):
                        await send()

                await asyncio.gather(*(work() for _ in range(turn.threads)))
                return since(began)

        return asyncio.run(publish())

    return take_turn


def unit_sends(kind: str) -> Contender:
    """Units of 100 from one thread: a pooled session for each, a producer that is kept, or `send_many`."""

    def send(session: Any, producer: Any) -> None:
        for _ in range(BATCH):
            producer.send(session.create_bytes_message(BODY))
        session.commit()

    def take_turn(turn: Turn) -> Mapping[str, float]:
        factory, to = ConnectionFactory(turn.url), Queue(turn.queue)
        with ExitStack() as stack:
            if kind == "cached":
                connection = stack.enter_context(factory.create_connection())
                session = connection.create_session(transacted=True)
                producer = session.create_producer(to)
                once: Send = lambda: send(session, producer)  # noqa: E731  # one of three
            elif kind == "pooled":
                pool = stack.enter_context(ConnectionPool(factory))

                def once() -> None:
                    with pool.session(transacted=True) as session:
                        send(session, session.create_producer(to))

            else:
                stack.callback(factory.close)
                once = lambda: factory.send_many(to, [BODY] * BATCH)  # noqa: E731  # one of three
            once()
            began = clocks()
            for _ in range(turn.count // BATCH):
                once()
            return since(began)

    return take_turn


def borrowing(turn: Turn) -> list[float]:
    """The seconds of each borrow, while all threads send over borrowed connections."""
    waits: list[float] = []
    with ConnectionPool(ConnectionFactory(turn.url), max_size=turn.threads, timeout=_PATIENCE) as pool:

        @contextmanager
        def make(_url: str, queue: str) -> Iterator[Send]:
            def send() -> None:
                began = time.perf_counter()
                connection = pool.get_connection()
                waits.append(time.perf_counter() - began)
                with closing(connection):
                    session = connection.create_session()
                    session.create_producer(Queue(queue)).send(session.create_bytes_message(BODY))

            yield send

        threaded(make)(turn)
    return waits[turn.threads :]  # the first ones opened connections


class Benchmark:
    """Measures on one broker.

    Args:
        url: The broker.
        others: Modules of `tests.benchmarks.field` with libraries for coroutines.
        rounds: How many rounds, beside one that warms up.
        with_bare: False to leave the loops of the library below out; `adapter.send` is the reference then.
    """

    def __init__(self, url: str, others: list[str], rounds: int, *, with_bare: bool) -> None:
        bare = sqlite_sends if url.startswith("embedded:") else proton_sends
        self._url, self._rounds = url, rounds
        loops = (SIMPLEST, REFERENCE) if with_bare else ()
        self._reference = REFERENCE if with_bare else OURS
        self._singles: dict[str, Contender] = {
            **{style: threaded(bare(style)) for style in loops},
            OURS: adapter_sends,
            **{name: tasks_publish(name) for name in others},
        }
        self._units = {kind: unit_sends(kind) for kind in ("cached", "pooled", "send_many")}
        self.left_out: dict[str, str] = {}

    def run(self) -> list[dict[str, Any]]:
        """Return the figures of all cases."""
        figures = []
        for threads in THREADS:
            case = Case("single", threads)
            figures += self._measure(case, self._singles, self._reference, max(_LEAST, 20 * threads))
        if self._has_transactions():
            figures += self._measure(Case("units of 100", 1), self._units, "cached", 2000)
        return figures + [self._borrow(threads) for threads in THREADS]

    def _create_queue(self, name: str) -> None:
        """Create a queue before threads send to it: RabbitMQ refuses some of those that create it at the same time."""
        with ConnectionFactory(self._url).create_connection() as connection:
            connection.create_session().create_consumer(Queue(name)).close()

    def _has_transactions(self) -> bool:
        with ConnectionFactory(self._url).create_connection() as connection:
            return connection.capabilities.atomic

    def _measure(
        self, case: Case, contenders: Mapping[str, Contender], reference: str, count: int
    ) -> list[dict[str, Any]]:
        costs = Measurements[str]()
        for order in alternating(list(contenders), self._rounds + 1):
            for name in order:
                self._take_turn(case, name, contenders[name], count, costs)
        costs.forget_first_round()
        return [
            {
                **case._asdict(),
                "contender": name,
                "clock": clock,
                "messages_per_second": round(1e6 / summary.median),
                "microseconds": round(summary.median, 1),
                "ratio": round(summary.ratio, 2),
            }
            for clock, name, summary in costs.summaries(reference)
            if clock == "elapsed"
        ]

    def _take_turn(self, case: Case, name: str, contender: Contender, count: int, costs: Measurements[str]) -> None:
        if name in self.left_out:
            return
        if name == SIMPLEST:  # slow enough to be measured with less
            count = max(case.threads, count // 10)
        turn = Turn(self._url, f"bench.{uuid.uuid4().hex}", case.threads, count - count % case.threads)
        self._create_queue(turn.queue)
        try:
            seconds = contender(turn)
        except ImportError as problem:
            self.left_out[name] = str(problem)
            return
        for clock, value in seconds.items():
            costs.note(clock, name, value / turn.count * 1e6)

    def _borrow(self, threads: int) -> dict[str, Any]:
        turn = Turn(self._url, f"bench.{uuid.uuid4().hex}", threads, max(_LEAST, 10 * threads) * self._rounds)
        self._create_queue(turn.queue)
        waits = borrowing(turn)
        microseconds = [round(cut * 1e6, 1) for cut in statistics.quantiles(waits, n=100, method="inclusive")]
        return {
            **Case("borrow", threads)._asdict(),
            "contender": "pool",
            "median": microseconds[49],
            "p99": microseconds[98],
        }


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="embedded, for one in a temporary file; or the URL of a broker")
    parser.add_argument("--others", nargs="*", default=[], help="repid or faststream")
    parser.add_argument("--no-bare", action="store_true", help="leave the loops of the library below out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"embedded://{folder}/broker.db" if options.url == "embedded" else options.url
        benchmark = Benchmark(url, options.others, options.rounds, with_bare=not options.no_bare)
        figures = benchmark.run()
    for figure in figures:
        print(*figure.values(), sep="\t")
    write(options.json, {"rounds": options.rounds, "left_out": benchmark.left_out}, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
