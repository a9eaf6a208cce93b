"""A broker of one process over a real socket: queues, transactions, and one fault at a place of the conversation.

Places are numbered: each frame that comes counts before it is handled, each frame that goes before it is written. It
behaves as ActiveMQ does: an ERROR ends nothing, a refused SEND that asks for no receipt dooms its transaction.
"""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.unit.stomp.letters import read, write

NOISE = b"HTTP/1.1 400 Bad Request\r\n\r\n"


class Fault(NamedTuple):
    """What goes wrong at which place: cut, refuse, noise, silence from here on, or withhold: one answer."""

    kind: str
    place: int
    text: str = "refused"  # what a refusal says


@dataclass
class Letter:
    """A message of a queue."""

    name: str
    headers: dict
    body: bytes
    seen: bool = False


@dataclass
class Subscription:
    queue: str
    cumulative: bool
    held: list = field(default_factory=list)  # what it was sent and has not settled


class Peer:
    """Serves until it is left. The fault happens once.

    Attributes:
        queues: What they hold, as a restarted broker would find it.
        places: The frames of the conversation, in the order of their places.
        broken: True once the fault has happened.
    """

    def __init__(self, fault=None, *, connected=None, beats="0,0"):
        self.queues, self.places, self.broken = {}, [], False
        self._fault = fault
        self.refusal = fault.text if fault else ""
        self._connected = {"version": "1.2", "server": "ActiveMQ/6.3.1", "heart-beat": beats}
        self._connected = {k: v for k, v in (self._connected | (connected or {})).items() if v is not None}
        self._numbers, self._lock = 0, threading.RLock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._threads, self._sockets = [], []

    @property
    def url(self):
        return f"stomp://127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self):
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._accepting.join(30)
        self._server.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.settle_down()

    def settle_down(self):
        """Wait until every connection has ended and given back what it held."""
        for thread in self._threads:
            thread.join(30)

    def left(self, queue):
        """The bodies that a queue holds."""
        return [letter.body.decode() for letter in self.queues.get(queue, [])]

    def _accept(self):
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(client)
                self._threads.append(threading.Thread(target=_Session(self, client).serve))
                self._threads[-1].start()

    def at(self, frame):
        """Count a place, and tell what happens there."""
        with self._lock:
            self.places.append(frame)
            if self._fault is None or self.broken or len(self.places) - 1 != self._fault.place:
                return None
            self.broken = True
            return self._fault.kind

    def name(self):
        self._numbers += 1
        return f"m{self._numbers}"


class _Session:
    """One connection."""

    def __init__(self, peer, client):
        self._peer, self._client = peer, client
        self._subscriptions, self._acks, self._sends = {}, [], []
        self._open, self._doomed, self._silent = False, False, False

    def serve(self):
        try:
            for command, headers, body in self._frames():
                self._take(command, dict(headers), body)
        except (OSError, _CutError):
            pass
        finally:
            with suppress(OSError):  # nobody reads what is left
                self._client.shutdown(socket.SHUT_RDWR)
            self._client.close()
            for name in list(self._subscriptions):
                self._give_back(name)

    def _frames(self):
        data = b""
        while piece := self._client.recv(65536):
            data += piece
            while frame := _first(data):
                frames = read(frame, escaped=not frame.lstrip().startswith(b"CONNECT"))
                data = data[len(frame) :]
                yield from frames

    def _take(self, command, headers, body):
        kind = self._peer.at(command)
        if kind == "refuse":
            self._doomed |= command == "SEND"
            self._answer("ERROR", {"message": self._peer.refusal, **_named(headers)})
        elif not self._breaks(kind):
            getattr(self, f"_{command.lower()}")(headers, body)

    def _answer(self, command, headers, body=b""):
        kind = self._peer.at(command)
        if kind == "refuse":
            command, headers, body = "ERROR", {"message": self._peer.refusal}, b""
        if kind != "withhold" and not self._breaks(kind):
            self._client.sendall(write(command, headers, body))

    def _breaks(self, kind):
        """Carry out what ends the conversation; True if nothing more is said."""
        if kind == "cut":
            raise _CutError
        if kind == "noise":
            self._client.sendall(NOISE)
        self._silent |= kind == "silence"
        return self._silent

    def _connect(self, headers, body):
        self._answer("CONNECTED", self._peer._connected)

    def _subscribe(self, headers, body):
        queue = headers["destination"]
        self._subscriptions[headers["id"]] = Subscription(queue, headers["ack"] == "client")
        self._confirm(headers)
        self._deliver(queue)

    def _unsubscribe(self, headers, body):
        self._give_back(headers["id"])
        self._confirm(headers)

    def _begin(self, headers, body):
        self._open, self._doomed, self._acks, self._sends = True, False, [], []
        self._confirm(headers)

    def _abort(self, headers, body):
        self._open = False
        self._confirm(headers)

    def _ack(self, headers, body):
        if self._open:
            self._acks.append(headers.get("id") or headers["message-id"])
        self._confirm(headers)

    def _send(self, headers, body):
        if self._open:
            self._sends.append(Letter(self._peer.name(), headers, body))
        self._confirm(headers)

    def _commit(self, headers, body):
        if self._doomed or not self._open:
            return self._answer("ERROR", {"message": "COMMIT FAILED", **_named(headers)})
        self._open = False
        for name in self._acks:
            self._settle(name)
        for letter in self._sends:
            self._peer.queues.setdefault(letter.headers["destination"], []).append(letter)
        self._confirm(headers)
        return None

    def _disconnect(self, headers, body):
        self._confirm(headers)
        raise _CutError

    def _confirm(self, headers):
        if "receipt" in headers:
            self._answer("RECEIPT", {"receipt-id": headers["receipt"]})

    def _deliver(self, queue):
        for name, subscription in self._subscriptions.items():
            while subscription.queue == queue and self._peer.queues.get(queue):
                letter = self._peer.queues[queue].pop(0)
                subscription.held.append(letter)
                skipped = ("destination", "receipt", "transaction", "content-length")
                plain = {k: v for k, v in letter.headers.items() if k not in skipped}
                told = {"destination": queue, "message-id": letter.name, "ack": letter.name, "subscription": name}
                seen = {"redelivered": "true"} if letter.seen else {}
                sized = {"content-length": str(len(letter.body))}
                self._answer("MESSAGE", {**plain, **told, **seen, **sized}, letter.body)

    def _settle(self, name):
        for subscription in self._subscriptions.values():
            names = [letter.name for letter in subscription.held]
            if name in names:
                place = names.index(name)
                del subscription.held[0 if subscription.cumulative else place : place + 1]

    def _give_back(self, name):
        subscription = self._subscriptions.pop(name)
        for letter in subscription.held:
            letter.seen = True
        self._peer.queues[subscription.queue] = subscription.held + self._peer.queues.get(subscription.queue, [])


class _CutError(Exception):
    """The connection ends here."""


def _named(headers):
    return {"receipt-id": headers["receipt"]} if "receipt" in headers else {}


def _first(data):
    """The first whole frame with the line ends before it; nothing if there is none."""
    blank = len(data) - len(data.lstrip(b"\n"))
    head, end, rest = data[blank:].partition(b"\n\n")
    if not end:
        return b""
    lines = [line for line in head.split(b"\n") if line.startswith(b"content-length:")]
    size = int(lines[0][15:]) if lines else rest.find(b"\0")
    return data[: blank + len(head) + 2 + size + 1] if 0 <= size < len(rest) else b""
