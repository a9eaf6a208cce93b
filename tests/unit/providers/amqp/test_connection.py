"""A connection: heartbeats, its end, and the end of its sessions."""

import errno
import os
import select
import threading

import pytest
from proton import Collector

from jmsjca.config import Limits
from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NotSupportedError,
    ResourceAllocationError,
    TransactionRolledBackError,
)
from jmsjca.messages import TextMessage
from jmsjca.providers.amqp.engine.engine import Sessions
from jmsjca.providers.amqp.engine.event_loop import EventDispatcher, SocketTransport
from tests.unit.clocks import HandClock
from tests.unit.providers.amqp.broker_behaviour import end_connection, end_session, refuse_link
from tests.unit.providers.amqp.raw_frames import frame
from tests.unit.providers.amqp.scripted_broker import SECONDS

QUEUE = Queue("q")


class WatchedClock(HandClock):
    """A clock that tells when it was read; only the engine's thread reads it, once in each turn of its loop."""

    def __init__(self):
        super().__init__()
        self.reads = threading.Semaphore(0)

    def monotonic(self):
        time = super().monotonic()
        self.reads.release()
        return time


def _turn(line, clock):
    """Let the engine read what has come, and compare the clock with its deadlines."""
    for _ in range(2):
        while clock.reads.acquire(blocking=False):
            pass
        line.connection._engine.submit(int)
        assert clock.reads.acquire(timeout=SECONDS)


def test_silent_broker_is_lost_after_two_heartbeats(line):
    line, clock = line(), WatchedClock()
    line.open("heartbeat=10", clock=clock)
    line.peer.do(int)  # it has written all its answers
    _turn(line, clock)
    clock.time += 19
    _turn(line, clock)
    assert not line.told
    clock.time += 2
    line.connection._engine.submit(int)
    assert line.lost.wait(SECONDS)
    assert "idle" in str(line.told[0])


def test_whatever_comes_is_a_sign_of_life(line):
    line, clock = line(), HandClock()
    line.open("heartbeat=10", clock=clock)
    for _ in range(5):
        clock.time += 15
        line.connection.check(Queue(str(clock.time)))  # a round trip
    assert not line.told


def test_what_came_while_this_side_was_held_up_is_a_sign_of_life(line):
    """By a handler in C that keeps the interpreter, or because the process was stopped for a while."""
    line, clock = line(), WatchedClock()
    line.open("heartbeat=10", clock=clock)
    _turn(line, clock)

    def hold_up():
        clock.time += 21
        line.peer.write(b"\0\0\0\x08\2\0\0\0")  # a heartbeat
        select.select([line.connection._engine._socket], [], [], SECONDS)

    line.connection._engine.call(hold_up)
    _turn(line, clock)
    assert not line.told


def test_heartbeat_can_be_off(line):
    line, clock = line(), WatchedClock()
    line.open("heartbeat=0", clock=clock)
    clock.time += 1_000_000
    _turn(line, clock)
    assert line.peer.do(lambda: line.peer.transport.remote_idle_timeout) == 0
    assert not line.told


def test_our_heartbeats_go_out_while_nobody_calls(line):
    """The engine's thread sends them; this one, where handlers of messages run, does nothing."""
    line = line(idle=0.1)
    line.open()
    frames = line.peer.do(lambda: line.peer.transport.frames_input)
    line.peer.wait_until(lambda: line.peer.transport.frames_input >= frames + 5)
    assert line.peer.order == ["connect", "login", "open"]


def test_broker_that_says_nothing_any_more_is_noticed_while_nobody_calls(line):
    line = line()
    line.open("heartbeat=0.05")
    assert line.lost.wait(SECONDS)


