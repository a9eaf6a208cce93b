"""Endless and malformed frames: memory is bounded, and the connection ends."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol.frames import FrameParser
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.deliveries import until
from tests.unit.providers.amqp.wire.memory_growth import MIB, growth_below
from tests.unit.providers.stomp.malformed_frames import BODY, GOOD, vectors
from tests.unit.providers.stomp.reference_frames import read, write

OFFERED = 400 * MIB
UNBUFFERED = 32 * MIB  # more than a socket buffers
LIMIT = MIB  # of a body; the head may be as large
ROOM = 2 * (LIMIT + MIB) + 8 * MIB
MESSAGE = b"MESSAGE\ndestination:/queue/q\nmessage-id:1\nsubscription:s1\n"

FLOODS = {
    "a header without end": (MESSAGE + b"a:", b"x" * 65536),
    "headers without end": (MESSAGE, b"a:b\n" * 16384),
    "a command without end": (b"", b"X" * 65536),
    "a body without end": (MESSAGE + b"\n", b"x" * 65536),
    "a body that is announced": (MESSAGE + b"content-length:%d\n\n" % OFFERED, b"x" * 65536),
    "an error without end": (b"ERROR\nmessage:m\n\n", b"x" * 65536),
}


class Flood:
    """Answers the login, and then sends without end, or byte by byte; counts what it could send."""

    def __init__(self, head, piece, *, before_login=False, pause=0.0):
        self._head, self._piece, self._before, self._pause = head, piece, before_login, pause
        self._left = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.sent = 0

    @property
    def url(self):
        return f"stomp://127.0.0.1:{self._server.getsockname()[1]}?heartbeat=0"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._left.set()
        self._thread.join(30)
        self._server.close()

    def _serve(self):
        client = self._server.accept()[0]
        with client, suppress(OSError):
            client.recv(65536)
            if not self._before:
                client.sendall(write("CONNECTED", {"version": "1.2", "server": "ActiveMQ/6.3.1"}))
            client.sendall(self._head)
            while self.sent < OFFERED:
                client.sendall(self._piece)
                self.sent += len(self._piece)
                if self._pause and self._left.wait(self._pause):
                    return


@pytest.mark.parametrize("flood", FLOODS)
def test_it_is_left_at_the_limit(flood):
    limit = pytest.raises(ConnectionLostError, match=r"longer|larger|begins|more than")
    with Flood(*FLOODS[flood]) as peer, growth_below(ROOM), limit:
        _consume(peer)
    assert peer.sent < OFFERED


def test_message_over_the_limit_says_what_to_do():
    remedy = pytest.raises(ConnectionLostError, match=rf"limit of {LIMIT} bytes.* Raise Limits.message_bytes")
    with Flood(*FLOODS["a body that is announced"]) as peer, remedy:
        _consume(peer)


def _consume(peer):
    """Log in, if the flood lets one, and ask for something when it is over."""
    lost = threading.Event()
    link = connect(ConnectionSettings(peer.url, limits=Limits(message_bytes=LIMIT)), lambda error: lost.set())
    assert lost.wait(30)
    link.consumer(Queue("q"))


@pytest.mark.parametrize("flood", FLOODS)
def test_it_is_left_before_the_login_as_well(flood):
    with Flood(*FLOODS[flood], before_login=True) as peer, growth_below(ROOM), pytest.raises(JMSError):
        connect(ConnectionSettings(peer.url, limits=Limits(message_bytes=LIMIT)))
    assert peer.sent < OFFERED


def test_login_that_trickles_in_ends_at_its_deadline():
    """Though each byte is a sign of life."""
    with Flood(b"CONNECTED\nversion:1.2\n", b"x", before_login=True, pause=0.01) as peer:
        with pytest.raises(ConnectionLostError, match="within"):
            connect(ConnectionSettings(f"{peer.url}&connect_timeout=0.3"))
        assert peer.sent < OFFERED


@pytest.fixture
def reading_nothing():
    """Return a URL; behind the login the broker there reads nothing, and does not end the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        accepted = pool.submit(_accept, server)
        yield f"stomp://127.0.0.1:{server.getsockname()[1]}?heartbeat=0"
        accepted.result().close()


def _accept(server):
    client = server.accept()[0]
    client.recv(65536)
    client.sendall(write("CONNECTED", {"version": "1.2", "server": "ActiveMQ/6.3.1"}))
    return client


def _commit_large(link):
    unit = link.unit()
    unit.send(TextMessage("x" * UNBUFFERED), Queue("q"))
    unit.commit()


