"""When to crash: after a committed batch, while received messages are not settled yet."""

from pathlib import Path

from jmsjca.management.demo.settings import FLIGHTS, DemoSettings
from jmsjca.spi import Admin

__all__ = ["CrashMoment"]


class CrashMoment:
    """Tells whether the moment has come, and what it saw then.

    Args:
        settings: The run.
        admin: The broker.

    Attributes:
        unsettled: How many messages were received and not settled when it looked last.
    """

    def __init__(self, settings: DemoSettings, admin: Admin) -> None:
        self._settings = settings
        self._admin = admin
        self.unsettled = 0

    def has_come(self) -> bool:
        """Look at the checkpoint and at the queue."""
        self.unsettled = self._admin.depth(FLIGHTS).held
        return self.unsettled > 0 and self.committed_batches > 0

    @property
    def committed_batches(self) -> int:
        """How many batches the checkpoint calls committed."""
        commits: list[Path] = list(self._settings.checkpoint.glob("commits/*"))
        return sum(path.name.isdigit() for path in commits)

    def figures(self) -> dict[str, int]:
        """What it saw, for the account."""
        return {"committed_batches": self.committed_batches, "unsettled_messages": self.unsettled}
