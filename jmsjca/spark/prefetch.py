"""The next epoch, staged by the driver while Spark works on the current one: the option ``prefetchEpochs``.

A prefetch is an early attempt at the partitions of an epoch, with the code of the tasks: messages are staged before
they are settled, and staging is exclusive. The driver stages one partition after the other; the tasks receive the rest.
Only one thing differs: Spark's log does not have the epoch yet, so its plan is recorded first (`EpochPlans`). A driver
that finds a plan returns it as the next offset, in this run or after a crash: nothing that was staged is left behind.
"""

import threading

from jmsjca.log_records import get_logger
from jmsjca.spark.body_columns import BodyColumns
from jmsjca.spark.duplicates import count_kept_by_others
from jmsjca.spark.epochs import AvailableNowLimit, EpochPlans, Offset, plan_shares
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import PartitionReader, plan_partitions
from jmsjca.spark.queue_monitor import QueueMonitor
from jmsjca.spark.staging import Staging

__all__ = ["Prefetch"]

logger = get_logger("jmsjca.spark")

_POLL = 0.02  # seconds: far below the time that Spark needs for a batch


class Prefetch:
    """The prefetch of one epoch, in a thread of the driver.

    It begins when the current epoch is staged completely, so the rows of a queue stay in order. Only a full epoch is
    prefetched, which has no room for messages that arrive later: so a prefetch makes no batch smaller.

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
