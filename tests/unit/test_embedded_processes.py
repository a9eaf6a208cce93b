"""Processes over one file: they wake each other, give back what the dead held, and are safe to fork."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.providers.embedded import consumer as consumer_module

PATIENCE = 60
QUEUE = Queue("q")

_BEGIN = """
import os, signal, sys, threading
from jmsjca import Queue, TextMessage
from jmsjca.errors import ConnectionLostError
from jmsjca.links import ConnectionSettings, connect
from jmsjca.providers.embedded import consumer
consumer._SAFETY_POLL = 3600  # nothing but a ring wakes a waiter
signal.alarm(60)  # hangs are failures
url = sys.argv[1]
connection = connect(ConnectionSettings(url))
def tell(*words): print(*words, flush=True)
def send(name, text):
    unit = connection.unit()
    unit.send(TextMessage(text), Queue(name))
    unit.commit()
"""


@contextmanager
def process(path: object, script: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python process; it ends when its standard input does."""
    command = [sys.executable, "-c", _BEGIN + script, f"embedded://{path}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield child


def heard(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def put(connection, *bodies: str, name: str = "q") -> None:
    unit = connection.unit()
    for body in bodies:
        unit.send(TextMessage(body), Queue(name))
    unit.commit()


def received(connection, name: str = "q") -> list[tuple[str, int]]:
    """What comes from a queue, waiting for the first one."""
    deliveries = connection.consumer(Queue(name)).receive(10, PATIENCE)
    return [(d.message.body, d.count) for d in deliveries]


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


_FORK = """
consumer = connection.consumer(Queue("q"))
[delivery] = consumer.receive(1, 0)
unit = connection.unit()
unit.take([delivery])
{before}
if os.fork() == 0:
    signal.alarm(30)
    calls = [
        lambda: consumer.receive(1, 0), unit.commit, lambda: send("q", "x"),
        lambda: list(connection.browse(Queue("q"))), connection.close,
    ]
    for call in calls:
        try:
            call()
        except ConnectionLostError:
            tell("refused")
        else:
            tell("allowed")
    own = connect(ConnectionSettings(url))
    send = own.unit()
    send.send(TextMessage("from the child"), Queue("q"))
    send.commit()
    own.close()
    tell("own connection")
    sys.exit()
os.wait()
{after}
unit.commit()
tell("committed")
"""

_HOLD_THE_LOCK = """
locked, unlock = threading.Event(), threading.Event()
def hold():
    with connection._store.read():
        locked.set()
        unlock.wait()
holder = threading.Thread(target=hold)
holder.start()
locked.wait()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), (_HOLD_THE_LOCK, "unlock.set()\nholder.join()")],
    ids=["quiet", "while another thread uses the store"],
)
def test_forked_child_refuses_what_its_parent_opened(connected_file, broker_file, before, after):
    connection = connected_file()
    put(connection, "a")
    with process(broker_file, _FORK.format(before=before, after=after)) as child:
        assert [heard(child) for _ in range(7)] == ["refused"] * 5 + ["own connection", "committed"]
    assert received(connection) == [("from the child", 1)]


_FORK_AND_DIE = """
connection.consumer(Queue("q")).receive(1, 0)
child = os.fork()
if child == 0:
    signal.alarm(60)
    sys.stdin.read()
    os._exit(0)
tell("forked")
signal.pause()
"""


def test_forked_child_does_not_keep_its_parent_alive(connected_file, broker_file):
    connection = connected_file()
    put(connection, "a")
    with process(broker_file, _FORK_AND_DIE) as parent:
        assert heard(parent) == "forked"
        parent.kill()
        parent.wait(PATIENCE)
        assert received(connection) == [("a", 2)]  # the child still runs
        assert parent.stdin is not None
        parent.stdin.close()


def test_memory_broker_of_a_forked_child_is_its_own(broker_file):
    script = """
memory = connect(ConnectionSettings("embedded://m"))
unit = memory.unit()
unit.send(TextMessage("a"), Queue("q"))
unit.commit()
if os.fork() == 0:
    own = connect(ConnectionSettings("embedded://m"))
    tell(len(own.consumer(Queue("q")).receive(1, 0)))
    own.close()
    sys.exit()
os.wait()
tell(len(memory.consumer(Queue("q")).receive(1, 0)))
"""
    with process(broker_file, script) as child:
        assert [heard(child), heard(child)] == ["0", "1"]
