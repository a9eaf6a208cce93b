"""The least that a client in Python does with proton's functions: no thread but one, no units, no messages of JMS.

It is no client to use: it keeps no order in what goes back, bounds nothing, and notices no failure. It shows how much
of the cost of ours comes from what ours does, and how much nobody in Python gets rid of.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count as count_from
from typing import Any
from urllib.parse import urlsplit

from proton import Collector, Connection, Endpoint, Transport

from jmsjca.providers.amqp.codec.sections import DATA, find_sections
from jmsjca.providers.amqp.engine.proton_ffi import (
    COORDINATOR,
    Buffer,
    DeliveryTags,
    Disposition,
    accept,
    accept_in_transaction,
    advance,
    current,
    decode_state,
    delivery_of,
    is_partial,
    next_event,
    peek,
    pointer_to,
    pop,
    pop_event,
    push,
    receive_function,
    remote_data,
    remote_state,
    remote_state_matcher,
    send,
    settle,
)
from jmsjca.providers.amqp.links.delivery_states import (
    DECLARE,
    DECLARED,
    declared_txn_id,
    discharge,
    transactional_accepted,
    transactional_state,
)
from jmsjca.providers.common.amqp_types import data_section, text
from tests.benchmarks.proton_loops import BATCH, BODY, Figures, Stopwatch

__all__ = ["Line", "lean_receives", "lean_sends", "send_all"]

_HEAD = b"\x00\x53\x70\xc0\x02\x01\x41" + b"\x00\x53\x73\xc0"  # durable; and the fields of a message
_LONG_BINARY_HEAD = 5
_PIECE = 50  # messages that the peer gets while the next are on their way


class Line:
    """A connection with one session, and bytes that go to and fro."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self.socket = socket.create_connection((where.hostname, where.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = Buffer(256 * 1024)
        self._transport, self._collector, connection = Transport(), Collector(), Connection()
        self._transport.sasl().allowed_mechs("ANONYMOUS")
        connection.container = "lean"
        connection.collect(self._collector)
        self._transport.bind(connection)
        connection.open()
        self.session = connection.session()
        self.session.open()
        self._pipe, self._events = pointer_to(self._transport), pointer_to(self._collector)

    def turn(self) -> Iterator[object]:
        """Write what there is, wait for more, and give the deliveries of which there is news."""
        self.write()
        self.wait()
        size, at = self.socket.recv_into(self.buffer.view), 0
        while at < size:
            at += push(self._pipe, self.buffer, at, size)
        while event := next_event(self._events):
            if delivery := delivery_of(event):
                yield delivery
            pop_event(self._events)

    def wait(self) -> None:
        """Wait for something to read, unless reading does."""

    def write(self) -> None:
        """Write what there is."""
        while (size := peek(self._pipe, self.buffer)) > 0:
            pop(self._pipe, self.socket.send(self.buffer.view[:size]))

    def attach(self, link: Any, queue: str | None = None) -> None:
        """Attach a link, to a queue if one is told, and wait for the peer."""
        if queue is not None:
            link.source.address = link.target.address = queue
        link.open()
        while not link.state & Endpoint.REMOTE_ACTIVE:
            list(self.turn())

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class _Transactions:
    """One after the other; what ends one begins the next."""

    def __init__(self, line: Line) -> None:
        self._line, self._tags, self._name = line, DeliveryTags(), b""
        link = line.session.sender("lean transactions")
        link.target.type = COORDINATOR
        line.attach(link)
        self._link = pointer_to(link)

    def next(self) -> bytes:
        """End the one that there is, and begin another; gives its name."""
        messages = [discharge(self._name, fail=False), DECLARE] if self._name else [DECLARE]
        asked = set(send(self._link, self._tags, messages))
        while asked:
            for delivery in self._line.turn():
                if delivery in asked:
                    self._hear(delivery)
                    asked.remove(delivery)
        return self._name

    def _hear(self, delivery: Any) -> None:
        if remote_state(delivery) == DECLARED:
            self._name = declared_txn_id(remote_data(delivery, self._line.buffer))
        settle(delivery)


def lean_receives(url: str, queue: str, count: int, ahead: int, *, atomic: bool = False) -> Figures:
    """Take messages, cut the body out of each, and accept it; in transactions of 100 or more if that is asked for."""
    line, received = Line(url), 0
    transactions = _Transactions(line) if atomic else None
    accept_all: Disposition = (
        accept_in_transaction(transactional_accepted(transactions.next())) if transactions else accept
    )
    watch, link = Stopwatch(), line.session.receiver("lean")
    line.attach(link, queue)
    pointer, receive = pointer_to(link), receive_function(pointer_to(link), line.buffer)
    while received < count:
        if link.credit <= ahead // 2:
            link.flow(ahead - link.credit)
        if not (delivery := current(pointer)) or is_partial(delivery):  # else it came while a transaction ended
            list(line.turn())
        taken = []
        while (delivery := current(pointer)) and not is_partial(delivery):
            raw = line.buffer.copy(receive())
            advance(pointer)
            assert len(raw) - find_sections(raw)[DATA] - _LONG_BINARY_HEAD == len(BODY)
            taken.append(delivery)
        accept_all(taken)
        if transactions and received // BATCH < (received + len(taken)) // BATCH:
            accept_all = accept_in_transaction(transactional_accepted(transactions.next()))
        received += len(taken)
    line.write()
    figures = watch.read(received)
    line.close()
    return figures


def lean_sends(url: str, queue: str, count: int, *, atomic: bool = False, together: int = BATCH) -> Figures:
    """Encode messages with an id and an address, and send each 100, or as told, together, until all are accepted."""
    line, numbers, to = Line(url), count_from(), text(queue)
    watch = Stopwatch()
    send_all(
        line,
        queue,
        ([_encoded(next(numbers), to) for _ in range(together)] for _ in range(count // together)),
        atomic=atomic,
    )
    figures = watch.read(count)
    line.close()
    return figures


def send_all(line: Line, queue: str, batches: Iterable[Sequence[bytes]], *, atomic: bool) -> None:
    """Send batches, each when the one before is accepted, and its transaction has ended, if they are to have some."""
    transactions = _Transactions(line) if atomic else None
    link, tags = line.session.sender("lean"), DeliveryTags()
    line.attach(link, queue)
    state = decode_state(transactional_state(transactions.next())) if transactions else None
    for payloads in batches:
        while link.credit < len(payloads):
            list(line.turn())
        missing = 0
        for begin in range(0, len(payloads), _PIECE):
            piece = payloads[begin : begin + _PIECE]
            settled = len(piece) - (begin + _PIECE >= len(payloads)) if state else 0  # the answer to the last is enough
            missing += len(send(pointer_to(link), tags, piece, state, settled))
            line.write()
        is_accepted: Callable[[Any], bool] | None = None if state else remote_state
        while missing:
            for delivery in line.turn():
                is_accepted = is_accepted or remote_state_matcher(
                    remote_data(delivery, line.buffer), line.buffer
                )  # as the first is
                assert is_accepted(delivery)
                settle(delivery)
                missing -= 1
        state = decode_state(transactional_state(transactions.next())) if transactions else None


def _encoded(number: int, to: bytes) -> bytes:
    told = text(f"ID:{number}-bench")
    return b"".join((_HEAD, bytes((len(told) + len(to) + 2, 3)), told, b"\x40", to, data_section(BODY)))
