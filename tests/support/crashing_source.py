"""The data source "crashing": "jms", and once, at a step of an epoch, a process is killed or a task stands still.

Options beside those of "jms": ``crashStep``, one of `STEPS`, ``victim``, one of `VICTIMS`, and ``crashAfter``, a path
relative to the folder of the query: the crash waits until it exists. The steps of a task are taken in the second epoch,
when a batch is committed already.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark import TaskContext

from jmsjca.spark import JmsDataSource
from jmsjca.spark.partition import PartitionReader
from jmsjca.spark.reader import JmsStreamReader

MARK = "crashed"
DRIVER = "driver.pid"
TASK_STEPS = ("receiving", "received", "linking", "published", "settled", "confirmed", "decided", "yielded")
DRIVER_STEPS = ("epoch created", "offset logged", "cleaned up")
STEPS = (*TASK_STEPS, *DRIVER_STEPS)
VICTIMS = ("worker", "executor", "machine", "everything", "nobody")
CRASH_OPTIONS = ("crashStep", "victim", "crashAfter")
_EPOCH = 2


class Crash:
    """Ends a process at one step, once.

    Args:
        step: The step.
        victim: The worker alone; the executor with its workers; the machine, which is a worker of the cluster with its
            executors; or everything: the driver, its JVM and all workers.
        folder: Where it is recorded that it happened.
        after: The crash waits until this exists in the folder.
    """

    def __init__(self, step: str, victim: str, folder: Path, after: str = "") -> None:
        self._step = step
        self._victim = victim
        self._folder = folder
        self._after = after

    def pass_step(self, step: str) -> None:
        """End the victim if this is the step, and it did not happen before."""
        if step == self._step and self._is_first():
            while not (self._folder / self._after).exists():
                time.sleep(0.05)
            for process in self._victims():
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            threading.Event().wait()  # until the signal, or for ever

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self._folder / MARK, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _victims(self) -> list[psutil.Process]:
        me = psutil.Process()
        above = me.parents()
        if self._victim == "everything":
            driver = int((self._folder / DRIVER).read_text())
            at = [process.pid for process in above].index(driver)
            return [*above[: at + 1], me]
        if self._victim == "executor":
            return [next(process for process in above if process.name() == "java"), me]
        if self._victim == "machine":
            return _machine([*reversed(above), me])
        return [me] if self._victim == "worker" else []


def _machine(line: list[psutil.Process]) -> list[psutil.Process]:
    """Return a worker of the cluster and all processes below it, those that lead to this one last.

    Args:
        line: This process and all above it, the last one.
    """
    first = next(place for place, process in enumerate(line) if process.name() == "java")
    below = line[first].children(recursive=True)
    return [*(process for process in below if process not in line), *line[first:]]


class CrashingPartition(PartitionReader):
    """Passes the steps of a task."""

    def __init__(self, options, partition, crash) -> None:
        super().__init__(options, partition)
        self._crash = crash
        if partition.part.epoch == _EPOCH:
            self._arm()

    def _arm(self) -> None:
        confirm, link = self._staging.confirm, os.link
        decided = self._staging.record_decision

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
        os.link = linking

    def _pass(self, step: str) -> None:
        if self._part.epoch == _EPOCH:
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


class CrashingReader(JmsStreamReader):
    """Passes the steps of the driver."""

    def __init__(self, options, crash, partition=CrashingPartition) -> None:
        super().__init__(options)
        self._crash = crash
        self._partition = partition

    def read(self, partition):
        return self._partition(self._options, partition, self._crash).read()

    def latestOffset(self, start, limit):  # noqa: N802
        end = super().latestOffset(start, limit)
        if end["epoch"] == _EPOCH:
            self._crash.pass_step("epoch created")
        return end

    def commit(self, end) -> None:
        if end["epoch"] == _EPOCH:
            self._crash.pass_step("offset logged")
        super().commit(end)
        if end["epoch"] == _EPOCH:
            self._crash.pass_step("cleaned up")


class CrashingSource(JmsDataSource):
    """The data source."""

    def __init__(self, options) -> None:
        given = {name.lower(): text for name, text in options.items()}
        step, self._victim, after = given.pop("crashstep"), given.pop("victim"), given.pop("crashafter", "")
        self._crash = Crash(step, self._victim, Path(given["staginglocation"]).parent, after)
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "crashing"

    def streamReader(self, schema):  # noqa: N802
        del schema
        return CrashingReader(
            self._parsed, self._crash, HoldingPartition if self._victim == "nobody" else CrashingPartition
        )
