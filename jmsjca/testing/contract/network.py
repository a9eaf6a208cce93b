"""Cases for brokers behind a network, and the proxy that cuts their connections at a frame.

The cases need an unencrypted AMQP 1.0 or STOMP URL. `TestRefusedSends` also needs the fixture
``jms_refused_destination``: a destination that the user of the URL may not send to. A provider's test module imports
the cases by name, in addition to `jmsjca.testing.contract`.
"""

from __future__ import annotations

import re
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

import pytest

from jmsjca.destinations import Destination, Queue
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.outbound import Connection as OutboundConnection
from jmsjca.outbound import ConnectionFactory, ConnectionPool
from jmsjca.outbound.sender import Sender
from jmsjca.spi import Connection, Order, Unit
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = [
    "DID_NOT_HAPPEN",
    "AMQPSplitter",
    "Cuttable",
    "FaultProxy",
    "Frame",
    "Moment",
    "STOMPSplitter",
    "TestCommitIsCut",
    "TestConnectionIsCut",
    "TestPoolIsCut",
    "TestRefusedSends",
    "connect",
    "move",
    "queues",
]

_REACHED = 1.0  # seconds in which a busy broker gets all of a commit; its answer never comes

DID_NOT_HAPPEN = (TransactionRolledBackError, ConnectionLostError)


class Cuttable(Contract):
    """The base of the classes with cases that cut the connection to the broker."""

    @pytest.fixture
    def wire(self, jms_broker_url: str) -> Iterator[FaultProxy]:
        """Provide a fault proxy to the broker under test.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The proxy; it is cut after the case.
        """
        wire = FaultProxy(jms_broker_url)
        yield wire
        wire.close()


def connect(harness: Harness, wire: FaultProxy) -> tuple[Connection, threading.Event]:
    """Connect through the proxy; return the connection and an event that is set when the connection is lost."""
    lost = threading.Event()
    return harness.connect(url=wire.url, on_lost=lambda _: lost.set()), lost


def queues(harness: Harness, *bodies: str) -> tuple[Queue, Queue]:
    """Name a queue that holds messages, and one that does not."""
    source = harness.queue()
    harness.send(source, *bodies)
    return source, harness.queue()


def move(
    harness: Harness, wire: FaultProxy, source: Queue, target: Queue, messages: int = 1
) -> tuple[Unit, threading.Event]:
    """Open a unit, over the wire, that takes messages from one queue and sends as many to another."""
    wire.trap = None
    connection, lost = connect(harness, wire)
    deliveries = harness.gather(connection.consumer(source, window=0), messages)
    unit = harness.holding(deliveries, connection)
    harness.record(unit, target, *["moved"] * messages)
    return unit, lost


