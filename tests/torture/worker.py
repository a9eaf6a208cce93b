"""What every process of the kill loops needs: its dice, its journal, and commits of which both ends are noted."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jmsjca import Session
from jmsjca.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from tests.torture.journal import Journal

__all__ = ["FULL", "Worker"]

FULL = "full"  # the file that lets producers pause
_PARENT = os.getppid()


@dataclass
class Worker:
    """One process."""

    role: str
    folder: Path
    name: str
    url: str
    dice: random.Random
    journal: Journal
    tries: int = 0  # how many transactions it tried to end

    @property
    def is_embedded(self) -> bool:
        """Whether it has what others may lack: delays, and depths that nobody is asked for over a network."""
        return self.url.startswith("embedded:")

    def goes_on(self) -> bool:
        return os.getppid() == _PARENT and not (self.folder / f"stop-{self.role}").exists()

    def is_full(self) -> bool:
        return (self.folder / FULL).exists()

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def note_try(self, ids: Sequence[str]) -> None:
        """Note that a transaction is about to end."""
        self.tries += 1
        self.journal.note("try", ids)

    def commit(self, session: Session, ids: Sequence[str]) -> None:
        """Commit, and note before and after it what is known."""
        self.note_try(ids)
        try:
            session.commit()
        except (TransactionRolledBackError, ConnectionLostError):  # it did not happen, says the one and the other
            self.journal.note("refused", ids)
        except TransactionInDoubtError:
            self.journal.note("doubt", ids)
        else:
            self.journal.note("ok", ids)

    def roll_back(self, session: Session, ids: Sequence[str]) -> None:
        """Whatever becomes of the rollback, nothing of it may be there."""
        self.note_try(ids)
        self.journal.note("rolled-back", ids)
        session.rollback()
