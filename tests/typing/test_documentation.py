"""The Python blocks of each page of the documentation, together, pass mypy in its strict mode."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.migration_blocks import programs
from tests.support.snippets import program

pytest.importorskip("mypy")

pytestmark = pytest.mark.timeout(1800)  # one run of mypy for all pages, on a machine that may be busy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CACHE = ROOT / ".mypy_cache" / "documentation"  # without it each run would read jmsjca and its dependencies again
PAGES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
PAGES["README"] = ROOT / "README.md"
FILES = re.compile(r"^```python title=\"([^\"]+)\"\n(.*?)^```", re.MULTILINE | re.DOTALL)
SETTINGS = """[mypy]
strict = true
follow_imports = silent
[mypy-django.*]
ignore_missing_imports = true
"""  # Django has no annotations
OTHERS = """[mypy]
strict = true
disallow_untyped_calls = false
disallow_untyped_decorators = false
[mypy-celery.*]
ignore_missing_imports = true
[mypy-stomp.*]
follow_untyped_imports = true
"""  # nor have these two


def code(page):
    return program(PAGES[page].read_text())


def file_of(page):
    return f"page_{re.sub('[-/]', '_', page)}.py"  # a page must not shadow a module, as asyncio would


CODES = {page: code(page) for page in PAGES if code(page)}


def check(folder, *files, settings=SETTINGS):
    """Run mypy on files of a folder."""
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    (folder / "mypy.ini").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--cache-dir", CACHE, *files]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What one run of mypy says of all pages."""
    folder = tmp_path_factory.mktemp("pages")
    for page, text in CODES.items():
        folder.joinpath(file_of(page)).write_text(text)
    done = check(folder, *map(file_of, CODES))
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_there_are_pages_with_code():
    assert len(CODES) > 10


@pytest.mark.parametrize("page", CODES)
def test_the_code_of_a_page_is_typed(complaints, page):
    assert [line for line in complaints if line.startswith(f"{file_of(page)}:")] == []


def test_the_whole_documentation_is_typed(complaints):
    assert complaints == [f"Success: no issues found in {len(CODES)} source files"]


@pytest.mark.parametrize("page", [name for name, path in PAGES.items() if FILES.search(path.read_text())])
def test_the_files_of_a_page_are_typed(page, tmp_path):
    files = dict(FILES.findall(PAGES[page].read_text()))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = check(tmp_path, *files)
    assert done.stdout.startswith("Success: no issues found"), done.stdout + done.stderr


def test_the_programs_of_other_libraries_are_typed(tmp_path):
    for module in ("celery", "dramatiq", "faststream", "proton", "stomp"):
        pytest.importorskip(module)
    texts = [text for page in sorted((DOCS / "migration").glob("*.md")) for text in programs(page.stem)]
    assert len(texts) == 5
    names = [f"program_{number}.py" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_text(text)
    done = check(tmp_path, *names, settings=OTHERS)
    assert done.stdout.startswith("Success: no issues found"), done.stdout + done.stderr
