"""strace: found on this machine, or unpacked from Debian's package; and one process under it."""

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from brokers.cache import BrokerMissing, provide
from brokers.debian import unpack_packages

__all__ = ["Strace", "StraceMissing", "find_strace"]

_PACKAGES = ("strace", "libunwind8", "liblzma5")
_PATIENCE = 20  # seconds


class StraceMissing(Exception):  # noqa: N818  # says what is the matter, as the tests' reports show it
    """strace cannot be had here, or may trace nothing; the message says why."""


class Strace(NamedTuple):
    """A strace that works.

    Attributes:
        path: The program.
        libraries: Where its libraries are, if the system does not know.
    """

    path: str
    libraries: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What it needs to run."""
        return {**os.environ, **({"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {})}

    def check(self) -> None:
        """Trace something.

        Raises:
            StraceMissing: That is not allowed here.
        """
        command = [self.path, "-o", os.devnull, "true"]
        result = subprocess.run(command, env=self.environment, check=False, capture_output=True, text=True)
        if result.returncode:
            raise StraceMissing(f"strace cannot trace: {result.stderr.strip()[:200]}")

    @contextmanager
    def tracing(self, pid: int, files: Iterable[Path], *options: str) -> Generator[None]:
        """Trace a process from the beginning of the block; at the end of the block wait for its end.

        Args:
            pid: Which process, with the threads that it will have.
            files: Only calls that are about these; none for all.
            options: What to do with them.

        Raises:
            StraceMissing: That is not allowed here.
        """
        paths = [word for file in files for word in ("-P", str(file))]
        command = [self.path, "-f", "-q", "-p", str(pid), *paths, *options]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE) as tracer:
            _wait_until_traced(pid, tracer)
            yield


@lru_cache(1)
def find_strace() -> Strace:
    """Find a strace that works.

    Raises:
        StraceMissing: There is none.
    """
    installed = shutil.which("strace")
    strace = Strace(installed) if installed else _unpacked()
    strace.check()
    return strace


def _unpacked() -> Strace:
    try:
        folder = provide("strace", partial(unpack_packages, _PACKAGES))
    except BrokerMissing as problem:
        raise StraceMissing(f"strace is {problem}") from problem
    libraries = next(folder.glob("usr/lib/*/libunwind.so.8")).parent
    return Strace(str(folder / "usr/bin/strace"), libraries)


def _wait_until_traced(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        if tracer.poll() is not None or time.monotonic() > end:
            tracer.kill()
            assert tracer.stderr
            raise StraceMissing(f"strace cannot trace: {tracer.stderr.read().decode().strip()[:200]}")
        time.sleep(0.001)
