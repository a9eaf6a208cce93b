"""The driver's side of the streaming source: epochs, the look at the queues, and the next epoch in advance.

With the option ``prefetchEpochs``, the driver stages the next epoch while Spark works on the current one.

A prefetch is an early attempt at the partitions of an epoch, with the code of the tasks: messages are staged before
they are settled, and staging is exclusive. The driver stages one partition after the other; the tasks receive the rest.
There is one difference: Spark's log does not have the epoch yet, so the driver records its plan first (`EpochPlans`). A
driver that finds a plan returns it as the next offset, in this run or after a crash. So no staged message is forgotten.
"""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsjca import spi
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidOptionError,
    JMSError,
    MessageFormatError,
    NotSupportedError,
    StoreError,
)
from jmsjca.log_records import get_logger
from jmsjca.reconnection import connect
from jmsjca.spark.body_columns import BodyColumns
from jmsjca.spark.epoch_plans import AvailableNowLimit, EmptyEpochBackoff, EpochPlans, Offset, Progress, plan_shares
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader, count_kept_by_others, orphans, plan_partitions
from jmsjca.spark.staging import EpochPartition, Origin, Staging, check_usable
from jmsjca.spark.store import StoreUnavailableError

__all__ = ["JmsStreamReader", "Prefetch", "QueueMonitor"]

logger = get_logger("jmsjca.spark")

_POLL = 0.02  # seconds: far below the time that Spark needs for a batch

_HELD_PATIENCE = 60.0  # seconds: most brokers notice within them that a consumer is gone
_SHOWN = 5  # orphans in an error message
_LOOKS = 3  # at a queue without a known depth, before AvailableNow takes it for empty


