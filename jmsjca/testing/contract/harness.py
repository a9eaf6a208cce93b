"""What the contract cases are written with: connections, unique names, and messages that are sent and gathered."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.links import ConnectionSettings, connect
from jmsjca.messages import Message, TextMessage
from jmsjca.spi import Connection, Consumer, Delivery, Unit

__all__ = ["PATIENCE", "Contract", "Harness"]

PATIENCE = 30.0
"""Seconds until a case gives up waiting for what must come. No case depends on how long it really takes."""

T = TypeVar("T")


class Harness:
    """Opens connections to the broker under test and keeps the cases short.

    Args:
        url: The broker.
        quiet: Seconds after which a message that did not come is taken not to come.
    """

    def __init__(self, url: str, quiet: float) -> None:
        self.url = url
        self.quiet = quiet
        self._connections: list[Connection] = []
        self._threads = ThreadPoolExecutor(thread_name_prefix="contract")
        self.connection = self.connect()

    def connect(self, client_id: str | None = None) -> Connection:
        """Open a connection; it is closed after the case."""
        connection = connect(ConnectionSettings(self.url, client_id=client_id))
        self._connections.append(connection)
        return connection

    def require(self, *capabilities: str) -> None:
        """Skip the case if the connection lacks one of these capabilities."""
        for name in capabilities:
            if not getattr(self.connection.capabilities, name):
                pytest.skip(f"The broker lacks the capability {name}.")

    def require_give_back(self, kind: str) -> None:
        """Skip the case unless returning an unused delivery does this."""
        actual = self.connection.capabilities.give_back
        if actual != kind:
            pytest.skip(f"The broker's capability give_back is {actual!r}, not {kind!r}.")

    def queue(self) -> Queue:
        """Name a queue that nobody else uses."""
        return Queue(f"contract.{uuid.uuid4().hex}")

    def topic(self) -> Topic:
        """Name a topic that nobody else uses."""
        return Topic(f"contract.{uuid.uuid4().hex}")

    def send(self, to: Destination, *bodies: str, **headers: Any) -> None:
        """Send text messages in one unit, and commit it."""
        self.send_messages(to, *(TextMessage(body) for body in bodies), **headers)

    def send_messages(self, to: Destination, *messages: Message, **headers: Any) -> None:
        """Send messages in one unit, and commit it."""
        unit = self.connection.unit()
        for message in messages:
            unit.send(prepare(message, to, **headers), to)
        unit.commit()

    def note(self, unit: Unit, to: Destination, *bodies: str) -> None:
        """Note text messages in a unit, which stays open."""
        for body in bodies:
            unit.send(prepare(TextMessage(body), to), to)

    def gather(self, consumer: Consumer, count: int) -> list[Delivery]:
        """Receive so many messages, in as many chunks as it takes."""
        deliveries: list[Delivery] = []
        while len(deliveries) < count:
            chunk = consumer.receive(count - len(deliveries), PATIENCE)
            assert chunk, f"Only {len(deliveries)} of {count} messages came."
            deliveries.extend(chunk)
        return deliveries

    def nothing_comes(self, consumer: Consumer) -> bool:
        """Tell whether a consumer is left without a message; what comes all the same is not settled."""
        return not consumer.receive(1, self.quiet)

    def settle(self, deliveries: Iterable[Delivery], connection: Connection | None = None) -> None:
        """Take deliveries in a unit of their own, and commit it."""
        unit = (connection or self.connection).unit()
        unit.take(list(deliveries))
        unit.commit()

    def remaining(self, source: Destination | Subscription) -> list[Any]:
        """Consume what is left of a source over a connection of its own; give the bodies."""
        connection = self.connect()
        consumer = connection.consumer(source)
        bodies: list[Any] = []
        while chunk := consumer.receive(100, self.quiet):
            bodies.extend(d.message.body for d in chunk)
            self.settle(chunk, connection)
        return bodies

    def in_background(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Call a function on a thread of its own."""
        return self._threads.submit(function, *args)

    def close(self) -> None:
        """Close all connections, the latest first, and wait for the threads."""
        for connection in reversed(self._connections):
            connection.close()
        self._threads.shutdown()


class Contract:
    """The base of the contract classes: gives each case its harness."""

    @pytest.fixture
    def harness(self, jms_broker_url: str, jms_quiet_seconds: float) -> Iterator[Harness]:
        """Give the harness of the broker under test.

        Args:
            jms_broker_url: The broker.
            jms_quiet_seconds: How long nothing must come until it is believed.

        Yields:
            The harness; what it opened is closed after the case.
        """
        harness = Harness(jms_broker_url, jms_quiet_seconds)
        yield harness
        harness.close()


def prepare(message: Message, to: Destination, **headers: Any) -> Message:
    """Set the headers that a producer sets, and then those given."""
    message.message_id = f"ID:{uuid.uuid4().hex}"
    message.destination = to
    message.timestamp = datetime.now(UTC)
    for name, value in headers.items():
        setattr(message, name, value)
    return message


def bodies(deliveries: Sequence[Delivery]) -> list[Any]:
    """The bodies of deliveries, in order."""
    return [delivery.message.body for delivery in deliveries]


def moment(seconds: float) -> datetime:
    """The moment so many seconds from now, in whole milliseconds as JMS counts them."""
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    return later.replace(microsecond=later.microsecond // 1000 * 1000)
