"""What the run shows: live bars on a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["Display"]

_STEPS = 4  # plain lines per bar


class Display:
    """Bars with a name each, lines of text, and the account at the end."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._live = self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._bars: dict[str, TaskID] = {}
        self._said: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Show a line."""
        self._console.print(text, markup=False)

    def update(self, name: str, done: int, total: int | None) -> None:
        """Move a bar; without a terminal a line now and then."""
        if self._live:
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._bars[name], completed=done, total=total)
        elif total and self._said.get(name, 0) < (step := _STEPS * done // total):
            self._said[name] = step
            self.say(f"{name}: {done} of {total}")

    def account(self, title: str, figures: Mapping[str, Any]) -> None:
        """Show names and figures in two columns."""
        table = Table(title=title, show_header=False, title_justify="left")
        table.add_column(justify="left")
        table.add_column(justify="right")
        for name, value in figures.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
        self._console.print(table)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
