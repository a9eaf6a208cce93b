"""The picture of the delays."""

from pathlib import Path
from typing import Any

from jmsjca.management.demo.parquet import read_parquet

__all__ = ["draw_delays"]

_SHOWN = 20


def draw_delays(delays: Path, file: Path) -> None:
    """Draw the mean delay of the airports with the most flights.

    Args:
        delays: The Parquet folder with the columns airport, name, flights and delay.
        file: The PNG to write.
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
