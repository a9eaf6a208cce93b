"""The data source "crashing": "jms", and at a step of an epoch something happens, see `Crash`.

Options beside those of "jms": ``crashStep``, one of `STEPS`; ``victim``; ``crashes``, how often it happens;
``crashAfter``, a path below the folder of the query, which must exist before; ``tasks``, one of `TASKS`;
``crashFolder``, the folder of the query, if it is not the one with the staging location. The steps of a task are taken
in the second epoch, when a batch is committed already, and those of the commit of a sink in the second batch.
"""

import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from crash import Crash
from meeting_tasks import MeetingPartition
from pyspark import TaskContext

from jmsjca.outbound import Session
from jmsjca.spark import JmsDataSource, reader
from jmsjca.spark.exactly_once import AtomicStreamWriter, StateQueue
from jmsjca.spark.options import SinkOptions, SourceOptions
from jmsjca.spark.partition import PartitionReader
from jmsjca.spark.reader import JmsStreamReader

TASK_STEPS = ("receiving", "received", "linking", "published", "settled", "confirmed", "decided", "yielded")
DRIVER_STEPS = ("epoch created", "offset logged", "cleaned up")
SINK_STEP = "sink written"
PREFETCH_STEPS = ("planned ahead", "partly staged ahead", "staged ahead")
COMMIT_STEPS = ("putting the token", "token put", "committing", "committed")
STEPS = (*TASK_STEPS, *DRIVER_STEPS, SINK_STEP, *PREFETCH_STEPS, *COMMIT_STEPS)
CRASH_OPTIONS = ("crashStep", "victim", "crashes", "crashAfter", "tasks", "crashFolder")
EPOCH = 2
PATIENCE = 60.0


class CrashingPartition(PartitionReader):
    """Passes the steps of a task."""

    def __init__(self, options, partition, crash) -> None:
        super().__init__(options, partition)
        self._crash = crash
        crash.watch()
        if partition.part.epoch == EPOCH:
            self._arm()

    def _arm(self) -> None:
        confirm, link, publish = self._staging.confirm, os.link, self._staging.publish
        decided = self._staging.record_decision

        def publishing(part, staged):
            with self._crash.no_space():
                return publish(part, staged)

        def confirming(part):
            self._crash.pass_step("settled")
            confirm(part)
            self._crash.pass_step("confirmed")

        def deciding(part, foreign):
            decision = decided(part, foreign)
            self._crash.pass_step("decided")
            return decision

        def linking(source, target):
            if str(target).endswith(".arrow"):
                self._crash.pass_step("linking")
            link(source, target)

        self._staging.confirm, self._staging.record_decision = confirming, deciding
        self._staging.publish = publishing
        os.link = linking

    def _pass(self, step: str) -> None:
        if self._part.epoch == EPOCH:
            self._crash.pass_step(step)

    def _receive(self, lease, consumer):
        self._pass("receiving")
        received = super()._receive(lease, consumer)
        self._pass("received")
        return received

    def _settle(self, lease, received) -> None:
        self._pass("published")
        super()._settle(lease, received)

    def read(self):
        for batch in super().read():
            yield batch
            self._pass("yielded")


class HoldingPartition(CrashingPartition):
    """The first attempt at the first partition of the first epoch receives messages, and never does more."""

    def _receive(self, lease, consumer):
        received = super()._receive(lease, consumer)
        if (*self._part[:2], TaskContext.get().attemptNumber()) == (1, 0, 0):
            self._crash.pass_step("received")
        return received


TASKS = {"crashing": CrashingPartition, "holding": HoldingPartition, "meeting": MeetingPartition}


class EarlyPartition(PartitionReader):
    """Passes the steps of a prefetch."""

    def __init__(self, options, partition, *, body, crash) -> None:
        super().__init__(options, partition, body=body)
        self._crash = crash

    def stage(self) -> None:
        if not self._part.number:
            self._crash.pass_step(PREFETCH_STEPS[0])
        super().stage()
        self._crash.pass_step(PREFETCH_STEPS[1 + self._part.number])


class CrashingReader(JmsStreamReader):
    """Passes the steps of the driver."""

    def __init__(self, options, crash, partition=CrashingPartition) -> None:
        super().__init__(options)
        self._crash = crash
        self._partition = partition

    def read(self, partition):
        return self._partition(self._options, partition, self._crash).read()

    def latestOffset(self, start, limit):  # noqa: N802
        self._crash.watch()
        end = super().latestOffset(start, limit)
        if end["epoch"] == EPOCH:
            self._crash.pass_step("epoch created")
        return end

    def commit(self, end) -> None:
        if end["epoch"] == EPOCH:
            self._crash.pass_step("offset logged")
        super().commit(end)
        if end["epoch"] == EPOCH:
            self._crash.pass_step("cleaned up")

    def _start_prefetch(self, current) -> None:
        if current.epoch == EPOCH and not self._crash.is_over:
            reader.PartitionReader = partial(EarlyPartition, crash=self._crash)
        super()._start_prefetch(current)

    def _end_prefetch(self):
        """End the prefetch of the next epoch when it has passed the step: a short batch would end it earlier."""
        if self._prefetch is not None and self._prefetch._current.epoch == EPOCH and not self._crash.is_over:
            self._prefetch._thread.join(PATIENCE)
        return super()._end_prefetch()


class CrashingWriter(AtomicStreamWriter):
    """Passes the steps of the commit of the second batch."""

    def __init__(self, options, schema, crash) -> None:
        super().__init__(options, schema)
        self._crash = crash

    def commit(self, messages, batchId) -> None:  # noqa: N803
        if batchId != 1:
            super().commit(messages, batchId)
            return
        with self._passing(StateQueue, "_put", *COMMIT_STEPS[:2]), self._passing(Session, "commit", *COMMIT_STEPS[2:]):
            super().commit(messages, batchId)

    @contextmanager
    def _passing(self, owner, name, before, after):
        """Pass a step before and after each call of a function."""
        whole = getattr(owner, name)

        def call(*given):
            self._crash.pass_step(before)
            result = whole(*given)
            self._crash.pass_step(after)
            return result

        setattr(owner, name, call)
        try:
            yield
        finally:
            setattr(owner, name, whole)


class CrashingSource(JmsDataSource):
    """The data source."""

    def __init__(self, options) -> None:
        given = {name.lower(): text for name, text in options.items()}
        self._tasks = TASKS[given.pop("tasks", "crashing")]
        folder = Path(given.pop("crashfolder", "") or Path(given["staginglocation"]).parent)
        times, after = int(given.pop("crashes", 1)), given.pop("crashafter", "")
        self._crash = Crash(given.pop("crashstep"), given.pop("victim"), folder, times, after)
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "crashing"

    def streamReader(self, schema):  # noqa: N802
        del schema
        return CrashingReader(SourceOptions.parse(self._given), self._crash, self._tasks)

    def streamWriter(self, schema, overwrite):  # noqa: N802
        del overwrite
        return CrashingWriter(SinkOptions.parse(self._given), schema, self._crash)