class TestCommitIsCut(Cuttable):
    """A commit without a reply is in doubt: never success, never failure (JMS 3.1, section 6.2.7)."""

    def test_commit_that_does_not_reach_the_broker(self, harness: Harness, wire: FaultProxy) -> None:
        """The client wrote it and cannot know that it did not arrive; neither part has happened."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "before")
        with pytest.raises(TransactionInDoubtError):
            unit.commit()
        assert wire.triggered
        harness.expect(source, "a")
        harness.expect(target)

    def test_commit_whose_answer_is_lost(self, harness: Harness, wire: FaultProxy) -> None:
        """The broker has committed, the client cannot know; both parts have happened."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "unanswered")
        with pytest.raises(TransactionInDoubtError):
            unit.commit()
        assert wire.triggered
        harness.expect(source)
        harness.expect(target, "moved")

    def test_commit_whose_answer_is_late(self, harness: Harness, wire: FaultProxy) -> None:
        """After the caller's timeout the outcome is in doubt, even if the answer arrives later."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, _ = move(harness, wire, source, target)
        wire.cut_at("commit", "never")
        with pytest.raises(TransactionInDoubtError):
            unit.commit(timeout=_REACHED)
        assert wire.triggered
        harness.expect(target, "moved")

    def test_commit_ends_at_its_timeout_wherever_it_waits(self, harness: Harness, wire: FaultProxy) -> None:
        """If the broker falls silent at the first frame, the outcome is known or in doubt, but never success."""
        unit, _ = move(harness, wire, *queues(harness, "a"))
        wire.cut_at("any", "never")
        with pytest.raises((TransactionInDoubtError, *DID_NOT_HAPPEN)):
            unit.commit(timeout=0.05)

    def test_commit_that_was_answered_has_happened(self, harness: Harness, wire: FaultProxy) -> None:
        """A connection that breaks after the reply does not affect the committed unit."""
        harness.require("atomic")
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut_at("commit", "answered")
        unit.commit()
        assert lost.wait(PATIENCE)
        harness.expect(source)
        harness.expect(target, "moved")

    @pytest.mark.parametrize("moment", ["before", "unanswered"])
    def test_cut_at_every_frame_of_a_commit(self, harness: Harness, wire: FaultProxy, moment: Moment) -> None:
        """Both parts have happened or neither, and the reported outcome is true."""
        harness.require("atomic")
        fates = list(_cut_at_every_frame(harness, wire, moment))
        assert len(fates) > 1
        for told, kept, moved in fates:
            assert (kept, moved) in _possible(told)

    @pytest.mark.parametrize(("moment", "arrived"), [("before", []), ("unanswered", ["a"]), ("never", ["a"])])
    def test_single_send_is_in_doubt(
        self, harness: Harness, wire: FaultProxy, moment: Moment, arrived: list[str]
    ) -> None:
        """Without transactions too, a message without a confirmed receipt is in doubt."""
        harness.require_lack("transacted_send")
        queue = harness.queue()
        connection, _ = connect(harness, wire)
        if connection.capabilities.checks:
            connection.check(queue)  # from now on the broker is asked for nothing before the message
        unit = harness.unit(connection)
        harness.record(unit, queue, "a")
        wire.cut_at("send", moment)
        with pytest.raises(TransactionInDoubtError):
            unit.commit(timeout=0.5 if moment == "never" else None)
        harness.expect(queue, *arrived)

    def test_move_that_is_not_atomic_loses_nothing(self, harness: Harness, wire: FaultProxy) -> None:
        """Sends are confirmed before anything is acknowledged: a cut may double a message, never lose it."""
        harness.require_lack("atomic")
        fates = list(_cut_at_every_frame(harness, wire, "before"))
        assert fates
        for told, kept, moved in fates:
            assert kept + moved >= 2
            assert moved == 0 or not isinstance(told, DID_NOT_HAPPEN)
            assert moved == 2 or told is not None


def _cut_at_every_frame(
    harness: Harness, wire: FaultProxy, moment: Moment
) -> Iterator[tuple[JMSError | None, int, int]]:
    """Move two messages in a unit, each time with a cut one frame later, until there is no such frame.

    Yields:
        The error of the commit, the number of messages left in the source, and the number in the target.
    """
    for frame in count():
        source, target = queues(harness, *"ab")
        unit, _ = move(harness, wire, source, target, 2)
        wire.cut_at("any", moment, skip=frame)
        told = _outcome(unit)
        if not wire.triggered:
            return
        wire.cut()
        yield told, *_fates(harness, source, target, 2)


def _outcome(unit: Unit) -> JMSError | None:
    try:
        unit.commit()
    except JMSError as error:
        return error
    return None


def _fates(harness: Harness, source: Queue, target: Queue, sent: int) -> tuple[int, int]:
    """How many messages are in each of two queues; in both together as many as were sent, or more."""
    connection = harness.connect()
    consumers = connection.consumer(source, order=Order.ANY), connection.consumer(target, order=Order.ANY)
    found = [0, 0]
    for _ in range(round(PATIENCE / 0.02)):
        for number, consumer in enumerate(consumers):
            found[number] += len(consumer.receive(10, 0.01))
        if sum(found) >= sent:
            break
    for number, (consumer, queue) in enumerate(zip(consumers, (source, target), strict=True)):
        found[number] += not harness.receives_nothing(consumer, queue)
    connection.close()
    return found[0], found[1]


def _possible(told: JMSError | None) -> list[tuple[int, int]]:
    """Return the possible outcomes for two messages moved in one unit: the numbers of kept and of moved messages."""
    if isinstance(told, DID_NOT_HAPPEN):
        return [(2, 0)]
    return [(0, 2), (2, 0)] if told is not None else [(0, 2)]


class TestConnectionIsCut(Cuttable):
    """A connection that breaks without a commit in flight: open units are lost, deliveries are redelivered."""

    def test_break_is_told_once(self, harness: Harness, wire: FaultProxy) -> None:
        """``lost`` of `Provider.connect` is called once, with a `ConnectionLostError`."""
        told: list[JMSError] = []
        first, second = threading.Event(), threading.Event()

        def lost(error: JMSError) -> None:
            """Record each reported loss."""
            (second if told else first).set()
            told.append(error)

        connection = harness.connect(url=wire.url, on_lost=lost)
        wire.cut()
        assert first.wait(PATIENCE)
        connection.close()
        assert [type(error) for error in told] == [ConnectionLostError]
        assert not second.is_set()

    def test_own_end_is_not_told(self, harness: Harness, wire: FaultProxy) -> None:
        """Closing a connection does not count as a loss."""
        told: list[JMSError] = []
        harness.connect(url=wire.url, on_lost=told.append).close()
        wire.cut()
        assert not told

    def test_everything_says_so(self, harness: Harness, wire: FaultProxy) -> None:
        """Every call raises `ConnectionLostError`, except closing."""
        queue = harness.queue()
        connection, _ = connect(harness, wire)
        consumer, unit = connection.consumer(queue), harness.unit(connection)
        wire.cut()
        with pytest.raises(ConnectionLostError):
            consumer.receive(1, PATIENCE)
        with pytest.raises(ConnectionLostError):
            connection.consumer(queue)
        with pytest.raises(ConnectionLostError):
            harness.record(unit, queue, "never")
        consumer.close()
        connection.close()

    def test_waiting_receive_ends(self, harness: Harness, wire: FaultProxy) -> None:
        """A receive that would wait for ever ends with the connection."""
        connection, _ = connect(harness, wire)
        waiting = harness.in_background(connection.consumer(harness.queue()).receive, 1, None)
        wire.cut()
        assert isinstance(waiting.exception(PATIENCE), ConnectionLostError)

    def test_what_was_held_comes_again(self, harness: Harness, wire: FaultProxy) -> None:
        """Taken by a unit or not, looked at or still on its way."""
        queue = harness.queue()
        harness.send(queue, *"abcde")
        connection, _ = connect(harness, wire)
        first, *_ = harness.gather(connection.consumer(queue), 2)
        harness.holding([first], connection)
        wire.cut()
        harness.expect(queue, *"abcde", ordered=False)  # some may come before the broker has noticed the cut

    def test_what_was_held_is_marked_redelivered(self, harness: Harness, wire: FaultProxy) -> None:
        """A handler may have seen it (JMS 3.1, section 3.4.7; capability counts_lost)."""
        harness.require("counts_lost")
        queue = harness.queue()
        harness.send(queue, "a")
        connection, _ = connect(harness, wire)
        harness.gather(connection.consumer(queue), 1)
        wire.cut()
        [again] = harness.gather(harness.connection.consumer(queue), 1)
        assert again.redelivered
        assert again.count in {2, None}

    def test_late_commit_did_not_happen(self, harness: Harness, wire: FaultProxy) -> None:
        """Nothing was written before the cut, so the outcome is known: no `TransactionInDoubtError`."""
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut()
        assert lost.wait(PATIENCE)
        with pytest.raises(DID_NOT_HAPPEN):
            unit.commit()
        harness.expect(source, "a")
        harness.expect(target)

    def test_late_rollback_needs_nothing(self, harness: Harness, wire: FaultProxy) -> None:
        """The broker has already returned the deliveries of the unit; the rollback reports that the unit was lost."""
        source, target = queues(harness, "a")
        unit, lost = move(harness, wire, source, target)
        wire.cut()
        assert lost.wait(PATIENCE)
        with pytest.raises(ConnectionLostError):
            unit.rollback()
        harness.expect(source, "a")
        harness.expect(target)


class TestRefusedSends(Contract):
    """A move with a target that the broker refuses: known at the commit, and without any effect."""

    def test_refused_send_rolls_back(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """`TransactionRolledBackError`; the deliveries of the unit are redelivered."""
        source = harness.queue()
        harness.send(source, *"ab")
        unit = harness.holding(harness.gather(harness.connection.consumer(source), 1))
        harness.record(unit, jms_refused_destination, "refused")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        harness.connection.close()
        harness.expect(source, "a", "b", ordered=False)  # the broker may have ended the connection, and clears up later

    def test_refused_send_takes_the_others_with_it(
        self, harness: Harness, jms_refused_destination: Destination
    ) -> None:
        """The other sends of the unit were not sent (capability transacted_send)."""
        harness.require("transacted_send")
        target = harness.queue()
        unit = harness.unit()
        for to in (target, jms_refused_destination, target):
            harness.record(unit, to, "never")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        harness.expect(target)

    def test_refused_send_without_transactions_is_honest(
        self, harness: Harness, jms_refused_destination: Destination
    ) -> None:
        """If some messages were sent already the unit did not roll back: the outcome is mixed, so it is in doubt."""
        harness.require_lack("transacted_send")
        target = harness.queue()
        unit = harness.unit()
        for to in (target, jms_refused_destination, target):
            harness.record(unit, to, "some")
        with pytest.raises((TransactionInDoubtError, TransactionRolledBackError)) as told:
            unit.commit()
        if told.type is TransactionRolledBackError:
            harness.expect(target)

    def test_unit_after_a_refused_one_commits(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """The messages can be worked off in another way, on a connection that may be a new one."""
        source = harness.queue()
        harness.send(source, *"ab")
        connection = harness.connect()
        unit = harness.holding(harness.gather(connection.consumer(source), 1), connection)
        harness.record(unit, jms_refused_destination, "refused")
        with pytest.raises(TransactionRolledBackError):
            unit.commit()
        connection.close()
        harness.settle(again := harness.gather(harness.connection.consumer(source), 2))
        assert sorted(bodies(again)) == ["a", "b"]
        harness.connection.close()
        harness.expect(source)

    def test_refused_destination_fails_the_check(self, harness: Harness, jms_refused_destination: Destination) -> None:
        """An endpoint gets the error when it starts, not at its first poison message (capability checks)."""
        harness.require("checks")
        with pytest.raises(JMSError):
            harness.connection.check(jms_refused_destination)


class TestPoolIsCut(Cuttable):
    """`ConnectionPool` and `Sender`: a broken connection is never borrowed again, and sends go on."""

    def test_connections_that_broke_while_idle_are_replaced(self, harness: Harness, wire: FaultProxy) -> None:
        """All of them are replaced, and no borrower gets an error."""
        queue = harness.queue()
        with ConnectionPool(ConnectionFactory(wire.url), max_size=2) as pool:
            with pool.connection() as first, pool.connection() as second:
                broken = [first.connection, second.connection]
            _cut_and_wait(wire, broken)
            for body in "ab":
                with pool.connection() as connection:
                    assert connection.connection not in broken
                    session = connection.create_session()
                    session.create_producer(queue).send(session.create_text_message(body))
            assert pool.get_stats()["pool_size"] == 1
        harness.expect(queue, *"ab")

    def test_connection_that_broke_while_borrowed_is_not_kept(self, harness: Harness, wire: FaultProxy) -> None:
        """Its borrower gets an error; the next one gets a connection that works."""
        queue = harness.queue()
        with ConnectionPool(ConnectionFactory(wire.url), max_size=1) as pool:
            with pool.connection() as connection:
                session = connection.create_session()
                _cut_and_wait(wire, [connection.connection])
                with pytest.raises(JMSError):
                    session.create_producer(queue).send(session.create_text_message("never"))
            assert (pool.get_stats()["pool_size"], pool.get_stats()["returns_bad"]) == (0, 1)
            with pool.session() as session:
                session.create_producer(queue).send(session.create_text_message("a"))
        harness.expect(queue, "a")

    def test_sender_goes_on_after_its_connections_broke(self, harness: Harness, wire: FaultProxy) -> None:
        """Each send returns once the broker has its message."""
        queue = harness.queue()
        with ConnectionPool(ConnectionFactory(wire.url), max_size=1) as pool:
            for body in "abc":
                Sender(pool).send(queue, body)
                with pool.connection() as connection:
                    used = connection.connection
                _cut_and_wait(wire, [used])
        harness.expect(queue, *"abc")


def _cut_and_wait(wire: FaultProxy, connections: list[OutboundConnection]) -> None:
    """Cut the wire, and wait until each connection has noticed it."""
    noticed = threading.Semaphore(0)
    for connection in connections:
        connection.exception_listener = lambda _: noticed.release()
    wire.cut()
    for _ in connections:
        assert noticed.acquire(timeout=PATIENCE)


Moment = Literal["before", "unanswered", "answered", "never"]

_PORTS = {"amqp": 5672, "stomp": 61613}
_DRAIN_SECONDS = 10
_RESET = struct.pack("ii", 1, 0)  # close at once, and say so by RST


@dataclass(slots=True)
class _Breakpoint:
    kind: str
    moment: Moment
    skip: int
    asked: tuple[object, int] | None = None
    sprung: bool = False


class FaultProxy:
    """A TCP proxy that forwards connections to a broker until a test cuts them.

    A cut resets the connection of the client; the broker reads the forwarded bytes and then the end of the stream.

    Args:
        url: The URL of the broker, ``amqp://…`` or ``stomp://…``.

    Attributes:
        url: The URL of the same broker through the proxy.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._broker = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
        self._splitter: Callable[[], Splitter] = _SPLITTERS.get(parts.scheme, STOMPSplitter)
        self._server = socket.create_server(("127.0.0.1", 0))
        user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        self.url = parts._replace(netloc=f"{user}127.0.0.1:{self._server.getsockname()[1]}").geturl()
        self._links: list[_ProxiedConnection] = []
        self._changing = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        self.trap: _Breakpoint | None = None

    def cut(self) -> None:
        """Cut all connections now; they are cut when this returns."""
        with self._changing:
            links = list(self._links)
        for link in links:
            link.cut()

    def cut_at(self, kind: str, moment: Moment, *, skip: int = 0) -> None:
        """Cut when the client writes a frame.

        Args:
            kind: Kind of the frame: "send", "acknowledge", "begin", "commit" or "any".
            moment: "before": the broker does not get the frame. "unanswered": the broker has answered; the answer and
                everything after it are withheld. "answered": the client has got the answer. "never": nothing is cut,
                but the answer and everything after it are withheld.
            skip: Number of frames of this kind to let pass first.
        """
        self.trap = _Breakpoint(kind, moment, skip)

    @property
    def triggered(self) -> bool:
        """True if the frame that `cut_at` waits for has come."""
        return self.trap is not None and self.trap.sprung

    def close(self) -> None:
        """Cut everything and accept nothing more."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._accepting.join()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._broker)
                with self._changing:  # `cut` must know of a link before anything passes it
                    self._links.append(_ProxiedConnection(self, client, broker, self._splitter))


class _ProxiedConnection:
    """One connection through the proxy, on a separate thread."""

    def __init__(
        self,
        wire: FaultProxy,
        client: socket.socket,
        broker: socket.socket,
        splitter: Callable[[], Splitter],
    ) -> None:
        self._wire = wire
        self._client, self._broker = client, broker
        self._up = splitter()
        self._down = splitter()
        self._muted = self._cut = self._orderly = False
        self._wakes, self._woken = socket.socketpair()
        for end in (client, broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Cut it now; it is cut when this returns."""
        with suppress(OSError):
            self._wakes.send(b"!")
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError), selectors.DefaultSelector() as selector:
            for end in (self._client, self._broker, self._woken):
                selector.register(end, selectors.EVENT_READ)
            while not self._cut:
                for key, _ in selector.select():
                    self._forward(key.fileobj)
        self._end()

    def _forward(self, end: object) -> None:
        if end is self._woken:
            self._cut = True
        elif end is self._client:
            self._forward_frames(self._client, self._up)
        else:
            self._forward_frames(self._broker, self._down)

    def _forward_frames(self, source: socket.socket, splitter: Splitter) -> None:
        data = source.recv(65536)
        if not data:
            self._cut, self._orderly = True, True
        for frame in splitter.feed(data):
            if not self._cut:
                self._upwards(frame) if source is self._client else self._downwards(frame)

    def _upwards(self, frame: Frame) -> None:
        trap = self._wire.trap
        if not trap or trap.sprung or not frame.kind or trap.kind not in {frame.kind, "any"}:
            self._broker.sendall(frame.data)
        elif trap.skip:
            trap.skip -= 1
            self._broker.sendall(frame.data)
        else:
            self._trigger(trap, frame)

    def _trigger(self, trap: _Breakpoint, frame: Frame) -> None:
        trap.sprung, trap.asked = True, frame.asks
        self._muted = trap.moment in {"unanswered", "never"}
        if trap.moment != "before":
            self._broker.sendall(frame.data)
        self._cut = trap.moment == "before" or (trap.moment != "never" and not frame.asks)

    def _downwards(self, frame: Frame) -> None:
        trap = self._wire.trap
        if not self._muted:
            self._client.sendall(frame.data)
        if trap and trap.moment != "never" and trap.asked and frame.answers_to(trap.asked):
            self._cut, self._orderly = True, trap.moment == "answered"  # the answer is read before an orderly end

    def _end(self) -> None:
        if not self._orderly:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._client.close()
        self._broker.settimeout(_DRAIN_SECONDS)
        with suppress(OSError):
            self._broker.shutdown(socket.SHUT_WR)
            while self._broker.recv(65536):  # unread bytes would make the end a reset, and void what was forwarded
                pass
        for end in (self._broker, self._wakes, self._woken):
            end.close()


