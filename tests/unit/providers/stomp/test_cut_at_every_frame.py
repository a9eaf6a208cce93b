"""A conversation that breaks at every frame, in every way: the reported outcome is true."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, product

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import JMSError, TransactionInDoubtError
from jmsjca.messages import DUPLICATE_ID, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.stomp.broker import Fault, Peer

# One of each way to commit: at once with its acknowledgements, in two steps, confirmed afterwards, frame by frame.
SERVERS = [
    *("ActiveMQ/6.3.1", "ActiveMQ/5.18.3", "ActiveMQ-Artemis/2.56.0", "Eclipse OpenMQ(tm)/6.7.0", "RabbitMQ/3.10.8"),
    "Mystery/1.0",
]
KINDS = ["cut", "refuse", "noise", "silence", "withhold"]
ANSWERS = {"CONNECTED", "RECEIPT", "MESSAGE"}  # what can be withheld: what comes in is handled, or refused
IMPATIENCE = 0.25  # seconds until what does not come is taken for lost
PATIENCE = 30
TOGETHER = 24  # conversations at a time: most of them wait
MUTE = {"silence", "withhold", "refuse"}
SENT, MOVED, NAMED, ALONE = ["a", "b"], ["c"], ["d", "e"], ["f"]
UNITS = {"sent", "moved", "named", "alone"}
QUEUES = ("in", "out", "ids", "alone")
# How each broker does sends, sends of which one has an id, and acknowledgements behind a send.
WAYS = {
    "ActiveMQ": ("both or none", "both or none", "none"),
    "ActiveMQ-Artemis": ("both or none", "the first before", "the first away before"),
    "Eclipse OpenMQ(tm)": ("both or none", "both or none", "both or none"),
    "RabbitMQ": ("the first before", "the first before", "the first away before"),
    "Mystery": ("each for itself", "each for itself", "each for itself"),
}


def converse(url, patience=PATIENCE):
    """Send two messages, move both on as one, send two of which one has an id, then one alone, and say goodbye.

    Returns what was told of each unit.
    """
    told = {}
    try:
        link = connect(ConnectionSettings(f"{url}?connect_timeout={patience}&reply_timeout={patience}&heartbeat=0"))
    except JMSError:
        return told
    try:
        _try(told, "sent", lambda: _send(link, SENT, Queue("in")))
        consumer = link.consumer(Queue("in"))
        _try(told, "moved", lambda: _move(link, consumer, patience))
        _try(told, "named", lambda: _send(link, NAMED, Queue("ids"), named="d"))
        _try(told, "alone", lambda: _send(link, ALONE, Queue("alone")))
        consumer.close()
    except JMSError:
        pass
    finally:
        link.close(patience)
    return told


def _send(link, bodies, to, taken=(), named=None):
    unit = link.unit(atomic=link.capabilities.atomic)
    unit.take(taken)
    for body in bodies:
        unit.send(TextMessage(body, properties={DUPLICATE_ID: body} if body == named else {}), to)
    unit.commit()


def _move(link, consumer, patience):
    deliveries = []
    while len(deliveries) < len(SENT):
        chunk = consumer.receive(10, patience if patience < PATIENCE else None)
        if not chunk:
            assert patience < PATIENCE, "nobody woke the receive, and it found nothing"
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


def possible(told, server):
    """What the queues may hold. Never may something be gone that was not sent on."""
    sends, named, acks = WAYS[server.partition("/")[0]]
    sent = {"committed": [SENT], "rolled back": [[]], "in doubt": _parts(SENT, sends)}[_of(told, "sent")]
    moved = {
        "committed": [([], MOVED)],
        "rolled back": [(left, []) for left in sent],
        "in doubt": [(SENT, []), *((left, MOVED) for left in _parts(SENT, acks))],
    }[_of(told, "moved")]
    ids = {"committed": [NAMED], "rolled back": [[]], "in doubt": _parts(NAMED, named)}[_of(told, "named")]
    alone = {"committed": [ALONE], "rolled back": [[]], "in doubt": [ALONE, []]}[_of(told, "alone")]
    return [(*queues, *left) for queues, *left in product(moved, ids, alone)]


def _of(told, name):
    return told.get(name, "rolled back")


def _parts(bodies, way):
    """What may be there of two of which nobody knows whether they happened, or were taken away."""
    first, second = [[body] for body in bodies]
    return {
        "none": [[]],
        "both or none": [bodies, []],
        "the first before": [bodies, first, []],
        "the first away before": [bodies, second, []],
        "each for itself": [bodies, first, second, []],
    }[way]


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    return request.param


@pytest.fixture(scope="module")
def places(server):
    """The places of a conversation that nothing breaks."""
    with _peer(server) as peer:
        told = converse(peer.url)
        peer.settle_down()
        assert told == dict.fromkeys(UNITS, "committed")
        assert _state(peer) == ([], MOVED, NAMED, ALONE)
        return peer.places


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_told_is_true_wherever_it_breaks(server, places, kind, capsys):
    chosen = [place for place, frame in enumerate(places) if kind != "withhold" or frame in ANSWERS]
    with ThreadPoolExecutor(TOGETHER) as pool:
        told = list(pool.map(lambda place: _broken_at(server, Fault(kind, place)), chosen))
    with capsys.disabled():
        print(f"\n{server} {kind}: {sum(reached for reached, _ in told)} places of {len(chosen)} visited")
    assert sum(reached for reached, _ in told) > len(chosen) / 2  # a machine that stalls gives up before some of them
    outcomes = {outcome for _, each in told for outcome in each.values()}
    assert {"committed", "rolled back"} <= outcomes
    assert "in doubt" in outcomes


def _peer(server, fault=None):
    return Peer(fault, connected={"server": server})


def _broken_at(server, fault):
    with _peer(server, fault) as peer:
        told = converse(peer.url, IMPATIENCE if fault.kind in MUTE else PATIENCE)
        peer.settle_down()
        reached, state = peer.broken, _state(peer)
        peer.heal()
        assert state in possible(told, server), (fault, told, state, peer.places[: fault.place + 1])
        assert _rest(peer.url) == sorted(chain(*state)), fault
        return reached, told


def _state(peer):
    return tuple(peer.left(f"/queue/{name}") + peer.left(name) for name in QUEUES)


def _rest(url):
    """What a new connection still gets; nothing of it stays behind a fault."""
    link = connect(ConnectionSettings(f"{url}?heartbeat=0"))
    found = []
    for name in QUEUES:
        consumer = link.consumer(Queue(name))
        link.check(Queue(name))
        consumer.drain()
        found += [d.raw.decode() for d in consumer._buffer.unsettled.values()]
        consumer.close()
    link.close()
    return sorted(found)
