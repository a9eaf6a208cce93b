"""What the cases with a wire are written with."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, TransactionRolledBackError
from jmsjca.spi import Connection, Unit
from jmsjca.testing.contract.harness import Contract, Harness
from jmsjca.testing.contract.wire import Wire

__all__ = ["DID_NOT_HAPPEN", "Cuttable", "connect", "move", "queues"]

DID_NOT_HAPPEN = (TransactionRolledBackError, ConnectionLostError)


class Cuttable(Contract):
    """The base of the classes whose cases have a wire to cut."""

    @pytest.fixture
    def wire(self, jms_broker_url: str) -> Iterator[Wire]:
        """Give a wire to the broker under test.

        Args:
            jms_broker_url: The broker.

        Yields:
            The wire; it is cut after the case.
        """
        wire = Wire(jms_broker_url)
        yield wire
        wire.close()


def connect(harness: Harness, wire: Wire) -> tuple[Connection, threading.Event]:
    """Connect through the wire, with an event that tells of its loss."""
    lost = threading.Event()
    return harness.connect(url=wire.url, lost=lambda _: lost.set()), lost


def queues(harness: Harness, *bodies: str) -> tuple[Queue, Queue]:
    """Name a queue that holds messages, and one that does not."""
    source = harness.queue()
    harness.send(source, *bodies)
    return source, harness.queue()


def move(harness: Harness, wire: Wire, source: Queue, target: Queue, messages: int = 1) -> tuple[Unit, threading.Event]:
    """Open a unit, over the wire, that takes messages from one queue and sends as many to another."""
    wire.trap = None
    connection, lost = connect(harness, wire)
    deliveries = harness.gather(connection.consumer(source, window=0), messages)
    unit = harness.holding(deliveries, connection)
    harness.note(unit, target, *["moved"] * messages)
    return unit, lost
