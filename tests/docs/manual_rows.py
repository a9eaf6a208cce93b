"""The tables of ``inbound-manual.md`` and ``outbound-manual.md`` in docs/reference, and the tests that they cite."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["DOCS", "Row", "named_in", "node_id", "read_rows"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "reference"
_PAGES = ("inbound-manual.md", "outbound-manual.md")
_SUITES = {  # where the cases of jmsjca/testing run on the embedded broker
    "testing/inbound/": "contract/test_inbound_memory.py",
    "testing/contract/": "contract/test_embedded_memory.py",
}


class Row(NamedTuple):
    """A sentence of the manual and what shows that it holds."""

    section: str
    sentence: str
    shown_by: str

    @property
    def tests(self) -> list[str]:
        """The cited tests, such as ``unit/test_adapter.py::test_name``."""
        return re.findall(r"`([\w/]+\.py::[\w:]+)`", self.shown_by)

    @property
    def pages(self) -> list[tuple[str, str]]:
        """The cited pages, each with its section or an empty text."""
        return re.findall(r"\]\(([\w./-]+\.md)(?:#([\w-]+))?\)", self.shown_by)


@cache
def read_rows(pages: tuple[str, ...] = _PAGES) -> list[Row]:
    """Return all rows of pages, in their order."""
    rows, section = [], ""
    for line in "".join((DOCS / page).read_text() for page in pages).splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith(("| ---", "| the manual", "| the document")):
            _, sentence, shown_by, _ = (cell.strip() for cell in line.split("|"))
            rows.append(Row(section, sentence, shown_by))
    return rows


@cache
def named_in(file: str) -> set[str]:
    """Return the tests of a file below ``tests`` or ``jmsjca/testing``; those of a class with its name before them."""
    path = ROOT / ("jmsjca" if file.startswith("testing/") else "tests") / file
    body = ast.parse(path.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    alone = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return alone | {
        f"{node.name}::{each.name}" for node in classes for each in node.body if isinstance(each, ast.FunctionDef)
    }


def node_id(test: str) -> str:
    """Return what pytest calls a cited test: one of ``jmsjca/testing`` runs on the embedded broker in memory."""
    file, _, name = test.partition("::")
    suite = next((suite for folder, suite in _SUITES.items() if file.startswith(folder)), file)
    return f"tests/{suite}::{name}"
