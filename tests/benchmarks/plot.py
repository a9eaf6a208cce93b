"""Draws the curve of the documentation from the figures that were measured: ``python -m tests.benchmarks.plot``."""

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "scale.json"
GOAL = 1.25
BATCHES = {1: "one message per transaction", 100: "batches of 100"}
CLOCKS = {"elapsed": "elapsed time", "processor": "processor time"}
LINES = {
    ("send", "none"): "send",
    ("receive", "none"): "receive",
    ("receive", "half"): "receive, selector matches half",
    ("receive", "1 in 100"): "receive, selector matches 1 in 100",
}


def draw(source: Path, target: Path) -> None:
    """Draw what a message costs beside the smallest backlog: a row for each clock, a column for each batch."""
    rows = json.loads(source.read_text())["figures"]
    figure = Figure(figsize=(9, 6), layout="constrained")
    grid = figure.subplots(len(CLOCKS), len(BATCHES), sharex=True, sharey=True)
    for panels, (clock, meaning) in zip(grid, CLOCKS.items(), strict=True):
        for panel, (batch, title) in zip(panels, BATCHES.items(), strict=True):
            _draw_panel(panel, [row for row in rows if (row["batch"], row["clock"]) == (batch, clock)])
            panel.set_title(f"{meaning}, {title}", fontsize=10)
    grid[0][0].set_ylim(0, None)
    grid[0][-1].legend(loc="lower right", fontsize=8, frameon=False)
    figure.supxlabel("messages that wait in the file", fontsize=10)
    figure.supylabel("cost of a message, with the smallest backlog = 1", fontsize=10)
    figure.savefig(target, metadata={"Date": None})


def _draw_panel(panel: Any, rows: list[dict[str, Any]]) -> None:
    panel.axhline(GOAL, color="grey", linestyle=":", linewidth=1)
    panel.annotate(f"goal {GOAL}", (min(row["backlog"] for row in rows), GOAL), fontsize=8, va="bottom", color="grey")
    for (operation, selector), label in LINES.items():
        line = [row for row in rows if (row["operation"], row["selector"]) == (operation, selector)]
        panel.plot([row["backlog"] for row in line], [row["ratio"] for row in line], marker="o", label=label)
    panel.set_xscale("log")
    panel.spines[["top", "right"]].set_visible(False)


def main() -> int:
    """Draw beside the figures; the site shows that, nothing drawn is committed."""
    draw(FIGURES, FIGURES.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
