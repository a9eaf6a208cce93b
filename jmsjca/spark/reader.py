"""The driver's side of reading: the batch source, and the epochs of the streaming source."""

import itertools
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsjca import spi
from jmsjca.errors import ConfigurationError, InvalidDestinationError, JMSError, NotSupportedError, StoreError
from jmsjca.reconnection import connect
from jmsjca.spark.columns import ColumnBuilder
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.part_file import Counts
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.schema import ARROW_SCHEMA
from jmsjca.spark.staging import EpochPartition, Staging, orphans

__all__ = ["EmptyEpochBackoff", "JmsBatchReader", "JmsStreamReader", "Offset", "QueueMonitor"]

logger = logging.getLogger("jmsjca.spark")

_MAX_SKIPPED = 31

_CHUNK_ROWS = 1000


class JmsBatchReader(DataSourceReader):
    """Browses the queue in order, in one partition. Each action on the table browses again.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the messages of the queue as Arrow batches, on an executor."""
        del partition
        connection = connect(self._options.settings)
        try:
            browsed = itertools.chain.from_iterable(connection.browse(self._options.target))
            for first in itertools.count(0, _CHUNK_ROWS):
                columns = ColumnBuilder(ARROW_SCHEMA.names, None)
                columns.extend(itertools.islice(browsed, _CHUNK_ROWS))
                batches = columns.staged(0, 0, set(), first).table.to_batches()
                if not batches:
                    break
                yield from batches
        finally:
            connection.close()


class _AvailableNowLimit:
    """The end of a query with trigger AvailableNow: the messages that the queue had when the query began.

    If the broker does not report the queue depth, the query ends with the first epoch that is empty or has a message
    that was sent after the query began.

    Args:
        depth: The queue depth when the query began; None if unknown.
    """

    def __init__(self, depth: int | None) -> None:
        self._remaining = depth
        self._started = time.time_ns() // 1_000_000  # the unit of JMSTimestamp
        self.reached = depth == 0

    def next_limit(self, limit: int) -> int:
        """Return the maximum number of messages of the next epoch."""
        return limit if self._remaining is None else min(limit, max(self._remaining, 1))

    def record_epoch(self, counts: Sequence[Counts]) -> None:
        """Record the messages of an epoch."""
        taken = sum(part.received for part in counts)
        if self._remaining is None:
            self.reached = not taken or any(self._is_late(part) for part in counts)
        else:
            self._remaining -= taken
            self.reached = not taken or self._remaining <= 0

    def _is_late(self, counts: Counts) -> bool:
        return counts.latest is not None and counts.latest >= self._started


class EmptyEpochBackoff:
    """Counts the checks of the queue to skip after empty epochs: 1, 3, 7, 15, and then 31 after each further one.

    An epoch is empty if the driver cannot browse the queue, or saw messages that other consumers have.
    """

    def __init__(self) -> None:
        self._length = 0
        self._left = 0

    def record_epoch(self, taken: int) -> None:
        """Record the number of messages of an epoch."""
        self._length = 0 if taken else min(2 * self._length + 1, _MAX_SKIPPED)
        self._left = self._length

    def must_skip(self) -> bool:
        """Return True if this check must be skipped, and count it."""
        if not self._left:
            return False
        self._left -= 1
        return True


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset in Spark's log. It has the plan of the epoch, so that a replay does not depend on changed options.

    Attributes:
        epoch: The number of the epoch that ends here; 0 before the first.
        gen: The generation: one checkpoint's name for its staged files; None before the first epoch.
        parts: The number of partitions of the epoch.
        rows: The maximum number of messages of the epoch.
    """

    epoch: int = 0
    gen: str | None = None
    parts: int = 0
    rows: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the offset of a dictionary from `to_json`."""
        return cls(value["epoch"], value.get("gen"), value.get("parts", 0), value.get("rows", 0))

    def to_json(self) -> dict[str, Any]:
        """Return the form for Spark's log. It has no secrets, because the log is plain text."""
        return {"v": 1, **{name: value for name, value in asdict(self).items() if value or name == "epoch"}}

    def next(self, parts: int, rows: int) -> "Offset":
        """Return the offset at the end of the next epoch; the first epoch begins a generation."""
        return Offset(self.epoch + 1, self.gen or uuid.uuid4().hex, parts, rows)

    def quota(self, partition: int) -> int:
        """Return the maximum number of messages of a partition."""
        share, rest = divmod(self.rows, self.parts)
        return share + (partition < rest)


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream in epochs, one per micro-batch. `commit` only cleans up: staging settles the messages.

    Spark creates several readers and copies one into every task; a reader opens its connection on first use.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: SparkOptions) -> None:
        if options.target.kind != "queue":
            raise InvalidDestinationError(
                f"A stream reads a queue, not {options.target}: its partitions compete for messages."
            )
        self._options = options
        self._location = options.staging()
        self._monitor = QueueMonitor(options)
        self._backoff = EmptyEpochBackoff()
        self._available_now: _AvailableNowLimit | None = None  # with trigger AvailableNow: the end of this run
        self._last_epoch: Offset | None = None  # the last epoch of this run

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first epoch, which is constant."""
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: ``maxMessagesPerBatch``, never the whole queue."""
        return ReadMaxRows(self._options.maxMessagesPerBatch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of a new epoch if messages are available, else the start."""
        offset = Offset.from_json(start)
        self._record_last_epoch(offset)
        if self._is_idle() or not self._monitor.has_messages():
            return start
        if offset.gen is None:
            self._check_orphans()
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.maxMessagesPerBatch
        if self._available_now is not None:
            rows = self._available_now.next_limit(rows)
        self._last_epoch = offset.next(min(self._options.partitions, rows), rows)
        return self._last_epoch.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the latest offset for the progress of a query: the depth of the queue, if known."""
        try:
            depth = self._monitor.depth()
        except JMSError:  # this is only for display
            return None
        return None if depth is None else {"depth": depth}

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit this run to the messages that the queue has now: see `_AvailableNowLimit`."""
        self._available_now = _AvailableNowLimit(self._monitor.depth())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of the epochs between two offsets. Only this method creates the folders of epochs."""
        first, last = Offset.from_json(start), Offset.from_json(end)
        if last.gen is None:
            return []
        staging = Staging(self._location, last.gen)
        planned: list[InputPartition] = []
        for epoch in range(first.epoch + 1, last.epoch + 1):
            staging.create_epoch(epoch)
            planned += [JmsPartition(last.gen, EpochPartition(epoch, i), last.quota(i)) for i in range(last.parts)]
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
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._connection: spi.Connection | None = None
        self._lost = False
        self._next = 0.0
        self._failing_since: float | None = None

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

    def depth(self) -> int | None:
        """Return the number of messages in the queue; None if the broker does not report it.

        Raises:
            JMSError: The broker cannot be reached.
        """
        admin = self._open().admin()
        return None if admin is None else admin.depth(self._options.target).total

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
            self._connection = connect(self._options.settings, self._on_lost)
        return self._connection

    def _on_lost(self, error: JMSError) -> None:
        """Record the loss of the connection. Without browsing there is no other sign of it."""
        del error
        self._lost = True

    def _can_receive(self, connection: spi.Connection) -> bool:
        return not connection.capabilities.browse or any(connection.browse(self._options.target, limit=1))

    def _tolerate(self, error: JMSError) -> None:
        self.close()
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("The broker cannot be reached, looking again until it can: %s", error)
        if now - self._failing_since > self._options.driverRetryTimeout:
            raise error
