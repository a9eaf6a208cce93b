"""What the cases about the settings of destinations are written with."""

from __future__ import annotations

from typing import Any

import pytest

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue
from jmsjca.spi import Admin
from jmsjca.testing.contract.harness import Contract, Harness

__all__ = ["Configured", "admin_of", "configure", "fail", "failing", "reject"]


class Configured(Contract):
    """The base of contract classes that configure destinations."""

    @pytest.fixture(autouse=True)
    def _needs_configurable(self, harness: Harness) -> None:
        harness.require("admin", "configurable", "exact_credit")


def admin_of(harness: Harness) -> Admin:
    """The operator's view of the connection."""
    admin = harness.connection.admin()
    assert admin is not None
    return admin


def configure(harness: Harness, address: Destination | None, **settings: Any) -> None:
    """Set what a destination does with its messages."""
    admin_of(harness).configure(address, DestinationSettings(**settings))


def failing(harness: Harness, *, max_deliveries: int) -> tuple[Queue, Queue]:
    """A queue that gives up after so many deliveries, and its dead-letter queue."""
    queue, dead = harness.queue(), harness.queue()
    configure(harness, queue, max_deliveries=max_deliveries, dead_letter=dead)
    return queue, dead


def fail(harness: Harness, queue: Queue, *bodies: str) -> None:
    """Send text messages that are received and rolled back, all in one unit."""
    harness.send(queue, *bodies)
    reject(harness, queue)


def reject(harness: Harness, queue: Queue) -> None:
    """Receive what is in a queue, and roll it back."""
    waiting = admin_of(harness).depth(queue).ready
    consumer = harness.connection.consumer(queue, window=0)
    harness.holding(harness.gather(consumer, waiting)).rollback()
    consumer.close()
