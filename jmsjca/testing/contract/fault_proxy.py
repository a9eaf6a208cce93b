"""A wire that can be cut: a TCP proxy on loopback between a provider and its broker; for AMQP 1.0 and STOMP, no TLS."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from jmsjca.testing.contract.frames import AMQPSplitter, Frame, Splitter, STOMPSplitter

__all__ = ["Moment", "Wire"]

Moment = Literal["before", "unanswered", "answered", "never"]

_PORTS = {"amqp": 5672, "stomp": 61613}
_DRAIN_SECONDS = 10
_RESET = struct.pack("ii", 1, 0)  # close at once, and say so by RST


@dataclass(slots=True)
class _Trap:
    kind: str
    moment: Moment
    skip: int
    asked: tuple[object, int] | None = None
    sprung: bool = False


class Wire:
    """Forwards connections to a broker until it is told to cut them.

    A cut resets the connection of the client; the broker reads what was forwarded to it and then the end.

    Args:
        url: The broker, ``amqp://…`` or ``stomp://…``.

    Attributes:
        url: The same broker, through the wire.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._broker = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
        self._splitter: type[AMQPSplitter | STOMPSplitter] = AMQPSplitter if parts.scheme == "amqp" else STOMPSplitter
        self._server = socket.create_server(("127.0.0.1", 0))
        user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        self.url = parts._replace(netloc=f"{user}127.0.0.1:{self._server.getsockname()[1]}").geturl()
        self._links: list[_Link] = []
        self._changing = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        self.trap: _Trap | None = None

    def cut(self) -> None:
        """Cut all connections now; they are cut when this returns."""
        with self._changing:
            links = list(self._links)
        for link in links:
            link.cut()

    def cut_at(self, kind: str, moment: Moment, *, skip: int = 0) -> None:
        """Cut when the client writes a frame.

        Args:
            kind: Which kind: "send", "acknowledge", "begin", "commit"; "any".
            moment: "before": the broker does not get it. "unanswered": the broker has answered it and the answer is
                withheld, with all that it wrote since. "answered": the client has got the answer. "never": nothing is
                cut, the answer and all behind it are withheld.
            skip: How many frames of this kind pass before.
        """
        self.trap = _Trap(kind, moment, skip)

    @property
    def sprung(self) -> bool:
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
                    self._links.append(_Link(self, client, broker, self._splitter))


class _Link:
    """One connection through the wire, on a thread of its own."""

    def __init__(
        self, wire: Wire, client: socket.socket, broker: socket.socket, splitter: type[AMQPSplitter | STOMPSplitter]
    ) -> None:
        self._wire = wire
        self._client, self._broker = client, broker
        self._up: Splitter = splitter()
        self._down: Splitter = splitter()
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
            self._pass(self._client, self._up)
        else:
            self._pass(self._broker, self._down)

    def _pass(self, source: socket.socket, splitter: Splitter) -> None:
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
            self._spring(trap, frame)

    def _spring(self, trap: _Trap, frame: Frame) -> None:
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
