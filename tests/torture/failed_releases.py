"""Fails each statement of commits and rollbacks of the embedded broker, and proves that no message stays held.

``python -m tests.torture.failed_releases`` visits every point; ``--sample 200`` some of them.
"""

import argparse
import logging
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jmsjca import Limits, Queue, TextMessage
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.providers.embedded.connection import EmbeddedConnection
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.store.store import drop_memory_store
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare
from tests.model.machine import FAST

__all__ = ["Point", "Report", "all_points", "run", "visit"]

QUEUE, OUT = Queue("q"), Queue("out")
PATIENCE = 30
CODES = {"full": sqlite3.SQLITE_FULL, "locked": sqlite3.SQLITE_BUSY, "broken": sqlite3.SQLITE_IOERR_WRITE}
ENDS = ("commit", "commit with a send", "rollback", "rollback of one unused", "delayed rollback", "release", "close")
PLACES = ("memory", "file")
NEVER = 10**9
ENOUGH = 3


class Point(NamedTuple):
    """Where statements fail: at one, and ``gap`` statements later at a second one; gap 0: at all until it is over."""

    place: str
    end: str
    code: str
    first: int
    gap: int

    def __str__(self) -> str:
        then = f"and {self.gap} later" if self.gap else "and all others"
        return f"{self.end} in {self.place}: {self.code} at statement {self.first} {then}"


class Visit(NamedTuple):
    """How the unit ended at a point, and what was wrong afterwards, if anything."""

    point: Point
    end: str
    wrong: str | None


@dataclass
class Report:
    """One run."""

    total: int
    seed: int
    visits: list[Visit] = field(default_factory=list[Visit])
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        return [f"{visit.point}: {visit.wrong}" for visit in self.visits if visit.wrong]

    def __str__(self) -> str:
        ends = ", ".join(f"{end} {count}" for end, count in Counter(visit.end for visit in self.visits).items())
        return (
            f"{len(self.visits)} of {self.total} points visited, {len(self.wrong)} violated "
            f"({ends}; {self.seconds:.0f} s, seed {self.seed})"
        )


