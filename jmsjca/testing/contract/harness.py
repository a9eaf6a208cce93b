"""The harness of the contract cases: connections, unique names, and messages that are sent and gathered."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import JMSError
from jmsjca.messages import Message, TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Connection, Consumer, Delivery, Order, Unit

__all__ = ["PATIENCE", "Contract", "Harness"]

PATIENCE = 30.0
"""Seconds until a case gives up waiting for what must come. No case depends on how long it really takes."""

_GLANCE = 0.005  # seconds
_MARK = "contract marker "

T = TypeVar("T")


class Harness:
    """Opens connections to the broker under test, and keeps the cases short.

    A *marker* shows that no further message follows: a message of the lowest priority that is sent last, and therefore
    arrives last. The harness holds markers. They are not counted, and cases never see them.

    Args:
        url: The broker.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connections: list[Connection] = []
        self._threads = ThreadPoolExecutor(thread_name_prefix="contract")
        self.connection = self.connect()

    def connect(
        self,
        client_id: str | None = None,
        *,
        url: str | None = None,
        limits: Limits | None = None,
        on_lost: Callable[[JMSError], None] | None = None,
    ) -> Connection:
        """Open a connection; it is closed after the case."""
        settings = ConnectionSettings(url or self.url, client_id=client_id, limits=limits or Limits())
        connection = connect(settings, on_lost)
        self._connections.append(connection)
        return connection

    @cached_property
    def second_connection(self) -> Connection:
        """Return the connection that sends markers; no case closes it."""
        return self.connect()

    def require(self, *capabilities: str) -> None:
        """Skip the case if the connection lacks one of these capabilities."""
        for name in capabilities:
            if not getattr(self.connection.capabilities, name):
                pytest.skip(f"The broker lacks the capability {name}.")

    def require_lack(self, capability: str) -> None:
        """Skip the case if the connection has a capability: the case tests the error of a broker without it."""
        if getattr(self.connection.capabilities, capability):
            pytest.skip(f"The broker has the capability {capability}.")

    def require_any_unit(self) -> None:
        """Skip the case if a unit cannot take some of the received deliveries, or those of several calls."""
        if self.connection.capabilities.units != "any":
            pytest.skip("The broker's capability units is 'receive', not 'any'.")

    def require_release(self, *kinds: str) -> None:
        """Skip the case unless returning an unused delivery does one of these."""
        actual = self.connection.capabilities.give_back
        if actual not in kinds:
            pytest.skip(f"The broker's capability give_back is {actual!r}, not {' or '.join(map(repr, kinds))}.")

    def queue(self) -> Queue:
        """Return a queue with a unique name."""
        return Queue(f"contract.{uuid.uuid4().hex}")

    def topic(self) -> Topic:
        """Return a topic with a unique name."""
        return Topic(f"contract.{uuid.uuid4().hex}")

    def subscription(self, topic: Topic | None = None) -> Subscription:
        """Return a durable subscription with a unique name and client id."""
        return Subscription(topic or self.topic(), "s", f"client-{uuid.uuid4().hex}")

    def unit(self, connection: Connection | None = None) -> Unit:
        """Open a unit, atomic if the connection supports it."""
        connection = connection or self.connection
        return connection.unit(atomic=connection.capabilities.atomic)

    def holding(self, deliveries: Sequence[Delivery], connection: Connection | None = None) -> Unit:
        """Open a unit that has taken these deliveries."""
        unit = self.unit(connection)
        unit.take(deliveries)
        return unit

    def handling(self, consumer: Consumer, count: int, connection: Connection | None = None) -> Unit:
        """Open a unit that has taken the next messages, and record their hand-over, as before a handler call."""
        deliveries = self.gather(consumer, count)
        unit = self.holding(deliveries, connection)
        consumer.hand_over(deliveries)
        return unit

    def settle(self, deliveries: Sequence[Delivery], connection: Connection | None = None) -> None:
        """Take deliveries in a separate unit, and commit it."""
        self.holding(deliveries, connection).commit()

    def send(self, to: Destination, *bodies: str, **headers: Any) -> None:
        """Send text messages in one unit, and commit it."""
        self.send_messages(to, *(TextMessage(body) for body in bodies), **headers)

    def send_messages(self, to: Destination, *messages: Message, **headers: Any) -> None:
        """Send messages in one unit, and commit it."""
        self._send(self.connection, to, *messages, **headers)

    def record(self, unit: Unit, to: Destination, *bodies: str) -> None:
        """Record text messages in a unit without committing it."""
        for body in bodies:
            unit.send(prepare(TextMessage(body), to), to)

    def gather(self, consumer: Consumer, count: int) -> list[Delivery]:
        """Receive this many messages, in as many chunks as necessary."""
        deliveries: list[Delivery] = []
        while len(deliveries) < count:
            chunk = consumer.receive(count - len(deliveries), PATIENCE)
            assert chunk, f"Only {len(deliveries)} of {count} messages came."
            deliveries.extend(d for d in chunk if not _is_marker(d))
        return deliveries

    def receives_nothing(self, consumer: Consumer, source: Destination | Subscription) -> bool:
        """Return True if a consumer receives no message; a message that it does receive is not settled."""
        return not self._before_a_marker(consumer, source)[0]

    def expect(self, source: Destination | Subscription, *bodies: str, ordered: bool = True) -> None:
        """Consume the rest of a source over a separate connection, and check that it has exactly these bodies."""
        connection = self.connect(source.client_id if isinstance(source, Subscription) else None)
        consumer = connection.consumer(source, order=_order_of(connection))
        found = self.gather(consumer, len(bodies))
        more, markers = self._before_a_marker(consumer, source)
        self.settle([*found, *more, *markers], connection)
        connection.close()
        left = [d.message.body for d in [*found, *more]]
        assert (left if ordered else sorted(left)) == list(bodies)

    def remaining(self, source: Destination | Subscription) -> list[Any]:
        """Consume the rest of a source over a separate connection, and return the bodies."""
        connection = self.connect(source.client_id if isinstance(source, Subscription) else None)
        consumer = connection.consumer(source, order=_order_of(connection))
        left, markers = self._before_a_marker(consumer, source)
        self.settle([*left, *markers], connection)
        connection.close()
        return bodies(left)

    def round_trip(self, message: Message) -> Message:
        """Send a message to a unique queue, and return it as it is received."""
        queue = self.queue()
        self.send_messages(queue, message)
        [delivery] = self.gather(self.connection.consumer(queue), 1)
        return delivery.message

    def redelivered(self, message: Message) -> tuple[Message, Delivery]:
        """Send a message to a unique queue and roll its receipt back; return the first message and the redelivery."""
        queue = self.queue()
        self.send_messages(queue, message)
        consumer = self.connection.consumer(queue)
        [first] = self.gather(consumer, 1)
        message = first.message
        self.holding([first]).rollback()
        [second] = self.gather(consumer, 1)
        return message, second

    def in_background(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Call a function on a separate thread."""
        return self._threads.submit(function, *args)

    def waiting(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Call a function on a separate thread, and return when that thread waits for a condition, or has ended.

        If the function waits in another way, return after `PATIENCE`.
        """
        thread = Future[int]()

        def run() -> T:
            """Record the thread, and call the function."""
            thread.set_result(threading.get_ident())
            return function(*args)

        result = self._threads.submit(run)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not (result.done() or _waits(thread.result(PATIENCE))):
            threading.Event().wait(_GLANCE)
        return result

    def close(self) -> None:
        """Close all connections, the latest first, and wait for the threads."""
        for connection in reversed(self._connections):
            connection.close()
        self._threads.shutdown()

    def _before_a_marker(
        self, consumer: Consumer, source: Destination | Subscription
    ) -> tuple[list[Delivery], list[Delivery]]:
        """Send a marker, and receive until it comes: the messages, and the markers among them."""
        mark = self._mark(source)
        seen: list[Delivery] = []
        while not any(mark in d.raw for d in seen):
            chunk = consumer.receive(1, PATIENCE)
            assert chunk, "Not even the marker came."
            seen.extend(chunk)
        return [d for d in seen if not _is_marker(d)], [d for d in seen if _is_marker(d)]

    def _mark(self, source: Destination | Subscription) -> bytes:
        to = source.topic if isinstance(source, Subscription) else source
        body = f"{_MARK}{uuid.uuid4().hex}"
        self._send(self.second_connection, to, TextMessage(body), priority=0)
        return body.encode()

    def _send(self, connection: Connection, to: Destination, *messages: Message, **headers: Any) -> None:
        unit = self.unit(connection)
        for message in messages:
            unit.send(prepare(message, to, **headers), to)
        unit.commit()


class Contract:
    """The base of the contract classes. It provides the harness, and skips cases without their capability."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Capabilities that every case of the class needs; a subclass that sets them anew repeats those of its base."""

    @pytest.fixture
    def harness(self, jms_broker_url: str) -> Iterator[Harness]:
        """Provide the harness of the broker under test.

        Args:
            jms_broker_url: The URL of the broker.

        Yields:
            The harness; everything that it opened is closed after the case.
        """
        harness = Harness(jms_broker_url)
        yield harness
        harness.close()

    @pytest.fixture(autouse=True)
    def _capabilities(self, harness: Harness) -> None:
        harness.require(*self.needs)


def prepare(message: Message, to: Destination, **headers: Any) -> Message:
    """Set the headers that a producer sets, then the given headers."""
    message.message_id = f"ID:{uuid.uuid4().hex}"
    message.destination = to
    message.timestamp = datetime.now(UTC)
    for name, value in headers.items():
        setattr(message, name, value)
    return message


def bodies(deliveries: Iterable[Delivery]) -> list[Any]:
    """The bodies of deliveries, in order."""
    return [delivery.message.body for delivery in deliveries]


def moment(seconds: float) -> datetime:
    """Return the time this many seconds from now, in whole milliseconds as in JMS."""
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    return later.replace(microsecond=later.microsecond // 1000 * 1000)


def _order_of(connection: Connection) -> Order:
    """Return an order in which one unit can take all that a consumer receives."""
    return Order.ANY if connection.capabilities.units == "any" else Order.PREFIX


def _is_marker(delivery: Delivery) -> bool:
    return _MARK.encode() in delivery.raw


def _waits(thread: int) -> bool:
    frame = sys._current_frames().get(thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # documented
    return frame is not None and frame.f_code is threading.Condition.wait.__code__
