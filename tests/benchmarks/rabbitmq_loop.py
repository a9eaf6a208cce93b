"""The least that a client must do over AMQP 1.0: proton's engine and a socket on one thread, and no more."""

import socket
from collections import deque
from typing import Any

from proton import Collector, Connection, Delivery, Endpoint, Event, Terminus, Transport

from tests.benchmarks.listeners import Filled
from tests.benchmarks.tally import TEXT

__all__ = ["LeanLoop"]

_READ = 65536


class LeanLoop(Filled):
    """Takes what has come, hands on the text at its end, and accepts it: so fast is RabbitMQ itself, at best.

    Args:
        url: The broker.
        ahead: How many messages it takes ahead.
        confirmed: True to wait for each message until the broker has noted that it is accepted.
    """

    def __init__(self, url: str, ahead: int, *, confirmed: bool) -> None:
        super().__init__(url)
        self._host, _, self._port = url.partition("://")[2].rpartition(":")
        self._ahead, self._confirmed = ahead, confirmed

    def work(self) -> None:
        self._open()
        self._answers = 0
        with socket.create_connection((self._host, int(self._port))) as self._socket:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.tally.complete:
                self._turn()
                while self._come:
                    self._accept(self._come.popleft())
            self._connection.close()
            while not self._connection.state & Endpoint.REMOTE_CLOSED:  # else what was accepted last may be lost
                self._turn()

    def _open(self) -> None:
        self._connection, self._transport, self._collector = Connection(), Transport(), Collector()
        self._connection.container = self._connection.hostname = self._host
        self._connection.collect(self._collector)
        self._transport.sasl().allowed_mechs("ANONYMOUS")
        self._transport.bind(self._connection)
        session = self._connection.session()
        self._receiver = session.receiver("lean")
        self._receiver.source.address = f"/queue/{self._queue.name}"
        self._receiver.source.durability = Terminus.CONFIGURATION
        for each in (self._connection, session, self._receiver):
            each.open()
        self._receiver.flow(self._ahead)
        self._come: deque[tuple[Any, bytes]] = deque()

    def _turn(self) -> None:
        """Write what there is, wait for something to read, and see what it was."""
        self._write()
        data = self._socket.recv(_READ)
        assert data, "the broker hung up"
        while data:
            taken = self._transport.capacity()
            self._transport.push(data[:taken])
            data = data[taken:]
        while event := self._collector.peek():
            self._answers += event.type == Event.LINK_FLOW
            while event.type == Event.DELIVERY and (delivery := self._receiver.current) and not delivery.partial:
                self._come.append((delivery, self._receiver.recv(delivery.pending)))
                self._receiver.advance()
            self._collector.pop()

    def _write(self) -> None:
        while (size := self._transport.pending()) > 0:
            self._transport.pop(self._socket.send(self._transport.peek(size)))

    def _accept(self, come: tuple[Any, bytes]) -> None:
        delivery, encoded = come
        self.tally(encoded[-len(TEXT) :].decode())
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        missing = self._ahead - self._receiver.credit - len(self._come)
        if self._confirmed:
            self._confirm(missing)
        elif 2 * missing >= self._ahead:
            self._receiver.flow(missing)

    def _confirm(self, missing: int) -> None:
        """Change the credit: the broker answers that when it has handled what came before."""
        self._write()
        answers = self._answers
        self._receiver.flow(missing if 2 * missing >= self._ahead else -1)
        while self._answers == answers:
            self._turn()
