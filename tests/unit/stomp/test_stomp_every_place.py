"""A conversation that breaks at every frame of it, in every way: what is told is what became of the units."""

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.links import ConnectionSettings, connect
from jmsjca.messages import TextMessage
from tests.unit.stomp.peer import Fault, Peer

KINDS = ["cut", "refuse", "noise", "silence", "withhold"]
ANSWERS = {"CONNECTED", "RECEIPT", "MESSAGE"}  # what can be withheld: what comes in is handled, or refused
IMPATIENCE = 0.15  # seconds until what does not come is taken for lost
PATIENCE = 30
MUTE = {"silence", "withhold", "refuse"}
IN, OUT = "/queue/in", "/queue/out"
SENT, MOVED = ["a", "b"], ["c"]


def converse(url, patience=PATIENCE):
    """Send two messages, move both on as one, and say goodbye; tell what was told of each unit."""
    told = {}
    try:
        link = connect(ConnectionSettings(f"{url}?connect_timeout={patience}&reply_timeout={patience}&heartbeat=0"))
    except JMSError:
        return told
    try:
        _try(told, "sent", lambda: _send(link, SENT, Queue("in")))
        consumer = link.consumer(Queue("in"))
        _try(told, "moved", lambda: _move(link, consumer, patience))
        consumer.close()
    except JMSError:
        pass
    finally:
        link.close(patience)
    return told


def _send(link, bodies, to, taken=()):
    unit = link.unit()
    unit.take(taken)
    for body in bodies:
        unit.send(TextMessage(body), to)
    unit.commit()


def _move(link, consumer, patience):
    deliveries = []
    while len(deliveries) < len(SENT):
        chunk = consumer.receive(10, patience)
        if not chunk:
            raise JMSError("Nothing came.")
        deliveries += chunk
    _send(link, MOVED, Queue("out"), deliveries)


def _try(told, name, commit):
    """Note what is told of a unit: that it happened, that it did not, or that nobody knows."""
    told[name] = "rolled back"
    try:
        commit()
        told[name] = "committed"
    except TransactionInDoubtError:
        told[name] = "in doubt"
        raise


def _whole():
    """The places of a conversation that nothing breaks."""
    with Peer() as peer:
        told = converse(peer.url)
        peer.settle_down()
        assert told == {"sent": "committed", "moved": "committed"}
        assert (peer.left(IN), peer.left(OUT)) == ([], MOVED)
        return peer.places


@pytest.fixture(scope="module")
def places():
    return _whole()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_told_is_true_wherever_it_breaks(places, kind, capsys):
    chosen = [place for place, frame in enumerate(places) if kind != "withhold" or frame in ANSWERS]
    told = [_broken_at(Fault(kind, place)) for place in chosen]
    with capsys.disabled():
        print(f"\n{kind}: {sum(reached for reached, _ in told)} places of {len(chosen)} visited")
    assert sum(reached for reached, _ in told) > len(chosen) / 2  # a machine that stalls gives up before some of them
    outcomes = {outcome for _, each in told for outcome in each.values()}
    assert {"committed", "rolled back"} <= outcomes
    assert "in doubt" in outcomes


def _broken_at(fault):
    with Peer(fault) as peer:
        told = converse(peer.url, IMPATIENCE if fault.kind in MUTE else PATIENCE)
        peer.settle_down()
        reached = peer.broken
        sent, moved = told.get("sent", "rolled back"), told.get("moved", "rolled back")
        state = (peer.left(IN), peer.left(OUT))
        possible = [([], [])] if sent != "committed" else []
        possible += [(SENT, [])] if sent != "rolled back" and moved != "committed" else []
        possible += [([], MOVED)] if moved != "rolled back" else []
        assert state in possible, (fault, told, peer.places[: fault.place + 1])
        assert _rest(peer.url) == sorted(state[0] + state[1]), fault
        return reached, told


def _rest(url):
    """What a new connection still gets; nothing of it stays behind a fault."""
    link = connect(ConnectionSettings(f"{url}?heartbeat=0"))
    found = []
    for name in ("in", "out"):
        consumer = link.consumer(Queue(name))
        link.check(Queue(name))
        consumer.drain()
        found += [d.raw.decode() for d in consumer._shelf.outstanding.values()]
        consumer.close()
    link.close()
    return sorted(found)
