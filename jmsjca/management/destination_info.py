"""Destinations with their depths, consumers and rates."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import TIMEOUT_MAX

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import InvalidArgumentError, NotSupportedError
from jmsjca.outbound.connection import Connection

__all__ = [
    "DestinationInfo",
    "check_interval",
    "describe",
    "destination_row",
    "in_order",
    "measure_rates",
    "rate_row",
    "require_admin",
]


@dataclass(frozen=True, slots=True)
class DestinationInfo:
    """A destination of the broker.

    Attributes:
        destination: The destination.
        depth: The numbers of messages of a queue; None for a topic.
        activity: The consumers of a queue, and the messages that came and went; None for a topic, or if the broker
            counts neither.
        added_per_second: Messages that came in a second; None unless it was measured.
        settled_per_second: Messages that consumers acknowledged in a second; None unless it was measured.
    """

    destination: Destination
    depth: spi.Depth | None
    activity: spi.Activity | None = None
    added_per_second: float | None = None
    settled_per_second: float | None = None


def in_order(found: Iterable[Destination]) -> list[Destination]:
    """Return destinations sorted by kind and name."""
    return sorted(found, key=lambda each: (each.kind, each.name))


def describe(admin: spi.Admin, capabilities: spi.Capabilities, found: Destination) -> DestinationInfo:
    """Return a destination with its depth and its use, as far as the broker counts them."""
    if found.kind == "topic":
        return DestinationInfo(found, None)
    counts = capabilities.counts_consumers or capabilities.counts_traffic
    return DestinationInfo(found, admin.depth(found), admin.activity(found) if counts else None)


def check_interval(interval: float) -> None:
    """Check the seconds to measure rates.

    Raises:
        InvalidArgumentError: The interval is not above 0, or infinite.
    """
    if not 0 < interval <= TIMEOUT_MAX:
        raise InvalidArgumentError(f"interval={interval} must be above 0 seconds, and finite.")


def measure_rates(
    admin: spi.Admin,
    capabilities: spi.Capabilities,
    found: Sequence[Destination],
    interval: float,
    pause: Callable[[float], None],
) -> Sequence[DestinationInfo]:
    """Return destinations, with the messages in a second of each queue.

    Args:
        admin: The administration of the broker.
        capabilities: The capabilities of its connection.
        found: The destinations.
        interval: Seconds to measure.
        pause: Waits a number of seconds.
    """
    before = {each: (admin.activity(each), time.monotonic()) for each in found if each.kind == "queue"}
    pause(interval)
    return [_with_rates(describe(admin, capabilities, each), before.get(each)) for each in found]


def _with_rates(info: DestinationInfo, before: tuple[spi.Activity, float] | None) -> DestinationInfo:
    if before is None or info.activity is None:
        return info
    (earlier, began), later, ended = before, info.activity, time.monotonic()
    seconds = max(ended - began, 1e-9)
    return replace(
        info,
        added_per_second=((later.added or 0) - (earlier.added or 0)) / seconds,
        settled_per_second=((later.settled or 0) - (earlier.settled or 0)) / seconds,
    )


def require_admin(connection: Connection, capability: str) -> spi.Admin:
    """Return the administration of a connection.

    Raises:
        NotSupportedError: The broker has no administration, or lacks the capability.
    """
    admin = connection.admin if getattr(connection.capabilities, capability) else None
    if admin is None:
        raise NotSupportedError(f"This broker lacks the capability {capability} over this protocol; name the queue.")
    return admin


def destination_row(info: DestinationInfo) -> dict[str, object]:
    """Return the row of a destination in a table."""
    depth = info.depth
    return {
        "kind": info.destination.kind,
        "name": info.destination.name,
        "ready": depth and depth.ready,
        "held": depth and depth.held,
        "scheduled": depth and depth.scheduled,
        "consumers": info.activity and info.activity.consumers,
    }


def rate_row(info: DestinationInfo) -> dict[str, object]:
    """Return the row of a destination with its measured rates, too."""
    added, settled = info.added_per_second, info.settled_per_second
    return {
        **destination_row(info),
        "added_per_second": None if added is None else round(added, 1),
        "settled_per_second": None if settled is None else round(settled, 1),
    }
