"""Processes over one file: they wake each other, give back what the dead held, and are safe to fork."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import Queue
from jmsjca.providers.embedded import consumer as consumer_module
from tests.unit.processes import PATIENCE, heard, process, put, received

QUEUE = Queue("q")


def tell_when_waiting(connection, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a receive of this broker has found nothing and begins to wait for a ring."""
    waiting, wait = threading.Event(), connection._store.bell.wait

    def tell_and_wait(seen: int, timeout: float) -> None:
        waiting.set()
        wait(seen, timeout)

    monkeypatch.setattr(connection._store.bell, "wait", tell_and_wait)
    return waiting


_HOLD = """
deliveries = connection.consumer(Queue("q")).receive(10, 0)
unit = connection.unit()
unit.take(deliveries[:1])
unit.send(TextMessage("never"), Queue("out"))
tell("holding", len(deliveries))
sys.stdin.read()
"""


def test_what_a_killed_process_held_comes_back(connected_file, broker_file):
    connection = connected_file()
    put(connection, "a", "b")
    with process(broker_file, _HOLD) as child:
        assert heard(child) == "holding 2"
        assert connection.consumer(QUEUE).receive(1, 0) == []
        child.kill()
        child.wait(PATIENCE)
        assert received(connection) == [("a", 2), ("b", 2)]  # both may have been seen
    assert connection.admin().depth(Queue("out")).total == 0


def test_who_opens_the_file_later_finds_what_a_killed_process_held(connected_file, broker_file):
    with process(broker_file, "send('q', 'a')" + _HOLD) as child:
        assert heard(child) == "holding 1"
        child.kill()
        child.wait(PATIENCE)
    assert received(connected_file()) == [("a", 2)]


def test_what_a_killed_process_had_committed_is_there(connected_file, broker_file):
    with process(broker_file, "send('q', 'a')\ntell('sent')\nsys.stdin.read()") as child:
        assert heard(child) == "sent"
        child.kill()
    assert received(connected_file()) == [("a", 1)]


def test_subscription_of_a_killed_process_is_forgotten(connected_file, broker_file):
    script = "from jmsjca import Topic\nconnection.consumer(Topic('t'))\ntell('subscribed')\nsys.stdin.read()"
    connection = connected_file()
    with process(broker_file, script) as child:
        assert heard(child) == "subscribed"
        assert [d.kind for d in connection.admin().destinations()] == ["topic"]
        connection.close()
        child.kill()
        child.wait(PATIENCE)
    assert list(connected_file().admin().destinations()) == []


_ECHO = """
requests = connection.consumer(Queue("requests"))
tell("ready")
for _ in range(20):
    [delivery] = requests.receive(1, None)
    unit = connection.unit()
    unit.take([delivery])
    unit.send(TextMessage(delivery.message.body), Queue("replies"))
    unit.commit()
"""


def test_processes_wake_each_other(connected_file, broker_file, monkeypatch):
    """Neither side looks by itself within the hour, so every round trip needs two rings."""
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    connection = connected_file()
    replies = connection.consumer(Queue("replies"))
    with process(broker_file, _ECHO) as child:
        assert heard(child) == "ready"
        for n in range(20):
            put(connection, str(n), name="requests")
            [reply] = replies.receive(1, PATIENCE)
            assert reply.message.body == str(n)
        assert child.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "give_back", ["unit.rollback()", "connection.close()", "sys.exit()"], ids=["rollback", "close", "exit"]
)
def test_what_a_process_gives_back_wakes_others(connected_file, broker_file, monkeypatch, give_back):
    monkeypatch.setattr(consumer_module, "_SAFETY_POLL", 3600)
    connection = connected_file()
    put(connection, "a")
    waiting = tell_when_waiting(connection, monkeypatch)
    script = _HOLD.replace("sys.stdin.read()", f"sys.stdin.readline()\n{give_back}\nsys.stdin.read()")
    with process(broker_file, script) as child:
        assert heard(child) == "holding 1"
        with ThreadPoolExecutor() as threads:
            result = threads.submit(received, connection)
            assert waiting.wait(PATIENCE)
            assert child.stdin is not None
            child.stdin.write("go on\n")
            child.stdin.flush()
            assert result.result(PATIENCE) == [("a", 2)]