class FailingCursor:
    """A cursor some of whose statements fail, until it is healed."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.seen = 0
        self._first, self._gap, self._code = NEVER, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def fail(self, first: int, gap: int, code: int) -> None:
        self.seen, self._first, self._gap, self._code = 0, first, gap, code

    def heal(self) -> None:
        self._first = NEVER

    def execute(self, statement: str, *args: Any) -> Any:
        self._check(statement)
        return self._cursor.execute(statement, *args)

    def executemany(self, statement: str, *args: Any) -> Any:
        self._check(statement)
        return self._cursor.executemany(statement, *args)

    def _check(self, statement: str) -> None:
        self.seen += 1
        after = self.seen - self._first
        if after in (0, self._gap) or (after > 0 and not self._gap):
            error = sqlite3.OperationalError(f"injected into {statement[:20]}")
            error.sqlite_errorcode = self._code
            raise error


class Scene:
    """Five messages; a consumer holds four, and a unit took the first two of them."""

    def __init__(self, place: str, folder: str) -> None:
        url = f"embedded://{folder}/broker.db" if place == "file" else f"embedded://{Path(folder).name}"
        self.connection: EmbeddedConnection = connect(  # type: ignore[assignment]  # of this provider
            ConnectionSettings(url, limits=Limits(lock_timeout=0.001, prefetch_messages=10))
        )
        self.consumer: EmbeddedConsumer = self.connection.consumer(QUEUE)
        self.put("a", "b", "c", "d", "e")
        self.held: list[EmbeddedDelivery] = list(self.consumer.receive(4, 0))
        self.unit = self.connection.unit()
        self.cursor = FailingCursor(self.store.database.cursor)
        self.store.database.cursor = self.cursor  # type: ignore[assignment]

    @property
    def store(self) -> Any:
        return self.connection._store  # pyright: ignore[reportPrivateUsage]

    def put(self, *bodies: str) -> None:
        unit = self.connection.unit()
        for body in bodies:
            unit.send(prepare(TextMessage(body), QUEUE), QUEUE)
        unit.commit()

    def fail(self, point: Point) -> str:
        """End the unit while statements fail; return the outcome that the caller is told."""
        self._begin(point.end)
        self.cursor.fail(point.first, point.gap, CODES[point.code])
        return self._end(point.end)

    def _begin(self, end: str) -> None:
        if end in ("release", "close"):
            return
        self.unit.take(self.held[:2])
        self.consumer.hand_over(self.held[:2])
        if end == "commit with a send":
            self.unit.send(prepare(TextMessage("out"), OUT), OUT)

    def _end(self, end: str) -> str:
        try:
            if end.startswith("commit"):
                self.unit.commit()
                return "committed"
            if end == "release":
                self.consumer.release(self.held)
            elif end == "close":
                self.consumer.close()
            elif end == "rollback of one unused":
                self.unit.rollback(unused=self.held[1:2])
            else:
                self.unit.rollback(delay=0.001 if end == "delayed rollback" else 0.0)
        except TransactionInDoubtError:
            return "in doubt" if end.startswith("commit") else "rolled back"
        except JMSError:
            return "rolled back"
        return "rolled back"

    def count(self, where: str) -> int:
        with self.store.read() as cursor:
            return int(cursor.execute(f"SELECT count(*) FROM message WHERE {where}").fetchone()[0])  # noqa: S608


def visit(point: Point) -> Visit:
    """Let statements fail at a point; then look what is held, and what is redelivered."""
    with _scene(point) as scene:
        told = scene.fail(point)
        early = [] if point.gap or told == "committed" else _received_while_failing(scene)
        scene.cursor.heal()
        try:
            return Visit(point, told, f"{early} overtook" if early else _judge(point, scene, told))
        except JMSError as error:
            return Visit(point, told, str(error))


def _statements(point: Point) -> int:
    """Return how many statements the end of a unit executes that fails at a point."""
    with _scene(point) as scene:
        scene.fail(point)
        return scene.cursor.seen


@contextmanager
def _scene(point: Point) -> Generator[Scene]:
    with tempfile.TemporaryDirectory(prefix="jmsjca-point-", dir=FAST) as folder:
        scene = Scene(point.place, folder)
        try:
            yield scene
        finally:
            scene.cursor.heal()
            with suppress(JMSError):  # it would hide what was wrong
                scene.connection.close()
            if point.place == "memory":
                drop_memory_store(Path(folder).name)


def _received_while_failing(scene: Scene) -> list[str]:
    try:
        return [str(delivery.message.body) for delivery in scene.consumer.receive(1, 0)]
    except JMSError:
        return []


def _judge(point: Point, scene: Scene, told: str) -> str | None:
    """Return what is wrong: the counts and the order of redelivered messages, sends, and what stays held."""
    if point.end == "close":
        scene.consumer = scene.connection.consumer(QUEUE)
    committed = told == "committed" or (told == "in doubt" and not scene.count("id <= 2"))
    unused = point.end in ("release", "close"), point.end in ("release", "close", "rollback of one unused")
    expected = [("e", 1)] if committed else [("a", 2 - unused[0]), ("b", 2 - unused[1]), ("c", 1), ("d", 1), ("e", 1)]
    if told == "committed":
        scene.held = scene.held[2:]
    received: list[EmbeddedDelivery] = []
    while len(received) < len(expected) and (chunk := scene.consumer.receive(10, PATIENCE)):
        received += chunk
    seen = [(str(d.message.body), d.count) for d in received]
    if (sorted(seen) if point.end == "delayed rollback" else seen) != expected:
        return f"{seen} instead of {expected}"
    if scene.count("queue_id = (SELECT id FROM queue WHERE name = 'out')") != (
        committed and point.end == "commit with a send"
    ):
        return "the sends are not those of the outcome"
    if point.place == "file" and not committed and (slots := _recorded(scene)):
        return f"{slots} hand-overs of released messages are still recorded"
    unit = scene.connection.unit()
    unit.take(received)
    unit.commit()
    held = scene.count("owner IS NOT NULL")
    if held != (2 if committed else 0):  # the two that belong to no unit
        return f"{held} held"
    return None


def _recorded(scene: Scene) -> int:
    """Return how many slots of the record of hand-overs are in use."""
    record = scene.store.hand_overs
    return 255 - len(record._free)


def all_points() -> list[Point]:
    """Every point of every end, on both kinds of broker."""
    return list(_points())


def _points() -> Iterator[Point]:
    for place in PLACES:
        for end in ENDS:
            for code in CODES:
                for first in range(1, _statements(Point(place, end, code, NEVER, 1)) + 1):
                    yield Point(place, end, code, first, 0)
                    once = _statements(Point(place, end, code, first, NEVER))
                    yield from (Point(place, end, code, first, gap) for gap in range(1, once - first + 1))


def run(points: Sequence[Point], total: int, seed: int) -> Report:
    """Visit points, until some are violated: each of these takes long."""
    report = Report(total, seed)
    began = time.monotonic()
    for point in points:
        report.visits.append(visit(point))
        if len(report.wrong) == ENOUGH:
            break
    report.seconds = time.monotonic() - began
    return report


def main() -> int:
    """Print one line; 0 if nothing stayed held, was lost, doubled or overtaken at any point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="visit so many points only")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16), help="which ones")
    options = parser.parse_args()
    logging.disable()
    points = all_points()
    some = random.Random(options.seed).sample(points, options.sample) if options.sample else points
    report = run(some, len(points), options.seed)
    print(f"failed releases: {report}")
    for wrong in report.wrong:
        print(wrong)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