_COMMANDS = {b"SEND": "send", b"ACK": "acknowledge", b"BEGIN": "begin", b"COMMIT": "commit", b"ABORT": "rollback"}
_PERFORMATIVES = {0x12: "attach", 0x13: "flow", 0x14: "send", 0x15: "acknowledge", 0x16: "detach"}
_BEGIN, _TRANSFER, _DISPOSITION, _DECLARE, _DISCHARGE, _AMQP_VALUE = 0x11, 0x14, 0x15, 0x31, 0x32, 0x77
_FIELDS = 6  # as many as are looked at
_TRUE = 0x41  # stands for true; as a role it means the receiver, which answers a transfer


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of either protocol.

    Args:
        data: The bytes of the frame.
        kind: "send", "acknowledge", "begin" or "commit" for such frames; "other"; "" for bytes that are not a frame.
        asks: The key of the request for a reply; None if the frame asks for none.
        answers: The request that the frame replies to: a name, and the first and last of a range of numbers.
    """

    data: bytes
    kind: str = ""
    asks: tuple[object, int] | None = None
    answers: tuple[object, int, int] | None = None

    def answers_to(self, asked: tuple[object, int]) -> bool:
        """Return True if this frame is the reply to the request of another frame."""
        if self.answers is None:
            return False
        name, first, last = self.answers
        return name == asked[0] and first <= asked[1] <= last


class AMQPSplitter:
    """Frames of AMQP 1.0: a size in front, a performative inside."""

    def __init__(self) -> None:
        self._buffer = b""
        self._channels: dict[int, int] = {}  # the other side's name of each channel

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes as they come, and give the frames that are whole by now."""
        self._buffer += data
        while len(self._buffer) >= 8 and len(self._buffer) >= (size := self._size()):
            whole, self._buffer = self._buffer[:size], self._buffer[size:]
            yield self._frame(whole)

    def _size(self) -> int:
        return 8 if self._buffer.startswith(b"AMQP") else int.from_bytes(self._buffer[:4], "big")

    def _frame(self, data: bytes) -> Frame:
        at = data[4] * 4
        if data.startswith(b"AMQP") or data[5] or at >= len(data):  # a greeting, a login, a heartbeat
            return Frame(data)
        performative, at = _descriptor(data, at)
        fields, end = _fields(data, at)
        fields += [None] * _FIELDS  # what is not written is null
        channel = int.from_bytes(data[6:8], "big")
        if performative == _BEGIN and fields[0] is not None:
            self._channels[channel] = fields[0]
        if performative == _DISPOSITION and fields[0] == _TRUE:
            first = fields[1] or 0
            last = first if fields[2] is None else fields[2]
            return Frame(data, "acknowledge", answers=(self._channels.get(channel, channel), first, last))
        if performative == _TRANSFER and fields[1] is not None:  # it begins a message
            whole = fields[5] != _TRUE
            return Frame(data, _content(data, end) if whole else "send", asks=(channel, fields[1]))
        return Frame(data, _PERFORMATIVES.get(performative, "other"))


