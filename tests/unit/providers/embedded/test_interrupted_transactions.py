"""Exceptions of signal handlers in a transaction: none leaves a lock or an open transaction behind."""

import sqlite3
import threading

import pytest

from jmsjca.errors import StoreError
from jmsjca.providers.embedded.store import database, store
from tests.support.interruptions import Interruption, TimeLimitError, each_moment

PATIENCE = 30
PLACES = store.__file__, database.__file__
SYNCHRONOUS_FULL = 2


@pytest.fixture(params=["memory", "file"])
def the_store(request, connected, connected_file):
    return (connected if request.param == "memory" else connected_file)()._store


def write(the_store: store.Store, address: str, *, durable: bool = True) -> None:
    with the_store.write(durable=durable) as cursor:
        cursor.execute("INSERT INTO setting (address, settings) VALUES (?, '')", (address,))


def write_and_fail(the_store: store.Store, address: str, *, durable: bool = True) -> None:
    with the_store.write(durable=durable) as cursor:
        cursor.execute("INSERT INTO setting (address, settings) VALUES (?, '')", (address,))
        raise ZeroDivisionError


def read(the_store: store.Store, *_: object, **__: object) -> None:
    with the_store.read() as cursor:
        cursor.execute("SELECT count(*) FROM setting")


def has(the_store: store.Store, address: str) -> bool:
    with the_store.read() as cursor:
        return cursor.execute("SELECT 1 FROM setting WHERE address = ?", (address,)).fetchone() is not None


def check_free(the_store: store.Store) -> None:
    """Check that another process can write, then another thread, and that it would wait for the disk."""
    if the_store.path is not None:
        other = sqlite3.connect(the_store.path, timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.close()
    seen: list[int] = []

    def write_elsewhere() -> None:
        with the_store.write() as cursor:
            seen.extend(cursor.execute("PRAGMA synchronous").fetchone())

    thread = threading.Thread(target=write_elsewhere, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert seen == [SYNCHRONOUS_FULL]


@pytest.mark.parametrize("kind", [TimeLimitError, KeyboardInterrupt])
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("transact", [write, write_and_fail, read])
def test_interrupted_transaction_leaves_nothing_behind(the_store, transact, durable, kind):
    def play(interruption: Interruption) -> None:
        try:
            with interruption.planted():
                transact(the_store, str(interruption.left), durable=durable)
        except (kind, ZeroDivisionError):
            pass
        check_free(the_store)

    assert each_moment(play, kind, *PLACES) > 3


def test_transaction_within_a_transaction_of_its_thread_is_refused_and_spares_it(the_store):
    """A signal handler that uses the broker may find its thread in a transaction."""
    with the_store.write() as cursor:
        cursor.execute("INSERT INTO setting (address, settings) VALUES ('a', '')")
        with pytest.raises(StoreError, match="within a transaction"):
            write(the_store, "b")
        assert the_store.database.connection.in_transaction
    assert (has(the_store, "a"), has(the_store, "b")) == (True, False)


def test_rollback_that_fails_is_repeated_by_the_next_transaction(the_store, monkeypatch):
    class FailingCursor:
        def execute(self, statement: str, *args: object) -> object:
            if statement == "ROLLBACK":
                raise sqlite3.OperationalError("failed")
            return cursor.execute(statement, *args)

    cursor = the_store.database.cursor
    with monkeypatch.context() as patch:
        patch.setattr(the_store.database, "cursor", FailingCursor())
        with pytest.raises(StoreError, match="failed"):
            write_and_fail(the_store, "a")
    write(the_store, "b")
    assert (has(the_store, "a"), has(the_store, "b")) == (False, True)
