"""A channel without a network, and a clock that stands still."""

import queue
from collections.abc import Callable

from jmsjca.providers.stomp.protocol.transport import WriteError
from tests.unit.providers.stomp.reference_frames import read, write


class StillClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def pass_five(self) -> None:
        self.time += 5


class FakeChannel:
    """Answers CONNECT, and every frame that asks for a receipt, unless told otherwise."""

    def __init__(self, server: str = "ActiveMQ/5.18.3", version: str = "1.2") -> None:
        self.server = server
        self.version = version
        self.incoming: queue.Queue[bytes | Callable[[], None] | None] = queue.Queue()
        self.written = bytearray()
        self.breaks_at: int | None = None  # a byte of the next write
        self.room: int | None = None  # bytes until it breaks, over all writes from now on
        self.silent: set[str] = set()  # commands that get no receipt
        self.refused: set[str] = set()  # commands that get an ERROR with their receipt
        self.early: dict[str, Callable[[dict[str, str]], None]] = {}  # called before the answer
        self.reactions: dict[str, Callable[[dict[str, str]], None]] = {}  # called after it
        self.last = b""  # what was written last, at once
        self.beats = 0
        self.closed = False

    def read(self, timeout: float) -> bytes | None:
        piece = self.incoming.get(timeout=30)
        while callable(piece):  # all that came before has been handled
            piece()
            piece = self.incoming.get(timeout=30)
        return piece

    def write(self, data: bytes) -> None:
        if self.closed:
            raise WriteError(0, "closed")
        if self.breaks_at is not None:
            self.written += data[: self.breaks_at]
            self.incoming.put(b"")
            raise WriteError(min(self.breaks_at, len(data)), "cut")
        if self.room is not None and len(data) > self.room:
            self.written += data[: self.room]
            self.incoming.put(b"")
            raise WriteError(self.room, "cut")
        self.room = None if self.room is None else self.room - len(data)
        self.written += data
        self.last = bytes(data)
        for command, headers, _ in read(data, escaped=not data.startswith(b"CONNECT")):
            self._answer(command, dict(headers))

    def write_if_idle(self, data: bytes) -> None:
        self.beats += 1

    def limit_writes(self, timeout: float) -> None:
        """Writes end at once."""

    def shutdown(self) -> None:
        self.closed = True
        self.incoming.put(b"")

    close = shutdown

    def say(self, command: str, body: bytes = b"", **headers: str) -> None:
        self.incoming.put(write(command, {k.replace("_", "-"): v for k, v in headers.items()}, body))

    def frames(self) -> list[str]:
        return [command for command, *_ in read(bytes(self.written), escaped=False)]

    def _answer(self, command: str, headers: dict[str, str]) -> None:
        if command in self.early:
            self.early[command](headers)
        if command == "CONNECT":
            self.say("CONNECTED", version=self.version, server=self.server, heart_beat="10000,10000")
        elif "receipt" in headers and command in self.refused:
            self.say("ERROR", message="no", receipt_id=headers["receipt"])
        elif "receipt" in headers and command not in self.silent:
            self.say("RECEIPT", receipt_id=headers["receipt"])
        if command in self.reactions:
            self.reactions[command](headers)