class STOMPSplitter:
    """Frames of STOMP 1.2: a command, headers, and a body that a NUL ends."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes as they come, and give the frames that are whole by now."""
        self._buffer += data
        while self._buffer and (size := self._size()):
            whole, self._buffer = self._buffer[:size], self._buffer[size:]
            yield self._frame(whole)

    def _size(self) -> int:
        """The length of the first frame; 0 if there is more to come."""
        if self._buffer[0] in b"\r\n":
            return 1
        head = re.search(rb"\r?\n\r?\n", self._buffer)
        if not head:
            return 0
        length = re.search(rb"\ncontent-length:(\d+)", self._buffer[: head.start()])
        end = head.end() + int(length[1]) if length else self._buffer.find(b"\0", head.end())
        return end + 1 if 0 <= end < len(self._buffer) else 0

    def _frame(self, data: bytes) -> Frame:
        if data in {b"\r", b"\n"}:
            return Frame(data)
        head = re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0]
        command, receipt = head.split(b"\n")[0].strip(), re.search(rb"\nreceipt(-id)?:([^\r\n]*)", head)
        asks = (receipt[2], 0) if receipt and not receipt[1] else None
        answers = (receipt[2], 0, 0) if receipt and receipt[1] else None
        return Frame(data, _COMMANDS.get(command, "other"), asks, answers)


