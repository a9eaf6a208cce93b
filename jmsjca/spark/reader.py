"""The streaming source: the driver opens epochs, the executors consume them."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsjca.errors import InvalidDestinationError, JMSError, StoreError
from jmsjca.spark.goal import Goal
from jmsjca.spark.offset import Offset
from jmsjca.spark.options import SparkOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.probe import Probe
from jmsjca.spark.rest import Rest
from jmsjca.spark.staging import Part, Staging, orphans

__all__ = ["JmsStreamReader"]

logger = logging.getLogger("jmsjca.spark")


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
        self._probe = Probe(options)
        self._rest = Rest()
        self._goal: Goal | None = None  # with AvailableNow: where this run ends
        self._opened: Offset | None = None  # the epoch opened last, in this run

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first epoch: always the same."""
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most so many messages a batch; never all of a queue."""
        return ReadMaxRows(self._options.maxMessagesPerBatch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Open one epoch if messages wait, else answer the start."""
        offset = Offset.from_json(start)
        self._look_back(offset)
        if self._rests() or not self._probe.has_messages():
            return start
        if offset.gen is None:
            self._check_orphans()
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.maxMessagesPerBatch
        if self._goal is not None:
            rows = self._goal.left(rows)
        self._opened = offset.next(min(self._options.partitions, rows), rows)
        return self._opened.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What the progress of a query shows as the latest offset: the depth of the queue, where it is known."""
        try:
            depth = self._probe.depth()
        except JMSError:  # only a figure to look at
            return None
        return None if depth is None else {"depth": depth}

    def prepareForTriggerAvailableNow(self) -> None:
        """Take no more than what the queue holds now, or what comes close to that: see `Goal`."""
        self._goal = Goal(self._probe.depth())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the epochs between two offsets. Their folders are made here and nowhere else."""
        first, last = Offset.from_json(start), Offset.from_json(end)
        if last.gen is None:
            return []
        staging = Staging(self._location, last.gen)
        planned: list[InputPartition] = []
        for epoch in range(first.epoch + 1, last.epoch + 1):
            staging.create_epoch(epoch)
            planned += [JmsPartition(last.gen, Part(epoch, i), last.quota(i)) for i in range(last.parts)]
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
        self._probe.close()

    def _look_back(self, start: Offset) -> None:
        """Learn what the epoch took that was opened last, if Spark went on to it."""
        opened, self._opened = self._opened, None
        if opened is None or opened != start or start.gen is None:
            return
        staging = Staging(self._location, start.gen)
        self._rest.note(staging.count(start.epoch))
        if self._goal is not None:
            self._goal.note(staging, start.epoch)

    def _rests(self) -> bool:
        """Tell that no epoch is to be opened now: the goal is reached, or the last one came back empty."""
        if self._goal is not None:
            return self._goal.reached
        if not self._rest.is_due():
            return False
        self._probe.pace()
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