def test_commit_that_is_not_read_is_in_doubt_after_the_reply_timeout(reading_nothing):
    lost = threading.Event()
    link = connect(ConnectionSettings(f"{reading_nothing}&reply_timeout=0.2"), lambda error: lost.set())
    with pytest.raises(TransactionInDoubtError, match=r"read nothing for 0\.2 seconds"):
        _commit_large(link)
    assert lost.wait(30)
    with pytest.raises(ConnectionLostError, match="read nothing"):
        link.consumer(Queue("q"))
    link.close()


def test_close_does_not_wait_for_a_write_that_is_not_read(reading_nothing):
    link = connect(ConnectionSettings(f"{reading_nothing}&reply_timeout=3600"))
    with ThreadPoolExecutor() as pool:
        committing = pool.submit(_commit_large, link)
        until(link._session._transport._channel._writers.locked)
        link.close(0)
        with pytest.raises(JMSError):
            committing.result(30)


ENOUGH = 200


def _behind(subscription):
    return write("MESSAGE", {**GOOD, "subscription": subscription, "message-id": "2"}, BODY.encode())


def test_none_is_delivered(line, capsys):
    names = [(version, name) for version in ("1.1", "1.2") for name in vectors("s", version)]
    for version, name in names:
        each = line(version=version)
        consumer = each.connection.consumer(Queue("q"))
        subscription = dict(read(bytes(each.channel.written))[0][1])["id"]
        each.channel.incoming.put(vectors(subscription, version)[name] + _behind(subscription))
        with pytest.raises(ConnectionLostError, match="protocol"):
            assert consumer.receive(1, None) == [], (version, name)
    with capsys.disabled():
        print(f"\nmalformed frames {len(names)} of {len(names)}")
    assert len(names) >= ENOUGH


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_none_is_read_in_pieces_either(version):
    """But for a second CONNECTED, which is one too many only for who has read the first."""
    for name, raw in vectors("s", version).items():
        if "connected again" not in name:
            assert _trickle(raw + _behind("s"), version) == ([], True), name


def _trickle(data, version):
    """The frames that are read byte by byte, and whether that ends with an error."""
    parser, frames = FrameParser(1000), []
    parser.version = version
    try:
        for byte in data:
            frames += parser.feed(bytes([byte]))
    except ConnectionLostError:
        return frames, True
    return frames, False


WINDOW_AND_SLACK = 6000  # of a session: 1000 messages, and what a broker may send before it reads acknowledgements


def _run(subscription, numbers, body):
    headers = {name: value for name, value in GOOD.items() if name != "content-length"}
    headers |= {"subscription": subscription, "content-length": str(len(body))}
    return b"".join(write("MESSAGE", {**headers, "message-id": str(number)}, body) for number in numbers)


def _flood(line, server, messages, body):
    """Return a line whose broker sends far more than the window, and the consumer."""
    each = line(server)
    consumer = each.connection.consumer(Queue("q"))
    subscription = dict(read(bytes(each.channel.written))[0][1])["id"]
    for number in range(0, messages, 100):
        each.channel.incoming.put(_run(subscription, range(number, number + 100), body))
    return each, consumer


@pytest.mark.parametrize(
    ("server", "messages", "size"),
    [
        ("ActiveMQ/6.3.1", WINDOW_AND_SLACK, 1),
        ("ActiveMQ-Artemis/2.56.0", 4 * WINDOW_AND_SLACK, 1000),  # its window counts bytes
        ("RabbitMQ/3.13.7", WINDOW_AND_SLACK, 1),
        ("Other/1", WINDOW_AND_SLACK, 1),
    ],
)
def test_a_broker_that_sends_more_than_the_window_is_left(line, server, messages, size):
    each, consumer = _flood(line, server, messages, bytes(size))
    assert each.lost.wait(60)
    with pytest.raises(ConnectionLostError, match="far more than its window"):
        consumer.receive(1, 60)


@pytest.mark.parametrize(
    ("server", "messages", "size"),
    [("Eclipse OpenMQ(tm)/6.5.1", WINDOW_AND_SLACK, 1), ("ActiveMQ-Artemis/2.56.0", 9000, 1)],
)
def test_a_broker_without_a_window_or_within_it_is_not_left(line, server, messages, size):
    each, consumer = _flood(line, server, messages, bytes(size))
    taken = 0
    while taken < messages:
        taken += len(consumer.receive(messages, 60))
    assert not each.lost.is_set()
