"""Writes the list of all files on the architecture page: ``python -m tests.support.architecture_files``."""

import ast
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
HEADING = "## All files"


def section():
    """Return the section: the first line of each module's docstring, by room."""
    package = ROOT / "jmsjca"
    files = [path.relative_to(package) for path in sorted(package.rglob("*.py")) if path.name != "__init__.py"]
    lines = [HEADING, "", "This list is made from the docstrings, which `tests/unit/test_package.py` compares."]
    for room, found in groupby(sorted(files, key=lambda path: path.parts[:-1]), lambda path: path.parts[:-1]):
        lines += ["", f"**{'/'.join(room) or 'jmsjca'}**", ""]
        for path in found:
            first = (ast.get_docstring(ast.parse((package / path).read_text("utf-8"))) or "").partition("\n")[0]
            lines.append(f"- `{path.as_posix()}`: {first.replace('``', '`')}")
    return "\n".join(lines) + "\n"


def main():
    """Write the section at the end of the page."""
    PAGE.write_text(PAGE.read_text("utf-8").partition(HEADING)[0] + section(), "utf-8")


if __name__ == "__main__":
    main()
