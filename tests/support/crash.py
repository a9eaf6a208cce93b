"""A crash at a step of an epoch, in whichever process of Spark passes the step."""

import os
import resource
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from lossy_folder import LossyFolder

__all__ = ["DRIVER", "VICTIMS", "Crash", "await_end", "has_ended"]

DRIVER = "driver.pid"
VICTIMS = {
    "worker": "the process that passes the step is killed",
    "executor": "the JVM above it is killed, too",
    "machine": "a worker of the cluster is killed, with its executors and their workers",
    "everything": "the driver, its JVM and all workers are killed",
    "power": "the same, and what was not flushed is missing in the staging folder",
    "others": "everything but this process is killed, and this one goes on when the test releases the step",
    "space": "the process finds no space on the disk, until the test releases the step",
    "nobody": "the process stands still until the test releases the step",
}
PATIENCE = 400.0  # seconds: longer than a Spark needs to start, and to run a query, on a busy machine


class Crash:
    """Happens at one step, so many times.

    Args:
        step: The step.
        victim: One of `VICTIMS`.
        folder: Where it is recorded that it happened, and where the driver's number is.
        times: How many times.
        after: The crash waits until this exists in the folder.
    """

    def __init__(self, step: str, victim: str, folder: Path, times: int = 1, after: str = "") -> None:
        if victim not in VICTIMS:
            raise ValueError(f"A crash has no victim {victim!r}; it has {', '.join(VICTIMS)}.")
        self._step = step
        self._victim = victim
        self._folder = folder
        self._times = times
        self._after = after
        self._disk = LossyFolder(folder / "staging")

    def watch(self) -> None:
        """Record from now on what this process flushes, if the power will be cut."""
        if self._victim == "power":
            self._disk.watch()

    def pass_step(self, step: str) -> None:
        """Crash if this is the step, and it did not happen often enough before."""
        if step != self._step or not self._is_first():
            return
        while not (self._folder / self._after).exists():
            time.sleep(0.02)
        me = psutil.Process()
        if self._victim in ("power", "others"):
            with suppress(PermissionError):  # of the leader of a session
                os.setsid()  # the daemon that forked this process ends its group as it ends
        victims = self._victims(me)
        for process in victims:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self._victim == "power":
            await_end([process for process in victims if process != me])
            self._disk.cut_power()
            me.kill()
        self._await_release()

    @contextmanager
    def no_space(self) -> Iterator[None]:
        """Make each write to a file fail, if that is the crash, until the test releases the step."""
        if self._victim != "space" or self._is_released:
            yield
            return
        self._is_first()
        before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))

    @property
    def is_over(self) -> bool:
        """True if it does not happen any more."""
        return len(self.marks) >= self._times

    @property
    def marks(self) -> list[Path]:
        """A file for each time when it happened, with the number of the process."""
        return sorted(self._folder.glob(f"crashed at {self._step} *"))

    def release(self) -> None:
        """Let the processes go on that stand still."""
        self._release.touch()

    def _is_first(self) -> bool:
        own = self._folder / f".crash-{uuid.uuid4().hex}"
        own.write_text(str(os.getpid()))
        for number in range(self._times):
            with suppress(FileExistsError):
                (self._folder / f"crashed at {self._step} {number}").hardlink_to(own)
                return True
        return False

    def _victims(self, me: psutil.Process) -> list[psutil.Process]:
        if self._victim in ("everything", "power", "others"):
            driver = psutil.Process(int((self._folder / DRIVER).read_text()))
            others = [process for process in (driver, *driver.children(recursive=True)) if process != me]
            return [*others, me] if self._victim == "everything" else others
        if self._victim == "executor":
            return [next(process for process in me.parents() if process.name() == "java"), me]
        if self._victim == "machine":
            return _machine([*reversed(me.parents()), me])
        return [me] if self._victim == "worker" else []

    def _await_release(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._is_released and time.monotonic() < deadline:
            threading.Event().wait(0.02)

    @property
    def _is_released(self) -> bool:
        return self._release.exists()

    @property
    def _release(self) -> Path:
        return self._folder / f"released from {self._step}"


def _machine(line: list[psutil.Process]) -> list[psutil.Process]:
    """Return a worker of the cluster and all processes below it, those that lead to this one last.

    Args:
        line: This process and all above it, the last one.
    """
    first = next(place for place, process in enumerate(line) if process.name() == "java")
    below = line[first].children(recursive=True)
    return [*(process for process in below if process not in line), *line[first:]]


def await_end(processes: list[psutil.Process]) -> None:
    """Wait until processes have ended, whoever their parents are."""
    deadline = time.monotonic() + PATIENCE
    while not all(map(has_ended, processes)):
        assert time.monotonic() < deadline, f"{processes} do not end"
        threading.Event().wait(0.02)


def has_ended(process: psutil.Process) -> bool:
    """Return True for a process that is gone, or of which nothing is left but its number."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True