ENDS = {
    "reset": lambda peer: peer.cut(),
    "closed": lambda peer: end_connection(_Event(peer)),
    "not AMQP": lambda peer: peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "frame too small": lambda peer: peer.write(bytes(8)),
    "frame too large": lambda peer: peer.write(b"\x7f\xff\xff\xff\2\0\0\0" + bytes(100)),
    "header beyond the frame": lambda peer: peer.write(b"\0\0\0\x10\xff\0\0\0" + bytes(8)),
    "unknown performative": lambda peer: peer.write(frame(0x7F, b"\x40", 1)),
    "no performative": lambda peer: peer.write(b"\0\0\0\x0c\2\0\0\0\xa1\2hi"),
    "flow without a session": lambda peer: peer.write(frame(0x13, b"\x40\x43\x43\x43", 4, 9)),
    "transfer without a link": lambda peer: peer.write(frame(0x14, b"\x43\x43\xa0\x011", 3, 9)),
    "nested for ever": lambda peer: peer.write((40_008).to_bytes(4, "big") + b"\2\0\0\0" + b"\0" * 40_000),
}


class _Event:
    def __init__(self, peer):
        self.connection = peer.connection


@pytest.mark.parametrize("how", ENDS)
def test_end_is_told_once_and_wakes_everybody(line, how):
    line = line()
    line.open()
    consumer = line.connection.consumer(QUEUE)
    raised = []

    def wait():
        try:
            consumer.receive(1, None)
        except JMSError as error:
            raised.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    line.peer.do(lambda: ENDS[how](line.peer))
    waiting.join(SECONDS)
    assert raised == [ConnectionLostError]
    assert line.lost.wait(SECONDS)
    assert len(line.told) == 1


@pytest.mark.parametrize(("performative", "field"), [(0x40, b"\xa3\5PLAIN"), (0x44, b"\x50\1"), (0x42, b"\xa0\1x")])
def test_late_frames_of_the_login_change_nothing(line, performative, field):
    line = line()
    line.open()
    login = line.peer.login
    line.peer.do(lambda: line.peer.write(frame(performative, field, 1, kind=1)))
    line.connection.check(QUEUE)
    assert line.peer.login == login
    assert not line.told


def test_reason_that_arrives_before_a_reset_is_reported(line, monkeypatch):
    """Behind the read that receives the reason all I/O fails; a real reset may also discard the reason itself."""
    line = line()
    line.open()
    read = SocketTransport.read

    def fail(*_):
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    def read_and_reset(transport, *times):
        read(transport, *times)
        monkeypatch.setattr(SocketTransport, "read", fail)
        monkeypatch.setattr(SocketTransport, "write", fail)

    def end():
        monkeypatch.setattr(SocketTransport, "read", read_and_reset)
        end_connection(_Event(line.peer), "amqp:unauthorized-access")
        line.peer.flush()

    line.peer.do(end)
    assert line.lost.wait(SECONDS)
    assert type(line.told[0]) is JMSSecurityError


CALLS = {
    "consumer": lambda c: c.consumer(QUEUE),
    "browse": lambda c: list(c.browse(QUEUE)),
    "check": lambda c: c.check(QUEUE),
    "remove": lambda c: c.remove(Subscription(Topic("t"), "name", "id")),
    "unit": lambda c: _commit(c.unit()),
}


def _commit(unit):
    unit.send(TextMessage("x"), QUEUE)
    unit.commit()


@pytest.mark.parametrize("call", CALLS)
def test_calls_after_the_loss(line, call):
    line = line()
    line.open(client_id="id")
    line.peer.do(line.peer.cut)
    assert line.lost.wait(SECONDS)
    with pytest.raises(ConnectionLostError):
        CALLS[call](line.connection)


@pytest.mark.parametrize("call", CALLS)
def test_calls_after_the_close_are_refused(line, call):
    line = line()
    line.open().close()
    with pytest.raises((IllegalStateError, ConnectionLostError)):
        CALLS[call](line.connection)
    assert not line.told