class CoreSplitter:
    """Frames of Artemis' Core protocol: a size, a type of a byte, and a channel that answers in order."""

    kinds: ClassVar[Mapping[int, str]] = {
        41: "acknowledge",
        43: "commit",
        51: "begin",
        53: "commit",
        57: "begin",
        71: "send",
        81: "acknowledge",
    }
    _answers, _key = frozenset({20, 21, 55}), slice(5, 13)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes as they come, and give the frames that are whole by now."""
        self._buffer += data
        while len(self._buffer) >= 4 and len(self._buffer) >= (size := self._size()):
            whole, self._buffer = self._buffer[:size], self._buffer[size:]
            kind = self._kind(whole)
            asks = (whole[self._key], 0) if kind == "commit" else None
            answers = (whole[self._key], 0, 0) if whole[4:5] and whole[4] in self._answers else None
            yield Frame(whole, kind, asks, answers)

    def _size(self) -> int:
        return 7 if self._buffer.startswith(b"ARTEMIS") else 4 + int.from_bytes(self._buffer[:4], "big")

    def _kind(self, data: bytes) -> str:
        return "" if data.startswith(b"ARTEMIS") else self.kinds.get(data[4], "other")


class OpenWireSplitter(CoreSplitter):
    """Frames of OpenWire: a size and a type of a byte; the last byte of a transaction's says what is to be done."""

    _answers, _key = frozenset({30, 31, 34}), slice(0, 0)

    def _size(self) -> int:
        return 4 + int.from_bytes(self._buffer[:4], "big")

    def _kind(self, data: bytes) -> str:
        if data[4] == _TRANSACTION_INFO:
            return {0: "begin", 2: "commit", 3: "commit"}.get(data[-1], "other")
        return {22: "acknowledge"}.get(data[4], "send" if data[4] in _MESSAGES else "other")


