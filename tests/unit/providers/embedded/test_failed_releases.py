"""Releases that fail: they are repeated until they succeed, and no later message overtakes."""

import itertools
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from jmsjca import ActivationSpec, Limits, Queue, ResourceAdapter, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    ResourceAllocationError,
    TransactionRolledBackError,
)
from jmsjca.providers.embedded.store import store as store_module
from jmsjca.reconnection import ConnectionSettings, connect
from tests.torture.failed_releases import FailingCursor
from tests.unit.inbound.listeners import Recorder, send
from tests.unit.providers.embedded.processes import PATIENCE, REPEATED, heard, process, put, trouble

QUEUE = Queue("q")
SHORT = Limits(lock_timeout=0.01)


@contextmanager
def locked(broker_file) -> Iterator[None]:
    """Keep the file locked as another process does."""
    other = sqlite3.connect(broker_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@pytest.mark.parametrize("fails", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("mode", ["serial", "cc", "sync"])
def test_listener_whose_file_stays_locked_for_longer_than_it_waits(broker_file, connected_file, caplog, mode, fails):
    """At the end nothing is held, and in serial nothing was overtaken."""
    caplog.set_level("INFO")
    adapter = ResourceAdapter(f"embedded://{broker_file}", limits=SHORT)
    send(adapter, "a", "b", "c")
    other = sqlite3.connect(broker_file, isolation_level=None, check_same_thread=False)
    seen, done = [], threading.Event()

    def handle(message):
        seen.append((message.body, message.delivery_count))
        if len(seen) == 1:
            other.execute("BEGIN IMMEDIATE")
            if fails:
                raise ValueError("failed")
        if {body for body, _ in seen[1:]} == {"a", "b", "c"}:
            done.set()

    adapter.activate(ActivationSpec(destination=QUEUE, concurrency_mode=mode, endpoint_pool_max_size=1), handle)
    with trouble(REPEATED, lambda: other.execute("ROLLBACK")), adapter:
        assert done.wait(PATIENCE)
    other.close()
    first = seen[0][0]
    if mode == "serial":
        assert seen == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
    assert (first, 2) in seen
    assert [r.levelname for r in caplog.records if REPEATED in r.getMessage()] == ["WARNING"]
    assert not re.search("(messages are|is rolled back and) redelivered", caplog.text)
    assert connected_file().admin().depth(QUEUE).total == 0


def test_listener_is_not_up_while_messages_cannot_be_released(broker_file, monkeypatch):
    monkeypatch.setattr(store_module, "_RELEASE_PATIENCE", 0.0)
    recorder, seen, done = Recorder(), [], threading.Event()
    adapter = ResourceAdapter(f"embedded://{broker_file}", limits=SHORT, hooks=[recorder])
    send(adapter, "a", "b")
    other = sqlite3.connect(broker_file, isolation_level=None, check_same_thread=False)

    def handle(message):
        if not seen:
            other.execute("BEGIN IMMEDIATE")
        seen.append(message.body)
        if seen[-1] == "b":
            done.set()

    adapter.activate(ActivationSpec(destination=QUEUE, concurrency_mode="serial"), handle)
    with adapter:
        recorder.await_status("Connecting", "Up", "Connecting")
        other.execute("ROLLBACK")
        assert done.wait(PATIENCE)
    other.close()
    assert seen == ["a", "a", "b"]


@pytest.mark.parametrize("end", ["commit", "rollback", "release", "close"])
def test_without_a_consumer_that_waits_the_release_is_repeated(broker_file, end):
    """Another process waits for the message; this one does nothing more."""
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=SHORT))
    put(connection, "a")
    consumer, unit = connection.consumer(QUEUE), connection.unit()
    deliveries = consumer.receive(1, 0)
    if end in ("commit", "rollback"):
        unit.take(deliveries)
    ends = {
        "commit": unit.commit,
        "rollback": unit.rollback,
        "release": lambda: consumer.release(deliveries),
        "close": consumer.close,
    }
    with process(broker_file, "tell(connection.consumer(Queue('q')).receive(1, 60)[0].message.body)") as child:
        with locked(broker_file):
            if end in ("rollback", "release"):
                ends[end]()
            else:
                with pytest.raises((TransactionRolledBackError, ResourceAllocationError), match="locked for too long"):
                    ends[end]()
        assert heard(child) == "a"
    connection.close()


