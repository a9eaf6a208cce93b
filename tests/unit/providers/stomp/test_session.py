"""A session: login, heartbeats, its end, and its secrets."""

import logging
import socket
import threading

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import ConnectionLostError, JMSError, JMSSecurityError, NotSupportedError, WrongProtocolError
from jmsjca.messages import TextMessage
from jmsjca.providers.stomp.protocol.transport import FrameDeadline, Heartbeat, agreed_heartbeat
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.stomp.broker import Fault, Peer
from tests.unit.providers.stomp.fakes import StillClock
from tests.unit.providers.stomp.reference_frames import read

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


def test_subscription_whose_confirmation_does_not_come():
    """The connection ends: the broker may have opened the subscription, whose messages no consumer would receive."""
    lost = threading.Event()
    with Peer() as peer:
        link = _connect(peer, lambda error: lost.set(), reply_timeout=0.2)
        unit = link.unit()
        unit.send(TextMessage("a"), Queue("q"))
        unit.commit()
        peer.withhold_next("RECEIPT")
        with pytest.raises(ConnectionLostError, match="answer"):
            link.consumer(Queue("q"))
        assert lost.wait(PATIENCE)
        with pytest.raises(ConnectionLostError, match="answer"):
            link.consumer(Queue("q"))
        peer.settle_down()
        assert peer.left("/queue/q") == ["a"]


def test_refused_login_says_why():
    with Peer(Fault("refuse", 0)) as peer, pytest.raises(JMSError, match="refused"):
        _connect(peer)


def test_login_that_is_answered_by_another_protocol():
    with Peer(Fault("noise", 0)) as peer, pytest.raises(WrongProtocolError, match="speaks HTTP, not STOMP"):
        _connect(peer)


def test_port_that_takes_connections_and_says_nothing():
    with Peer(Fault("silence", 0)) as peer, pytest.raises(ConnectionLostError, match=r"within 0\.2 seconds"):
        _connect(peer, connect_timeout=0.2)


def test_heartbeat_is_due_in_time_and_death_is_noticed():
    clock = StillClock()
    heart = Heartbeat(clock, write=10, read=20)
    assert (heart.is_write_due, heart.is_peer_silent) == (False, False)
    clock.time += 5
    assert heart.is_write_due
    heart.on_write()
    assert not heart.is_write_due
    clock.time += 15
    assert not heart.is_peer_silent
    clock.time += 1
    assert heart.is_peer_silent
    heart.on_read()
    assert not heart.is_peer_silent
    assert heart.poll_interval == 5


def test_heartbeat_that_is_off_is_never_due():
    clock = StillClock()
    heart = Heartbeat(clock)
    clock.time += 1_000_000
    assert (heart.is_write_due, heart.is_peer_silent) == (False, False)


@pytest.mark.parametrize(
    ("theirs", "agreed"), [("0,0", (0, 0)), ("500,2000", (2000, 1000)), ("0, 900", (1000, 0)), ("00,00", (0, 0))]
)
def test_agreed_heartbeat(theirs, agreed):
    assert agreed_heartbeat(theirs, 1000) == agreed


@pytest.mark.parametrize("theirs", ["", "1", "1,2,3", "-1,0", "a,b", "1.5,2", "²,1"])
def test_heartbeat_header_that_is_none(theirs):
    with pytest.raises(ValueError, match=r"^$|unpack|[-\d,.²ab]"):
        agreed_heartbeat(theirs, 1000)


@pytest.mark.parametrize("volatile", [True, False])
def test_a_shared_subscription_is_refused(line, volatile):
    """Each consumer would get a copy of everything."""
    shared = Subscription(Topic("t"), "s", "id", shared=True, volatile=volatile)
    with pytest.raises(NotSupportedError, match="capability shared"):
        line().connection.consumer(shared)


def test_silent_broker_is_a_lost_connection(line):
    line = line()
    line.clock.time += 21
    line.channel.incoming.put(None)  # a wait for bytes that was in vain
    assert line.lost.wait(30)
    assert [type(error) for error in line.told] == [ConnectionLostError]
    assert "silent" in str(line.told[0])


HEAD = b"MESSAGE\ndestination:/queue/q\nmessage-id:1\nsubscription:s\n"


def test_frame_that_trickles_in_is_a_lost_connection(line):
    """Though each byte is a sign of life."""
    line = line()
    line.channel.incoming.put(HEAD)
    for _ in range(20):
        line.channel.incoming.put(line.clock.pass_five)
        line.channel.incoming.put(b"a")
    assert line.lost.wait(30)
    assert "not the rest" in str(line.told[0])
    assert line.clock.time == 1035  # as soon as it took longer than an answer may


@pytest.mark.parametrize("between", [[b"\n\0", HEAD], [b"\n\0" + HEAD]])
def test_frames_that_come_in_pieces_may_take_their_time_each(line, between):
    line = line()
    line.channel.incoming.put(HEAD)
    for _ in range(20):
        line.channel.incoming.put(line.clock.pass_five)
        for piece in between:
            line.channel.incoming.put(piece)
    line.channel.incoming.put(b"\n\0")
    line.connection.consumer(Queue("q")).close()
    assert line.clock.time == 1100
    assert not line.told


