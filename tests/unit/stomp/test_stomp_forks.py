"""A forked child refuses what its parent opened, and leaves the parent's connection as it is."""

import pytest

from tests.unit.forking import EXPECTED, LOCKS, RECEIVING, held, said_by_forking
from tests.unit.processes import heard, process
from tests.unit.stomp.peer import Peer
from tests.unit.stomp.sessions import Session

_FORK = """
send("q", "a")
consumer = connection.consumer(Queue("q"))
[delivery] = consumer.receive(1, None)
unit, sending, back = connection.unit(), connection.unit(), connection.unit()
unit.take([delivery])
sending.send(TextMessage("b"), Queue("q"))
{before}
if os.fork() == 0:
    signal.alarm(30)
    calls = [
        lambda: consumer.receive(1, 0), unit.commit, unit.rollback, sending.commit, lambda: send("q", "x"),
        lambda: connection.check(Queue("q")), lambda: connection.consumer(Queue("other")),
        lambda: consumer.give_back([delivery]), consumer.drain, connection.unit, connection.admin,
        lambda: back.take([delivery]),
    ]
    for call in calls:
        try:
            call()
        except ConnectionLostError as error:
            tell("refused" if "forked" in str(error) else error)
        else:
            tell("allowed")
    consumer.wake()
    consumer.close()
    connection.close()
    tell("closed")
    sys.exit()
tell("ended", os.wait()[1])
{after}
unit.commit()
send("q", "c")
[delivery] = consumer.receive(1, None)
connection.close()
tell(delivery.message.body)
"""


@pytest.fixture(autouse=True)
def prompt(monkeypatch):
    """Let peers send a message on as soon as it is there, not only to who subscribes later."""
    publish = Session._publish

    def send_on(session, letter):
        publish(session, letter)
        session._deliver(letter.headers["destination"])

    monkeypatch.setattr(Session, "_publish", send_on)


@pytest.mark.parametrize(
    "lock",
    [
        None,
        "consumer._changed",
        "connection._lock",
        "connection._wire._turns",
        "connection._wire._transport._channel._calls",
    ],
)
def test_forked_child_refuses_what_its_parent_opened(lock):
    before, after = held(lock)
    with Peer() as peer, process(f"{peer.url}?heartbeat=0", _FORK.format(before=before, after=after)) as child:
        said = [heard(child) for _ in range(15)]
    assert said == ["refused"] * 12 + ["closed", "ended 0", "c"]


@pytest.mark.parametrize("busy", [None, RECEIVING, *LOCKS, "consumer._supplier._changed"])
def test_application_forks(busy):
    with Peer() as peer, Peer() as own:
        urls = (f"{each.url}?heartbeat=0" for each in (peer, own, peer))
        assert said_by_forking(*urls, busy) == EXPECTED
