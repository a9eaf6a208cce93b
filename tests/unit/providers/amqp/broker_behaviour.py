"""What the scripted broker answers to each step of its client, and some worse answers."""

import struct
from collections import deque
from typing import Any

from proton import Condition, Connection, Described, Terminus, Transport, symbol, ulong

from tests.unit.providers.amqp.raw_frames import frame

DECLARED, TRANSACTIONAL, ACCEPTED, REJECTED = 0x33, 0x34, 0x24, 0x25


class Behaviour:
    """A broker that does what it should."""

    product: str
    outcome: int
    idle: float
    connection: Connection
    transport: Transport
    stock: deque[bytes]

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def on_connect(self, event: Any) -> None: ...

    def on_login(self, event: Any) -> None:
        self.write(frame(0x44, bytes([0x50, self.outcome]), 1, kind=1))

    def on_open(self, event: Any) -> None:
        self.connection.container = "peer"
        self.transport.idle_timeout = self.idle
        self.connection.properties = {symbol("product"): self.product}
        self.connection.open()

    def on_begin(self, event: Any) -> None:
        event.session.channel = next(self._channels)
        event.session.open()

    def on_attach(self, event: Any) -> None:
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)
        if event.link.remote_source.type == Terminus.UNSPECIFIED:
            event.link.source.type = Terminus.SOURCE
            event.link.source.address = "known by its name"
        event.link.open()
        if event.link.is_receiver:
            event.link.flow(1000)

    on_coordinator = on_attach

    def on_flow(self, event: Any) -> None:
        while event.link.credit > 0 and self.stock:
            self._give(event.link, self.stock.popleft())
        if self.product == "RabbitMQ":
            self.answer_flow(event.link, getattr(event.link, "given", 0), event.link.credit)

    def _give(self, link: Any, encoded: bytes) -> None:
        link.given = getattr(link, "given", 0) + 1
        link.delivery(str(link.given))
        link.send(encoded)
        link.advance()

    def answer_flow(self, link: Any, given: int, credit: int) -> None:
        """As RabbitMQ does; proton would not."""
        self.flush()
        number = struct.Struct(">BI").pack
        fields = b"\x40" + number(0x70, 1 << 30) + b"\x43" + number(0x70, 1 << 30) + b"\x43"
        fields += number(0x70, given) + number(0x70, credit)
        self.write(frame(0x13, fields, 7, link.session.channel))

    def on_drain(self, event: Any) -> None:
        self.on_flow(event)
        event.link.drained()

    def on_declare(self, event: Any) -> None:
        event.delivery.local.data = [b"transaction"]
        event.delivery.update(DECLARED)
        event.delivery.settle()

    def on_transfer(self, event: Any) -> None:
        if event.delivery.remote_state == TRANSACTIONAL:
            event.delivery.local.data = [b"transaction", Described(ulong(ACCEPTED), [])]
        event.delivery.update(event.delivery.remote_state or ACCEPTED)
        event.delivery.settle()

    def on_discharge(self, event: Any) -> None:
        event.delivery.update(ACCEPTED)
        event.delivery.settle()

    on_rollback = on_discharge

    def on_acknowledge(self, event: Any) -> None:
        event.delivery.settle()

    def on_detach(self, event: Any) -> None:
        event.link.close()

    def on_end(self, event: Any) -> None:
        event.session.close()

    def on_close(self, event: Any) -> None:
        self.connection.close()


def refuse_link(event: Any, name: str = "amqp:not-found") -> None:
    """A reaction to attach: no terminus, then the reason."""
    event.link.open()
    event.link.condition = Condition(name, "no")
    event.link.close()


def end_session(event: Any, name: str = "amqp:internal-error") -> None:
    """A reaction to whatever has a session."""
    event.session.condition = Condition(name, "over")
    event.session.close()


def end_connection(event: Any, name: str = "amqp:connection:forced") -> None:
    """A reaction to whatever has a connection."""
    event.connection.condition = Condition(name, "over")
    event.connection.close()


def reject(event: Any) -> None:
    """A reaction to transfer and discharge."""
    event.delivery.local.condition = Condition("amqp:transaction:rollback", "no")
    event.delivery.update(REJECTED)
    event.delivery.settle()
