"""Processes over one file: wakeup, release of what dead processes held, and forked children."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import Limits, Queue
from jmsjca.errors import TransactionRolledBackError
from jmsjca.providers.embedded import consumer as consumer_module
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.forking import EXPECTED, LOCKS, held, said_by_forking
from tests.unit.providers.embedded.processes import PATIENCE, heard, process, put, received

QUEUE = Queue("q")


def tell_when_waiting(connection, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a receive of this broker has found nothing and begins to wait for a wakeup."""
    waiting, wait = threading.Event(), connection._store.wakeups.wait

    def tell_and_wait(seen: int, timeout: float) -> None:
        waiting.set()
        wait(seen, timeout)

    monkeypatch.setattr(connection._store.wakeups, "wait", tell_and_wait)
    return waiting


_HOLD = """
consumer = connection.consumer(Queue("q"))
deliveries = consumer.receive(10, 0)
unit = connection.unit()
unit.take(deliveries[:1])
consumer.hand_over(deliveries[:1])
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
        assert received(connection) == [("a", 2), ("b", 1)]  # the second one was not handed over
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
    """Neither side polls within the hour, so every round trip needs two wakeups."""
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


_COMMIT_WHEN_TOLD = (
    _HOLD.replace("sys.stdin.read()", "sys.stdin.readline()")
    + """
for attempt in (unit.commit, lambda: send("out", "never"), lambda: connection.consumer(Queue("q")).receive(1, 0)):
    try:
        attempt()
        tell("done")
    except JMSError as error:
        tell(type(error).__name__)
"""
)


def test_paused_process_keeps_what_it_holds(connected_file, broker_file):
    """Its lock lives as long as it does: nobody can tell a long handler from one that stands still."""
    connection = connected_file()
    put(connection, "a")
    with process(broker_file, _COMMIT_WHEN_TOLD) as child:
        assert heard(child) == "holding 1"
        child.send_signal(signal.SIGSTOP)
        connection._store.release_dead_owners(now=True)
        assert connection.consumer(QUEUE).receive(1, 0) == []
        child.send_signal(signal.SIGCONT)
        go_on(child)
        assert heard(child) == "done"
    assert connection.admin().depth(QUEUE).total == 0
    assert connection.admin().depth(Queue("out")).total == 2


def test_paused_process_cannot_settle_what_another_got_meanwhile(connected_file, broker_file):
    """An operator removed its lock file, and another process got its message, which it has settled or still holds."""
    connection = connected_file()
    put(connection, "a", "b")
    with process(broker_file, _COMMIT_WHEN_TOLD.replace("[:1]", "")) as child:
        assert heard(child) == "holding 2"
        child.send_signal(signal.SIGSTOP)
        lock_file_of_other(connection, broker_file).unlink()
        connection._store.release_dead_owners(now=True)
        settled, held = connection.consumer(QUEUE).receive(10, 0)
        commit(connection, settled)
        child.send_signal(signal.SIGCONT)
        go_on(child)
        assert heard(child) == "TransactionRolledBackError"
        assert [heard(child), heard(child)] == ["done", "ConnectionLostError"]  # to send needs no lock
    assert connection.admin().depth(QUEUE).total == 1
    assert [d.message.body for d in connection.consumer(Queue("out")).receive(10, 0)] == ["never"]
    commit(connection, held)


def test_process_paused_in_a_commit_keeps_others_no_longer_than_they_wait(broker_file):
    """And once it goes on, both do."""
    with process(broker_file, _STAND_STILL_IN_A_TRANSACTION) as child:
        connection = connect(ConnectionSettings(f"embedded://{broker_file}", limits=Limits(lock_timeout=0.05)))
        child.stdin.write("begin\n")
        child.stdin.flush()
        assert heard(child) == "in a transaction"
        with pytest.raises(TransactionRolledBackError, match="locked for too long"):
            put(connection, "refused")
        child.send_signal(signal.SIGCONT)
        assert heard(child) == "committed"
        while not _is_put(connection, "b"):  # the other process may clean up, for longer than this one waits
            pass
    assert received(connection) == [("a", 1), ("b", 1)]
    connection.close()


def _is_put(connection, body):
    try:
        put(connection, body)
    except TransactionRolledBackError:
        return False
    return True


_STAND_STILL_IN_A_TRANSACTION = """
sys.stdin.readline()
def job(cursor):
    tell("in a transaction")
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # to this very thread: it goes not a step further
threading.Thread(target=connection._store.submit, args=[job]).start()
send("q", "a")
tell("committed")
"""


def go_on(child) -> None:
    child.stdin.write("go on\n")
    child.stdin.flush()


def commit(connection, delivery) -> None:
    unit = connection.unit()
    unit.take([delivery])
    unit.commit()


def lock_file_of_other(connection, broker_file):
    mine = f"{connection._store.owner}.lock"
    [path] = [p for p in broker_file.with_name("broker.db-owners").iterdir() if p.name != mine]
    return path


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        held("connection._store.read()"),
        held("connection._store._groups._mutex"),
    ],
    ids=["quiet", "while another thread uses the store", "while another thread lines up to commit"],
)
def test_forked_child_refuses_what_its_parent_opened(connected_file, broker_file, before, after):
    connection = connected_file()
    put(connection, "a")
    with process(broker_file, _FORK.format(before=before, after=after)) as child:
        assert [heard(child) for _ in range(7)] == ["refused"] * 4 + ["allowed", "own connection", "committed"]
    assert received(connection) == [("from the child", 1)]


_FORK_AND_DIE = """
consumer = connection.consumer(Queue("q"))
consumer.hand_over(consumer.receive(1, 0))
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


@pytest.mark.parametrize("busy", [None, *LOCKS, "consumer._receiver._consumer._store.wakeups._condition"])
def test_application_forks(tmp_path, busy):
    """But not while a thread receives: that may have a lock of SQLite, which nobody releases in the child."""
    urls = (f"embedded://{tmp_path}/{name}.db" for name in ("its", "own", "spare"))
    assert said_by_forking(*urls, busy) == EXPECTED


def test_forked_child_closes_what_waits_for_replies(broker_file):
    script = """
from jmsjca import ConnectionFactory
from jmsjca.outbound import Requestor
with ConnectionFactory(url).create_connection() as shared:
    requestor = Requestor(shared.create_session(), Queue("q"))
    if os.fork() == 0:
        requestor.close()
        tell("closed")
        sys.exit()
    os.wait()
    tell(requestor.request(TextMessage("anybody there?"), 0))
"""
    with process(broker_file, script) as child:
        assert [heard(child), heard(child)] == ["closed", "None"]
