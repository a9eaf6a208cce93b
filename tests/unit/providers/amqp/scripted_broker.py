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

from proton import Collector, Connection, Event, Message, Terminus, Transport

from tests.unit.providers.amqp.broker_behaviour import Behaviour
from tests.unit.providers.amqp.raw_frames import frame

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


class Peer(Behaviour):
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
            while self.stuck.done() and self._client.recv(1000):
                pass  # silent from the beginning
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
        self.flush()

    def flush(self) -> None:
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
