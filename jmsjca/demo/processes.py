"""The other processes of a run: started, watched, and killed without warning where the run asks for it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import psutil

from jmsjca.errors import JMSError

__all__ = ["DemoError", "QueryProcess", "await_end", "python"]

_GONE = 30.0  # seconds after which what was killed must have ended
_GLANCE = 0.0005
_GLANCES = 200
_LOG_TAIL = 2000


class DemoError(JMSError):
    """The run could not come to its account."""


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]


class QueryProcess:
    """A process with all that it starts: Spark's JVM and Python workers.

    Args:
        command: What to run.
        log: Where its output goes.
        java_home: The Java for Spark.
    """

    def __init__(self, command: Sequence[str], log: Path, java_home: Path) -> None:
        environment = os.environ | {
            "JAVA_HOME": str(java_home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603  # our own module
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, start_new_session=True
            )

    def is_running(self) -> bool:
        """Tell whether it still runs.

        Raises:
            DemoError: It failed; with the end of its output.
        """
        code = self._process.poll()
        if code:
            tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
            raise DemoError(f"The Spark query failed with exit status {code}. The end of {self._log}:\n{tail}")
        return code is None

    def crash_when(self, ripe: Callable[[], bool]) -> bool:
        """Kill it with all its processes at a moment when a condition holds; False if it ended before that.

        The condition is checked again while everything is stopped, so that it holds when the kill comes.
        """
        while self.is_running():
            family = self._family()  # takes longer than the moment may last, so it is known before
            if _ripens(ripe):
                self._stop(family)
                if ripe():
                    _signal(family, psutil.Process.kill)
                    self._process.wait()
                    await_end(family, _GONE)
                    return True
                _signal(family, psutil.Process.resume)
        return False

    def end(self) -> None:
        """Kill it if it still runs."""
        if self._process.poll() is None:
            _signal(self._family(), psutil.Process.kill)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def _stop(self, family: list[psutil.Process]) -> None:
        """Stop the whole family, its youngest members first; add those that were born meanwhile."""
        fresh = family
        while fresh:
            _signal(fresh[::-1], psutil.Process.suspend)
            fresh = [process for process in self._family() if process not in family]
            family += fresh

    def _family(self) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def await_end(family: Sequence[psutil.Process], seconds: float) -> None:
    """Wait until processes that were killed have ended; one that only waits for its parent has.

    Raises:
        DemoError: Some are still there after so many seconds.
    """
    _, left = psutil.wait_procs(family, timeout=seconds)
    alive = [process.pid for process in left if _is_alive(process)]
    if alive:
        raise DemoError(f"The processes {', '.join(map(str, alive))} were killed and did not end in {seconds:g} s.")


def _is_alive(process: psutil.Process) -> bool:
    """Tell whether a process runs, or could."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ripens(ripe: Callable[[], bool]) -> bool:
    """Look at a condition again and again, for a short while."""
    for _ in range(_GLANCES):
        if ripe():
            return True
        time.sleep(_GLANCE)
    return False


def _signal(family: Sequence[psutil.Process], send: Callable[[psutil.Process], None]) -> None:
    for process in family:
        try:
            send(process)
        except psutil.NoSuchProcess:
            continue
