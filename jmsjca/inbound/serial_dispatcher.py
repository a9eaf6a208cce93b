"""Dispatching in mode serial: one message at a time, in order, each in a unit of its own."""

import threading
from collections.abc import Sequence

from jmsjca import spi
from jmsjca.inbound.activity import Stall
from jmsjca.inbound.concurrency import InFlightLimit
from jmsjca.inbound.delivery_attempt import DeliveryAttempt
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.redelivery_processor import RedeliveryProcessor
from jmsjca.messages.settlement import Outcome

__all__ = ["SerialDispatcher"]

_LOOK_AGAIN = 0.2


class SerialDispatcher:
    """Delivers in order. The handler's return commits; an exception rolls back, and the message is redelivered first.

    Args:
        endpoint: The endpoint to dispatch for.
        connection: The provider connection to consume from.
    """

    def __init__(self, endpoint: Endpoint, connection: spi.Connection) -> None:
        self._endpoint = endpoint
        self._connection = connection
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._attempt: DeliveryAttempt | None = None
        self._redelivery = RedeliveryProcessor(endpoint, connection, InFlightLimit(1))
        settings = endpoint.settings
        self._consumer = connection.consumer(settings.source, selector=settings.selector, order=spi.Order.PREFIX)

    def run(self) -> None:
        """Deliver until stopped.

        Raises:
            ConnectionLostError: The connection broke.
            JMSError: The broker refused something that may work on a new connection.
        """
        self._wait_for_abandoned_handler()
        with self._endpoint.statistics.endpoint():
            while not self._stopping.is_set():
                self._deliver_chunk(self._consumer.receive(self._endpoint.limits.chunk, None))
        if self._error is not None:
            raise self._error

    def stop(self, error: Exception | None = None) -> None:
        """Make `run` return after the current message; with an error that message is redelivered."""
        attempt = self._attempt
        if error is not None and attempt is not None:
            self._endpoint.abandon([attempt])
        self._error = self._error or error
        self._stopping.set()
        self._consumer.wake()

    def close(self) -> None:
        """Close the consumer, after `run` has returned; the connection stays open."""
        self._consumer.close()

    @property
    def units_in_flight(self) -> int:
        """1 while a handler is active, or a message waits for the end of its delay."""
        return self._endpoint.activity.units

    def find_stall(self) -> Stall | None:
        """Return None: all that can stall is recorded as the activity of the endpoint."""

    def _wait_for_abandoned_handler(self) -> None:
        """Wait while a handler of an abandoned connection is active: handlers run one at a time."""
        if not self._endpoint.abandoned_handlers:
            return
        self._endpoint.activity.begin(self, "handler of a lost connection")
        while self._endpoint.abandoned_handlers and not self._stopping.wait(_LOOK_AGAIN):
            pass
        self._endpoint.activity.end(self)

    def _deliver_chunk(self, chunk: Sequence[spi.Delivery]) -> None:
        for position, delivery in enumerate(chunk):
            if self._stopping.is_set():
                self._consumer.release(chunk[position:])
                self._endpoint.statistics.record_return(len(chunk) - position)
                return
            result = self._redelivery.process(delivery)
            outcome = result if isinstance(result, Outcome) else self._deliver(delivery, result)
            if outcome is not Outcome.COMMITTED:
                return  # the rest of the chunk was returned with the message, to keep the order

    def _deliver(self, delivery: spi.Delivery, delay: float) -> Outcome | None:
        if delay and self._wait_for_delay(delay):
            self._redelivery.release(self._consumer, [delivery])
            return None
        attempt = self._attempt = DeliveryAttempt(self._endpoint, self._connection)
        try:
            attempt.deliver([delivery])
        finally:
            self._attempt = None
        return attempt.unit.outcome

    def _wait_for_delay(self, seconds: float) -> bool:
        """Wait on this thread, because all later messages must wait, too. Return True if stopped meanwhile."""
        self._endpoint.activity.begin(self, "delay")
        try:
            return _wait(self._stopping, seconds)
        finally:
            self._endpoint.activity.end(self)


def _wait(stopping: threading.Event, seconds: float) -> bool:
    """Wait for the end of a delay; return True if stopped meanwhile. Tests with another clock replace it."""
    return stopping.wait(seconds)
