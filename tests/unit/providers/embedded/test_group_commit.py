"""Group commit: units written together, and failures kept apart."""

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import NamedTuple

import pytest

from jmsjca import Limits, Queue, TextMessage
from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError, TransactionInDoubtError
from jmsjca.providers.embedded.store import store as store_module
from jmsjca.providers.embedded.store.store import Store
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.embedded.test_failed_commits import FailingCursor

PATIENCE = 30


class Line(list[object]):
    """The queue of jobs; it tells when it is so long."""

    def __init__(self, length: int, turns: Iterable[object] = ()) -> None:
        super().__init__(turns)
        self._length = length
        self.reached = threading.Event()

    def append(self, turn: object) -> None:
        super().append(turn)
        if len(self) == self._length:
            self.reached.set()


def note(text: str) -> Callable[[sqlite3.Cursor], str]:
    """A job that leaves a trace and returns it."""

    def job(cursor: sqlite3.Cursor) -> str:
        cursor.execute("INSERT INTO setting (address, settings) VALUES (?, '')", (text,))
        return text

    return job


def refuse(cursor: sqlite3.Cursor) -> None:
    note("refused")(cursor)
    raise ZeroDivisionError


def notes(store: Store) -> set[str]:
    with store.read() as cursor:
        return {address for (address,) in cursor.execute("SELECT address FROM setting")}


def in_background(call: Callable[..., object], *arguments: object) -> Future[object]:
    """Call on a thread that cannot keep the tests from ending."""
    future: Future[object] = Future()

    def run() -> None:
        try:
            future.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001  # whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Together(NamedTuple):
    """Jobs that all wait while another job runs."""

    followers: list[Future[object]]
    go: Callable[[], None]


@pytest.fixture
def connection(connected_file):
    return connected_file()


@pytest.fixture
def store(connection):
    return connection._store


@pytest.fixture
def together(store):
    """Queues jobs behind one that runs; `go` lets it end."""
    end, begun = threading.Event(), threading.Event()

    def occupy(cursor: sqlite3.Cursor) -> str:
        begun.set()
        assert end.wait(PATIENCE)
        return "first"

    def queue(*jobs: Callable[[sqlite3.Cursor], object]) -> Together:
        line = store._groups._waiting = Line(len(jobs))
        first = in_background(store.submit, occupy)
        assert begun.wait(PATIENCE)
        line.reached.clear()
        followers = [in_background(store.submit, job) for job in jobs]
        assert line.reached.wait(PATIENCE)

        def go() -> None:
            end.set()
            assert first.result(PATIENCE) == "first"

        return Together(followers, go)

    yield queue
    end.set()


@pytest.fixture
def commits(store):
    """The commits of this process, as SQLite sees them."""
    seen: list[str] = []
    store.database.connection.set_trace_callback(lambda s: seen.append(s) if s == "COMMIT" else None)
    return seen


def test_what_waits_is_committed_together_and_each_gets_its_own_result(together, store, commits):
    followers, go = together(*(note(str(n)) for n in range(10)))
    go()
    assert [f.result(PATIENCE) for f in followers] == [str(n) for n in range(10)]
    assert len(commits) == 2  # the one that all waited for, and theirs
    assert notes(store) == {str(n) for n in range(10)}


def test_group_is_bounded(together, commits, monkeypatch):
    monkeypatch.setattr(store_module, "_MAX_GROUP", 4)
    followers, go = together(*(note(str(n)) for n in range(10)))
    go()
    assert [f.result(PATIENCE) for f in followers] == [str(n) for n in range(10)]
    assert len(commits) == 1 + 3


def test_job_that_fails_fails_alone(together, store):
    followers, go = together(note("a"), refuse, note("b"))
    go()
    assert (followers[0].result(PATIENCE), followers[2].result(PATIENCE)) == ("a", "b")
    with pytest.raises(ZeroDivisionError):
        followers[1].result(PATIENCE)
    assert notes(store) == {"a", "b"}


class FailingSecond(FailingCursor):
    """A cursor whose next COMMIT but one fails: not that of the job which the others wait for, but theirs."""

    _passed = False

    def execute(self, statement: str, *args: object) -> object:
        if statement == "COMMIT" and not self._passed:
            self._passed = True
            return self._cursor.execute(statement)
        return super().execute(statement, *args)


def test_commit_that_failed_for_all_is_tried_for_each(together, store, monkeypatch):
    followers, go = together(note("a"), note("b"))
    monkeypatch.setattr(store.database, "cursor", FailingSecond(store.database.cursor, sqlite3.SQLITE_FULL))
    go()
    assert [f.result(PATIENCE) for f in followers] == ["a", "b"]
    assert notes(store) == {"a", "b"}


def test_commit_in_doubt_is_in_doubt_for_all(together, store, monkeypatch):
    followers, go = together(note("a"), note("b"))
    monkeypatch.setattr(store.database, "cursor", FailingSecond(store.database.cursor, sqlite3.SQLITE_IOERR_FSYNC))
    go()
    for follower in followers:
        with pytest.raises(TransactionInDoubtError):
            follower.result(PATIENCE)
    assert store.submit(note("c")) == "c"
    assert notes(store) == {"c"}


