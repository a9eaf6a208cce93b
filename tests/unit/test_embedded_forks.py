"""Forked children: they refuse what their parent opened, and do not keep it alive."""

import pytest

from tests.unit.forking import EXPECTED, LOCKS, held, said_by_forking
from tests.unit.processes import PATIENCE, heard, process, put, received

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