def test_error_of_a_commit_says_that_its_messages_stay_held(broker_file):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=SHORT))
    put(connection, "a")
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE).receive(1, 0))
    with (
        locked(broker_file),
        pytest.raises(TransactionRolledBackError, match=r"locked for too long.*stay held until their release succeeds"),
    ):
        unit.commit()
    connection.close()


def test_delay_of_a_rollback_is_kept_by_a_closing_connection(broker_file):
    """The release that failed comes first: it knows what counts, and when it is due."""
    settings = ConnectionSettings(f"embedded://{broker_file}", limits=SHORT)
    connection, other = connect(settings), connect(settings)
    put(connection, "a", "b")
    consumer, unit = connection.consumer(QUEUE), connection.unit()
    deliveries = consumer.receive(2, 0)
    unit.take(deliveries)
    consumer.hand_over(deliveries)
    store = connection._store
    with locked(broker_file):
        unit.rollback(delay=3600, unused=deliveries[1:])
        with pytest.raises(ResourceAllocationError):
            connection.close()
    while store.postponed:
        other.consumer(Queue("another")).receive(1, 0.01)
    with store.read() as cursor:
        rows = cursor.execute("SELECT deliveries, due IS NULL, owner FROM message ORDER BY id").fetchall()
    assert rows == [(1, 0, None), (0, 0, None)]
    other.close()


def test_consumer_whose_registration_was_rolled_back_removes_no_other(connected_file):
    """The next one gets its id. Each statement of the registration fails, and all later ones."""
    connection = connected_file()
    store = connection._store
    store.database.cursor = cursor = FailingCursor(store.database.cursor)
    for first in itertools.count(1):
        cursor.fail(first, 0, sqlite3.SQLITE_FULL)
        with suppress(JMSError):
            connection.consumer(QUEUE)
            break
        cursor.heal()
        assert store.postponed == []
    cursor.heal()
    with pytest.raises(IllegalStateError, match="has consumers"):
        connection.remove(QUEUE)


def test_subscription_of_a_consumer_that_could_not_close_is_free_later(broker_file):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=SHORT))
    consumer = connection.consumer(Topic("t"))
    with locked(broker_file), pytest.raises(ResourceAllocationError):
        consumer.close()
    while connection._store.postponed:
        connection.consumer(QUEUE).receive(1, 0.01)
    assert [d.kind for d in connection.admin().destinations()] == ["queue"]
    connection.close()


def test_removed_file_leaves_nothing_to_release(broker_file):
    connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=SHORT))
    put(connection, "a")
    consumer, unit = connection.consumer(QUEUE), connection.unit()
    unit.take(consumer.receive(1, 0))
    broker_file.unlink()
    with pytest.raises(ConnectionLostError):
        unit.rollback()
    assert not consumer.unsettled
    connection.close()


def test_other_queues_go_on_while_a_release_fails(connected, monkeypatch):
    """A defect of one message, as of a damaged page, stops only its queue."""
    connection = connected()
    put(connection, "a")
    put(connection, "b", name="other")
    store = connection._store

    def broken(cursor):
        cursor.execute("SELECT * FROM missing")

    queue, other = connection.consumer(QUEUE), connection.consumer(Queue("other"))
    store.postpone(broken, print, [queue.queue_id], ValueError("broken"))
    assert queue.receive(1, 0) == []
    [delivery] = other.receive(1, 0)
    assert delivery.message.body == "b"
    monkeypatch.setattr(store.clock, "monotonic", lambda: float("inf"))
    with pytest.raises(Exception, match="missing"):
        queue.receive(1, 0)
    store.postponed.clear()