@pytest.mark.parametrize("step", ["begin", "attach", "detach"])
@pytest.mark.parametrize("call", ["consumer", "check", "remove"])
def test_link_that_stays_unanswered_ends_the_connection(line, impatient, call, step):
    line = line()
    line.open(client_id="id")
    impatient(line.peer)
    line.peer.silent(step)
    if step == "detach" and call != "remove":
        CALLS[call](line.connection)
        return
    with pytest.raises(ConnectionLostError, match="did not answer"):
        CALLS[call](line.connection)
    assert line.lost.wait(SECONDS)


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("amqp:not-found", InvalidDestinationError),
        ("amqp:unauthorized-access", JMSSecurityError),
        ("amqp:not-implemented", NotSupportedError),
        ("amqp:resource-limit-exceeded", ResourceAllocationError),
        ("amqp:internal-error", JMSError),
    ],
)
def test_refused_receiver_says_why_and_leaves_the_connection(line, condition, error):
    line = line()
    line.open()
    line.peer.reactions["attach"] = lambda event: refuse_link(event, condition)
    with pytest.raises(error, match=f"{condition}: no") as told:
        line.connection.consumer(QUEUE)
    assert type(told.value) is error
    line.peer.reactions.clear()
    line.connection.consumer(QUEUE)
    assert not line.told


@pytest.mark.parametrize("reaction", [refuse_link, end_session])
def test_refused_sender_is_a_destination_that_cannot_be_used(line, reaction):
    line = line()
    line.open()
    line.peer.reactions["attach"] = reaction
    with pytest.raises(InvalidDestinationError):
        line.connection.check(QUEUE)


def test_only_so_many_senders_stay_attached(line):
    line = line()
    line.open()
    for number in range(70):
        line.connection.check(Queue(str(number)))
    line.connection.check(Queue("69"))  # kept
    line.connection.check(Queue("0"))  # attached again
    assert line.peer.seen["attach"] == 71
    line.peer.wait_for("detach", 7)


def test_more_destinations_than_the_broker_allows_sessions_are_refused(line):
    line = line("ActiveMQ")
    line.peer.transport.channel_max = 2
    unit = line.open().unit()
    for number in range(4):
        unit.send(TextMessage("x"), Queue(str(number)))
    with pytest.raises(TransactionRolledBackError, match="allows 3 sessions"):
        unit.commit()
    line.connection.check(Queue("0"))  # the connection lives


def test_message_over_the_limit_is_not_sent(line):
    line = line()
    line.open(limits=Limits(message_bytes=1000))
    with pytest.raises(ResourceAllocationError):
        line.connection.unit().send(TextMessage("x" * 1000), QUEUE)


@pytest.mark.parametrize("step", ["close", "flow", "drain"])
def test_close_of_a_silent_broker_ends(line, step):
    line = line()
    line.open()
    line.connection.consumer(QUEUE)
    line.peer.silent(step, "close")
    line.connection.close(timeout=0)
    line.connection._engine._thread.join(SECONDS)
    assert not line.connection._engine._thread.is_alive()
    assert not line.told


def test_close_of_a_broker_that_reads_no_more_ends(line):
    line = line()
    line.open()
    held, go_on = threading.Event(), threading.Event()
    line.peer.reactions["transfer"] = lambda _: (held.set(), go_on.wait(SECONDS))
    unit = line.connection.unit(atomic=True)
    for _ in range(200):
        unit.send(TextMessage("x" * 100_000), QUEUE)  # more than both sides' sockets hold
    committing = threading.Thread(target=_fail, args=(unit.commit,))
    committing.start()
    assert held.wait(SECONDS)
    line.connection.close(timeout=0)
    committing.join(SECONDS)
    assert not committing.is_alive()
    go_on.set()


def _fail(function):
    with pytest.raises(JMSError):
        function()


def test_own_close_is_not_told(line):
    line = line()
    line.open()
    consumer = line.connection.consumer(QUEUE)
    line.connection.close()
    line.connection.close()
    assert not line.told
    with pytest.raises(JMSError):
        consumer.receive(1, 0)


class Transport:
    remote_channel_max = 10


class Handler:
    """Hears of the end, and fails over it."""

    def __init__(self):
        self.told = []

    def on_connection_lost(self, error):
        self.told.append(error)
        raise ValueError


@pytest.fixture
def sessions():
    return Sessions(None, Transport(), EventDispatcher(Collector(), {}, print), free=print, call_later=print)


def test_one_who_fails_over_the_end_keeps_it_from_nobody(sessions):
    handlers, error = [Handler() for _ in range(3)], ConnectionLostError("gone")
    for handler in handlers:
        sessions.begin_or_queue(handler, lambda: None)
    sessions.on_connection_lost(error)
    assert [handler.told for handler in handlers] == [[error]] * 3
