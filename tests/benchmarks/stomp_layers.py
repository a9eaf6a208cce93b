"""What layers of stomp.py cost beside those that jmsjca has in their place.

``python -m tests.benchmarks.stomp_layers``

Without a broker: what is written goes over a connection on loopback to a process that drops it. The contenders take
turns in every round; figures are processor time, and a ratio is the median of the quotients with jmsjca in the same
round.
Messages have 1 KiB and four properties; 100 of them are a unit.

"send": messages are encoded by jmsjca, and their frames written by `encode_frame` into one buffer, or by `send_frame`
of stomp.py one after the other. "receive": frames are read by jmsjca and handed to a consumer in runs, or one by one
through `notify` to `on_message`; or read and handed over by the receiver loop of stomp.py. "request": one SUBSCRIBE.
"""

import argparse
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jmsjca import Queue, TextMessage
from jmsjca.config import SystemClock
from jmsjca.messages import Int
from jmsjca.providers.stomp.consumer import STOMPConsumer
from jmsjca.providers.stomp.dialect import TRANSACTION
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser, check_headers, encode_frame, with_headers
from jmsjca.providers.stomp.protocol.stomp_py import BaseTransport, ConnectionListener, Protocol12
from jmsjca.providers.stomp.protocol.transport import SocketChannel, STOMPTransport
from jmsjca.providers.stomp.provider import dialect_for
from jmsjca.spi import Order
from tests.benchmarks.measurements import Measurements, write

DRAIN = """
import socket, sys
connected = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while connected.recv(1 << 18):
    pass
"""
BASE = "jmsjca"
UNIT = 100
QUEUE = Queue("orders")
DIALECT = dialect_for("ActiveMQ/6.3.1", "1.2")
SUBSCRIBE = {"id": "s1", "ack": "client-individual", "destination": "/queue/orders", "activemq.prefetchSize": "200"}


class Sink(BaseTransport):
    """Writes to a channel, if there is one; its receiver loop reads what it is given, once."""

    def __init__(self, channel: SocketChannel | None = None, incoming: bytes = b"") -> None:
        super().__init__(auto_decode=False)
        self._channel = channel
        self._pieces = [incoming] if incoming else []
        self.override_threading(lambda loop: loop())

    def send(self, encoded_frame: bytes) -> None:
        if self._channel is not None:
            self._channel.write(encoded_frame)

    def receive(self) -> bytes:
        """What there is, and then the end."""
        return self._pieces.pop() if self._pieces else b""


def drained_channel() -> SocketChannel:
    """One to a process of its own that reads everything and keeps nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    script = (
        "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\nwhile s.recv(1 << 18): pass"
    )
    subprocess.Popen([sys.executable, "-c", script, str(server.getsockname()[1])])
    connected = server.accept()[0]
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return SocketChannel(connected, patience=60)


class Listener(ConnectionListener):
    """As stomp.py's documentation shows it."""

    def __init__(self, handle: Callable[[Any], None]) -> None:
        self.on_message = handle


def messages() -> list[TextMessage]:
    properties = {"region": "EU", "number": Int(7), "price": 1.5, "paid": True}
    made = [TextMessage("x" * 1024, properties=properties, correlation_id="c-1") for _ in range(UNIT)]
    for message in made:
        message.message_id = "ID:host-12345-6789"
    return made


def consumer() -> STOMPConsumer:
    """One that nobody receives from."""
    return STOMPConsumer(QUEUE, DIALECT, lambda _: None, order=Order.ANY, max_bytes=1, clock=SystemClock())  # type: ignore[arg-type,return-value]


def received() -> bytes:
    """What a broker sends for the messages of a unit."""
    headers = {**DIALECT.encode(messages()[0], QUEUE).headers, "message-id": "m", "subscription": "s1", "ack": "a"}
    return encode_frame("MESSAGE", headers, b"x" * 1024, version="1.2") * UNIT


def sends(channel: SocketChannel) -> dict[str, Callable[[], object]]:
    made, sink = messages(), Sink(channel)
    protocol = Protocol12(sink)

    def ours() -> None:
        frames = [DIALECT.send_frame(DIALECT.encode(message, QUEUE)) for message in made]
        sink.send(b"".join([with_headers(frame, TRANSACTION) for frame in frames]))

    def theirs() -> None:
        for message in made:
            outgoing = DIALECT.encode(message, QUEUE)
            protocol.send_frame("SEND", {**outgoing.headers, **TRANSACTION}, outgoing.body)

    return {BASE: ours, "stomp.py send_frame": theirs}


def receives() -> dict[str, Callable[[], object]]:
    data = received()

    def transport(on_messages: Callable[[str, Sequence[Frame]], None]) -> STOMPTransport:
        return STOMPTransport(
            None,  # type: ignore[arg-type]  # nothing is read from it
            FrameParser(1 << 20),
            SystemClock(),
            frame_timeout=60,
            on_messages=on_messages,
        )

    def ours() -> None:
        taker = consumer()
        transport(lambda _, frames: taker._on_frames(frames))._parse(data)
        assert len(taker._buffer.ready) == UNIT

    def one_by_one() -> None:
        taker = consumer()
        made = transport(lambda _, frames: [made.notify("message", frame) for frame in frames])  # type: ignore[func-returns-value]
        made.set_listener("l", Listener(lambda frame: taker._on_frames([frame])))
        made._parse(data)
        assert len(taker._buffer.ready) == UNIT

    def theirs() -> None:
        taker: list[Any] = []
        made = Sink(incoming=data)
        made.set_listener("l", Listener(taker.append))
        made.start()
        assert len(taker) == UNIT

    return {BASE: ours, "stomp.py notify": one_by_one, "stomp.py loop": theirs}


def requests(channel: SocketChannel) -> dict[str, Callable[[], object]]:
    sink = Sink(channel)
    protocol = Protocol12(sink)

    def ours() -> None:
        sink.send(encode_frame("SUBSCRIBE", {**SUBSCRIBE, "receipt": "1"}, version="1.2"))

    def theirs() -> None:
        headers = {**SUBSCRIBE, "receipt": "1"}
        check_headers(headers, "1.2")
        protocol.send_frame("SUBSCRIBE", headers)

    return {BASE: ours, "stomp.py send_frame": theirs}


def measure(rounds: int) -> Measurements[str]:
    """Let the contenders take turns; the first round warms up."""
    found: Measurements[str] = Measurements()
    channel = drained_channel()
    cases = {"send": (sends(channel), UNIT), "receive": (receives(), UNIT), "request": (requests(channel), 1)}
    for number in range(rounds + 1):
        for case, (contenders, size) in cases.items():
            for name in list(contenders)[:: -1 if number % 2 else 1]:
                found.note(case, name, _microseconds(contenders[name], 20 if size > 1 else 2000) / size)
    found.forget_first_round()
    return found


def _microseconds(action: Callable[[], object], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        action()
    return (time.process_time() - began) / count * 1_000_000


def main() -> int:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures = [
        {"case": case, "contender": name, "microseconds": round(us, 2), "ratio": round(ratio, 2)}
        for case, name, (us, ratio, _) in measure(options.rounds).summaries(BASE)
    ]
    print(f"{'case':9}{'contender':21}{'us/frame':>9}{'of jmsjca':>11}")
    for case, name, microseconds, ratio in (figure.values() for figure in figures):
        print(f"{case:9}{name:21}{microseconds:>9.2f}{ratio:>11.2f}")
    write(options.json, {"rounds": options.rounds}, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
