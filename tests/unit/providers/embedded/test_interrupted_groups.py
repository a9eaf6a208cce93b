"""Exceptions of signal handlers in a shared write: none stops the other threads, is lost, or writes a job twice."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from jmsjca.errors import TransactionInDoubtError
from jmsjca.providers.embedded.store import database
from jmsjca.providers.embedded.store import store as store_module
from tests.support.interruptions import Interruption, TimeLimitError, each_moment
from tests.unit.providers.embedded.test_group_commit import PATIENCE, Line, in_background, note, notes

KINDS = pytest.mark.parametrize("kind", [TimeLimitError, KeyboardInterrupt])
PLACES = store_module.__file__, database.__file__


@pytest.fixture
def store(connected_file):
    return connected_file()._store


def outcome(call: Callable[[], object], kind: type[BaseException]) -> object:
    """Return the result of a call, or the type of its exception."""
    try:
        return call()
    except (kind, TransactionInDoubtError) as error:
        return type(error)


def check_written(store, name: str, seen: object) -> None:
    """Check that what a thread saw is true: a result means that its job was written."""
    assert seen == name or seen in (TimeLimitError, KeyboardInterrupt, TransactionInDoubtError)
    assert seen != name or name in notes(store)


@KINDS
def test_interrupted_leader_makes_way_for_those_who_came_during_its_write(store, kind):
    def play(interruption: Interruption) -> None:
        names = [f"{interruption.left}-{n}" for n in range(3)]
        followers: list[Future[object]] = []

        def lead(cursor: sqlite3.Cursor) -> str:
            line = store._groups._waiting = Line(2, store._groups._waiting)
            followers.extend(in_background(store.submit, note(name)) for name in names[1:])
            assert line.reached.wait(PATIENCE)
            return note(names[0])(cursor)

        with interruption.planted():
            seen = outcome(lambda: store.submit(lead), kind)
        check_written(store, names[0], seen)
        for name, follower in zip(names[1:], followers, strict=True) if followers else ():
            assert follower.result(PATIENCE) == name
        assert in_background(store.submit, note(f"{names[0]} next")).result(PATIENCE) == f"{names[0]} next"

    assert each_moment(play, kind, *PLACES) > 20


@KINDS
def test_interruption_in_a_group_is_raised_once_and_no_job_is_written_twice(store, kind):
    def play(interruption: Interruption) -> None:
        names = [f"{interruption.left}-{n}" for n in range(3)]
        moment = interruption.left
        line = store._groups._waiting = Line(3)
        leave, begun = threading.Event(), threading.Event()

        def occupy(_: sqlite3.Cursor) -> None:
            begun.set()
            assert leave.wait(PATIENCE)

        first = in_background(store.submit, occupy)
        assert begun.wait(PATIENCE)
        followers: list[Future[object]] = []

        def follow() -> None:
            """Let the main thread be the first in the line, and so the leader of the next group."""
            while not (line or leave.is_set()):
                pass
            followers.extend(in_background(store.submit, note(name)) for name in names[1:])
            while not (line.reached.wait(0.01) or leave.is_set()):
                pass
            leave.set()

        follower_start = in_background(follow)
        with interruption.planted():
            seen = outcome(lambda: store.submit(note(names[0])), kind)
        leave.set()
        first.result(PATIENCE)
        follower_start.result(PATIENCE)
        check_written(store, names[0], seen)
        for name, follower in zip(names[1:], followers, strict=True):
            check_written(store, name, outcome(lambda follower=follower: follower.result(PATIENCE), kind))
        assert (interruption.left > 0) == (seen == names[0]), moment

    assert each_moment(play, kind, *PLACES) > 20


@KINDS
def test_interrupted_enqueue_leaves_a_thread_that_writes(store, kind):
    def play(interruption: Interruption) -> None:
        name = str(interruption.left)
        with interruption.planted():
            outcome(lambda: store.enqueue(note(name), lambda _: None), kind)
        wait = store.enqueue(note(f"{name} next"), lambda _: None)
        assert in_background(wait).result(PATIENCE) == f"{name} next"

    assert each_moment(play, kind, *PLACES) > 3
