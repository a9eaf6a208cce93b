"""What a process did to its broker's files, read from strace: every write, every sync, every name."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.torture.strace import find_strace
from tests.torture.victim import JOURNAL, Victim, work

__all__ = ["Event", "record", "whole_calls"]

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
