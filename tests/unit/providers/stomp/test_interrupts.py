"""Interrupted calls, whose connection the caller aborts with close(0)."""

import signal
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import jmsjca
from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol import transport
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Order
from tests.support.interruptions import TimeLimitError, each_moment
from tests.unit.providers.embedded.test_group_commit import in_background
from tests.unit.providers.stomp.broker import Peer
from tests.unit.providers.stomp.reference_frames import write

PACKAGE = str(Path(jmsjca.__file__).parent)
SECONDS = 30
LARGE = 32 * 1024 * 1024  # bytes that no socket buffers
QUEUE, OUT = Queue("in"), Queue("out")
SERVERS = ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2.56.0", "Eclipse OpenMQ(tm)/6.7.0", "RabbitMQ/3.10.8", "Mystery/1.0"]


class Interruption(BaseException):
    """What the signal handler raises."""


class InterruptingPeer(Peer):
    """Carries out no more frames from the named one on, and interrupts the test's thread when it comes."""

    at_command = None

    def at(self, frame):
        with self._lock:
            if self.broken or frame != self.at_command:
                return None
            self.broken = True
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        return "silence"


@pytest.fixture(autouse=True)
def interruptible():
    """Let a signal raise an exception on the test's thread."""

    def interrupt(number, frame):
        raise Interruption

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@contextmanager
def door(connection):
    """Abort the connection of an interrupted call, as the connection of an application does."""
    try:
        yield
    except (Interruption, TimeLimitError):
        connection.close(0)
        raise


class Stage:
    """A connection to such a peer, and its reported loss."""

    def __init__(self, peer):
        self.peer, self.told, self.lost = peer, [], threading.Event()
        self.connection = connect(ConnectionSettings(f"{peer.url}?heartbeat=0"), self._on_lost)

    def _on_lost(self, error):
        self.told.append(error)
        self.lost.set()

    def left(self, queue):
        """What the broker has in a queue, once it has requeued what the connection held."""
        self.peer.settle_down()
        return self.peer.left(f"/queue/{queue.name}") or self.peer.left(queue.name)  # Artemis has no prefix

    def put(self, *bodies):
        unit = self.connection.unit(atomic=False)
        for body in bodies:
            unit.send(TextMessage(body), QUEUE)
        unit.commit()

    def check_aborted(self):
        assert not self.told
        with pytest.raises(IllegalStateError):
            self.connection.unit(atomic=False)


@pytest.fixture(params=SERVERS)
def stage(request):
    with InterruptingPeer(connected={"server": request.param}) as peer:
        made = Stage(peer)
        made.put("a", "b")
        yield made
        made.connection.close(SECONDS)


@pytest.mark.parametrize(("command", "sends"), [("BEGIN", 0), ("ACK", 0), ("COMMIT", 0), ("SEND", 2), ("COMMIT", 2)])
def test_commit(stage, command, sends):
    """A later unit acknowledges nothing that an interrupted one took: the broker redelivers all of it."""
    consumer = stage.connection.consumer(QUEUE)
    first, second = (consumer.receive(1, SECONDS)[0] for _ in "ab")
    can = stage.connection.capabilities
    unit, later = (stage.connection.unit(atomic=sends > 0 and can.atomic) for _ in "ab")
    unit.take([first])
    for body in range(sends):
        unit.send(TextMessage(str(body)), OUT)
    later.take([second])
    stage.peer.at_command = command if command in _frames_of(stage, sends) else "ACK"
    with pytest.raises(Interruption), door(stage.connection):
        unit.commit()
    stage.check_aborted()
    with pytest.raises(ConnectionLostError):
        later.commit()
    assert stage.left(QUEUE) == ["a", "b"]
    assert stage.left(OUT) == ["0", "1"][: sends if command == "COMMIT" and not can.transacted_send else 0]


def _frames_of(stage, sends):
    capabilities = stage.connection.capabilities
    transacted = capabilities.transacted_receive if not sends else capabilities.transacted_send
    return {"ACK", "SEND"} | ({"BEGIN", "COMMIT"} if transacted else set())


class InterruptedLock:
    """A lock whose wait a signal handler interrupts."""

    def acquire(self, timeout):
        raise Interruption


def test_wait_for_another_commit(stage, monkeypatch):
    """It has written nothing; what it took is redelivered nevertheless, and no later unit acknowledges it."""
    consumer = stage.connection.consumer(QUEUE)
    first, second = (consumer.receive(1, SECONDS)[0] for _ in "ab")
    unit, later = (stage.connection.unit(atomic=False) for _ in "ab")
    unit.take([first])
    later.take([second])
    with monkeypatch.context() as patch:
        patch.setattr(stage.connection._session, "_transaction_lock", InterruptedLock())
        with pytest.raises(Interruption), door(stage.connection):
            unit.commit()
    stage.check_aborted()
    with pytest.raises(ConnectionLostError):
        later.commit()
    assert stage.left(QUEUE) == ["a", "b"]


