"""How much processor time this tree needs for the same work, as a ratio to an earlier revision, with the goals.

``python -m tests.benchmarks.against REVISION --rounds 25 --only "memory, unit"``, or ``make bench-against REV=…``.

Each tree runs in its own process. The two take turns within each round; each figure is the minimum of its rounds, since
the other work of the machine only ever adds to it.
"""

import argparse
import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

BATCH = 100
COUNT = 1000
BODY = b"x" * 1024
TEXT = "x" * 1024


class Row(NamedTuple):
    """A line of the table: work of a group, and the ratio that it should not exceed."""

    group: str
    work: str
    goal: float | None


ROWS = (
    Row("memory, unit", "send", 0.60),
    Row("memory, unit", "receive", 0.70),
    Row("memory, session", "send", None),
    Row("memory, session", "receive", 0.55),
    Row("file, unit", "send", 0.70),
    Row("file, unit", "receive", 0.75),
    Row("Spark", "rows and Arrow", 0.55),
    Row("import", "jmsjca, ms", 0.65),
    Row("import", "names of a sender, ms", None),
    Row("AMQP codec", "body", None),
    Row("AMQP codec", "body and id", None),
    Row("AMQP codec", "all headers", None),
    Row("AMQP codec", "Spark's headers", 0.70),
)


