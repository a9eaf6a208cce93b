"""Connections over a channel without a network."""

import threading
from collections.abc import Callable, Iterator

import pytest

from jmsjca.config import Limits
from jmsjca.errors import JMSError
from jmsjca.providers.stomp.connection import STOMPConnection
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.providers.stomp.provider import dialect_for
from tests.unit.providers.stomp.fakes import FakeChannel, StillClock


class Line:
    """A connection and what is at its other end."""

    def __init__(self, server: str, client_id: str | None, version: str) -> None:
        self.channel = FakeChannel(server, version)
        self.clock = StillClock()
        self.told: list[JMSError] = []
        self.lost = threading.Event()
        session = STOMPSession(self.channel, self.clock, 1000, 30, self._end)  # type: ignore[arg-type]
        answer = session.connect({"host": "/"}, 10, 30)
        dialect = dialect_for(answer["server"], session.version)
        self.connection = STOMPConnection(
            session, dialect, lambda: session, client_id=client_id, limits=Limits(), clock=self.clock
        )
        self.channel.written.clear()

    def message(self, subscription: str, number: int, **headers: str) -> None:
        self.channel.say(
            "MESSAGE",
            str(number).encode(),
            destination="/queue/q",
            message_id=f"m{number}",
            subscription=subscription,
            ack=f"a{number}",
            **headers,
        )

    def _end(self, error: JMSError) -> None:
        self.connection.lost(error)
        self.told.append(error)
        self.lost.set()


@pytest.fixture
def line() -> Iterator[Callable[..., Line]]:
    """Opens lines to brokers that call themselves so."""
    lines: list[Line] = []

    def opened(server: str = "ActiveMQ/5.18.3", client_id: str | None = None, version: str = "1.2") -> Line:
        lines.append(Line(server, client_id, version))
        return lines[-1]

    yield opened
    for each in lines:
        each.channel.breaks_at = None
        each.connection.close(timeout=0)
        each.channel.shutdown()
