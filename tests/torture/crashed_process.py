"""The process that is killed: runs a workload on a real broker and records each result."""

import ctypes
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from jmsjca import JMSError
from jmsjca.providers import find_provider
from tests.model.operations import Letter, Words
from tests.model.real import Real
from tests.torture.workloads import AFTERWARDS, START, WORKLOADS, send

__all__ = ["BROKER", "JOURNAL", "Account", "Note", "Victim", "read_account", "read_journal", "work"]

BROKER, JOURNAL = "broker.db", "journal"
Note = Callable[[str], object]
Task = Callable[[Path, Note], None]

find_provider("embedded")  # imported once, not by each child
_PATIENCE = 60  # seconds
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, -1


class Account(NamedTuple):
    """What the victim noted.

    Attributes:
        begun: How many words it began.
        ended: How many of them succeeded.
        error: The name of the error of the one that failed.
        afterwards: True if it could send a message after that.
    """

    begun: int
    ended: int
    error: str | None
    afterwards: bool


class Victim:
    """A forked child, which waits until somebody traces it.

    Args:
        task: What it does in a folder, with a function that notes a line in the journal.
        folder: Where its broker and its journal are.
    """

    def __init__(self, task: Task, folder: Path) -> None:
        waiting, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _live(task, folder, waiting)
        os.close(waiting)

    def run(self) -> int:
        """Let it go, and give its exit status, or minus the signal that ended it."""
        os.write(self._go, b"!")
        os.close(self._go)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def read_journal(folder: Path) -> list[str]:
    """Read the lines that a victim noted."""
    path = folder / JOURNAL
    return path.read_text().splitlines() if path.exists() else []


def read_account(folder: Path) -> Account:
    """Read how far a victim came with its workload."""
    lines = read_journal(folder)
    failed = [line.removeprefix("failed ") for line in lines if line.startswith("failed")]
    return Account(lines.count("begin"), lines.count("end"), failed[0] if failed else None, "afterwards" in lines)


def work(workload: str, folder: Path, note: Note) -> None:
    """The task of a workload: its words, and one message more if one of them fails."""
    broker = Real(START, folder / BROKER)
    try:
        WORKLOADS[workload](cast("Words", _Noting(broker, note)))
    except JMSError as error:
        note(f"failed {type(error).__name__}")
        if not broker.is_connected("c"):
            broker.connect("c")
        send(broker, AFTERWARDS, Letter("afterwards"))
        note("afterwards")


def _live(task: Task, folder: Path, waiting: int) -> NoReturn:
    status = 1
    try:
        signal.alarm(_PATIENCE)
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)  # where only parents may trace
        journal = os.open(folder / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.read(waiting, 1)
        task(folder, lambda line: os.write(journal, f"{line}\n".encode()))
        status = 0
    except BaseException:  # noqa: BLE001  # there is nobody above
        traceback.print_exc()
    finally:
        os._exit(status)  # as a crash: nothing is closed


class _Noting:
    """Notes each word, before and after."""

    def __init__(self, broker: Real, note: Note) -> None:
        self._broker = broker
        self._note = note

    def __getattr__(self, word: str) -> Callable[..., object]:
        def say(*arguments: Any, **named: Any) -> object:
            self._note("begin")
            answer = getattr(self._broker, word)(*arguments, **named)
            self._note("end")
            return answer

        return say
