"""A broker of AMQP 1.0 for one connection, which behaves until a test tells it, step by step, not to."""

import itertools
import selectors
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from proton import Collector, Condition, Connection, Described, Event, Message, Terminus, Transport, symbol, ulong

DECLARED, TRANSACTIONAL, ACCEPTED, REJECTED = 0x33, 0x34, 0x24, 0x25
SECONDS = 30
_DISCHARGE = 0x32
_RESET = struct.pack("ii", 1, 0)
_STEPS = {
    Event.CONNECTION_REMOTE_OPEN: "open",
    Event.CONNECTION_REMOTE_CLOSE: "close",
    Event.SESSION_REMOTE_OPEN: "begin",
    Event.SESSION_REMOTE_CLOSE: "end",
    Event.LINK_REMOTE_OPEN: "attach",
    Event.LINK_REMOTE_CLOSE: "detach",
    Event.LINK_REMOTE_DETACH: "detach",
}


class Peer:
    """Listens at once; each step of the client has a reaction, which a test may replace.

    Args:
        product: What it calls itself.
        offers: The SASL mechanism that it offers.
        login: The outcome of the login: 0 is well.
        idle: Seconds of silence that it tolerates; 0 for ever.
        wrap: Makes the accepted socket a TLS one.
    """

    def __init__(
        self,
        product: str = "apache-activemq-artemis",
        *,
        offers: str = "ANONYMOUS",
        login: int = 0,
        idle: float = 0,
        wrap: Callable[[socket.socket], socket.socket] = lambda plain: plain,
    ) -> None:
        self.product, self.offers, self.outcome, self.idle, self._wrap = product, offers, login, idle, wrap
        self.reactions: dict[str, Callable[[Any], None]] = {}
        self.seen: Counter[str] = Counter()  # how often the client took each step
        self.order: list[str] = []
        self.stock: deque[bytes] = deque()  # encoded messages, given out as credit allows
        self.sent: dict[str, list[Any]] = {}  # the client's messages by address
        self.settled: list[tuple[str, int]] = []  # the client's settlements: tag and state
        self.login = b""  # the SASL frame of the client
        self.stuck: Future[None] = Future()  # done when a step stays unanswered
        self.connection, self.transport, self._collector = Connection(), Transport(Transport.SERVER), Collector()
        self._changed = threading.Condition()
        self._posted: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._channels = itertools.count()
        self._client: socket.socket | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self._waker, self._woken = socket.socketpair()
        self.address = "{}:{}".format(*self._server.getsockname())
        self._thread = threading.Thread(target=self._run, name="peer")
        self._thread.start()

    def silent(self, *steps: str) -> None:
        """Leave these steps unanswered; the first one ends every wait of the client, see `impatient`."""
        self.reactions.update(dict.fromkeys(steps, self._say_nothing))

    def _say_nothing(self, event: Any) -> None:
        if not self.stuck.done():
            self.stuck.set_result(None)

    def cut(self, event: Any = None) -> None:
        """A reaction: reset the connection."""
        assert self._client is not None
        self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._client.close()

    def wait_for(self, step: str, times: int = 1) -> None:
        """Wait until the client took a step."""
        self.wait_until(lambda: self.seen[step] >= times)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, SECONDS), self.order

    def do(self, function: Callable[[], Any]) -> Any:
        """Run a function on the thread that owns proton's objects."""
        future: Future[Any] = Future()
        self._posted.append((function, future))
        self._waker.send(b"!")
        return future.result(SECONDS)

    def write(self, data: bytes) -> None:
        """Write bytes past proton."""
        assert self._client is not None
        self._client.setblocking(True)
        self._client.sendall(data)

    def close(self) -> None:
        for end in (self._server, self._client):
            with suppress(OSError):
                if end is not None:
                    end.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._waker.send(b"")
            self._waker.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        for end in (self._server, self._client, self._waker, self._woken):
            if end is not None:
                end.close()
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with suppress(OSError):
            plain, _ = self._server.accept()
            self._client = plain
            self._client = self._wrap(plain)
            self._take("connect", None)
            if self._logs_in():
                self._talk()
        if self._client is not None:
            self._client.close()

    def _logs_in(self) -> bool:
        assert self._client is not None
        if not self._client.recv(8, socket.MSG_WAITALL):
            return False
        name = self.offers.encode()
        self.write(b"AMQP\3\1\0\0" + frame(0x40, b"\xa3" + bytes([len(name)]) + name, 1, kind=1))
        size = self._client.recv(4, socket.MSG_WAITALL)
        if not size:
            return False
        self.login = self._client.recv(int.from_bytes(size, "big") - 4, socket.MSG_WAITALL)
        self._take("login", None)
        return self.outcome == 0

    def _talk(self) -> None:
        assert self._client is not None
        self.transport.bind(self.connection)
        self.connection.collect(self._collector)
        self._client.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._client, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while self._client.fileno() >= 0 and not self.transport.closed:
                self._turn(selector)

    def _turn(self, selector: selectors.BaseSelector) -> None:
        assert self._client is not None
        ready = [key.fileobj for key, _ in selector.select()]
        if self._woken in ready:
            if not self._woken.recv(100):
                raise OSError
            function, future = self._posted.popleft()
            future.set_result(function())
        if self._client in ready:
            data = self._client.recv(max(self.transport.capacity(), 1))
            if not data:
                raise OSError
            self.transport.push(data)
        self._dispatch()
        self._flush()

    def _flush(self) -> None:
        while self._client is not None and self._client.fileno() >= 0 and (size := self.transport.pending()) > 0:
            data = self.transport.peek(size)
            self.write(data)
            self.transport.pop(len(data))
            self._client.setblocking(False)

    def _dispatch(self) -> None:
        while event := self._collector.peek():
            if event.type in _STEPS:
                step = _STEPS[event.type]
                is_coordinator = step == "attach" and event.link.remote_target.type == Terminus.COORDINATOR
                self._take("coordinator" if is_coordinator else step, event)
            elif event.type == Event.LINK_FLOW and event.link.is_sender:
                self._credit(event)
            elif event.type == Event.DELIVERY:
                self._delivery(event)
            self._collector.pop()
        with self._changed:
            self._changed.notify_all()

    def _credit(self, event: Any) -> None:
        """Proton has this event also for what it sends itself; then the limit has not moved."""
        link = event.link
        limit = link.credit + getattr(link, "given", 0)
        if link.drain_mode:
            self._take("drain", event)
        elif limit != getattr(link, "limit", None):
            self._take("flow", event)
        link.limit = limit

    def _delivery(self, event: Any) -> None:
        link, delivery = event.link, event.delivery
        if link.is_sender:
            self.settled.append((delivery.tag, int(delivery.remote_state)))
            self._take("acknowledge", event)
        elif delivery.readable and not delivery.partial:
            message = Message()
            message.decode(link.recv(delivery.pending))
            link.advance()
            if link.remote_target.type != Terminus.COORDINATOR:
                self.sent.setdefault(link.remote_target.address, []).append(message.body)
                self._take("transfer", event)
            elif message.body.descriptor != _DISCHARGE:
                self._take("declare", event)
            else:
                self._take("rollback" if message.body.value[1] else "discharge", event)

    def _take(self, step: str, event: Any) -> None:
        with self._changed:
            self.seen[step] += 1
            self.order.append(step)
            self._changed.notify_all()
        self.reactions.get(step, getattr(self, f"on_{step}"))(event)

    def on_connect(self, event: Any) -> None: ...

    def on_login(self, event: Any) -> None:
        self.write(frame(0x44, bytes([0x50, self.outcome]), 1, kind=1))

    def on_open(self, event: Any) -> None:
        self.connection.container = "peer"
        self.transport.idle_timeout = self.idle
        self.connection.properties = {symbol("product"): self.product}
        self.connection.open()

    def on_begin(self, event: Any) -> None:
        event.session.channel = next(self._channels)
        event.session.open()

    def on_attach(self, event: Any) -> None:
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)
        if event.link.remote_source.type == Terminus.UNSPECIFIED:
            event.link.source.type = Terminus.SOURCE
            event.link.source.address = "known by its name"
        event.link.open()
        if event.link.is_receiver:
            event.link.flow(1000)

    on_coordinator = on_attach

    def on_flow(self, event: Any) -> None:
        while event.link.credit > 0 and self.stock:
            self._give(event.link, self.stock.popleft())
        if self.product == "RabbitMQ":
            self._answer_flow(event.link)

    def _give(self, link: Any, encoded: bytes) -> None:
        link.given = getattr(link, "given", 0) + 1
        link.delivery(str(link.given))
        link.send(encoded)
        link.advance()

    def _answer_flow(self, link: Any) -> None:
        """As RabbitMQ does; proton would not."""
        self._flush()
        number = struct.Struct(">BI").pack
        fields = b"\x40" + number(0x70, 1 << 30) + b"\x43" + number(0x70, 1 << 30) + b"\x43"
        fields += number(0x70, getattr(link, "given", 0)) + number(0x70, link.credit)
        self.write(frame(0x13, fields, 7, link.session.channel))

    def on_drain(self, event: Any) -> None:
        self.on_flow(event)
        event.link.drained()

    def on_declare(self, event: Any) -> None:
        event.delivery.local.data = [b"transaction"]
        event.delivery.update(DECLARED)
        event.delivery.settle()

    def on_transfer(self, event: Any) -> None:
        if event.delivery.remote_state == TRANSACTIONAL:
            event.delivery.local.data = [b"transaction", Described(ulong(ACCEPTED), [])]
        event.delivery.update(event.delivery.remote_state or ACCEPTED)
        event.delivery.settle()

    def on_discharge(self, event: Any) -> None:
        event.delivery.update(ACCEPTED)
        event.delivery.settle()

    on_rollback = on_discharge

    def on_acknowledge(self, event: Any) -> None:
        event.delivery.settle()

    def on_detach(self, event: Any) -> None:
        event.link.close()

    def on_end(self, event: Any) -> None:
        event.session.close()

    def on_close(self, event: Any) -> None:
        self.connection.close()


