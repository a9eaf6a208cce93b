"""Kills a connector at each of its system calls that change a file, in each recovery mode, and judges the next run.

``JMSJCA_ALL_STEPS=1 pytest tests/torture/test_connector_points.py`` visits every point.
"""

import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import (
    BusinessObject,
    Connector,
    ConnectorConfig,
    ConnectorTerminatedError,
    EventRecord,
    EventStatus,
    ReturnCode,
)
from jmsjca.connector.sql_event_store import SqlEventStore
from tests.model.machine import FAST
from tests.torture.crash_points import CALLS, KILL, NOT_REACHED, Point, Report, Visit, files_of
from tests.torture.crashed_process import BROKER, Note, Victim, read_journal
from tests.torture.strace import find_strace

__all__ = ["MODES", "all_points", "run"]

EVENTS = ("a", "b", "c")
PATIENCE = 60  # seconds until the store has released what the dead process held
ATTEMPTS = 5
STORE = "events.db"


class Mode(NamedTuple):
    """A recovery mode: its configuration, its collaboration, and what it may do after a crash.

    Attributes:
        fields: Fields of the configuration.
        to_queue: True if the collaboration is a queue; else it is a function that keeps a journal.
        twice: True if a function may get an event twice.
        stays: True if an event may stay in the in-progress destination, for an operator.
        stored: True if the events are in a table.
    """

    fields: dict[str, Any]
    to_queue: bool = False
    twice: bool = False
    stays: bool = False
    stored: bool = False


HELD = {"input_destination": "in", "in_progress_destination": "held"}
ELIMINATING = {"monitor_queue": "monitor", "duplicate_event_elimination": True}
CONTAINER = {"container_managed_events": True, "source_queue": "in", "fault_queue": "faults"}
MODES = {
    "transaction, function": Mode({"input_destination": "in"}, twice=True),
    "transaction, queue": Mode({"input_destination": "in"}, to_queue=True),
    "Reprocess, function": Mode(HELD, twice=True),
    "Reprocess, queue": Mode(HELD, to_queue=True),
    "Ignore, function": Mode({**HELD, "in_doubt_events": "Ignore"}, stays=True),
    "LogError, function": Mode({**HELD, "in_doubt_events": "LogError"}, stays=True),
    "FailOnStartup, function": Mode({**HELD, "in_doubt_events": "FailOnStartup"}, stays=True),
    "container managed events": Mode(CONTAINER, to_queue=True),
    "elimination, function": Mode({"input_destination": "in", **ELIMINATING}),
    "elimination, queue": Mode({"input_destination": "in", **ELIMINATING}, to_queue=True),
    "elimination, in progress": Mode({**HELD, **ELIMINATING}, to_queue=True),
    "elimination, table": Mode(ELIMINATING, to_queue=True, stored=True),
    "table, function": Mode({}, twice=True, stored=True),
}


def all_points() -> list[Point]:
    """Every point of every mode."""
    return [point for mode in MODES for point in _points(mode)]


def run(points: Sequence[Point], total: int, jobs: int) -> Report:
    """Visit points, several at a time."""
    began = time.monotonic()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        visits = list(pool.map(visit, points, chunksize=4))
    return Report(total, 0, visits, time.monotonic() - began)


def visit(point: Point) -> Visit:
    """Let a connector die at one point, and judge what the next one does. A run that ends before is repeated."""
    for _ in range(ATTEMPTS):
        visited = _visit_once(point)
        if visited.end != NOT_REACHED or visited.wrong:
            return visited
    return Visit(point, "badly", f"The connector has not reached the point in {ATTEMPTS} runs.")


def _points(mode: str) -> list[Point]:
    with tempfile.TemporaryDirectory(prefix="jmsjca-connector-", dir=FAST) as name:
        folder = Path(name)
        trace = ("-o", str(folder / "trace"), "-e", f"trace={','.join(f'?{call}' for call in CALLS)}")
        status = _live_and_die(mode, folder, *trace)
        assert status == 0, f"{mode} fails by itself: {status}, {read_journal(folder)}"
        counts = Counter(re.findall(r"^\d+ +(\w+)\(", (folder / "trace").read_text(), re.MULTILINE))
    return [Point(mode, call, n + 1, KILL) for call in CALLS for n in range(counts[call])]


def _visit_once(point: Point) -> Visit:
    with tempfile.TemporaryDirectory(prefix="jmsjca-connector-", dir=FAST) as name:
        folder = Path(name)
        inject = f"inject={point.call}:{point.fault}:when={point.n}"
        status = _live_and_die(point.workload, folder, "-o", os.devnull, "-e", f"trace={point.call}", "-e", inject)
        if status not in {-signal.SIGKILL, 0}:
            return Visit(point, "badly", f"The connector ended with {status}; {read_journal(folder)}")
        return Visit(point, "killed" if status else NOT_REACHED, _judge(MODES[point.workload], folder))


def _live_and_die(mode: str, folder: Path, *options: str) -> int:
    _prepare(MODES[mode], folder)
    victim = Victim(partial(_connect, mode), folder)
    files = [*files_of(folder), *(folder / f"{STORE}{suffix}" for suffix in ("", "-journal", "-wal", "-shm"))]
    with find_strace().tracing(victim.pid, files, *options):
        return victim.run()