def test_lock_of_another_process_is_waited_for_once(broker_file, monkeypatch):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=Limits(lock_timeout=0.01)))
    store = connection._store
    monkeypatch.setattr(store._groups, "_expected", 2)
    monkeypatch.setattr(store_module, "_COLLECT_TIMEOUT", PATIENCE)  # so the two are one group
    other = sqlite3.connect(broker_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    followers = [in_background(store.submit, note(name)) for name in "ab"]
    errors = [follower.exception(PATIENCE) for follower in followers]
    assert isinstance(errors[0], ResourceAllocationError)
    assert errors[1] is errors[0]
    other.close()
    connection.close()


def test_interruption_of_the_leader_is_its_own(together, store):
    """It came before the commit, but those who waited cannot know that: they are in doubt, and not stuck."""
    interruptions = iter([KeyboardInterrupt])

    def job(cursor: sqlite3.Cursor) -> None:
        for interruption in interruptions:
            raise interruption

    followers, go = together(job, job)
    go()
    kinds = {type(follower.exception(PATIENCE)) for follower in followers}
    assert kinds == {KeyboardInterrupt, TransactionInDoubtError}
    assert store.submit(note("next")) == "next"


def test_interrupted_waiter_takes_its_job_back(together, store):
    followers, go = together(note("a"))
    line = store._groups._waiting = Line(2, store._groups._waiting)
    main, interrupted = threading.get_ident(), threading.Event()

    def interrupt() -> None:
        """Again and again: a signal that comes just before a thread begins to wait does not end the wait."""
        assert line.reached.wait(PATIENCE)
        while not interrupted.wait(0.01):
            signal.pthread_kill(main, signal.SIGUSR1)

    def raise_interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, raise_interrupt)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        store.submit(note("b"))
    interrupter.join(PATIENCE)
    signal.signal(signal.SIGUSR1, before)
    go()
    assert followers[0].result(PATIENCE) == "a"
    assert notes(store) == {"a"}


def test_closing_leaves_nobody_waiting(together, connection):
    followers, go = together(*(note(str(n)) for n in range(10)))
    closer = threading.Thread(target=connection.close)
    closer.start()
    go()
    closer.join(PATIENCE)
    for follower in followers:
        error = follower.exception(PATIENCE)
        assert error is None or isinstance(error, ConnectionLostError)


def test_units_of_many_threads_lose_nothing(connection):
    """Eight threads pass twenty messages each from queue to queue; now and then a unit fails and is done again."""

    def pass_on(number: int) -> None:
        consumer = connection.consumer(Queue(f"in{number}"))
        for n in range(20):
            put(connection, f"in{number}", str(n))
            for attempt in range(2):
                [delivery] = consumer.receive(1, PATIENCE)
                unit = connection.unit()
                unit.take([delivery])
                unit.send(TextMessage(delivery.message.body), Queue("out"))
                if attempt == 0 and n % 3 == 0:
                    steal(connection, delivery)
                    with pytest.raises(JMSError, match="not ours any more"):
                        unit.commit()
                else:
                    unit.commit()
                    break

    for future in [in_background(pass_on, number) for number in range(8)]:
        future.result(PATIENCE)
    deliveries = connection.consumer(Queue("out")).receive(1000, 0)
    assert sorted(int(d.message.body) for d in deliveries) == sorted(list(range(20)) * 8)


def put(connection, name: str, body: str) -> None:
    unit = connection.unit()
    unit.send(TextMessage(body), Queue(name))
    unit.commit()


def steal(connection, delivery) -> None:
    """Give a held message back behind its holder's back, as another process does that takes it for dead."""
    with connection._store.write() as cursor:
        cursor.execute("UPDATE message SET owner = NULL, token = NULL WHERE id = ?", (delivery.id,))


@pytest.fixture
def occupied(store):
    """A job that runs until `set` is called; what is submitted or enqueued meanwhile waits."""
    end, begun = threading.Event(), threading.Event()

    def occupy(cursor: sqlite3.Cursor) -> None:
        begun.set()
        assert end.wait(PATIENCE)

    running = in_background(store.submit, occupy)
    assert begun.wait(PATIENCE)
    yield end
    end.set()
    running.result(PATIENCE)


def test_enqueued_jobs_are_committed_together_without_waiting(store, occupied, commits):
    told: list[str] = []
    waits = [store.enqueue(note(str(n)), told.append) for n in range(10)]
    assert told == []
    occupied.set()
    assert [wait() for wait in waits] == [str(n) for n in range(10)]
    assert told == [str(n) for n in range(10)]
    assert notes(store) == set(told)
    assert len(commits) < 10


def test_enqueued_jobs_beyond_a_group_come_before_a_later_submission(store, occupied, monkeypatch):
    monkeypatch.setattr(store_module, "_MAX_GROUP", 4)
    ran: list[int] = []
    waits = [store.enqueue(lambda _, number=number: ran.append(number), lambda _: None) for number in range(10)]
    last = in_background(store.submit, lambda _: ran.append(10))
    occupied.set()
    last.result(PATIENCE)
    for wait in waits:
        wait()
    assert ran == list(range(11))


def test_enqueued_job_that_fails_fails_alone(store, occupied):
    told: list[object] = []
    waits = [store.enqueue(job, told.append) for job in (note("a"), refuse, note("b"))]
    occupied.set()
    assert (waits[0](), waits[2]()) == ("a", "b")
    with pytest.raises(ZeroDivisionError):
        waits[1]()
    assert told == ["a", "b"]


def test_enqueued_jobs_are_written_although_nobody_waits(store):
    written = threading.Event()
    for number in range(3):  # bursts: the writing thread ends in between
        written.clear()
        store.enqueue(note(str(number)), lambda _: written.set())
        assert written.wait(PATIENCE)
    assert notes(store) == {"0", "1", "2"}


def test_enqueued_job_is_written_by_its_caller_where_there_are_no_more_threads(store, monkeypatch):
    def refuse_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_thread)
        wait = store.enqueue(note("a"), lambda _: None)
    assert wait() == "a"


def test_enqueued_job_of_a_closed_store_is_refused(connection, store):
    connection.close()
    with pytest.raises(ConnectionLostError):
        store.enqueue(note("a"), lambda _: None)
