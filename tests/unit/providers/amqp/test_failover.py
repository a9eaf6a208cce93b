"""Fail-over lists over sockets."""

import socket
import struct
import threading
from contextlib import contextmanager

import pytest
from proton import Condition, Message

from jmsjca import ConnectionFactory, ResourceAdapter
from jmsjca.errors import ConnectionLostError, JMSSecurityError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.listeners import Inbox, Recorder
from tests.unit.providers.amqp.broker_behaviour import end_connection
from tests.unit.providers.amqp.scripted_broker import Peer

RESET = struct.pack("ii", 1, 0)
LOGIN = "allow_insecure_login=true"


@contextmanager
def dead():
    """A port where nobody listens; it is kept, so that nobody else will."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{kept.getsockname()[1]}"


@contextmanager
def silent():
    """A host that lets the system take the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def resetting():
    """A host that takes one connection and resets it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_reset, args=(server,))
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _reset(server):
    client, _ = server.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


def open_list(*addresses, user="", options=""):
    return connect(ConnectionSettings(f"amqp://{user}{','.join(addresses)}?connect_timeout=2&{options}"))


@pytest.mark.parametrize("host", [dead, silent, resetting])
def test_a_host_that_is_out_of_reach_gives_way(line, host):
    peer = line().peer
    with host() as first:
        open_list(first, peer.address).close()
    peer.wait_for("close")


def test_a_host_that_is_not_ready_gives_way(line):
    first, second = line(), line()
    first.peer.reactions["open"] = end_connection
    open_list(first.peer.address, second.peer.address).close()
    second.peer.wait_for("close")


def test_a_login_that_cannot_be_checked_for_now_gives_way(line):
    first, second = line(offers="PLAIN", login=4), line(offers="PLAIN")
    open_list(first.peer.address, second.peer.address, user="ann:pw@", options=LOGIN).close()
    assert b"\0ann\0pw" in second.peer.login


def test_a_login_that_is_refused_is_not_tried_elsewhere(line):
    first, second = line(offers="PLAIN", login=1), line(offers="PLAIN")
    with pytest.raises(JMSSecurityError):
        open_list(first.peer.address, second.peer.address, user="ann:pw@", options=LOGIN)
    assert not second.peer.order


def test_a_mechanism_that_is_too_weak_is_not_looked_for_elsewhere(line):
    first, second = line(offers="ANONYMOUS"), line(offers="PLAIN")
    with pytest.raises(JMSSecurityError):
        open_list(first.peer.address, second.peer.address, user="ann:pw@", options=LOGIN)
    assert not second.peer.order


def test_the_error_tells_what_each_host_did():
    with dead() as first, dead() as second:
        factory = ConnectionFactory(f"amqp://ann:s3cr3t@{first},{second}?{LOGIN}")
        with pytest.raises(ConnectionLostError) as told:
            factory.create_connection()
    text = str(told.value)
    assert text.count("Connection refused") == 2
    assert f"{first}: Cannot connect" in text
    assert f"{second}: Cannot connect" in text
    assert "s3cr3t" not in text


@pytest.fixture
def listener(recorder):
    """Starts a serial listener to a list of hosts; it is stopped at the end."""
    adapters = []

    def start(*addresses):
        inbox = Inbox()
        adapters.append(ResourceAdapter(f"amqp://{','.join(addresses)}", hooks=[recorder]))
        adapters[-1].listener("q")(inbox)
        adapters[-1].start()
        return adapters[-1], inbox

    yield start
    for adapter in adapters:
        adapter.stop()


@pytest.fixture
def recorder():
    return Recorder()


def test_a_listener_is_up_when_the_next_host_has_its_consumer(line, listener, recorder):
    """Not when that host lets it in: the broker may have no queue yet, or be about to close."""
    first, second = line().peer, line().peer
    second.stock.append(Message(body="a").encode())
    attaching = []
    second.reactions["attach"] = attaching.append
    adapter, inbox = listener(first.address, second.address)
    recorder.await_status("Connecting", "Up")
    first.do(first.cut)
    recorder.await_status("Connecting")
    second.wait_until(lambda: bool(attaching))
    assert adapter.activations[0].status == "Connecting"
    second.do(lambda: second.on_attach(attaching[0]))
    recorder.await_status("Up")
    assert inbox.take(1)[0][0] == "a"


def test_a_listener_keeps_the_host_that_stands_in_for_one_that_is_not_ready(line, listener, recorder):
    """The end of the first connection is none of the second's."""
    first, second = line().peer, line().peer
    first.reactions["open"] = end_connection
    second.stock.append(Message(body="a").encode())
    _, inbox = listener(first.address, second.address)
    recorder.await_status("Connecting", "Up")
    assert inbox.take(1)[0][0] == "a"
    assert second.seen["open"] == 1


def detach(peer):
    end = peer.links[0]
    end.condition = Condition("amqp:resource-deleted", "gone")
    end.close()


def end_its_session(peer):
    peer.links[0].session.close()


def force(peer):
    peer.connection.condition = Condition("amqp:connection:forced", "restart")
    peer.connection.close()


@pytest.mark.parametrize("fault", [detach, end_its_session, force, Peer.cut])
def test_a_consumer_that_the_broker_ends_is_restored(line, listener, recorder, fault):
    """The connection may live on: a listener that hears nothing is not up."""
    first, second = line().peer, line().peer
    second.stock.append(Message(body="a").encode())
    first.links = []
    first.reactions["attach"] = lambda event: (first.links.append(event.link), first.on_attach(event))
    _, inbox = listener(first.address, second.address)
    recorder.await_status("Connecting", "Up")
    first.do(lambda: fault(first))
    recorder.await_status("Connecting", "Up")
    assert inbox.take(1)[0][0] == "a"


def test_a_listener_does_not_stay_with_a_host_that_lets_it_in_and_fails(line, listener, recorder):
    """The host answers, so every attempt that began with it would end there."""
    first, second = line().peer, line().peer
    first.reactions["attach"] = end_connection
    listener(first.address, second.address)
    recorder.await_status("Connecting", "Up")
    assert first.seen["attach"] == 1
    assert second.seen["attach"] >= 1  # that of the consumer, and maybe of a question to the broker's management