def test_pace_that_a_frame_must_keep():
    clock = StillClock()
    deadline = FrameDeadline(clock, seconds=30)
    clock.time += 30
    deadline.check(1)
    clock.time += 100
    deadline.check(100_000)
    with pytest.raises(ConnectionLostError, match="90000 bytes"):
        deadline.check(90_000)
    deadline.restart()
    deadline.check(1)


def test_sign_of_life_is_sent_while_nobody_does_anything(line):
    line = line()
    line.clock.time += 6
    line.channel.incoming.put(None)
    line.channel.say("RECEIPT", receipt_id="unknown")
    line.channel.incoming.put(b"")
    assert line.lost.wait(30)
    assert line.channel.beats == 1


def test_end_is_told_once_and_wakes_everybody(line):
    line = line()
    consumer = line.connection.consumer(Queue("q"))
    raised = []

    def wait():
        try:
            consumer.receive(1, None)
        except JMSError as error:
            raised.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    line.channel.incoming.put(b"")
    waiting.join(30)
    assert raised == [ConnectionLostError]
    assert line.lost.wait(30)
    assert len(line.told) == 1
    for call in (line.connection.unit, lambda: line.connection.consumer(Queue("q"))):
        with pytest.raises(ConnectionLostError):
            call()


@pytest.mark.parametrize("noise", [b"MESSAGE\n\n\0", b"GARBAGE\n\n\0", b"CONNECTED\nversion:1.2\n\n\0"])
def test_broken_protocol_is_a_lost_connection(line, noise):
    line = line()
    line.channel.incoming.put(noise)
    assert line.lost.wait(30)
    assert "protocol" in str(line.told[0])


def test_own_close_is_not_told(line):
    line = line()
    line.connection.close()
    line.connection.close()
    assert "DISCONNECT" in line.channel.frames()
    assert not line.told


def test_close_of_a_silent_broker_ends(line):
    line = line()
    line.channel.silent = {"DISCONNECT"}
    line.connection.close(timeout=0)
    assert line.channel.closed


def test_unsubscribe_waits_for_the_unit(line):
    line = line()
    consumer = line.connection.consumer(Queue("q"))
    line.message(dict(read(bytes(line.channel.written))[0][1])["id"], 1)
    unit = line.connection.unit()
    unit.take(consumer.receive(1, None))
    consumer.close()
    assert "UNSUBSCRIBE" not in line.channel.frames()
    unit.commit()
    assert line.channel.frames()[-1] == "UNSUBSCRIBE"


def test_unknown_broker_is_trusted_with_nothing(line):
    line = line("Mystery/1")
    with pytest.raises(NotSupportedError):
        line.connection.unit()
    with pytest.raises(NotSupportedError):
        line.connection.consumer(Queue("q"), selector="a = 1")
    with pytest.raises(NotSupportedError):
        line.connection.consumer(Subscription(Topic("t"), "s", "c"))


SECRETS = ["hush", "hu sh", 'hu"sh', "hu%sh", "hu:sh", "hu@sh", "hush\\n", "hüsh", "hu'sh", "hush,hush"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("answer", [b"ERROR\nmessage:Bad CONNECT\n\n\0", b"", b"CONNECTED\nversion:1.0\n\n\0"])
def test_secrets_appear_nowhere(caplog, secret, answer):
    caplog.set_level(logging.DEBUG)
    with _peer(answer) as (url, seen), pytest.raises(JMSError) as told:
        connect(ConnectionSettings(url, user_name="user", password=secret))
    assert seen[0].startswith(b"CONNECT\n")
    texts = [caplog.text, *(repr(record.args) for record in caplog.records), *_chain(told.value)]
    assert not [text for text in texts if secret in text]


@pytest.mark.parametrize("secret", ["hu\nsh", "hu\rsh"])
def test_secret_that_would_break_the_frame_is_refused_unseen(caplog, secret):
    caplog.set_level(logging.DEBUG)
    with _peer(b"") as (url, seen), pytest.raises(JMSError) as told:
        connect(ConnectionSettings(url, user_name="user", password=secret))
    assert not seen
    assert not [
        text for text in [caplog.text, *_chain(told.value)] if "hu" in text and "sh" in text.partition("hu")[2][:4]
    ]


def test_password_is_not_sent_in_the_clear():
    with pytest.raises(JMSSecurityError):
        connect(ConnectionSettings("stomp://user:hush@127.0.0.1:1"))


def _chain(error):
    while error is not None:
        yield from (str(error), repr(error))
        error = error.__cause__ or error.__context__


class _peer:  # noqa: N801
    """A broker that takes one connection, reads one frame, answers and hangs up."""

    def __init__(self, answer):
        self._answer = answer
        self._seen = []

    def __enter__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return f"stomp://127.0.0.1:{self._server.getsockname()[1]}?allow_insecure_login=true", self._seen

    def _serve(self):
        with self._server.accept()[0] as client:
            data = b""
            while not data.endswith(b"\0") and (piece := client.recv(4096)):
                data += piece
            if data:
                self._seen.append(data)
            client.sendall(self._answer)

    def __exit__(self, *_):
        self._thread.join(30)
        self._server.close()
