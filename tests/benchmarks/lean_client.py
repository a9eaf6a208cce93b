"""The least that a client does that sends messages of JMS, and has a thread of its own for its connection.

As `lean_loop`, and no more a client to use: it bounds nothing, and notices no failure. But who sends makes messages of
JMS, encodes them, hands each 100 over, and waits for the end of their transaction, while the other thread hears the
broker and who sends at any time, as heartbeats ask for it.
"""

import os
import select
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jmsjca import BytesMessage
from jmsjca.providers.common.amqp_types import text
from tests.benchmarks.lean_loop import Line, send_all
from tests.benchmarks.proton_loops import BATCH, PATIENCE, Figures, Stopwatch

__all__ = ["lean_client_sends"]

_HEAD = b"\x00\x53\x70\xc0\x02\x01\x41" + b"\x00\x53\x73\xc0"  # durable; and the fields of a message
_FIELDS = 10  # as far as the time
_NOTHING = b"\x40" * 6  # between the address and the time
_DATA = b"\x00\x53\x75\xb0"
_time, _size = struct.Struct(">q").pack, struct.Struct(">I").pack


class _Line(Line):
    """A connection that can be woken while it waits."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._bell = os.eventfd(0, os.EFD_NONBLOCK)
        self._watched = select.epoll()
        for each in (self.socket.fileno(), self._bell):
            self._watched.register(each, select.EPOLLIN)
        self._handed: deque[tuple[Sequence[bytes], threading.Lock]] = deque()

    def wait(self) -> None:
        self._watched.poll()

    def hand_over(self, payloads: Sequence[bytes]) -> None:
        """Have a batch sent, and wait until that is done."""
        done = threading.Lock()
        done.acquire()
        self._handed.append((payloads, done))
        os.eventfd_write(self._bell, 1)
        assert done.acquire(timeout=PATIENCE)

    def handed(self, count: int) -> Iterator[Sequence[bytes]]:
        """The batches."""
        for _ in range(count):
            while not self._handed:
                self.write()
                self.wait()
                os.eventfd_read(self._bell)
            payloads, done = self._handed.popleft()
            yield payloads
            done.release()

    def close(self) -> None:
        super().close()
        self._watched.close()
        os.close(self._bell)


def lean_client_sends(
    url: str, queue: str, make: Callable[[int], BytesMessage], count: int, *, atomic: bool = False
) -> Figures:
    """Send each 100 messages together, and wait until all are accepted."""
    line, encoded = _Line(url), _encoder(text(queue))
    watch = Stopwatch()
    send = partial(send_all, line, queue, line.handed(count // BATCH), atomic=atomic)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    for _ in range(count // BATCH):
        line.hand_over([encoded(make(number)) for number in range(BATCH)])
    figures = watch.read(count)
    thread.join()
    line.close()
    return figures


def _encoder(to: bytes) -> Callable[[BytesMessage], bytes]:
    """What encodes messages with short ids to an address."""
    between = b"\x40" + to + _NOTHING + b"\x83"
    size = len(between) + len(_time(0)) + 3

    def encoded(message: BytesMessage) -> bytes:
        told, sent, body = str(message.message_id).encode(), message.timestamp, message.body
        assert sent
        beginning = bytes((size + len(told), _FIELDS, 0xA1, len(told)))
        time, head = _time(round(sent.timestamp() * 1000)), _DATA + _size(len(body))
        return b"".join((_HEAD, beginning, told, between, time, head, body))

    return encoded
