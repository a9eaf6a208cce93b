"""The display of a run: progress bars on a terminal, plain lines elsewhere, and the chart of the delays."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from jmsjca.demo.account import read_parquet

__all__ = ["Display", "draw_delays"]

_STEPS = 4  # plain lines per bar

_SHOWN = 20


class Display:
    """Shows named progress bars, lines of text, and the account at the end."""

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
        """Print a line."""
        self._console.print(text, markup=False)

    def update(self, name: str, done: int, total: int | None) -> None:
        """Update a progress bar; without a terminal, print a line at each quarter."""
        if self._live:
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._bars[name], completed=done, total=total)
        elif total and self._said.get(name, 0) < (step := _STEPS * done // total):
            self._said[name] = step
            self.say(f"{name}: {done} of {total}")

    def account(self, title: str, figures: Mapping[str, Any]) -> None:
        """Print names and figures as a table of two columns."""
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


def draw_delays(delays: Path, file: Path) -> None:
    """Draw a bar chart of the mean delay of the airports with the most flights.

    Args:
        delays: The Parquet folder with the columns airport, name, flights and delay.
        file: The PNG file to write.
    """
    airports = _busiest(delays)
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, used once

    figure: Any = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    means = [a["delay"] / a["flights"] for a in airports]
    axes.bar([a["airport"] for a in airports], means, color=["#c0392b" if m > 0 else "#27ae60" for m in means])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_title(f"Mean departure delay of the {len(airports)} busiest airports")
    axes.set_ylabel("minutes")
    for place, airport in enumerate(airports):
        axes.annotate(f"{airport['flights']}", (place, means[place]), ha="center", va="bottom", fontsize=7)
    axes.set_xlabel("airport of departure (number of flights above its bar)")
    figure.savefig(file, dpi=110)


def _busiest(delays: Path) -> list[dict[str, Any]]:
    grouped = read_parquet(delays).group_by("airport").aggregate([("flights", "sum"), ("delay", "sum")])
    sums = grouped.sort_by([("flights_sum", "descending")])
    rows = [{"airport": r["airport"], "flights": r["flights_sum"], "delay": r["delay_sum"]} for r in sums.to_pylist()]
    return rows[:_SHOWN]
