"""The driver's look at the queues of a stream: whether messages wait, how many, and since when."""

import itertools
import time
from datetime import datetime
from typing import Any

from jmsjca import spi
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import (
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
)
from jmsjca.log_records import get_logger
from jmsjca.reconnection import connect
from jmsjca.spark.options import SourceOptions

__all__ = ["QueueMonitor"]

logger = get_logger("jmsjca.spark")


class QueueMonitor:
    """Checks the queues for messages. Connects on first use; the connection is not pickled with the reader.

    Args:
        options: The options of the source.

    Attributes:
        oldest: The JMSTimestamp of the first message of the queues at the last look, as text; None if unknown.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._connection: spi.Connection | None = None
        self._lost = False
        self._next = 0.0
        self._failing_since: float | None = None
        self.oldest: str | None = None

    def find_waiting(self) -> list[str]:
        """Return the names of the queues in which messages are available; all if the broker does not support browsing.

        Returns none while the broker cannot be reached, up to ``driverRetryTimeout``.

        Raises:
            JMSError: The broker could not be reached for longer than the option ``driverRetryTimeout``.
        """
        self.throttle()
        try:
            connection, self.oldest = self._open(), None
            found = [name for name, source in self._options.sources.items() if self._can_receive(connection, source)]
        except (ConfigurationError, InvalidDestinationError, NotSupportedError):
            raise
        except JMSError as error:
            self._tolerate(error)
            return []
        self._failing_since = None
        if found:
            self._next = 0.0  # the batch that begins now takes its time, and what comes meanwhile need not wait
        return found

    @property
    def is_failing(self) -> bool:
        """True if the broker could not be reached at the last look."""
        return self._failing_since is not None

    def depths(self) -> dict[str, spi.Depth] | None:
        """Return the numbers of messages in each queue; None if the broker does not report them.

        Raises:
            JMSError: The broker cannot be reached.
        """
        connection = self._open()
        # The broker counts all messages, and a selector reads some.
        admin = None if self._options.selector else connection.admin()
        return None if admin is None else {name: admin.depth(s) for name, s in self._options.sources.items()}

    def depths_or_none(self) -> dict[str, spi.Depth] | None:
        """Return the numbers of messages in each queue; None if they cannot be found out."""
        try:
            return self.depths()
        except JMSError:
            return None

    def throttle(self) -> None:
        """Wait for the next look: Spark polls without pause, an idle broker is polled once per ``pollInterval``."""
        time.sleep(max(self._next - time.monotonic(), 0))
        self._next = time.monotonic() + self._options.pollInterval

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None}

    def _open(self) -> spi.Connection:
        if self._lost:
            self.close()
        if self._connection is None:
            self._lost = False
            connection = connect(self._options.settings, self._on_lost)
            for source in self._options.sources.values():
                self._subscribe(connection, source)
            self._connection = connection
        return self._connection

    def _subscribe(self, connection: spi.Connection, source: Destination | Subscription) -> None:
        """Create the subscription, if the source is one: only then does the broker keep messages for it.

        Raises:
            NotSupportedError: The broker lacks shared durable subscriptions.
        """
        if isinstance(source, Subscription):
            if not (connection.capabilities.shared and connection.capabilities.durable):
                connection.close()
                raise NotSupportedError(
                    f"{source.topic} cannot be read: this broker has no shared durable subscriptions, which the"
                    " partitions of a stream compete on."
                )
            connection.consumer(source, selector=self._options.selector, window=0).close()

    def _on_lost(self, error: JMSError) -> None:
        """Record the loss of the connection. Without browsing there is no other sign of it."""
        del error
        self._lost = True

    def _can_receive(self, connection: spi.Connection, source: Destination | Subscription) -> bool:
        if isinstance(source, Subscription):
            admin = None if self._options.selector else connection.admin()
            return admin is None or admin.depth(source).ready > 0
        if not connection.capabilities.browse:
            return True
        chunks = connection.browse(source, selector=self._options.selector, limit=1)
        first = next(itertools.chain.from_iterable(chunks), None)
        if first is None:
            return False
        sent = _sent(first)
        self.oldest = min(filter(None, (self.oldest, sent)), default=None)
        return True

    def _tolerate(self, error: JMSError) -> None:
        self.close()
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("The broker cannot be reached, looking again until it can: %s", error)
        if now - self._failing_since > self._options.driverRetryTimeout:
            raise error


def _sent(delivery: spi.Delivery) -> str | None:
    """Return the time when a message was sent; None if it has none, or cannot be decoded."""
    try:
        sent: datetime | None = delivery.message.timestamp
    except MessageFormatError:
        return None
    return None if sent is None else sent.isoformat()
