"""The table of the manual's sentences names tests and deviations that are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "inbound-manual.md").read_text()
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| the manual"))]


@cache
def named_in(name):
    """The tests of a file, those of a class with its name before them."""
    path = ROOT / ("jmsjca" if name.startswith("testing/") else "tests") / name
    body = ast.parse(path.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    alone = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return alone | {
        f"{node.name}::{each.name}" for node in classes for each in node.body if isinstance(each, ast.FunctionDef)
    }


@pytest.mark.parametrize("row", ROWS)
def test_every_sentence_has_a_test_or_a_deviation(row):
    shown = row.split("|")[2]
    tests = re.findall(r"`([\w/]+\.py)::([\w:]+)`", shown)
    pages = re.findall(r"\]\((\w+\.md)(?:#([\w-]+))?\)", shown)
    assert tests or pages
    for file, test in tests:
        assert test in named_in(file), f"{file} has no {test}"
    for page, section in pages:
        headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}


def test_there_are_rows():
    assert len(ROWS) > 100
