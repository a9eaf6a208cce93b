"""Writes the table of brokers in docs/explanation/units.md: `python -m tests.support.settlement_table`."""

import re
from pathlib import Path

from tests.support.capability_table import EMBEDDED, PROTOCOLS, lines

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "units.md"
_TABLE = re.compile(r"(<!-- brokers -->\n).*?(<!-- end -->)", re.DOTALL)

HEAD = (
    "broker",
    "receipts and sends of a unit commit",
    "a batch commits",
    "the handler raises",
    "the process is killed",
    "prefetched, not processed",
    "a delay is kept by",
)


def table():
    """Return the table: a line for each broker and protocol."""
    rows = [list(HEAD), ["---"] * len(HEAD), ["embedded", *cells(EMBEDDED)]]
    rows += [
        [f"{broker.name}, {protocol}", *cells(broker.capabilities)]
        for protocol, brokers in PROTOCOLS.items()
        for broker in brokers
    ]
    return lines(rows)


def cells(able):
    """Return what happens with a broker's capabilities, in the order of the columns."""
    yield "together" if able.atomic else "receipts alone: sends in the unit are refused"
    yield "as a whole" if able.transacted_receive else "message by message"
    yield f"redelivered, counted by the {'broker' if able.delivery_count else 'process'}"
    yield killed(able)
    yield "redelivered, uncounted" if able.give_back == "uncounted" else "redelivered, perhaps flagged"
    yield "the broker" if able.redelivery_delay else "the process"


def killed(able):
    if not able.counts_lost:
        return "redelivered, perhaps as if for the first time"
    return "redelivered, counted" if able.delivery_count else "redelivered, flagged"


def page(text):
    """Return the page with the table of today."""
    return _TABLE.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
