"""Logins that the other side answers strangely, late or never, and connections on which it falls silent."""

import threading

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.stomp.peer import Fault, Peer

PATIENCE = 30


def _connect(peer, lost=None, **options):
    query = "&".join(f"{name}={value}" for name, value in {"heartbeat": 0, **options}.items())
    return connect(ConnectionSettings(f"{peer.url}?{query}"), lost)


def _pass_on(link):
    """Send a message and settle it."""
    unit = link.unit()
    unit.send(TextMessage("a"), Queue("q"))
    unit.commit()
    [delivery] = link.consumer(Queue("q")).receive(1, PATIENCE)
    unit = link.unit()
    unit.take([delivery])
    unit.commit()
    return delivery.message.body


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_versions_that_were_offered(version):
    with Peer(connected={"version": version}) as peer:
        link = _connect(peer)
        assert _pass_on(link) == "a"
        link.close()
        peer.settle_down()
        assert not peer.left("/queue/q")


@pytest.mark.parametrize("version", ["1.0", "1.3", "2", "", None])
def test_versions_that_were_not(version):
    with Peer(connected={"version": version}) as peer, pytest.raises(ConnectionLostError, match="STOMP"):
        _connect(peer)


@pytest.mark.parametrize("server", [None, "", "Mystery", "Mystery/1.0", "activemq/6.3.1", "ActiveMQ-Something/6.3.1"])
def test_server_that_nobody_knows_is_trusted_with_nothing(server):
    with Peer(connected={"server": server}) as peer:
        link = _connect(peer)
        assert not link.capabilities.atomic
        with pytest.raises(NotSupportedError):
            link.unit()
        link.close()


@pytest.mark.parametrize("beats", ["", "1", "a,b", "-1,5", "1,2,3"])
def test_heartbeats_that_are_no_numbers(beats):
    with Peer(beats=beats) as peer, pytest.raises(ConnectionLostError, match="heart-beat"):
        _connect(peer, heartbeat=10)


def test_login_without_any_word_on_heartbeats():
    with Peer(connected={"heart-beat": None}) as peer:
        link = _connect(peer, heartbeat=10)
        assert _pass_on(link) == "a"
        link.close()


def test_promised_heartbeats_that_do_not_come():
    """The broker is taken for dead, and whoever waits learns it."""
    lost = threading.Event()
    with Peer(beats="50,0") as peer:
        link = _connect(peer, lambda error: lost.set(), heartbeat=0.05)
        with pytest.raises(ConnectionLostError, match="silent"):
            link.consumer(Queue("q")).receive(1, PATIENCE)
        assert lost.wait(PATIENCE)


@pytest.mark.parametrize(
    ("place", "what"), [(0, "CONNECT"), (1, "CONNECT"), (2, "answer"), (5, "answer"), (7, "answer")]
)
def test_silence_ends_with_an_error_that_says_what_was_waited_for(place, what):
    """Before and after the login, behind BEGIN, behind SEND, behind COMMIT."""
    with Peer(Fault("silence", place)) as peer, pytest.raises(JMSError, match=what):
        _pass_on(_connect(peer, connect_timeout=0.2, reply_timeout=0.2))


def test_refused_login_says_why():
    with Peer(Fault("refuse", 0)) as peer, pytest.raises(JMSError, match="refused"):
        _connect(peer)


def test_login_that_is_answered_by_another_protocol():
    with Peer(Fault("noise", 0)) as peer, pytest.raises(ConnectionLostError, match="protocol"):
        _connect(peer)


def test_port_that_takes_connections_and_says_nothing():
    with Peer(Fault("silence", 0)) as peer, pytest.raises(ConnectionLostError, match=r"within 0\.2 seconds"):
        _connect(peer, connect_timeout=0.2)
