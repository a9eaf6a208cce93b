"""The Python blocks of each page of the documentation, together, pass mypy in its strict mode."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}


def code(page):
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```", PAGES[page].read_text(), flags=re.MULTILINE | re.DOTALL))


def file_of(page):
    return f"page_{page.replace('-', '_')}.py"  # a page must not shadow a module, as asyncio would


CODES = {page: code(page) for page in PAGES if code(page)}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What one run of mypy says of all pages."""
    folder = tmp_path_factory.mktemp("pages")
    for page, text in CODES.items():
        folder.joinpath(file_of(page)).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", *map(file_of, CODES)],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_there_are_pages_with_code():
    assert len(CODES) > 10


@pytest.mark.parametrize("page", CODES)
def test_the_code_of_a_page_is_typed(complaints, page):
    assert [line for line in complaints if line.startswith(f"{file_of(page)}:")] == []


def test_the_whole_documentation_is_typed(complaints):
    assert complaints == [f"Success: no issues found in {len(CODES)} source files"]
