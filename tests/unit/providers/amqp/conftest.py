"""Connections to a scripted broker; whatever a test does, no thread and no socket may be left behind."""

import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from jmsjca.config import SYSTEM_CLOCK, Clock, Limits
from jmsjca.errors import JMSError
from jmsjca.providers.amqp.connection import AMQPConnection
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.amqp.scripted_broker import SECONDS, Peer


class Line:
    """A scripted broker, and what its client was told."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.told: list[JMSError] = []
        self.lost = threading.Event()
        self.connection: AMQPConnection = None  # type: ignore[assignment]

    def open(
        self,
        options: str = "",
        user: str = "",
        clock: Clock = SYSTEM_CLOCK,
        limits: Limits | None = None,
        client_id: str | None = None,
    ) -> AMQPConnection:
        settings = ConnectionSettings(
            f"amqp://{user}{self.peer.address}?{options}", client_id=client_id, clock=clock, limits=limits or Limits()
        )
        self.connection = connect(settings, self._end)  # type: ignore[assignment]
        return self.connection

    def close(self) -> None:
        if self.connection is not None:
            self.peer.reactions.clear()
            self.connection.close(timeout=0 if self.peer.stuck.done() else SECONDS)
        self.peer.close()

    def _end(self, error: JMSError) -> None:
        self.told.append(error)
        self.lost.set()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends with the threads that it began with, and without descriptors of its own."""
    before = _descriptors()
    yield
    for thread in threading.enumerate():
        if thread.name == "jmsjca-amqp":
            thread.join(SECONDS)
            assert not thread.is_alive()
    if _descriptors() - before:
        gc.collect()
    end = time.monotonic() + SECONDS  # threads of earlier tests open a file for a moment
    while (left := _descriptors() - before) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def _descriptors() -> Counter[str]:
    """What is open; empty where the system does not tell."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):  # noqa: PTH112
        return Counter()
    return Counter(kind for number in os.listdir(folder) if (kind := _kind(folder, number)))  # noqa: PTH208


def _kind(folder: str, number: str) -> str:
    try:
        return os.readlink(f"{folder}/{number}").partition(":")[0]  # noqa: PTH115
    except OSError:
        return ""  # the one that lists


@pytest.fixture
def line(nothing_is_left: None) -> Iterator[Callable[..., Line]]:
    """Opens scripted brokers."""
    lines: list[Line] = []

    def opened(*args: Any, **kwargs: Any) -> Line:
        lines.append(Line(Peer(*args, **kwargs)))
        return lines[-1]

    yield opened
    for each in lines:
        each.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[Peer], None]:
    """Makes time run out for the client exactly when the broker leaves a step unanswered, and never before."""
    original = Engine.wait

    def patch(peer: Peer) -> None:
        def wait(engine: Engine, reply: Any, timeout: float, what: str, *more: Any) -> Any:
            over = threading.Event()
            reply.add_done_callback(lambda _: over.set())
            peer.stuck.add_done_callback(lambda _: over.set())
            assert over.wait(SECONDS)
            if not reply.done():
                peer.stuck = Future()  # time has run out; the next connection has its own
            return original(engine, reply, 0, what, *more)

        monkeypatch.setattr(Engine, "wait", wait)

    return patch
