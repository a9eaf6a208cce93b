"""The driver's side of reading: the batch source, and the epochs of the streaming source."""

import itertools
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsjca import spi
from jmsjca.destinations import Subscription
from jmsjca.errors import (
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
    StoreError,
)
from jmsjca.reconnection import connect
from jmsjca.spark.columns import ColumnBuilder
from jmsjca.spark.epochs import AvailableNowLimit, EmptyEpochBackoff, Offset, Progress
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging, orphans

__all__ = ["JmsBatchReader", "JmsStreamReader", "QueueMonitor"]

logger = logging.getLogger("jmsjca.spark")

_CHUNK_ROWS = 1000


class JmsBatchReader(DataSourceReader):
    """Browses the queue in order, in one partition. Each action on the table browses again.

    Args:
        options: The options of the source.

    Raises:
        InvalidOptionError: The destination is missing.
        InvalidDestinationError: The destination is a topic, which keeps no messages.
    """

    def __init__(self, options: SparkOptions) -> None:
        if options.target.kind != "queue":
            raise InvalidDestinationError(f"{options.target} cannot be browsed: only a queue keeps its messages.")
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the messages of the queue as Arrow batches, on an executor."""
        del partition
        connection = connect(self._options.settings)
        try:
            chunks = connection.browse(self._options.target, selector=self._options.selector)
            browsed = itertools.chain.from_iterable(chunks)
            for first in itertools.count(0, _CHUNK_ROWS):
                columns = ColumnBuilder(self._options.columns, None)
                columns.extend(itertools.islice(browsed, _CHUNK_ROWS))
                batches = columns.staged(0, 0, set(), first).table.to_batches()
                if not batches:
                    break
                yield from batches
        finally:
            connection.close()


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream in epochs, one per micro-batch. `commit` only cleans up: staging settles the messages.

    Spark creates several readers and copies one into every task; a reader opens its connection on first use.

    Args:
        options: The options of the source.

    Raises:
        InvalidOptionError: The destination or the staging location is missing, or a topic has no subscription.
    """

    def __init__(self, options: SparkOptions) -> None:
        _ = options.source
        self._options = options
        self._location = options.staging()
        self._monitor = QueueMonitor(options)
        self._backoff = EmptyEpochBackoff()
        self._available_now: AvailableNowLimit | None = None  # with trigger AvailableNow: the end of this run
        self._last_epoch: Offset | None = None  # the last epoch of this run
        self._progress = Progress()
        self._gen: str | None = None  # the generation, once an epoch of this run has ended
        self._depth: spi.Depth | None = None  # when the last epoch was planned

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first epoch, which is constant."""
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: ``maxMessagesPerBatch``, never the whole queue."""
        return ReadMaxRows(self._options.maxMessagesPerBatch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of a new epoch if messages are available, else the start.

        Raises:
            JMSError: The broker could not be reached for longer than the option ``driverRetryTimeout``.
            StoreError: A staged file is damaged.
        """
        offset = Offset.from_json(start)
        self._record_last_epoch(offset)
        if self._is_idle() or not self._has_messages():
            return start
        if offset.gen is None:
            self._check_orphans()
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.maxMessagesPerBatch
        if self._available_now is not None:
            rows = self._available_now.next_limit(rows)
        self._depth = self._monitor.depth_or_none()
        waiting = None if self._depth is None else self._depth.ready
        self._last_epoch = offset.next(self._options.partitions, rows, waiting=waiting)
        return self._last_epoch.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return figures for the progress of a query, see `Progress`; those that the broker does not know are missing.

        ``depth`` is the number of messages in the queue, ``oldest`` the JMSTimestamp of the first one when the driver
        last looked, ``inDoubt`` the number of staged messages whose settlement the broker has not confirmed.
        """
        depth, self._depth = self._depth or self._monitor.depth_or_none(), None
        known = {"depth": depth and depth.total, "oldest": self._monitor.oldest}
        figures = {name: value for name, value in known.items() if value is not None}
        return figures | asdict(self._progress) | {"inDoubt": self._count_in_doubt()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit this run to the messages that the queue has now: see `AvailableNowLimit`.

        Raises:
            JMSError: The broker cannot be reached.
        """
        depth = self._monitor.depth()
        self._available_now = AvailableNowLimit(None if depth is None else depth.total)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of the epochs between two offsets. Only this method creates the folders of epochs."""
        first, last = Offset.from_json(start), Offset.from_json(end)
        if last.gen is None:
            return []
        staging = Staging(self._location, last.gen)
        planned: list[InputPartition] = []
        for epoch in range(first.epoch + 1, last.epoch + 1):
            staging.create_epoch(epoch)
            planned += [
                JmsPartition(last.gen, EpochPartition(epoch, i), last.quota(i), counted=bool(last.counted))
                for i in range(last.parts)
            ]
        return planned

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a partition as Arrow batches, on an executor."""
        assert isinstance(partition, JmsPartition)  # noqa: S101  # Spark passes the planned partitions
        return PartitionReader(self._options, partition).read()

    def commit(self, end: dict[str, Any]) -> None:
        """Remove files that no replay needs. Spark may call this late or skip it; the next call compensates."""
        offset = Offset.from_json(end)
        if offset.gen is None:
            return
        try:
            Staging(self._location, offset.gen).commit(
                offset.epoch, retain=self._options.retainEpochs, doubt_retention=self._options.inDoubtRetention
            )
        except OSError as error:
            logger.warning("Staged messages could not be removed, trying again after the next batch: %s", error)

    def stop(self) -> None:
        """Close the driver's connection."""
        self._monitor.close()

    def _record_last_epoch(self, start: Offset) -> None:
        """Record the messages of the last epoch, if Spark executed it."""
        opened, self._last_epoch = self._last_epoch, None
        if opened is None or opened != start or start.gen is None:
            return
        counts = Staging(self._location, start.gen).counts_of(start.epoch)
        self._backoff.record_epoch(sum(part.received for part in counts))
        self._progress.record_epoch(counts)
        self._gen = start.gen
        if self._available_now is not None:
            self._available_now.record_epoch(counts)

    def _is_idle(self) -> bool:
        """Return True if no epoch must begin now: the limit is reached, or the last epoch was empty."""
        if self._available_now is not None:
            return self._available_now.reached
        if not self._backoff.must_skip():
            return False
        self._monitor.throttle()
        return True

    def _has_messages(self) -> bool:
        """Return True if messages are available.

        With trigger AvailableNow, wait while the broker cannot be reached: Spark takes False for the end of the work,
        and the run would succeed although messages are left.
        """
        found = self._monitor.has_messages()
        while self._available_now is not None and self._monitor.is_failing:
            found = self._monitor.has_messages()
        return found

    def _count_in_doubt(self) -> int:
        """Return the number of staged messages that may be redelivered; 0 if a file is being removed."""
        if self._gen is None:
            return 0
        staging = Staging(self._location, self._gen)
        try:
            return sum(staging.counts(part).received for part, sure in staging.published().items() if not sure)
        except OSError:  # this is only for display
            return 0

    def _check_orphans(self) -> None:
        if self._options.orphans == "ignore":
            return
        found = [str(path) for path in orphans(self._location)]
        if found:
            raise StoreError(
                "The staging location holds messages of another checkpoint that were perhaps never processed: "
                f"{', '.join(found[:5])}{' …' if len(found) > 5 else ''}. Go on with that checkpoint, "  # noqa: PLR2004
                "or name another stagingLocation, or set orphans=ignore."
            )


class QueueMonitor:
    """Checks the queue for messages. Connects on first use; the connection is not pickled with the reader.

    Args:
        options: The options of the source.

    Attributes:
        oldest: The JMSTimestamp of the first message at the last look, as text; None if unknown.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._connection: spi.Connection | None = None
        self._lost = False
        self._next = 0.0
        self._failing_since: float | None = None
        self.oldest: str | None = None

    def has_messages(self) -> bool:
        """Return True if messages are available, or if the broker does not support browsing.

        Returns False while the broker cannot be reached, up to ``driverRetryTimeout``.

        Raises:
            JMSError: The broker could not be reached for longer than the option ``driverRetryTimeout``.
        """
        self.throttle()
        try:
            found = self._can_receive(self._open())
        except (ConfigurationError, InvalidDestinationError, NotSupportedError):
            raise
        except JMSError as error:
            self._tolerate(error)
            return False
        self._failing_since = None
        return found

    @property
    def is_failing(self) -> bool:
        """True if the broker could not be reached at the last look."""
        return self._failing_since is not None

    def depth(self) -> spi.Depth | None:
        """Return the numbers of messages in the queue; None if the broker does not report them.

        Raises:
            JMSError: The broker cannot be reached.
        """
        connection = self._open()
        # The broker counts all messages, and a selector reads some.
        admin = None if self._options.selector else connection.admin()
        return None if admin is None else admin.depth(self._options.source)

    def depth_or_none(self) -> spi.Depth | None:
        """Return the numbers of messages in the queue; None if they cannot be found out."""
        try:
            return self.depth()
        except JMSError:
            return None

    def throttle(self) -> None:
        """Wait for the next interval: Spark polls without pause, the broker is polled once per ``pollInterval``."""
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
            self._subscribe(connection)
            self._connection = connection
        return self._connection

    def _subscribe(self, connection: spi.Connection) -> None:
        """Create the subscription, if the source is one: only then does the broker keep messages for it.

        Raises:
            NotSupportedError: The broker lacks shared durable subscriptions.
        """
        source = self._options.source
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

    def _can_receive(self, connection: spi.Connection) -> bool:
        source = self._options.source
        if isinstance(source, Subscription):
            depth = self.depth()
            return depth is None or depth.ready > 0
        if not connection.capabilities.browse:
            return True
        chunks = connection.browse(source, selector=self._options.selector, limit=1)
        first = next(itertools.chain.from_iterable(chunks), None)
        self.oldest = None if first is None else _sent(first)
        return first is not None

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
