"""Draws the curve of the documentation from the figures that were measured: ``python -m tests.benchmarks.plot``."""

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "scale.json"
GOAL = 1.25
PANELS = {1: "one message per transaction", 100: "batches of 100"}
LINES = {
    ("send", "none"): "send",
    ("receive", "none"): "receive",
    ("receive", "half"): "receive, selector matches half",
    ("receive", "1 in 100"): "receive, selector matches 1 in 100",
}


def draw(source: Path, target: Path) -> None:
    """Draw the cost of a message beside that with the smallest backlog, one panel per batch size."""
    rows = json.loads(source.read_text())["figures"]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for panel, (batch, title) in zip(panels, PANELS.items(), strict=True):
        _draw_panel(panel, [row for row in rows if row["batch"] == batch])
        panel.set_title(title, fontsize=10)
    panels[0].set_ylabel("cost of a message, smallest backlog = 1")
    panels[0].set_ylim(0, None)
    panels[-1].legend(loc="lower right", fontsize=8, frameon=False)
    figure.savefig(target, metadata={"Date": None})


def _draw_panel(panel: Any, rows: list[dict[str, Any]]) -> None:
    panel.axhline(GOAL, color="grey", linestyle=":", linewidth=1)
    panel.annotate(f"goal {GOAL}", (min(row["backlog"] for row in rows), GOAL), fontsize=8, va="bottom", color="grey")
    for (operation, selector), label in LINES.items():
        line = [row for row in rows if (row["operation"], row["selector"]) == (operation, selector)]
        panel.plot([row["backlog"] for row in line], [row["ratio"] for row in line], marker="o", label=label)
    panel.set_xscale("log")
    panel.set_xlabel("messages that wait in the file")
    panel.spines[["top", "right"]].set_visible(False)


def main() -> int:
    """Draw beside the figures; the site shows that, nothing drawn is committed."""
    draw(FIGURES, FIGURES.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
