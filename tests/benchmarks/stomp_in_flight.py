"""Is a connection over STOMP faster with a second transaction on its way before the first one is confirmed?

``PYTHONPATH=tests/support python -m tests.benchmarks.own_broker activemq-stomp tests.benchmarks.stomp_in_flight``

Bare sockets, durable messages of 1 KiB, TCP's acknowledgements not delayed. "Two steps" sends COMMIT once the broker
has confirmed the SENDs, as ours does; "prepared" sends the SENDs of the next transaction directly behind that COMMIT;
"one step" sends everything at once; "two in flight" does not wait for the COMMIT before. They take turns; a ratio is
the median of the quotients with "two steps" in the same round.
"""

import argparse
import socket
import time
from collections.abc import Callable
from contextlib import closing
from statistics import median

from jmsjca.providers.common.network import request_quick_ack
from tests.benchmarks.proton_loops import BODY
from tests.benchmarks.stomp_loops import frame, raw_connection

__all__ = ["main"]

QUEUE = "/queue/bench.flight"
COMMIT = frame("COMMIT", transaction="t", receipt="c")


class Wire:
    """A socket, and how many of its receipts are still to come."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._awaited = 0

    def write(self, data: bytes, receipts: int) -> None:
        """Write frames that ask for so many receipts."""
        self._awaited += receipts
        self._socket.sendall(data)

    def wait(self, left: int = 0) -> None:
        """Wait until no more than so many receipts are to come."""
        while self._awaited > left:
            data = self._socket.recv(1 << 16)
            request_quick_ack(self._socket)
            assert data
            assert b"ERROR" not in data, data
            self._awaited -= data.count(b"RECEIPT")


def two_steps(wire: Wire, work: bytes, times: int) -> None:
    """One transaction after the other."""
    for _ in range(times):
        wire.write(work, 1)
        wire.wait()
        wire.write(COMMIT, 1)
        wire.wait()


def prepared(wire: Wire, work: bytes, times: int) -> None:
    """The sends of the next one are on their way while a commit is."""
    wire.write(work, 1)
    wire.wait()
    for _ in range(times - 1):
        wire.write(COMMIT + work, 2)
        wire.wait()
    wire.write(COMMIT, 1)
    wire.wait()


def one_step(wire: Wire, work: bytes, times: int) -> None:
    """One transaction after the other, each in one write."""
    for _ in range(times):
        wire.write(work + COMMIT, 2)
        wire.wait()


def two_in_flight(wire: Wire, work: bytes, times: int) -> None:
    """Each in one write, before the one before is confirmed."""
    for _ in range(times):
        wire.write(work + COMMIT, 2)
        wire.wait(2)
    wire.wait()


WAYS: tuple[Callable[[Wire, bytes, int], None], ...] = (two_steps, prepared, one_step, two_in_flight)


def _rate(url: str, way: Callable[[Wire, bytes, int], None], batch: int, times: int) -> float:
    told = {"destination": QUEUE, "persistent": "true", "transaction": "t"}
    sends = frame("SEND", BODY, **told) * (batch - 1) + frame("SEND", BODY, **told, receipt="s")
    with closing(raw_connection(url)) as connected:
        began = time.perf_counter()
        way(Wire(connected), frame("BEGIN", transaction="t") + sends, times)
        return batch * times / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    told = parser.parse_args()
    for batch in (10, 100):
        rounds = [[_rate(told.url, way, batch, told.count // batch) for way in WAYS] for _ in range(told.rounds + 1)]
        for way, *rates in zip(WAYS, *rounds[1:], strict=True):  # the first one warms the broker up
            ratio = median(rate / figures[0] for rate, figures in zip(rates, rounds[1:], strict=True))
            print(f"transactions of {batch}, {way.__name__.replace('_', ' ')}: {median(rates):.0f}/s ({ratio:.2f})")


if __name__ == "__main__":
    main()