_TRANSACTION_INFO, _MESSAGES = 7, range(23, 30)

Splitter: TypeAlias = AMQPSplitter | STOMPSplitter | CoreSplitter

_SPLITTERS: Mapping[str, Callable[[], Splitter]] = {
    "amqp": AMQPSplitter,
    "java+amqp": AMQPSplitter,
    "java+core": CoreSplitter,
    "java+tcp": OpenWireSplitter,
}


def _content(data: bytes, at: int) -> str:
    """Return the kind of content of a transfer: a message, or one of the two commands to a transaction coordinator."""
    while data[at : at + 1] == b"\0":
        section, at = _descriptor(data, at)
        if section == _AMQP_VALUE and data[at : at + 1] == b"\0":
            return _command(data, at)
        at = _value(data, at)[1]
    return "send"


def _command(data: bytes, at: int) -> str:
    command, at = _descriptor(data, at)
    if command == _DISCHARGE:
        fields, _ = _fields(data, at)
        return "rollback" if fields[1:] == [_TRUE] else "commit"
    return "begin" if command == _DECLARE else "send"


def _descriptor(data: bytes, at: int) -> tuple[int, int]:
    number, after = _value(data, at + 1)
    return number or 0, after


def _fields(data: bytes, at: int) -> tuple[list[int | None], int]:
    """The fields of a list, as far as they are numbers, and where it ends."""
    _, end = _value(data, at)
    at += {0x45: 1, 0xC0: 3, 0xD0: 9}[data[at]]
    fields: list[int | None] = []
    while at < end:
        number, at = _value(data, at)
        fields.append(number)
    return fields, end


def _value(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a value if it is a number (or true, as 0x41), and its end, which its first byte determines."""
    code = data[at]
    if code == 0:  # described: its descriptor, then the value itself
        return None, _value(data, _value(data, at + 1)[1])[1]
    at, kind = at + 1, code >> 4
    if kind in {0xA, 0xC, 0xE}:
        return None, at + 1 + data[at]
    if kind in {0xB, 0xD, 0xF}:
        return None, at + 4 + int.from_bytes(data[at : at + 4], "big")
    width = 0 if kind == 4 else 1 << (kind - 5)
    if not width:
        return {0x40: None, 0x41: 0x41}.get(code, 0), at
    number = int.from_bytes(data[at : at + width], "big")
    return (_TRUE if number else 0) if code == 0x56 else number, at + width
