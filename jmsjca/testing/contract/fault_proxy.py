"""A TCP proxy on loopback that cuts a connection at a frame; for AMQP 1.0 and STOMP 1.2, without TLS."""

from __future__ import annotations

import re
import selectors
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import urlsplit

__all__ = ["AMQPSplitter", "FaultProxy", "Frame", "Moment", "STOMPSplitter", "Splitter"]

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
        self._splitter: type[AMQPSplitter | STOMPSplitter] = AMQPSplitter if parts.scheme == "amqp" else STOMPSplitter
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
            kind: Which kind: "send", "acknowledge", "begin", "commit"; "any".
            moment: "before": the broker does not get it. "unanswered": the broker has answered it and the answer is
                withheld, with all that it wrote since. "answered": the client has got the answer. "never": nothing is
                cut, the answer and all behind it are withheld.
            skip: How many frames of this kind pass before.
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
    """One connection through the wire, on a thread of its own."""

    def __init__(
        self,
        wire: FaultProxy,
        client: socket.socket,
        broker: socket.socket,
        splitter: type[AMQPSplitter | STOMPSplitter],
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
_TRUE = 0x41  # stands for true; as a role it is that of the receiver, who answers a transfer


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


class Splitter(Protocol):
    """Cuts one direction of a connection into frames."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes as they come, and give the frames that are whole by now."""
        ...


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
