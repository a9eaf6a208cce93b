"""Loops of other STOMP clients, and one without any client, for ActiveMQ."""

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.field.turns import BATCH, Contender, Turn, since
from tests.benchmarks.measurements import clocks
from tests.benchmarks.proton_loops import BODY, PATIENCE

os.environ.setdefault("STOMP_SKIP_HOSTNAME_SCAN", "1")
import stomp

__all__ = [
    "frame",
    "raw_connection",
    "raw_receives",
    "raw_sends",
    "stomp_py_receives",
    "stomp_py_sends",
    "stompman_receives",
    "stompman_sends",
]

_USER = "jmsjca"  # of the brokers of our tests; stompman never comes without one


def raw_receives(turn: Turn) -> Mapping[str, float]:
    """A socket and a slice for each frame: what Python can do at most. Acknowledged by the broker itself."""
    with closing(raw_connection(turn.url)) as wire:
        began, left, seen = clocks(), turn.count, b""
        wire.sendall(frame("SUBSCRIBE", id="1", destination=f"/queue/{turn.queue}", ack="auto", **_window(turn)))
        while left:
            seen += wire.recv(1 << 18)
            while (found := _first_frame(seen)) is not None:
                assert found[0] == len(BODY)
                seen, left = seen[found[1] :], left - 1
        return since(began)


def raw_sends(turn: Turn) -> Mapping[str, float]:
    """A socket; 100 frames encoded beforehand in each transaction, whose receipt is awaited."""
    send = frame("SEND", BODY, destination=f"/queue/{turn.queue}", persistent="true", transaction="t")
    burst = frame("BEGIN", transaction="t") + send * BATCH + frame("COMMIT", transaction="t", receipt="r")
    with closing(raw_connection(turn.url)) as wire:
        began = clocks()
        for _ in range(turn.count // BATCH):
            wire.sendall(burst)
            _await(wire, b"RECEIPT")
        return since(began)


class _StompPy(stomp.ConnectionListener):
    """stomp.py as its documentation shows it."""

    def __init__(self, url: str, *, acknowledges: bool = False) -> None:
        parts = urlsplit(url)
        self._acknowledges = acknowledges
        self.arrived = threading.Semaphore(0)
        self.receipts = threading.Semaphore(0)
        self.link = stomp.Connection12([(parts.hostname, parts.port)], auto_decode=False)
        self.link.set_listener("bench", self)
        self.link.connect(parts.username, parts.password, wait=True)

    def on_message(self, frame: Any) -> None:
        if self._acknowledges:
            self.link.ack(frame.headers["ack"])
        assert len(frame.body) == len(BODY)
        self.arrived.release()

    def on_receipt(self, frame: Any) -> None:
        self.receipts.release()

    def close(self) -> None:
        self.link.disconnect()


def stomp_py_receives(ack: str) -> Contender:
    """Acknowledged by the broker itself ("auto"), or one by one ("client-individual"); no transactions."""

    def receive(turn: Turn) -> Mapping[str, float]:
        with closing(_StompPy(turn.url, acknowledges=ack != "auto")) as client:
            began = clocks()
            client.link.subscribe(f"/queue/{turn.queue}", "1", ack, _window(turn))
            for _ in range(turn.count):
                assert client.arrived.acquire(timeout=PATIENCE)
            return since(began)

    return receive


def stomp_py_sends(turn: Turn) -> Mapping[str, float]:
    """100 messages in each transaction, whose receipt is awaited."""
    with closing(_StompPy(turn.url)) as client:
        began = clocks()
        for _ in range(turn.count // BATCH):
            name = client.link.begin()
            for _ in range(BATCH):
                client.link.send(f"/queue/{turn.queue}", BODY, transaction=name, persistent="true")
            client.link.commit(name, receipt="committed")
            assert client.receipts.acquire(timeout=PATIENCE)
        return since(began)


def stompman_receives(turn: Turn) -> Mapping[str, float]:
    """stompman, acknowledged by the broker itself; each message is handled by a task."""
    return asyncio.run(_stompman_receives(turn))


async def _stompman_receives(turn: Turn) -> Mapping[str, float]:
    left, done = turn.count, asyncio.Event()

    async def handle(frame: Any) -> None:
        nonlocal left
        assert len(frame.body) == len(BODY)
        left -= 1
        if not left:
            done.set()

    async with _stompman(turn.url) as client:
        began = clocks()
        subscription = await client.subscribe(
            f"/queue/{turn.queue}", handle, ack="auto", headers=_window(turn), on_suppressed_exception=print
        )
        await done.wait()
        seconds = since(began)
        await subscription.unsubscribe()
        return seconds


def stompman_sends(turn: Turn) -> Mapping[str, float]:
    """stompman, 100 messages in each transaction; only its goodbye is confirmed, and with it what came before."""
    return asyncio.run(_stompman_sends(turn))


async def _stompman_sends(turn: Turn) -> Mapping[str, float]:
    async with _stompman(turn.url) as client:
        began = clocks()
        for _ in range(turn.count // BATCH):
            async with client.begin() as transaction:
                for _ in range(BATCH):
                    await transaction.send(BODY, f"/queue/{turn.queue}", headers={"persistent": "true"})
    return since(began)


def _window(turn: Turn) -> dict[str, str]:
    return {"activemq.prefetchSize": str(turn.ahead)}


def _stompman(url: str) -> Any:
    import stompman  # so that its absence is told in the table

    parts = urlsplit(url)
    login = {"login": parts.username or _USER, "passcode": parts.password or _USER}
    return stompman.Client([stompman.ConnectionParameters(host=parts.hostname or "", port=parts.port or 0, **login)])


def raw_connection(url: str) -> socket.socket:
    """A socket that has logged in."""
    parts = urlsplit(url)
    wire = socket.create_connection((parts.hostname, parts.port), PATIENCE)
    wire.sendall(frame("CONNECT", host="/", **{"accept-version": "1.2"}))
    _await(wire, b"CONNECTED")
    return wire


def _await(wire: socket.socket, command: bytes) -> None:
    answer = b""
    while not answer.endswith((b"\0", b"\0\n")):
        answer += wire.recv(1 << 16)
    assert answer.lstrip().startswith(command), answer


def frame(command: str, body: bytes = b"", **headers: str) -> bytes:
    """A frame, nothing in it escaped."""
    told = {**headers, "content-length": str(len(body))} if body else headers
    lines = "".join(f"{name}:{value}\n" for name, value in told.items())
    return f"{command}\n{lines}\n".encode() + body + b"\0"


def _first_frame(seen: bytes) -> tuple[int, int] | None:
    """How long the body of the first frame is, and where the frame ends; None if it is not whole."""
    head = seen.find(b"\n\n")
    at = seen.find(b"content-length:", 0, head)
    if head < 0 or at < 0:
        return None
    length = int(seen[at + 15 : seen.index(b"\n", at)])
    end = head + 2 + length + 1
    return None if end > len(seen) else (length, end)
