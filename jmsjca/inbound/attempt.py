"""One connection of an activation, from the attempt to make it to its end."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.inbound.adjustment import Adjustments
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.modes import Delivery, delivery_of
from jmsjca.links import Connector

__all__ = ["Attempt"]

_GOODBYE = 1.0  # seconds that each step of closing a connection over its handlers may take


class Attempt:
    """Connects, and delivers until it is stopped or something breaks.

    Args:
        endpoint: Whose messages.
        connector: Makes the connection.
        adjustments: What looks at what the broker can do.
        executor: What handlers run on in the mode cc; None for threads of its own.

    Attributes:
        connected: True once the broker was reached.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connector: Connector,
        adjustments: Adjustments,
        executor: Executor | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._connector = connector
        self._adjustments = adjustments
        self._executor = executor
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.connected = self._stopping = False
        self._error: Exception | None = None
        self._connection: spi.Connection | None = None
        self._delivery: Delivery | None = None

    def run(self, up: Callable[[], None], lost: Callable[[JMSError], None]) -> None:
        """Connect and deliver.

        Args:
            up: Told when messages can flow.
            lost: Told when the connection breaks, perhaps while handlers are at work; `stop` is what it should call.

        Raises:
            JMSError: The broker cannot be reached or refuses, the connection broke, or something else failed.
        """
        connection = self._connection = self._connector.connect(lost, lambda: not self._stopping)
        self.connected = True
        try:
            if not self._stopping:
                delivery = self._begin(connection)
                up()
                self._adjustments.compare_limits(self._endpoint.terms, connection)
                delivery.run()
        finally:
            self._endpoint.statistics.n_configured_endpoints = -1
            with contextlib.suppress(JMSError):  # given up anyway
                connection.close()
            self._ended.set()

    def stop(self, error: Exception | None = None) -> None:
        """Take no more messages, and let `run` end when the handlers are done; with an error as soon as it can."""
        with self._lock:
            self._stopping = True
            self._error = self._error or error
            delivery = self._delivery
        if delivery is not None:
            delivery.stop(error)

    def give_up(self) -> None:
        """Close the connection over the handlers at work: their units are lost, their messages come again."""
        self.stop(ConnectionLostError(f"{self._endpoint.name} was stopped before its handlers were done."))
        if self._endpoint.terms.mode != "serial":  # where `run` does not wait for handlers then, but notes them
            self._ended.wait(_GOODBYE)
        if self._connection is not None:
            with contextlib.suppress(JMSError):
                self._connection.close(_GOODBYE)

    def _begin(self, connection: spi.Connection) -> Delivery:
        self._adjustments.check(self._endpoint.terms, connection)
        delivery = delivery_of(self._endpoint, connection, self._executor)
        with self._lock:
            self._delivery = delivery
            stopping, error = self._stopping, self._error
        if error is not None:
            raise error
        if stopping:
            delivery.stop()
        self._endpoint.statistics.reset_commits()
        self._endpoint.statistics.n_configured_endpoints = self._endpoint.terms.pool_size
        return delivery
