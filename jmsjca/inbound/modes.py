"""The concurrency modes: which delivery belongs to which word."""

from concurrent.futures import Executor
from typing import Protocol

from jmsjca import spi
from jmsjca.inbound.cc import CCDelivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.serial import SerialDelivery
from jmsjca.inbound.sync import SyncDelivery

__all__ = ["Delivery", "delivery_of"]


class Delivery(Protocol):
    """Delivers the messages of one connection."""

    def run(self) -> None:
        """Deliver until told to stop.

        Raises:
            JMSError: The connection broke, or something else failed.
            Exception: There is a fault, in the provider or here.
        """
        ...

    def stop(self, error: Exception | None = None) -> None:
        """Let `run` end when the handlers at work are done; with an error at once, by raising it."""
        ...


def delivery_of(endpoint: Endpoint, link: spi.Connection, executor: Executor | None = None) -> Delivery:
    """Begin to consume, in the endpoint's mode.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        executor: What handlers run on in the mode cc; None for a pool of its own.

    Raises:
        JMSError: The broker refuses.
    """
    match endpoint.terms.mode:
        case "serial":
            return SerialDelivery(endpoint, link)
        case "sync":
            return SyncDelivery(endpoint, link)
        case "cc":
            return CCDelivery(endpoint, link, executor)