def test_no_other_commit_begins_in_the_transaction_of_an_interrupted_one(stage):
    """Not even before the connection is aborted: the broker would commit the sends of both."""
    unit, later = (stage.connection.unit(atomic=False) for _ in "ab")
    for body in "ab":
        unit.send(TextMessage(body), OUT)
        later.send(TextMessage(body), OUT)
    stage.peer.at_command = "SEND"
    with pytest.raises(Interruption):
        unit.commit()
    with pytest.raises(JMSError, match="interrupted"):
        later.commit()
    stage.connection.close(0)
    assert stage.left(OUT) == []


@pytest.mark.parametrize("command", ["SUBSCRIBE", "UNSUBSCRIBE"])
def test_consumer(stage, command):
    """No subscription stays behind that holds messages of no consumer."""
    stage.peer.at_command = command
    with pytest.raises(Interruption), door(stage.connection):
        stage.connection.consumer(QUEUE, order=Order.ANY).close()
    stage.check_aborted()
    assert sorted(stage.left(QUEUE)) == ["a", "b"]


def test_consumer_that_is_interrupted_at_any_moment_leaves_no_subscription_behind(line):
    """It is unsubscribed, or the connection is aborted: the broker redelivers what it had sent."""

    def play(interruption):
        here, consumer = line(), None
        with suppress(TimeLimitError), door(here.connection), interruption.planted():
            consumer = here.connection.consumer(QUEUE)
            consumer.close()
        if consumer is not None:
            in_background(consumer.close).result(SECONDS)
        frames = here.channel.frames()
        assert here.channel.closed or frames.count("SUBSCRIBE") == frames.count("UNSUBSCRIBE")

    assert each_moment(play, TimeLimitError, PACKAGE) > 100


def test_receive_that_is_interrupted_at_any_moment_of_a_renewal_leaves_a_subscription(line):
    """The next one gets the message, or learns that the connection has ended; it does not wait forever."""

    def play(interruption):
        here, got = line("Eclipse OpenMQ(tm)/6.7.0"), []
        consumer = here.connection.consumer(QUEUE)
        here.channel.reactions["SUBSCRIBE"] = lambda headers: here.message(headers["id"], 1)
        here.clock.pass_five()
        with suppress(TimeLimitError), door(here.connection), interruption.planted():
            got = consumer.receive(1, SECONDS)
        if not got:
            received = in_background(consumer.receive, 1, SECONDS)
            assert isinstance(received.exception(SECONDS), ConnectionLostError) or len(received.result()) == 1

    assert each_moment(play, TimeLimitError, PACKAGE) > 100


def test_close_of_a_connection_that_is_interrupted_at_any_moment_ends_it(line):
    def play(interruption):
        here = line()
        here.connection.consumer(QUEUE)
        with suppress(TimeLimitError), door(here.connection), interruption.planted():
            here.connection.close()
        in_background(here.connection.close).result(SECONDS)
        assert here.channel.closed
        assert not here.told

    assert each_moment(play, TimeLimitError, PACKAGE) > 20


class SlowPeer:
    """Answers the login, and reads the first part of what follows; interrupts the test's thread; then reads the rest.

    Attributes:
        url: Where it is.
        received: What it has read after the login.
        resume: Set it to let it read the rest.
    """

    def __init__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.url = f"stomp://127.0.0.1:{self._server.getsockname()[1]}"
        self.received = bytearray()
        self.resume = threading.Event()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.resume.set()
        self._thread.join(SECONDS)
        self._server.close()

    def read_to_end(self):
        self.resume.set()
        self._thread.join(SECONDS)
        return bytes(self.received)

    def _serve(self):
        client = self._server.accept()[0]
        with client:
            client.recv(65536)
            client.sendall(write("CONNECTED", {"version": "1.2", "server": "Mystery/1.0", "heart-beat": "0,0"}))
            self.received += client.recv(65536)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            self.resume.wait(SECONDS)
            while piece := client.recv(65536):
                self.received += piece


def test_write():
    """Nothing follows the part of a frame that is written: the broker would take it for the rest of that frame."""
    with SlowPeer() as peer:
        stage = Stage(peer)
        large, next_one = (stage.connection.unit(atomic=False) for _ in "ab")
        large.send(TextMessage("x" * LARGE), QUEUE)
        next_one.send(TextMessage("next"), QUEUE)
        with pytest.raises(Interruption):
            large.commit()
        with pytest.raises(JMSError):
            next_one.commit()
        stage.connection.close(0)
        received = peer.read_to_end()
        assert received.count(b"SEND\n") == 1
        assert len(received) < LARGE
        stage.connection.close(SECONDS)


def test_write_that_is_interrupted_at_any_moment_keeps_no_other_thread_waiting():
    def play(interruption):
        ours, theirs = socket.socketpair()
        channel = transport.SocketChannel(ours, patience=SECONDS)
        with suppress(TimeLimitError), interruption.planted():
            channel.write(b"a")
        other = in_background(channel.write, b"b")
        assert other.exception(SECONDS) is None or isinstance(other.exception(), transport.WriteError)
        channel.close()
        theirs.close()

    assert each_moment(play, TimeLimitError, transport.__file__) > 5
