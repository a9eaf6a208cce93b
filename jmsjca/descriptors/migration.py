"""The report of a migration: what of the descriptors has no place in the configuration, and why."""

from typing import NamedTuple

__all__ = ["Report", "ReportEntry"]


class ReportEntry(NamedTuple):
    """One property that was not carried over as it is.

    Attributes:
        file: The name of the descriptor.
        where: The element that has the property, for instance "message-driven mdbtest".
        name: The name of the property or element.
        reason: Why it is not carried over, and what to do.
    """

    file: str
    where: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.name}: {self.reason}"


class Report(list[ReportEntry]):
    """The entries of all descriptors, in the order of the files."""

    def note(self, file: str, where: str, name: str, reason: str) -> None:
        """Append an entry."""
        self.append(ReportEntry(file, where, name, reason))
