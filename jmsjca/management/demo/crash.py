"""When to crash: after a committed batch, while the settlement of received messages is not confirmed yet."""

from pathlib import Path

from jmsjca.management.demo.settings import DemoSettings
from jmsjca.management.demo.staged import count_unconfirmed

__all__ = ["CrashMoment"]


class CrashMoment:
    """Tells from the files of the query whether the moment has come, and what it saw then.

    Each partition stages what it received, then settles it, then notes that the broker confirmed that. So what is
    staged without such a note was received and is not settled, as far as anybody can know.

    Args:
        settings: The run.

    Attributes:
        unsettled: How many messages were received and not settled when it looked last.
    """

    def __init__(self, settings: DemoSettings) -> None:
        self._settings = settings
        self.unsettled = 0

    def has_come(self) -> bool:
        """Look at the checkpoint and at the staged messages."""
        if not self.committed_batches:
            return False
        self.unsettled = count_unconfirmed(self._settings.staging)
        return self.unsettled > 0

    @property
    def committed_batches(self) -> int:
        """How many batches the checkpoint calls committed."""
        commits: list[Path] = list(self._settings.checkpoint.glob("commits/*"))
        return sum(path.name.isdigit() for path in commits)

    def figures(self) -> dict[str, int]:
        """What it saw, for the account."""
        return {"committed_batches": self.committed_batches, "unsettled_messages": self.unsettled}