def _url(folder: Path) -> str:
    return f"embedded://{folder}/{BROKER}"


def _prepare(mode: Mode, folder: Path) -> None:
    if mode.stored:
        engine = sa.create_engine(f"sqlite:///{folder / STORE}")
        store = SqlEventStore(engine, _retrieve)
        store.metadata.create_all(engine)
        with engine.begin() as connection:
            for each in EVENTS:
                store.add(connection, EventRecord(each, "Order", "Create", each))
        engine.dispose()
    with ConnectionFactory(_url(folder)).create_connection() as connection, connection.create_session() as session:
        for each in () if mode.stored else EVENTS:
            session.create_producer(Queue("in")).send(f'{{"_type": "Order", "id": "{each}"}}')


def _retrieve(record: EventRecord) -> BusinessObject:
    return BusinessObject("Order", "", {"id": record.object_key})


def _connect(mode: str, folder: Path, note: Note) -> None:
    """The task of the process that dies: one poll."""
    with _connector(MODES[mode], folder, note) as connector:
        assert _poll(connector, MODES[mode]) is ReturnCode.SUCCEED


def _poll(connector: Connector, mode: Mode) -> ReturnCode:
    return connector.transfer_events() if "source_queue" in mode.fields else connector.poll_for_events()


def _connector(mode: Mode, folder: Path, note: Note) -> Connector:
    def collaboration(order: BusinessObject) -> None:
        note(str(order.get("id")))

    def resolver(order: BusinessObject) -> EventStatus:
        delivered = order.get("id") in read_journal(folder)
        return EventStatus.DUPLICATE if delivered else EventStatus.NEW

    engine = sa.create_engine(f"sqlite:///{folder / STORE}", poolclass=sa.NullPool)
    config = ConnectorConfig(connection_url=_url(folder), poll_quantity=len(EVENTS), receive_timeout=0.0, **mode.fields)
    return Connector(
        config,
        Queue("out") if mode.to_queue else collaboration,
        resolver=resolver,
        event_store=SqlEventStore(engine, _retrieve) if mode.stored else None,
    )


def _judge(mode: Mode, folder: Path) -> str | None:
    """Run another connector until nothing waits any more; return what is wrong, or None."""
    refused = _recover(mode, folder)
    delivered = Counter(_sent(folder) if mode.to_queue else read_journal(folder))
    held = Counter(_bodies(folder, "held")) if mode.stays else Counter[str]()
    waiting = set(_bodies(folder, "in")) if refused else set[str]()
    if lost := set(EVENTS) - delivered.keys() - held.keys() - waiting:
        return f"lost {lost}: delivered {delivered}, held {held}"
    most = 2 if mode.twice else 1
    if twice := {each: count for each, count in delivered.items() if count > most}:
        return f"delivered too often: {twice}"
    in_units = "in_progress_destination" in mode.fields  # all events of a poll are in doubt together
    if sum(delivered.values()) > len(EVENTS) + 1 and not in_units:
        return f"more than one event was repeated: {delivered}"
    if bool(held) != refused and mode.fields.get("in_doubt_events") == "FailOnStartup":
        return f"held {held}, but refused: {refused}"
    return None


def _recover(mode: Mode, folder: Path) -> bool:
    """Poll until all events are settled. Return whether the connector refused to start."""
    deadline = time.monotonic() + PATIENCE
    journal = (folder / "journal").open("a")
    with suppress(ConnectorTerminatedError), journal:
        while not _is_settled(mode, folder):
            assert time.monotonic() < deadline, "the events are not settled"
            with _connector(mode, folder, partial(_append, journal)) as connector:
                _poll(connector, mode)
        # An event that the dead connector held may have been locked until now: this start sees it.
        with _connector(mode, folder, partial(_append, journal)) as connector:
            _poll(connector, mode)
        return False
    return True


def _append(journal: Any, line: str) -> None:
    journal.write(f"{line}\n")
    journal.flush()


def _is_settled(mode: Mode, folder: Path) -> bool:
    if mode.stored:
        engine = sa.create_engine(f"sqlite:///{folder / STORE}", poolclass=sa.NullPool)
        with engine.connect() as connection:
            return connection.execute(sa.text("SELECT count(*) FROM jmsjca_events")).scalar_one() == 0
    with ConnectionFactory(_url(folder)).create_connection() as connection:
        admin = connection.admin
        assert admin is not None
        queues = ("in",) if mode.stays else ("in", "held")
        return sum(admin.depth(Queue(queue)).total for queue in queues) == 0


def _sent(folder: Path) -> list[str]:
    return _bodies(folder, "out")


def _bodies(folder: Path, queue: str) -> list[str]:
    """Return the ids of the orders in a queue, once nothing holds them."""
    with ConnectionFactory(_url(folder)).create_connection() as connection, connection.create_session() as session:
        connection.start()
        consumer, admin = session.create_consumer(Queue(queue)), connection.admin
        assert admin is not None
        found: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while admin.depth(Queue(queue)).total:
            assert time.monotonic() < deadline, f"{queue} cannot be read"
            message = consumer.receive(1)
            found += [] if message is None else re.findall(r'"id": "(\w)"', message.get_body(str))
        return found
