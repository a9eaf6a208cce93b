"""The worker processes of one run: started, watched, killed and restarted."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.torture.journal import Reader

__all__ = ["Herd", "Slot"]

ROOT = Path(__file__).parents[2]


@dataclass
class Slot:
    """One place that always has a process: killed ones are replaced by the next incarnation."""

    role: str
    number: int
    incarnation: int
    process: subprocess.Popen[bytes]
    reader: Reader
    progress: int = 0  # how often it noted that something was done

    @property
    def name(self) -> str:
        return f"{self.role}-{self.number}-{self.incarnation}"


class Herd:
    """Starts the workers.

    Args:
        folder: Where the broker, the journals and the output of the workers are.
        seed: What their dice are made from.
        sizes: How many of each role.
        url: The broker; None for one in the folder.

    Attributes:
        counts: Ids noted so far, by "role verb".
        crashed: Names of processes that ended by themselves with an error.
        outlawed: Names of processes that the others were made to take for dead.
    """

    def __init__(self, folder: Path, seed: int, sizes: dict[str, int], url: str | None = None) -> None:
        self.folder = folder
        self._url = url or f"embedded://{folder}/broker.db"
        self.counts: Counter[str] = Counter()
        self.crashed: list[str] = []
        self.outlawed: set[str] = set()
        self._seed = seed
        for name in ("journals", "output", "tmp"):
            (folder / name).mkdir()
        self.slots = [self._start(role, n, 0) for role, size in sizes.items() for n in range(size)]

    def kill(self, slot: Slot) -> None:
        """End a process the hard way, and start its successor at once."""
        slot.process.kill()
        slot.process.wait()
        self._replace(slot)

    def outlaw(self, slot: Slot) -> None:
        """Pause a process and remove its lock file: the others take what it holds, and its commits must be refused."""
        slot.process.send_signal(signal.SIGSTOP)
        owner = self._owner_of(slot)
        if owner is not None:
            self.outlawed.add(slot.name)
            (self.folder / "broker.db-owners" / f"{owner}.lock").unlink(missing_ok=True)
            time.sleep(0.3)
        slot.process.send_signal(signal.SIGCONT)

    def count(self) -> None:
        """Read what the journals have got, and replace who crashed."""
        for slot in self.slots:
            self._read(slot)
        for slot in [s for s in self.slots if s.process.poll() is not None]:
            self.crashed.append(slot.name)
            self._replace(slot)

    def wait_for_note(self, slot: Slot, patience: float) -> None:
        """Return as soon as a worker notes something: it is about to commit, or just did."""
        size, end = slot.reader.size, time.monotonic() + patience
        while slot.reader.size == size and time.monotonic() < end:
            time.sleep(0.0005)

    def stop(self, role: str, patience: float = 30) -> None:
        """Let the workers of a role end in peace."""
        (self.folder / f"stop-{role}").touch()
        for slot in [s for s in self.slots if s.role == role]:
            try:
                code: int | str = slot.process.wait(patience)
            except subprocess.TimeoutExpired:
                slot.process.kill()
                slot.process.wait()
                code = "it did not stop"
            if code != 0:
                self.crashed.append(slot.name)
            self._read(slot)
            self.slots.remove(slot)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Leave no process behind."""
        try:
            yield
        finally:
            for slot in self.slots:
                slot.process.kill()
                slot.process.wait()

    def complaints(self) -> str:
        """What crashed workers said last."""
        texts = (f"{name}: {(self.folder / 'output' / name).read_text()[-2000:]}" for name in self.crashed)
        return "\n".join(texts)

    def _owner_of(self, slot: Slot) -> int | None:
        if not (self.folder / "broker.db").exists():
            return None
        db = sqlite3.connect(f"file:{self.folder}/broker.db?mode=ro", uri=True, timeout=10)
        try:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'owner'").fetchone():
                return None  # nobody got so far as to make the tables
            row = db.execute("SELECT id FROM owner WHERE pid = ?", (slot.process.pid,)).fetchone()
        finally:
            db.close()
        return None if row is None else int(row[0])

    def _read(self, slot: Slot) -> None:
        for entry in slot.reader.new():
            slot.progress += entry.verb in ("took", "ok", "handled")
            self.counts[f"{slot.role} {entry.verb}"] += len(entry.ids)

    def _replace(self, slot: Slot) -> None:
        self._read(slot)
        self.slots[self.slots.index(slot)] = self._start(slot.role, slot.number, slot.incarnation + 1)

    def _start(self, role: str, number: int, incarnation: int) -> Slot:
        name = f"{role}-{number}-{incarnation}"
        command = [
            sys.executable,
            "-m",
            "tests.torture.workers",
            role,
            str(self.folder),
            name,
            str(self._seed),
            self._url,
        ]
        environment = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        with (self.folder / "output" / name).open("wb") as output:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        return Slot(role, number, incarnation, process, Reader(self.folder / "journals" / f"{name}.journal"))


def kill_at_random(herd: Herd, dice: random.Random, enough: Callable[[int], bool]) -> int:
    """Kill workers until it is enough; every second one just when it commits. A few are outlawed instead.

    Returns:
        The number of kills.
    """
    kills = 0
    while not enough(kills):
        time.sleep(dice.uniform(0.02, 0.3))
        herd.count()
        slot = dice.choice(herd.slots)
        if dice.random() < 0.5:
            herd.wait_for_note(slot, patience=0.5)
            time.sleep(dice.uniform(0, 0.003))
        if slot.role != "producer" and dice.random() < 0.15:
            herd.outlaw(slot)
        else:
            herd.kill(slot)
            kills += 1
    return kills