def refuse_link(event: Any, name: str = "amqp:not-found") -> None:
    """A reaction to attach: no terminus, then the reason."""
    event.link.open()
    event.link.condition = Condition(name, "no")
    event.link.close()


def end_session(event: Any, name: str = "amqp:internal-error") -> None:
    """A reaction to whatever has a session."""
    event.session.condition = Condition(name, "over")
    event.session.close()


def end_connection(event: Any, name: str = "amqp:connection:forced") -> None:
    """A reaction to whatever has a connection."""
    event.connection.condition = Condition(name, "over")
    event.connection.close()


def reject(event: Any) -> None:
    """A reaction to transfer and discharge."""
    event.delivery.local.condition = Condition("amqp:transaction:rollback", "no")
    event.delivery.update(REJECTED)
    event.delivery.settle()


def frame(
    performative: int, fields: bytes, count: int, channel: int = 0, *, kind: int = 0, payload: bytes = b""
) -> bytes:
    """A frame by hand."""
    body = bytes([0, 0x53, performative, 0xC0, len(fields) + 1, count]) + fields + payload
    return struct.pack(">IBBH", 8 + len(body), 2, kind, channel) + body


def transfer(number: int, payload: bytes, *, more: bool = False, aborted: bool = False, channel: int = 0) -> bytes:
    """A transfer frame on the session's first link."""
    flags = b"\x42" + (b"\x41" if more else b"\x42") + b"\x40\x40\x40" + (b"\x41" if aborted else b"\x42")
    identity = b"\x43" + b"\x70" + number.to_bytes(4, "big") + b"\xa0\4" + number.to_bytes(4, "big") + b"\x43"
    return frame(0x14, identity + flags, 10, channel, payload=payload)
