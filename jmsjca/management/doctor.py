"""Diagnoses a broker: whether it can be reached, what it can do, and how long a message takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import JMSError
from jmsjca.messages.message import TextMessage
from jmsjca.outbound.connection import Connection
from jmsjca.outbound.factory import ConnectionFactory

__all__ = ["Finding", "diagnose"]

_ROUND_TRIPS = 5
_PATIENCE = 10.0
_NEEDED = {
    "atomic": "receipts and sends are not one transaction: a listener that sends may send twice",
    "selectors": "consumers cannot filter",
    "browse": "queues cannot be browsed, so that jmsjca browse and dlq do not work",
    "delivery_count": "deliveries are counted in this process only",
    "admin": "depths are unknown",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The name of the check.
        result: "ok", "missing" (a capability) or "failed".
        detail: A value, or the error with its remedy.
    """

    check: str
    result: str
    detail: str


def diagnose(url: str) -> Iterator[Finding]:
    """Check a broker step by step; the first failure is the last finding.

    Args:
        url: The connection URL.
    """
    try:
        yield Finding("URL", "ok", str(ConnectionURL.parse(url)))
        began = perf_counter()
        with ConnectionFactory(url).create_connection() as connection:
            yield Finding("connection and login", "ok", f"{1000 * (perf_counter() - began):.1f} ms")
            yield from _capabilities(connection)
            yield from _round_trips(connection)
    except JMSError as error:
        yield Finding("failure", "failed", f"{type(error).__name__}: {error}")


def _capabilities(connection: Connection) -> Iterator[Finding]:
    for name, consequence in _NEEDED.items():
        has = getattr(connection.capabilities, name)
        yield Finding(f"capability {name}", "ok" if has else "missing", "" if has else consequence)


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
            began = perf_counter()
            producer.send(TextMessage("jmsjca doctor"))
            if consumer.receive(_PATIENCE) is None:
                yield Finding("round trip", "failed", f"a message did not arrive within {_PATIENCE:g} s")
                return
            seconds.append(perf_counter() - began)
        yield Finding("round trip", "ok", f"{1000 * median(seconds):.2f} ms, the median of {_ROUND_TRIPS}")
