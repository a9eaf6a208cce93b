"""strace: found or unpacked, run on a process, and its output read."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from brokers.debian import unpack_packages
from brokers.provisioning import BrokerMissing, provide

from tests.torture.crashed_process import JOURNAL, Victim, work

__all__ = ["Event", "Strace", "StraceMissing", "find_strace", "record", "whole_calls"]

_CALLS = "openat,pwrite64,write,fsync,fdatasync,ftruncate,?unlink,unlinkat,?rename"
_LINE = re.compile(r"\d+ +(\w+)\((.*)\) += (-?\d+)")
_BEGUN = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_PATH = re.compile(r"^\d+<([^>]*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_LONGEST = 1 << 24  # bytes of one write that strace shows


class Event(NamedTuple):
    """One system call: ``make``, ``write``, ``truncate``, ``sync`` or ``unlink``; ``say`` is a line of the journal.

    Attributes:
        what: Which.
        file: The file's name in the folder; empty for the folder itself.
        data: What was written.
        position: Where, or how long the file was made.
    """

    what: str
    file: str
    data: bytes = b""
    position: int = 0


def record(workload: str, folder: Path) -> list[Event]:
    """Let a workload run in a process of its own, and tell what it did in its folder."""
    victim = Victim(partial(work, workload), folder)
    trace = folder / "trace"
    options = ("-y", "-xx", "-s", str(_LONGEST), "-o", str(trace), "-e", f"trace={_CALLS}")
    with find_strace().tracing(victim.pid, (), *options):
        status = victim.run()
    assert status == 0, f"{workload} ended with {status}"
    with trace.open() as lines:
        return [event for line in whole_calls(lines) for event in _events(line, folder.resolve())]


def whole_calls(lines: Iterable[str]) -> Iterator[str]:
    """Put calls together that another thread's call cut in two; each stands where it ended."""
    begun: dict[str, str] = {}
    for line in lines:
        if first := _BEGUN.match(line):
            begun[first[1]] = first[2]
        elif rest := _RESUMED.match(line):
            yield f"{rest[1]} {begun.pop(rest[1])}{rest[2]}"
        else:
            yield line


def _events(line: str, folder: Path) -> Iterator[Event]:
    match = _LINE.match(line)
    if match is None or match[3].startswith("-"):  # the end, a signal, or a call that failed
        return
    call, arguments = match[1], match[2]
    texts = [_bytes(text) for text in _TEXT.findall(arguments)]
    opened = _PATH.match(arguments)
    path = Path((_bytes(opened[1]) if opened else texts[0]).decode())
    if folder not in (path, path.parent):
        return
    name = "" if path == folder else path.name
    numbers = [int(word) for word in arguments.split(", ") if word.isdigit()]
    if call == "write" and name == JOURNAL:
        yield Event("say", name, texts[0])
    elif call == "pwrite64":
        yield Event("write", name, texts[0], numbers[-1])
    elif call == "ftruncate":
        yield Event("truncate", name, position=numbers[-1])
    elif call in ("fsync", "fdatasync"):
        yield Event("sync", name)
    elif call in ("unlink", "unlinkat"):
        yield Event("unlink", name)
    elif call == "openat" and "O_CREAT" in arguments:
        yield Event("make", name)
    elif call != "openat":
        raise NotImplementedError(f"{call} is not understood: {line[:200]}")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


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
