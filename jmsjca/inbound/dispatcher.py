"""The interface of dispatchers, and the base class of those that run several handlers at a time."""

import threading
from abc import ABC, abstractmethod
from typing import Protocol

from jmsjca import spi
from jmsjca.errors import ConnectionLostError
from jmsjca.inbound.activity import Stall
from jmsjca.inbound.concurrency import InFlightLimit
from jmsjca.inbound.delivery_attempt import DeliveryAttempt
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.hold_until_ack import HeldDeliveryAttempt, HeldUnitSettler

__all__ = ["ConcurrentDispatcher", "Dispatcher"]


class ConcurrentDispatcher(ABC):
    """Base of the modes in which several units are open at a time and are settled in any order.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.

    Attributes:
        endpoint: The endpoint, as given.
        connection: The provider connection, as given.
        in_flight: Limits the units in flight.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self.in_flight = InFlightLimit(endpoint.settings.max_outstanding, self._on_slot_free, endpoint.clock)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)  # `with self._lock` costs less than `with self._changed`
        self._stopping = self._abandoned = False
        self._error: Exception | None = None
        self._attempts: set[DeliveryAttempt] = set()  # with active handlers
        self._settler = (
            HeldUnitSettler(endpoint.name, endpoint.clock, self.stop) if endpoint.settings.hold_until_ack else None
        )

    def run(self) -> None:
        """Deliver until stopped; then wait for active handlers and settle held units.

        Raises:
            JMSError: The connection broke, or something else failed; active handlers are not waited for then.
            Exception: A defect in the provider or in jmsjca; active handlers are not waited for then.
        """
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  # raised at the end
            self.stop(error)
        finally:
            self._abandon_attempts()
            self._close()
            if self._settler is not None:
                self._settler.close()
        if self._error is not None:
            raise self._error

    def stop(self, error: Exception | None = None) -> None:
        """Stop taking messages. With an error `run` ends at once, even while handlers are active."""
        with self._lock:
            self._stopping = True
            self._error = self._error or error
            self._changed.notify_all()
        self._wake()
        self.in_flight.close()

    @property
    def units_in_flight(self) -> int:
        """The number of units with an active handler, or that wait for acknowledgement or the end of a delay."""
        return self.in_flight.count

    def find_stall(self) -> Stall | None:
        """Return the reason why no message is delivered, as `Dispatcher.find_stall` does."""
        since = self.in_flight.full_since
        if since is None:
            return None
        limit = self.endpoint.settings.max_outstanding
        return Stall(f"max_outstanding={limit} is reached: as many units wait for acknowledgement or delay", since)

    @abstractmethod
    def close(self) -> None:
        """Close the consumers, after `run` has returned; the connection stays open."""

    def begin_attempt(self) -> DeliveryAttempt:
        """Open a unit in a slot of the in-flight limit that the caller has acquired.

        Raises:
            ConnectionLostError: The connection is abandoned.
        """
        attempt = self._create_attempt()
        with self._lock:
            if self._abandoned:
                raise ConnectionLostError(
                    f"The connection of {self.endpoint.name} is abandoned; its messages are redelivered."
                )
            self._attempts.add(attempt)
        return attempt

    def end_attempt(self, attempt: DeliveryAttempt) -> None:
        """Remove a unit from the active ones: its handler has returned."""
        with self._lock:
            self._attempts.discard(attempt)

    @abstractmethod
    def _run(self) -> None:
        """Deliver until stopped."""

    @abstractmethod
    def _wake(self) -> None:
        """Interrupt waits for messages."""

    def _close(self) -> None:  # noqa: B027  # optional
        """Release the resources of the mode."""

    def _on_slot_free(self) -> None:  # noqa: B027  # optional
        """React to a settled unit: a slot of the in-flight limit is free."""

    def _create_attempt(self) -> DeliveryAttempt:
        if self._settler is None:
            return DeliveryAttempt(self.endpoint, self.connection, self.in_flight)
        return HeldDeliveryAttempt(self.endpoint, self.connection, self.in_flight, self._settler)

    def _abandon_attempts(self) -> None:
        """Prevent handlers from being called from now on, and mark the active ones as abandoned."""
        with self._lock:
            self._abandoned = True
            self.endpoint.abandon(self._attempts)


class Dispatcher(Protocol):
    """Delivers the messages of one connection to the handler."""

    def run(self) -> None:
        """Deliver until stopped.

        Raises:
            JMSError: The connection broke, or something else failed.
            Exception: A defect in the provider or in jmsjca.
        """
        ...

    def stop(self, error: Exception | None = None) -> None:
        """Make `run` return when the active handlers have; with an error make it raise that error at once."""
        ...

    def close(self) -> None:
        """Close the consumers, after `run` has returned; the connection stays open."""
        ...

    @property
    def units_in_flight(self) -> int:
        """The number of units with an active handler, or that wait for acknowledgement or the end of a delay."""
        ...

    def find_stall(self) -> Stall | None:
        """Return what keeps messages from being delivered, although the connection is up; None for nothing."""
        ...
