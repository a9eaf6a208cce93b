"""Which deliveries count: those that were handed over, however the process ends."""

from pathlib import Path

import pytest

from jmsjca import Queue
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.embedded.processes import PATIENCE, heard, process, put, received

QUEUE = Queue("q")

# A session of this mode gets the first message, and has prefetched the others.
_SESSION = """
from jmsjca import AcknowledgeMode, ConnectionFactory
shared = ConnectionFactory(url).create_connection()
session = shared.create_session({mode})
shared.start()
receiver = session.create_consumer(Queue("q"))
"""
_RECEIVE = "tell(receiver.receive(60).body)\n"
_LISTEN = """
def listen(message):
    tell(message.body)
    signal.pause()
receiver.set_message_listener(listen)
"""
MODES = {
    "transacted": "transacted=True",
    "client": "acknowledge_mode=AcknowledgeMode.CLIENT",
    "individual": "acknowledge_mode=AcknowledgeMode.INDIVIDUAL",
    "dups ok": "acknowledge_mode=AcknowledgeMode.DUPS_OK",
}


def lock_file(broker_file, connection):
    return Path(f"{broker_file}-owners", f"{connection._store.owner}.lock")


def killed(child):
    child.kill()
    child.wait(PATIENCE)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_messages_that_a_killed_session_had_returned_are_counted(connected_file, broker_file, mode):
    connection = connected_file()
    put(connection, "a", "b", "c")
    with process(broker_file, _SESSION.format(mode=mode) + _RECEIVE + "sys.stdin.read()") as child:
        assert heard(child) == "a"
        killed(child)
    assert received(connection) == [("a", 2), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("mode", [*MODES.values(), ""], ids=[*MODES, "auto"])
def test_messages_that_the_listener_of_a_killed_session_got_are_counted(connected_file, broker_file, mode):
    connection = connected_file()
    put(connection, "a", "b", "c")
    with process(broker_file, _SESSION.format(mode=mode) + _LISTEN + "sys.stdin.read()") as child:
        assert heard(child) == "a"
        killed(child)
    assert received(connection) == [("a", 2), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("end", ["sys.exit()", "shared.close()"], ids=["exit", "close"])
@pytest.mark.parametrize("mode", MODES, ids=MODES)
def test_of_a_session_that_ends_what_it_returned_counts(connected_file, broker_file, mode, end):
    """Under DUPS_OK its close acknowledges that, and an exit does not."""
    connection = connected_file()
    put(connection, "a", "b", "c")
    with process(broker_file, _SESSION.format(mode=MODES[mode]) + _RECEIVE + end) as child:
        assert heard(child) == "a"
        assert child.wait(PATIENCE) == 0
    acknowledged = (mode, end) == ("dups ok", "shared.close()")
    assert received(connection) == [*([] if acknowledged else [("a", 2)]), ("b", 1), ("c", 1)]


def test_of_a_killed_session_what_it_could_not_decode_counts(connected_file, broker_file):
    """Its caller has learnt of it, and may die of that again and again."""
    connection = connected_file()
    put(connection, "a", "b")
    with connection._store.write() as cursor:
        cursor.execute("UPDATE message SET headers = '{' WHERE id = 1")
    script = _SESSION.format(mode=MODES["transacted"]) + "receiver.receive(60)"
    with process(broker_file, script) as child:
        assert child.wait(PATIENCE) == 1
    assert [d.count for d in connection.consumer(QUEUE).receive(2, PATIENCE)] == [2, 1]


_MANY = """
consumer = connection.consumer(Queue("q"))
held = consumer.receive(2000, 0)
connection.unit().take(held)
consumer.hand_over(held[:1500])
tell(len(held))
sys.stdin.read()
"""


def test_any_number_of_messages_is_recorded(connected_file, broker_file):
    """The file begins with room for 255."""
    connection = connected_file()
    put(connection, *map(str, range(2000)))
    with process(broker_file, _MANY) as child:
        assert heard(child) == "2000"
        killed(child)
    consumer = connection.consumer(QUEUE)
    assert [d.count for d in consumer.receive(2000, PATIENCE)] == [2] * 1500 + [1] * 500


def test_any_number_of_messages_is_recorded_on_macos(connected_file, broker_file):
    connection = connected_file()
    put(connection, *map(str, range(2000)))
    macos = """
del os.posix_fallocate
connection.close()
connection = connect(ConnectionSettings(url))
"""
    with process(broker_file, macos + _MANY) as child:
        assert heard(child) == "2000"
        killed(child)
    consumer = connection.consumer(QUEUE)
    assert [d.count for d in consumer.receive(2000, PATIENCE)] == [2] * 1500 + [1] * 500


def test_record_does_not_grow_with_what_is_settled(connected_file, broker_file):
    """Or released, or lost with a connection."""
    connection, consumer = connected_file(), connected_file().consumer(QUEUE)
    for number in range(400):
        put(connection, "a")
        closing = connect(ConnectionSettings(f"embedded://{broker_file}"))
        user = closing.consumer(QUEUE) if number % 10 == 0 else consumer
        held = user.receive(1, 0)
        unit = (closing if user is not consumer else connection).unit()
        unit.take(held)
        user.hand_over(held)
        if user is not consumer:
            closing.close()
            continue
        unit.commit() if number % 3 else unit.rollback()
        closing.close()
    assert lock_file(broker_file, connection).stat().st_size == 4096


_AGAIN = """
consumer, unit = connection.consumer(Queue("q")), connection.unit()
held = consumer.receive(1, 0)
unit.take(held)
consumer.hand_over(held)
unit.rollback()
tell(consumer.receive(1, 0)[0].count)
sys.stdin.read()
"""


def test_record_of_an_earlier_claim_has_no_effect(connected_file, broker_file):
    """The same message is claimed again, and not handed over."""
    connection = connected_file()
    put(connection, "a")
    with process(broker_file, _AGAIN) as child:
        assert heard(child) == "2"
        killed(child)
    assert received(connection) == [("a", 2)]


_HOLD_TWO = """
consumer = connection.consumer(Queue("q"))
held = consumer.receive(2, 0)
consumer.hand_over(held[:1])
tell(len(held))
sys.stdin.read()
"""


def test_claims_of_an_earlier_release_count(connected_file, broker_file):
    """Its lock file is empty."""
    connection = connected_file()
    put(connection, "a", "b")
    with process(broker_file, _HOLD_TWO) as child:
        assert heard(child) == "2"
        for file in Path(f"{broker_file}-owners").iterdir():
            if file != lock_file(broker_file, connection):
                killed(child)
                file.write_bytes(b"")
    assert received(connection) == [("a", 2), ("b", 2)]


def test_claims_count_without_disk_space_for_the_record(connected_file, broker_file):
    """A full disk keeps no consumer from a file."""
    connection = connected_file()
    put(connection, "a", "b")
    full = """
import errno
def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")
os.posix_fallocate = full
connection.close()
connection = connect(ConnectionSettings(url))
"""
    with process(broker_file, full + _HOLD_TWO) as child:
        assert heard(child) == "2"
        killed(child)
    assert received(connection) == [("a", 2), ("b", 2)]


def test_what_does_not_fit_on_a_full_disk_is_not_counted(connected_file, broker_file):
    """A lost count is harmless, and an error at a hand-over would not be."""
    connection = connected_file()
    put(connection, *map(str, range(2000)))
    full = """
import errno
def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")
os.posix_fallocate = full
"""
    with process(broker_file, full + _MANY) as child:
        assert heard(child) == "2000"
        killed(child)
    consumer = connection.consumer(QUEUE)
    assert [d.count for d in consumer.receive(2000, PATIENCE)] == [2] * 255 + [1] * 1745


def test_lock_files_that_a_crash_left_are_removed(connected_file, broker_file):
    """Of owners whose messages were released already."""
    mine = lock_file(broker_file, connected_file())
    left = mine.with_name("99.lock")
    left.write_bytes(b"left")
    connected_file()
    assert left.exists()  # this process has the file open already
    with process(broker_file, "tell('open')\nsys.stdin.read()") as child:
        assert heard(child) == "open"
        assert not left.exists()
        assert len(list(mine.parent.iterdir())) == 2


_FORK = """
consumer = connection.consumer(Queue("q"))
held = consumer.receive(2, 0)
if os.fork() == 0:
    consumer.hand_over(held[::-1])  # in other slots than its parent
    os._exit(0)
os.wait()
consumer.hand_over(held[1:])
tell("forked")
sys.stdin.read()
"""


def test_forked_child_does_not_write_to_the_record_of_its_parent(connected_file, broker_file):
    connection = connected_file()
    put(connection, "a", "b")
    with process(broker_file, _FORK) as parent:
        assert heard(parent) == "forked"
        killed(parent)
    assert received(connection) == [("a", 1), ("b", 2)]
