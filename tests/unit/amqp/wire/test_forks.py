"""A forked child refuses what its parent opened, and leaves the parent's connection as it is."""

import pytest
from amqp_peer.broker import Broker

from tests.unit.forking import EXPECTED, LOCKS, RECEIVING, held, said_by_forking
from tests.unit.processes import heard, process

_FORK = """
send("q", "a")
consumer = connection.consumer(Queue("q"))
[delivery] = consumer.receive(1, None)
unit, sending = connection.unit(), connection.unit()
unit.take([delivery])
sending.send(TextMessage("b"), Queue("q"))
{before}
if os.fork() == 0:
    signal.alarm(30)
    calls = [
        lambda: consumer.receive(1, 0), unit.commit, sending.commit, lambda: send("q", "x"),
        lambda: connection.check(Queue("q")), lambda: connection.consumer(Queue("other")),
        lambda: consumer.give_back([delivery]), consumer.drain, connection.unit, connection.admin,
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
    own = connect(ConnectionSettings("{own}"))
    own.check(Queue("q"))
    own.close()
    tell("own connection")
    sys.exit()
os.wait()
{after}
unit.commit()
send("q", "c")
[delivery] = consumer.receive(1, None)
connection.close()
tell(delivery.message.body)
"""


@pytest.mark.parametrize(
    "lock",
    [
        None,
        "consumer._changed",
        "connection._lock",
        "connection._closing",
        "connection._wire.committing",
        "connection._engine.mailbox._lock",
    ],
)
def test_forked_child_refuses_what_its_parent_opened(stage, lock):
    url, own = (f"amqp://{stage(Broker()).peer.address}?heartbeat=0" for _ in range(2))  # each talks to one at a time
    before, after = held(lock)
    with process(url, _FORK.format(before=before, after=after, own=own)) as child:
        said = [heard(child) for _ in range(13)]
    assert said == ["refused"] * 10 + ["closed", "own connection", "c"]


@pytest.mark.parametrize("busy", [None, RECEIVING, *LOCKS, "consumer._supplier._changed"])
def test_application_forks(stage, busy):
    urls = (f"amqp://{stage(Broker()).peer.address}?heartbeat=0" for _ in range(3))
    assert said_by_forking(*urls, busy) == EXPECTED
