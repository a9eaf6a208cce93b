"""The page about troubleshooting has texts of log records and names of errors that exist."""

import re
from pathlib import Path

import pytest

import jmsjca.errors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()


def cells(section):
    """Return the first cells of the table of a section, without their backticks."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    return [row.split("|")[1].strip().strip("`") for row in text.splitlines() if row.startswith("| `")]


def names(cell):
    """Return the names of errors in a cell."""
    return re.findall(r"\b\w+Error\b", cell)


def source():
    """Return the texts of the package, with literals that span lines in one piece."""
    texts = (path.read_text() for path in (ROOT / "jmsjca").rglob("*.py"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(texts))


@pytest.mark.parametrize("record", cells("By log record"))
def test_each_record_is_written_somewhere(record):
    longest = max(re.split(r"…|[\d.:,]+|queue\S*|ID\S*", record), key=len).strip()
    assert len(longest) >= 8
    assert longest in source()


@pytest.mark.parametrize("cell", cells("By error"))
def test_each_error_exists(cell):
    for error in names(cell):
        assert issubclass(getattr(jmsjca.errors, error), jmsjca.errors.JMSError)


def test_each_error_has_a_row():
    written = {error for cell in cells("By error") for error in names(cell)}
    assert {name for name in jmsjca.errors.__all__ if name.endswith("Error")} - {"JMSError"} <= written


def test_there_are_rows():
    assert len(cells("By log record")) > 8
    assert len(cells("By error")) > 8
