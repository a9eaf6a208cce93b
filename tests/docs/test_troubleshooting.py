"""The page about troubleshooting has texts of log records and names of errors that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import jmsjca.errors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()


def cells(section):
    """Return the first cells of the table of a section, without their backticks."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    return [row.split("|")[1].strip().strip("`") for row in text.splitlines() if row.startswith("| `")]


def names(cell):
    """Return the names of errors in a cell."""
    return re.findall(r"\b\w+Error\b", cell)


@cache
def source():
    """Return the texts of the package, with literals that span lines in one piece."""
    texts = (path.read_text() for path in (ROOT / "jmsjca").rglob("*.py"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(texts))


def records_of_the_page():
    """Return the texts of log records on the page; a cell may have several."""
    section = PAGE.split("## By log record\n")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    return [text for row in rows for text in re.findall(r"`([^`]+ [^`]+)`", row)]


@pytest.mark.parametrize("record", records_of_the_page())
def test_each_record_is_written_somewhere(record):
    longest = max(parts(re.sub(r"queue:\S*|ID:\S*", "…", record)), key=len)
    assert len(longest) >= SHORTEST
    assert longest in source()


SHORTEST = 5  # characters of the words by which a record is found


def parts(text):
    """Return the parts of a text between its values, which are `…` or written for `%`, and its marks."""
    return [part.strip() for part in re.split(r"…|%[\d.]*[a-z]|[\d.:;,]+", text)]


def literals(node, module):
    """Return the literal texts of an argument of a log record, also of one that the module assigns to its name."""
    if isinstance(node, ast.Name):
        assigned = [
            each.value for each in ast.walk(module) if isinstance(each, ast.Assign) and names_of(each) == node.id
        ]
        return [text for value in assigned for text in literals(value, module) if not isinstance(value, ast.Name)]
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def names_of(assignment):
    return ast.unparse(assignment.targets[0])


def warnings_and_errors():
    """Yield the place and the words of each record of the package that a person may have to look at."""
    for path in sorted((ROOT / "jmsjca").rglob("*.py")):
        module = ast.parse(path.read_text())
        for call in ast.walk(module):
            if isinstance(call, ast.Call) and re.fullmatch(
                r"logger\.(warning|error|exception|critical)", ast.unparse(call.func)
            ):
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                texts = [literals(each, module) for each in call.args]
                found = [[part for text in each for part in parts(text) if len(part) >= SHORTEST] for each in texts]
                yield place, next(filter(None, found), [])


RECORDS = dict(warnings_and_errors())


@pytest.mark.parametrize("place", RECORDS)
def test_each_warning_and_error_is_on_the_page(place):
    longest = sorted(RECORDS[place], key=len)[-3:]
    assert any(part in record for part in longest for record in records_of_the_page()), longest


@pytest.mark.parametrize("cell", cells("By error"))
def test_each_error_exists(cell):
    for error in names(cell):
        assert issubclass(getattr(jmsjca.errors, error), jmsjca.errors.JMSError)


def test_each_error_has_a_row():
    written = {error for cell in cells("By error") for error in names(cell)}
    assert {name for name in jmsjca.errors.__all__ if name.endswith("Error")} - {"JMSError"} <= written


def test_there_are_rows():
    assert len(records_of_the_page()) > 60
    assert len(RECORDS) > 50
    assert len(cells("By error")) > 8
