"""The child processes of a run: start, watch and kill them."""

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

_GONE = 30.0  # seconds within which killed processes must end
_GLANCE = 0.0005
_GLANCES = 200
_LOG_TAIL = 2000


class DemoError(JMSError):
    """The run failed before its account was complete."""


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python interpreter."""
    return [sys.executable, "-m", module, *arguments]


class QueryProcess:
    """The process of the Spark query with its children: the JVM and the Python workers.

    Args:
        command: The command to run.
        log: The file for its output.
        java_home: The home folder of the Java installation for Spark.
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
        """Return True while the process runs.

        Raises:
            DemoError: The process failed. The message shows the end of its output.
        """
        code = self._process.poll()
        if code:
            tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
            raise DemoError(f"The Spark query failed with exit status {code}. The end of {self._log}:\n{tail}")
        return code is None

    def crash_when(self, ripe: Callable[[], bool]) -> bool:
        """Kill the process and its children at a moment when a condition holds.

        The condition is checked again while all processes are suspended, so it holds at the time of the kill.

        Returns:
            False if the process ended before the condition held.
        """
        while self.is_running():
            family = self._family()  # listing the processes may take longer than the condition holds, so it comes first
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
        """Kill the process and its children if they still run."""
        if self._process.poll() is None:
            _signal(self._family(), psutil.Process.kill)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def _stop(self, family: list[psutil.Process]) -> None:
        """Suspend all processes, the newest first, including those that were started meanwhile."""
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
    """Wait until killed processes have ended; a zombie counts as ended.

    Raises:
        DemoError: A process still runs after the timeout in seconds.
    """
    _, left = psutil.wait_procs(family, timeout=seconds)
    alive = [process.pid for process in left if _is_alive(process)]
    if alive:
        raise DemoError(f"The processes {', '.join(map(str, alive))} were killed and did not end in {seconds:g} s.")


def _is_alive(process: psutil.Process) -> bool:
    """Return True if a process runs or is suspended; False for a zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ripens(ripe: Callable[[], bool]) -> bool:
    """Poll a condition for a short time; return True as soon as it holds."""
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
