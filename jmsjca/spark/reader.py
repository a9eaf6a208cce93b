"""The driver's side of reading: the batch source, and the epochs of the streaming source."""

import itertools
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsjca import spi
from jmsjca.errors import ConfigurationError, InvalidDestinationError, JMSError, NotSupportedError, StoreError
from jmsjca.reconnection import connect
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.rows import delivery_row, to_batch
from jmsjca.spark.schema import ARROW_SCHEMA
from jmsjca.spark.staging import EpochPartition, Staging, orphans

__all__ = ["AvailableNowLimit", "EmptyEpochBackoff", "JmsBatchReader", "JmsStreamReader", "Offset", "QueueMonitor"]

logger = logging.getLogger("jmsjca.spark")

_MAX_SKIPPED = 31

_CHUNK_ROWS = 1000
_BATCH_PARTITION = EpochPartition(0, 0)


class JmsBatchReader(DataSourceReader):
    """Browses the queue, in order, in one partition. Two actions on the same table look twice.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: SparkOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Browse, on an executor."""
        del partition
        connection = connect(self._options.settings)
        try:
            numbered = enumerate(itertools.chain.from_iterable(connection.browse(self._options.target)))
            while rows := [
                delivery_row(delivery, _BATCH_PARTITION, position, None)
                for position, delivery in itertools.islice(numbered, _CHUNK_ROWS)
            ]:
                yield to_batch(rows, ARROW_SCHEMA)
        finally:
            connection.close()


class AvailableNowLimit:
    """What the queue held when the query began; what comes later waits for the next one.

    Where the broker does not tell how much that was, the query ends with the first epoch that came back empty or took
    a message that was sent after the query began.

    Args:
        depth: How many messages the queue held; None if nobody knows.
    """

    def __init__(self, depth: int | None) -> None:
        self._remaining = depth
        self._started = datetime.now(UTC)
        self.reached = depth == 0

    def next_limit(self, limit: int) -> int:
        """How many messages the next epoch may take."""
        return limit if self._remaining is None else min(limit, max(self._remaining, 1))

    def record_epoch(self, staging: Staging, epoch: int) -> None:
        """Learn what an epoch took."""
        taken = staging.count(epoch)
        if self._remaining is None:
            self.reached = not taken or self._is_late(staging, epoch)
        else:
            self._remaining -= taken
            self.reached = not taken or self._remaining <= 0

    def _is_late(self, staging: Staging, epoch: int) -> bool:
        return any(self._holds_late(staging, part) for part in staging.parts() if part.epoch == epoch)

    def _holds_late(self, staging: Staging, part: EpochPartition) -> bool:
        sent = staging.rows(part).column("timestamp").to_pylist()
        return any(time is not None and time >= self._started for time in sent)


class EmptyEpochBackoff:
    """Counts the looks at the queue to leave out: 1, 3, 7, 15 and then 31 after each further empty epoch.

    An epoch comes back empty where the driver cannot look into the queue, or saw messages that others took or hold.
    """

    def __init__(self) -> None:
        self._length = 0
        self._left = 0

    def record_epoch(self, taken: int) -> None:
        """Learn how many messages an epoch took."""
        self._length = 0 if taken else min(2 * self._length + 1, _MAX_SKIPPED)
        self._left = self._length

    def must_skip(self) -> bool:
        """Tell whether this look is to be left out."""
        if not self._left:
            return False
        self._left -= 1
        return True


@dataclass(frozen=True, slots=True)
class Offset:
    """Frozen in Spark's offset log, so that a replay plans the same partitions whatever the options say by then.

    Attributes:
        epoch: The number of the epoch that ends here; 0 before the first.
        gen: The generation: one checkpoint's name for its staged files; None before the first epoch.
        parts: Over how many partitions the epoch is spread.
        rows: How many messages it takes at most.
    """

    epoch: int = 0
    gen: str | None = None
    parts: int = 0
    rows: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(value["epoch"], value.get("gen"), value.get("parts", 0), value.get("rows", 0))

    def to_json(self) -> dict[str, Any]:
        """The form that Spark keeps. It holds no secret: the log is plain text."""
        return {"v": 1, **{name: value for name, value in asdict(self).items() if value or name == "epoch"}}

    def next(self, parts: int, rows: int) -> "Offset":
        """The end of the next epoch; the first one begins a generation."""
        return Offset(self.epoch + 1, self.gen or uuid.uuid4().hex, parts, rows)

    def quota(self, partition: int) -> int:
        """How many messages a partition may take."""
        share, rest = divmod(self.rows, self.parts)
        return share + (partition < rest)


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several of these and copies one into every task; none opens anything until it must.

    An epoch becomes a micro-batch. `commit` only cleans up: messages are settled when they are staged.

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
        self._available_now: AvailableNowLimit | None = None  # with AvailableNow: where this run ends
        self._last_epoch: Offset | None = None  # the epoch opened last, in this run

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first epoch: always the same."""
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most so many messages a batch; never all of a queue."""
        return ReadMaxRows(self._options.maxMessagesPerBatch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Open one epoch if messages wait, else answer the start."""
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
        """What the progress of a query shows as the latest offset: the depth of the queue, where it is known."""
        try:
            depth = self._monitor.depth()
        except JMSError:  # only a figure to look at
            return None
        return None if depth is None else {"depth": depth}

    def prepareForTriggerAvailableNow(self) -> None:
        """Take no more than what the queue holds now, or what comes close to that: see `Goal`."""
        self._available_now = AvailableNowLimit(self._monitor.depth())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the epochs between two offsets. Their folders are made here and nowhere else."""
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
        """Read a partition, on an executor."""
        assert isinstance(partition, JmsPartition)  # noqa: S101  # Spark hands back what we planned
        return PartitionReader(self._options, partition).read()

    def commit(self, end: dict[str, Any]) -> None:
        """Remove what no replay will ask for any more. Called late, and not always; the next call makes up for it."""
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
        """Learn what the epoch took that was opened last, if Spark went on to it."""
        opened, self._last_epoch = self._last_epoch, None
        if opened is None or opened != start or start.gen is None:
            return
        staging = Staging(self._location, start.gen)
        self._backoff.record_epoch(staging.count(start.epoch))
        if self._available_now is not None:
            self._available_now.record_epoch(staging, start.epoch)

    def _is_idle(self) -> bool:
        """Tell that no epoch is to be opened now: the goal is reached, or the last one came back empty."""
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
    """Opened at the first look, never pickled: readers are copied to every task.

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
        """Tell whether messages wait, or may wait where nobody can look.

        False also while the broker cannot be reached, for a time.

        Raises:
            JMSError: It could not be reached for longer than the option ``driverRetryTimeout``.
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
        """Count the messages in the queue; None if the broker does not tell.

        Raises:
            JMSError: The broker cannot be reached.
        """
        admin = self._open().admin()
        return None if admin is None else admin.depth(self._options.target).total

    def throttle(self) -> None:
        """Wait: Spark asks as fast as it can, the broker is asked once an interval."""
        time.sleep(max(self._next - time.monotonic(), 0))
        self._next = time.monotonic() + self._options.pollInterval

    def close(self) -> None:
        """Close the connection, if there is one."""
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
        """Told by the connection: where nobody can look, nothing else would tell."""
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
