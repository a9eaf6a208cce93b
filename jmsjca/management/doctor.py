"""Diagnoses a broker: whether it can be reached, what it can do, how long a message takes, and what its clock shows."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import JMSError, excerpt
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory

__all__ = ["Finding", "diagnose"]

_ROUND_TRIPS = 5
_PATIENCE = 10.0
_CLOCK_SECONDS = 1.0  # a smaller difference is no fault
_NEEDED = {
    "atomic": "receipts and sends are not one transaction: a listener that sends may send twice. {elsewhere}",
    "selectors": "consumers cannot filter. {elsewhere}",
    "browse": "queues cannot be browsed, so that jmsjca browse and dlq do not work. {elsewhere}",
    "delivery_count": "deliveries are counted by this process only: a new process counts from 1 again",
    "admin": "depths are unknown. {management}",
}
_ELSEWHERE = "The page 'What each broker can do' has the brokers and protocols with it"
_MANAGEMENT = "On ActiveMQ Classic and RabbitMQ add the option management_url; on other brokers use AMQP"
_CLOCKS = "On ActiveMQ Classic add the option management_url; Artemis and Broker-J report it over AMQP"
_SYNCHRONISE = "expirations and delivery delays are wrong by as much: synchronise both clocks with NTP"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The name of the check.
        result: "ok", "missing" (a capability, or a value that the broker does not report) or "failed".
        detail: A value, or what is missing or wrong, with its remedy.
    """

    check: str
    result: str
    detail: str


def diagnose(url: str) -> Iterator[Finding]:
    """Check a broker step by step; a failure ends the checks, except for that of the clock.

    Args:
        url: The connection URL.
    """
    try:
        yield Finding("URL", "ok", str(ConnectionURL.parse(url)))
        began = time.perf_counter()
        with ConnectionFactory(url).create_connection() as connection:
            yield Finding("connection and login", "ok", f"{1000 * (time.perf_counter() - began):.1f} ms")
            yield _broker(connection)
            yield from _capabilities(connection)
            yield _clock(connection)
            yield from _round_trips(connection)
    except JMSError as error:
        yield Finding("failure", "failed", f"{type(error).__name__}: {error}")


def _broker(connection: Connection) -> Finding:
    announced = connection.metadata.broker
    if not announced:
        return Finding("broker", "missing", "it announces no product and version: only what is certain is used")
    return Finding("broker", "ok", excerpt(announced, 100))


def _capabilities(connection: Connection) -> Iterator[Finding]:
    for name, consequence in _NEEDED.items():
        has = getattr(connection.capabilities, name)
        remedy = consequence.format(elsewhere=_ELSEWHERE, management=_MANAGEMENT)
        yield Finding(f"capability {name}", "ok" if has else "missing", "" if has else remedy)


def _clock(connection: Connection) -> Finding:
    """Compare the broker's clock with that of this machine; a user without permission gets no time."""
    admin = connection.admin
    if admin is None:
        return Finding("clock", "missing", f"the broker does not report its time over this protocol. {_CLOCKS}")
    try:
        admin.clock()  # the first request also opens what it needs
        began = time.time()
        found = admin.clock()
        ended = time.time()
    except JMSError as error:
        return Finding("clock", "missing", f"the broker does not report its time: {error}")
    if found is None:
        return Finding("clock", "missing", "the broker does not report its time over this protocol")
    return clock_finding(began, found, ended)


def clock_finding(began: float, found: float, ended: float) -> Finding:
    """Return the finding for a time that a broker has reported.

    Args:
        began: The time of this machine at the request, in seconds.
        found: The broker's time; a broker that reports whole seconds has left out the rest.
        ended: The time of this machine at the response.
    """
    rest = 0.5 if found.is_integer() else 0.0
    difference, uncertain = found + rest - (began + ended) / 2, (ended - began) / 2 + rest
    measured = f"{difference:+.3f} s from that of this machine, ± {uncertain:.3f} s"
    if abs(difference) <= _CLOCK_SECONDS + uncertain:
        return Finding("clock", "ok", measured)
    return Finding("clock", "failed", f"{measured}: {_SYNCHRONISE}")


def _round_trips(connection: Connection) -> Iterator[Finding]:
    """Send to a temporary queue and receive from it; without temporary queues nothing is sent."""
    if not connection.capabilities.temporary:
        yield Finding("round trip", "missing", "no temporary queues; try jmsjca send and receive with a queue of yours")
        return
    with connection.create_session() as session:
        queue = session.create_temporary_queue()
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        seconds: list[float] = []
        for _ in range(_ROUND_TRIPS):
            began = time.perf_counter()
            producer.send(TextMessage("jmsjca doctor"))
            if consumer.receive(_PATIENCE) is None:
                yield Finding("round trip", "failed", f"a message did not arrive within {_PATIENCE:g} s")
                return
            seconds.append(time.perf_counter() - began)
        yield Finding("round trip", "ok", f"{1000 * median(seconds):.2f} ms, the median of {_ROUND_TRIPS}")