def _unit(url: str) -> dict[str, Callable[[], float]]:
    """Units of 100 of the provider; the body is read, and no header."""
    from jmsjca import BytesMessage, Queue
    from jmsjca.reconnection import ConnectionSettings, connect

    link, queue = connect(ConnectionSettings(url)), Queue("bench")
    consumer = link.consumer(queue)

    def send() -> None:
        for _ in range(COUNT // BATCH):
            unit = link.unit()
            for _ in range(BATCH):
                unit.send(BytesMessage(BODY), queue)
            unit.commit()

    def receive() -> None:
        for _ in range(COUNT // BATCH):
            deliveries = consumer.receive(BATCH, 0)
            assert all(len(delivery.message.body) == len(BODY) for delivery in deliveries)
            unit = link.unit()
            unit.take(deliveries)
            unit.commit()

    return {"send": _timed(send), "receive": _timed(receive)}


def _session(url: str) -> dict[str, Callable[[], float]]:
    """Transacted sessions; every header and property is read."""
    from jmsjca import ConnectionFactory, Queue

    connection = ConnectionFactory(url).create_connection()
    connection.start()
    session, queue = connection.create_session(transacted=True), Queue("bench")
    producer, consumer = session.create_producer(queue), session.create_consumer(queue)

    def send() -> None:
        for _ in range(COUNT // BATCH):
            for number in range(BATCH):
                producer.send(session.create_text_message(TEXT, properties={"region": "EU", "number": number}))
            session.commit()

    def receive() -> None:
        for _ in range(COUNT // BATCH):
            for _ in range(BATCH):
                message: Any = consumer.receive(timeout=0)
                assert message.message_id
                assert str(message.destination)
                assert message.timestamp
                assert (message.correlation_id, message.reply_to, message.type) == (None, None, None)
                assert (message.priority, message.expiration, message.delivery_time) == (4, None, None)
                assert (message.delivery_mode, message.redelivered, message.delivery_count) == (2, False, 1)
                assert dict(message.properties)["region"] == "EU"
                assert message.body
            session.commit()

    return {"send": _timed(send), "receive": _timed(receive)}


def _spark(url: str) -> dict[str, Callable[[], float]]:
    """The part of a Spark partition that decodes received messages and makes Arrow columns of them."""
    from jmsjca import Queue, spi
    from jmsjca.reconnection import ConnectionSettings, connect
    from jmsjca.spark.columns import ColumnBuilder, key_reader
    from jmsjca.spark.options import SourceOptions

    fill = _session(url)["send"]
    options = SourceOptions(url, "bench")

    def rows_and_arrow() -> float:
        fill()
        link = connect(ConnectionSettings(url))
        consumer = link.consumer(Queue("bench"), order=spi.Order.PREFIX, window=0)
        received: list[spi.Delivery] = []
        while len(received) < COUNT:
            received += consumer.receive(COUNT - len(received), 5)
        columns = ColumnBuilder(options.columns, key_reader(options.dedupKey))

        def convert() -> None:
            columns.extend(received)
            assert columns.staged(1, 0, set()).table.num_rows == COUNT

        seconds = _timed(convert)()
        unit = link.unit()
        unit.take(received)
        unit.commit()
        link.close()
        return seconds

    return {"rows and Arrow": rows_and_arrow}


def _import() -> dict[str, Callable[[], float]]:
    """Fresh interpreters, less the least that a bare one has needed; with bytecode from the second round on."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    bare: list[float] = []

    def seconds(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def of(code: str) -> float:
        bare.append(seconds("pass"))
        return seconds(code) - min(bare)

    sender = "from jmsjca import ConnectionFactory, Queue, TextMessage"
    return {"jmsjca, ms": lambda: of("import jmsjca"), "names of a sender, ms": lambda: of(sender)}


def _amqp_codec() -> dict[str, Callable[[], float]]:
    """Decode a text message with eight headers and two properties; `amqp_codec` compares with proton's decoder."""
    from jmsjca import Queue, TextMessage
    from jmsjca.messages.message import headers_of
    from jmsjca.providers.amqp.codec.addresses import ReceiveContext
    from jmsjca.providers.amqp.codec.decoder import decode
    from jmsjca.providers.amqp.codec.encoder import encode

    queue = Queue("bench")
    made = TextMessage(TEXT, properties={"region": "EU", "number": 7}, correlation_id="c-1", reply_to=queue, type="t")
    made.message_id, made.priority = "ID:host-12345-6789", 5
    raw = encode(made, queue, time.time())
    names = ["message_id", "correlation_id", "destination", "reply_to", "type", "priority", "timestamp", "properties"]

    def repeated(read: Callable[[Any], object]) -> Callable[[], float]:
        context = ReceiveContext(queue)

        def work() -> None:
            for _ in range(COUNT):
                read(decode(raw, context))

        return _timed(work)

    def read_all(message: Any) -> None:
        _ = (message.message_id, message.destination, message.type, message.reply_to, message.correlation_id)
        _ = (message.delivery_mode, message.priority, message.expiration, message.timestamp, message.delivery_time)
        assert dict(message.properties)["region"] == "EU"

    return {
        "body": repeated(lambda message: message.body),
        "body and id": repeated(lambda message: (message.body, message.message_id)),
        "all headers": repeated(read_all),
        "Spark's headers": repeated(lambda message: headers_of(message).select(names)),  # type: ignore[attr-defined]
    }


def _timed(work: Callable[[], None]) -> Callable[[], float]:
    def run() -> float:
        gc.collect()
        begin = time.process_time()
        work()
        return time.process_time() - begin

    return run


_GROUPS: dict[str, Callable[[Path], dict[str, Callable[[], float]]]] = {
    "memory, unit": lambda folder: _unit(f"embedded://{folder.name}-unit"),
    "memory, session": lambda folder: _session(f"embedded://{folder.name}-session"),
    "file, unit": lambda folder: _unit(f"embedded://{folder}/broker.db"),
    "Spark": lambda folder: _spark(f"embedded://{folder}/spark.db"),
    "import": lambda _: _import(),
    "AMQP codec": lambda _folder: _amqp_codec(),
}


def work_for(group: str) -> None:
    """Run a group's work as standard input names it, a line each; print the seconds of each."""
    with tempfile.TemporaryDirectory(prefix="jmsjca-bench-") as folder:
        works = _GROUPS[group](Path(folder))
        for line in sys.stdin:
            print(works[line.strip()](), flush=True)


class Tree:
    """A process that runs the work with the package of one tree.

    Args:
        folder: The root of the tree.
        group: The group of the work.
    """

    def __init__(self, folder: Path, group: str) -> None:
        command = [sys.executable, "-P", __file__, "--work", group, str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, work: str) -> float:
        """Return the processor time of one run."""
        assert self._process.stdin
        assert self._process.stdout
        print(work, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def measure(before: Path, now: Path, groups: Sequence[str], rounds: int) -> dict[Row, tuple[float, float]]:
    """Return the microseconds per message of both trees for each row; a first round only warms up."""
    found: dict[Row, tuple[float, float]] = {}
    for group in groups:
        trees = [Tree(before, group), Tree(now, group)]
        rows = [row for row in ROWS if row.group == group]
        seconds: dict[tuple[str, int], list[float]] = {}
        for number in range(rounds + 1):
            for at in (0, 1) if number % 2 else (1, 0):
                for row in rows:
                    seconds.setdefault((row.work, at), []).append(trees[at].seconds(row.work))
        for tree in trees:
            tree.close()
        for row in rows:
            then, after = (min(seconds[row.work, at][1:]) / COUNT * 1e6 for at in (0, 1))
            found[row] = then, after
    return found


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the revision to compare with")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", choices=list(_GROUPS), action="append", help="one group; may be repeated")
    parser.add_argument("--work", choices=list(_GROUPS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work_for(options.work)
        return 0
    root = Path(__file__).resolve().parents[2]
    with worktree(root, options.revision) as earlier:
        compare(earlier, root, options.only or list(_GROUPS), options.rounds)
    return 0


@contextmanager
def worktree(root: Path, revision: str) -> Iterator[Path]:
    """Check out a revision beside the environment, and remove it afterwards."""
    folder, git = Path(sys.prefix, "against"), ["git", "-C", root, "worktree"]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*git, "prune"], check=True)
    subprocess.run([*git, "add", "--quiet", "--detach", folder, revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", folder], check=True)


def compare(earlier: Path, root: Path, groups: Sequence[str], rounds: int) -> None:
    """Print a line for each row of the groups."""
    print(f"{'work':34}{'before':>9}{'now':>9}{'ratio':>8}  goal (microseconds of the processor for a message)")
    for group in groups:
        for row, (before, now) in measure(earlier, root, [group], rounds).items():
            ratio = now / before
            goal = "" if row.goal is None else f"<= {row.goal:.2f} {'met' if ratio <= row.goal else 'MISSED'}"
            print(f"{row.group + ': ' + row.work:34}{before:9.2f}{now:9.2f}{ratio:8.2f}  {goal}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