class QueueMonitor:
    """Checks the queues for messages. Connects on first use; the connection is not pickled with the reader.

    Args:
        options: The options of the source.

    Attributes:
        oldest: The JMSTimestamp of the first message of the queues at the last check, as text; None if unknown.
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

        The result is empty while the broker cannot be reached, up to ``driverRetryTimeout``.

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
            self._next = 0.0  # messages that arrive while this batch runs need not wait after it
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
        """Return the numbers of messages in each queue; None if they cannot be determined."""
        try:
            return self.depths()
        except JMSError:
            return None

    def throttle(self) -> None:
        """Wait for the next check: Spark polls without pause, an idle broker is polled once per ``pollInterval``."""
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


class Prefetch:
    """The prefetch of one epoch, in a thread of the driver.

    It begins when the current epoch is staged completely, so the rows of a queue stay in order. Only a full epoch is
    prefetched. It has no room for messages that arrive later, so a prefetch never makes a batch smaller.

    Args:
        options: The options of the source.
        staging: The staged files of the generation.
        monitor: The monitor of the queues; nothing else uses it until the prefetch has ended.
        current: The epoch that Spark works on.
        available_now: The end of the run; None if it has none. It does not change until the prefetch has ended.
        body: The columns that come out of the bodies; None without them.

    Attributes:
        plan: The plan of the epoch, once it is recorded.
    """

    def __init__(
        self,
        options: SourceOptions,
        staging: Staging,
        monitor: QueueMonitor,
        current: Offset,
        available_now: AvailableNowLimit | None = None,
        *,
        body: BodyColumns | None = None,
    ) -> None:
        self._body = body
        self._options = options
        self._staging = staging
        self._monitor = monitor
        self._current = current
        self._available_now = available_now
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self.run, name="jmsjca-prefetch", daemon=True)
        self.plan: Offset | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """End the prefetch after the partition that is being staged, and wait for that."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def run(self) -> None:
        """Wait for the messages of a full epoch, and stage them. Failures are logged: the tasks receive the rest."""
        try:
            plan = self._wait_for_plan()
            if plan is None or not EpochPlans(self._staging).begin(plan):
                return
            self.plan = plan
            for partition in plan_partitions(self._options, plan, plan.epoch):
                if self._ended.is_set():
                    return
                PartitionReader(self._options, partition, body=self._body).stage()
        except Exception as error:  # noqa: BLE001  # it is only an early attempt
            logger.warning(
                "Epoch %d was not prefetched completely, its tasks receive the rest: %s", self._current.epoch + 1, error
            )

    def _wait_for_plan(self) -> Offset | None:
        """Return the plan of a full epoch; None if the prefetch ends before there is one."""
        parts = sum(share.parts for share in self._current.plan)
        while len(self._staging.published(self._current.epoch)) < parts:
            if self._ended.wait(_POLL):
                return None
        rows = self._room()
        while rows > 0:
            if plan := self._full_plan(rows):
                return plan
            if self._ended.wait(max(self._options.pollInterval, _POLL)):
                return None
        return None

    def _room(self) -> int:
        """Return the maximum number of messages of the epoch; 0 if the current one is the last of the run."""
        rows = self._options.maxMessagesPerBatch
        if self._available_now is None:
            return rows
        kept_by_others = count_kept_by_others(self._staging, self._current.epoch)
        return min(rows, self._available_now.left_after(self._staging.counts_of(self._current.epoch), kept_by_others))

    def _full_plan(self, rows: int) -> Offset | None:
        depths = self._monitor.depths_or_none() or {}
        ready = {name: depth.ready for name, depth in depths.items() if depth.ready}
        if sum(ready.values()) < rows:
            return None
        return self._current.next(plan_shares(ready, self._options.partitions, rows))


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream in epochs, one per micro-batch. `commit` only cleans up: staging settles the messages.

    Spark creates several readers and copies one into every task; a reader opens its connection on first use.

    Args:
        options: The options of the source.
        body: The columns that come out of the bodies; None without them.

    Raises:
        InvalidOptionError: The destination or the staging location is missing, or a topic has no subscription.
    """

    def __init__(self, options: SourceOptions, body: BodyColumns | None = None) -> None:
        self._origin = Origin(options.described, options.stagingName)
        self._body = body
        self._options = options
        self._location = options.staging()
        self._monitor = QueueMonitor(options)
        self._backoff = EmptyEpochBackoff()
        self._available_now: AvailableNowLimit | None = None  # with trigger AvailableNow: the end of this run
        self._held_since: float | None = None  # with trigger AvailableNow: when only held messages were left
        self._last_epoch: Offset | None = None  # the last epoch of this run
        self._progress = Progress()
        self._staging: Staging | None = None  # once the generation is known
        self._completed: int | None = None
        self._depths: dict[str, spi.Depth] | None = None  # when the last epoch was planned
        self._prefetch: Prefetch | None = None  # while Spark works on an epoch

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first epoch, which is constant.

        Raises:
            StoreError: The staging location cannot be used.
        """
        check_usable(self._location)
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: ``maxMessagesPerBatch``, never the whole queue."""
        return ReadMaxRows(self._options.maxMessagesPerBatch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of a new epoch if messages are available, else the start.

        Raises:
            JMSError: The broker could not be reached for longer than the option ``driverRetryTimeout``.
            IllegalStateError: With trigger AvailableNow, batch after batch is empty although messages are ready.
            StoreError: A staged file or folder is damaged or missing, or the staging location cannot be used.
            InvalidOptionError: The checkpoint belongs to another source.
        """
        offset = Offset.from_json(start)
        prefetch = self._end_prefetch()
        self._record_last_epoch(offset)
        if (begun := self._find_begun(offset)) is not None:
            # An epoch of an earlier run is not among the messages that this run counts.
            self._last_epoch = begun if prefetch is not None and prefetch.plan == begun else None
            return begun.to_json()
        if again := self._unsure(offset):  # with trigger AvailableNow also after the last message
            return EpochPlans(self._staged(offset)).open(offset.repeated(again)).to_json()
        if self._is_idle():
            return start
        waiting = self._find_waiting()
        if not waiting:
            return start
        if offset.gen is None:
            self._check_orphans()
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.maxMessagesPerBatch
        if self._available_now is not None:
            rows = self._available_now.next_limit(rows)
        self._depths = self._monitor.depths_or_none()
        ready = {name: self._depths[name].ready if self._depths else None for name in waiting}
        self._check_progress(sum(filter(None, ready.values())))
        shares = plan_shares(ready, self._options.partitions, rows)
        end = offset.next(shares, at_least_once=self._options.at_least_once)
        # Before the offset is in Spark's log: when a batch is processed, the folder of its epoch exists, or was lost.
        end = EpochPlans(self._staged(end, is_new=offset.gen is None)).open(end)
        self._last_epoch = end
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return figures for the progress of a query, see `Progress`, except figures that the broker does not know.

        ``depth`` is the number of messages in the queues, ``oldest`` the JMSTimestamp of the first one when the driver
        last looked, ``inDoubt`` the number of staged messages that the broker has not confirmed as settled.
        """
        depths, self._depths = self._depths or self._monitor.depths_or_none(), None
        known = {"depth": depths and sum(d.total for d in depths.values()), "oldest": self._monitor.oldest}
        figures = {name: value for name, value in known.items() if value is not None}
        return figures | asdict(self._progress) | {"inDoubt": self._count_in_doubt()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit this run to the messages that the queues have now: see `AvailableNowLimit`.

        Raises:
            JMSError: The broker cannot be reached.
        """
        depths = self._monitor.depths()
        self._available_now = AvailableNowLimit(None if depths is None else sum(d.total for d in depths.values()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of the epochs between two offsets.

        Raises:
            StoreError: The folder of an epoch is missing.
            InvalidOptionError: The checkpoint belongs to another source.
        """
        first, last = Offset.from_json(start), Offset.from_json(end)
        if last.gen is None:
            return []
        planned: list[InputPartition] = []
        for epoch in range(first.epoch + 1, last.epoch + 1):
            self._staged(last).check_present(epoch)
            planned += plan_partitions(self._options, last, epoch)
        self._start_prefetch(last)
        return planned

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a partition as Arrow batches, on an executor."""
        planned = cast("JmsPartition", partition)  # Spark passes what `partitions` returned
        return PartitionReader(self._options, planned, body=self._body).read()

    def commit(self, end: dict[str, Any]) -> None:
        """Remove files that no replay needs. Spark may call this late or skip it; the next call compensates."""
        offset = Offset.from_json(end)
        if offset.gen is None:
            return
        try:
            staging = self._staged(offset)
            staging.commit(
                offset.epoch, retain=self._options.retainEpochs, doubt_retention=self._options.inDoubtRetention
            )
            EpochPlans(staging).remove(offset.epoch)
        except (OSError, StoreUnavailableError) as error:
            logger.warning("Staged messages could not be removed, trying again after the next batch: %s", error)

    def stop(self) -> None:
        """Close the driver's connection."""
        self._end_prefetch()
        self._monitor.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_staging": None, "_prefetch": None}

    def _start_prefetch(self, current: Offset) -> None:
        """Begin to stage the next epoch, if ``prefetchEpochs`` is set. Spark works on the current epoch now."""
        limit = self._available_now
        if self._options.prefetchEpochs and self._prefetch is None and (limit is None or limit.is_counted):
            staging = self._staged(current)
            self._prefetch = Prefetch(self._options, staging, self._monitor, current, limit, body=self._body)
            self._prefetch.start()

    def _end_prefetch(self) -> Prefetch | None:
        ended, self._prefetch = self._prefetch, None
        if ended is not None:
            ended.end()
        return ended

    def _find_begun(self, offset: Offset) -> Offset | None:
        """Return the next epoch if it was begun before Spark asked for it, in this run or in an earlier one."""
        return None if offset.gen is None else EpochPlans(self._staged(offset)).find(offset.epoch + 1)

    def _staged(self, offset: Offset, *, is_new: bool = False) -> Staging:
        """Return the staged files of the generation of an offset, checked at the first use in this run.

        Raises:
            StoreError: The folder of an earlier run is missing, or cannot be used.
            InvalidOptionError: The checkpoint belongs to another source, or has another guarantee.
        """
        if self._staging is None or self._staging.gen != offset.gen:
            staging = Staging(self._location, str(offset.gen))
            if staging.at_least_once != self._options.at_least_once:
                known = "at-least-once" if staging.at_least_once else "exactly-once"
                raise InvalidOptionError(
                    f"This checkpoint was begun with guarantee={known}, and its files have that form. Set the option,"
                    " or use a new checkpoint."
                )
            if not is_new:
                staging.check_present(offset.epoch, swept=True)
            staging.begin(self._origin, allow_change=self._options.sourceChange == "allow")
            self._staging = staging
        return self._staging

    def _unsure(self, offset: Offset) -> Sequence[EpochPartition]:
        """Return the attempts of the last epoch that must be read again: see `jmsjca.spark.staging`."""
        return self._staged(offset).unsure(offset.epoch) if offset.gen and self._options.at_least_once else ()

    def _record_last_epoch(self, start: Offset) -> None:
        """Record the messages of the last epoch, if Spark executed it, and that Spark has committed it."""
        if start.gen is None or start.epoch == self._completed:
            return
        staging = self._staged(start)
        # Spark asks for the next offset after it has committed the batch. So the last epoch of a run is not an orphan.
        staging.complete(start.epoch)
        self._completed = start.epoch
        opened, self._last_epoch = self._last_epoch, None
        if opened != start:
            return
        counts = staging.counts_of(start.epoch)
        self._backoff.record_epoch(sum(part.received for part in counts))
        self._progress.record_epoch(counts)
        if self._available_now is not None:
            if staging.at_least_once and self._available_now.is_counted:
                # A message that was not settled is redelivered, and counted then.
                counts = staging.counts_of(start.epoch, settled=True)
            self._available_now.record_epoch(counts, count_kept_by_others(staging, start.epoch))

    def _is_idle(self) -> bool:
        """Return True if no epoch must begin now: the limit is reached, or the last epoch was empty."""
        if self._available_now is not None:
            return self._available_now.reached
        if not self._backoff.must_skip():
            return False
        self._monitor.throttle()
        return True

    def _check_progress(self, ready: int) -> None:
        """Raise an error if a run would never end, because no batch receives any of the messages that are ready."""
        if ready and self._available_now is not None and self._available_now.is_stuck:
            raise IllegalStateError(
                f"The queues have {ready} messages that are ready, and the last batches received none of them. If the"
                " broker is far away, its first message takes longer than the option receiveIdleTimeout, which is"
                f" {self._options.receiveIdleTimeout:g} s: set it higher."
            )

    def _find_waiting(self) -> list[str]:
        """Return the names of the queues with messages.

        With trigger AvailableNow, wait while the broker cannot be reached, or while a consumer holds messages that this
        run must read: Spark takes an empty result for the end of the work, and the run would succeed although messages
        are left.
        """
        found = self._monitor.find_waiting()
        looks = 1
        while not found and self._available_now is not None and self._may_come(self._available_now, looks):
            found = self._monitor.find_waiting()
            looks += 1
        if found:
            self._held_since = None
        return found

    def _may_come(self, limit: AvailableNowLimit, looks: int) -> bool:
        """Return True if messages of this run may still come: those that a killed attempt at a task received.

        Raises:
            JMSError: The broker does not report how many messages are left.
        """
        if self._monitor.is_failing:
            return True
        if not limit.is_counted:
            return looks < _LOOKS
        now = time.monotonic()
        self._held_since = self._held_since or now
        is_patient = now - self._held_since < _HELD_PATIENCE
        depths = self._monitor.depths_or_none() if is_patient else self._monitor.depths()
        if depths is None:  # the broker was lost after the look
            return True
        held = sum(depth.held + depth.ready for depth in depths.values())
        if held and is_patient:
            return True
        if held:
            logger.warning(
                "The run ends although other consumers hold %d messages, for more than %d seconds.",
                held,
                int(_HELD_PATIENCE),
            )
        return False

    def _count_in_doubt(self) -> int:
        """Return the number of staged messages that may be redelivered; 0 if a file is being removed."""
        if self._staging is None:
            return 0
        staging = self._staging
        try:
            return sum(staging.counts(part).received for part, sure in staging.published().items() if not sure)
        except (OSError, StoreUnavailableError):  # this is only for display
            return 0

    def _check_orphans(self) -> None:
        if self._options.orphans == "ignore":
            return
        found = [*orphans(self._location, self._origin)]
        if found:
            raise StoreError(
                "The staging location holds messages of another checkpoint that were perhaps never processed: "
                f"{', '.join(found[:_SHOWN])}{' …' if len(found) > _SHOWN else ''}. Go on with that checkpoint, "
                "or name another stagingLocation, or set orphans=ignore. A batch after which Spark asked for no other"
                " (with trigger once, or as the query was stopped during its interval) is named even if its checkpoint"
                " has it in 'commits': then ignore it. If another query reads the same queue with"
                " this stagingLocation, give each a stagingName."
            )
