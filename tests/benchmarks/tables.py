"""Writes the figures that were measured into the tables of the documentation: ``python -m tests.benchmarks.tables``.

A table stands between ``<!-- name -->`` and ``<!-- end -->``; the figures are in ``docs/figures/name.json``.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "explanation" / "performance.md"
_TABLE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_OTHERS = {"kombu", "persist-queue"}

_Figure = Mapping[str, Any]


class Table(NamedTuple):
    """How figures become a table.

    Args:
        keys: What names a line.
        column: What names the column of a figure.
        cell: What is shown of it.
    """

    keys: Sequence[str]
    column: Callable[[_Figure], str]
    cell: Callable[[_Figure], str]


def _contender(figure: _Figure) -> str:
    return "others" if figure["contender"] in _OTHERS else figure["contender"]


def _rate(figure: _Figure) -> str:
    shown = f"{figure['messages_per_second']:,} ({figure['ratio_to_bare']:.2f})"
    return f"{figure['contender']} {shown}" if figure["contender"] in _OTHERS else shown


def _cost(figure: _Figure) -> str:
    return f"{figure['microseconds']:,.1f} ({figure['ratio']:.2f})"


def _overhead(figure: _Figure) -> str:
    return f"{figure['microseconds']:,.1f} ({figure['overhead']:+,.1f})"


def _sending(figure: _Figure) -> str:
    return f"{figure['median']:,.1f}, p99 {figure['p99']:,.1f}" if "p99" in figure else _cost(figure)


_SENDERS = Table(
    ("operation", "contender"), lambda figure: f"{figure['threads']} thread{'s' * (figure['threads'] > 1)}", _sending
)

TABLES = {
    "embedded": Table(("store", "batch", "operation", "clock"), _contender, _rate),
    "scale": Table(("operation", "selector", "batch", "clock"), lambda figure: f"{figure['backlog']:,}", _cost),
    "inbound": Table(("store", "batch", "contender"), lambda f: f"{f['work']}, {f['clock']}", _overhead),
    "transactions": Table(("way", "SQL statements"), lambda figure: str(figure["clock"]), _cost),
    "rabbitmq": Table(("contender",), lambda figure: str(figure["clock"]), _cost),
    "field": Table(("operation", "mode", "contender"), lambda figure: str(figure["clock"]), _cost),
    "asynchronous_sends": Table(("mode", "contender"), lambda figure: str(figure["clock"]), _cost),
    "senders": _SENDERS,
    "senders_embedded": _SENDERS,
    "senders_rabbitmq": _SENDERS,
    "stomp": Table(("operation", "contender"), lambda figure: str(figure["clock"]), _cost),
    "many_queues": Table(("operation", "where", "batch", "clock"), lambda figure: f"{figure['queues']:,}", _cost),
}


def markdown(table: Table, figures: Sequence[_Figure]) -> str:
    """The table as Markdown."""
    columns = list(dict.fromkeys(table.column(figure) for figure in figures))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for figure in figures:
        line = cells.setdefault(tuple(str(figure[key]) for key in table.keys), {})
        line[table.column(figure)] = table.cell(figure)
    lines = [[*key, *(line.get(column, "") for column in columns)] for key, line in cells.items()]
    head = [*table.keys, *columns]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines))


def page() -> str:
    """The page with all tables as the figures are now."""
    return _TABLE.sub(lambda found: f"{found[1]}{_current(found[2])}{found[3]}", PAGE.read_text())


def _current(name: str) -> str:
    return markdown(TABLES[name], json.loads((DOCS / "figures" / f"{name}.json").read_text())["figures"])


def main() -> int:
    """Write the page."""
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
