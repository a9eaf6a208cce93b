"""Every Python block of the documentation runs, page by page, as a test module of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_there_are_pages_with_code():
    assert sum(len(blocks(page)) for page in PAGES) > 10


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.spark] if p.stem == "spark" else [], id=name(p)) for p in PAGES if blocks(p)],
)
def test_the_code_of_a_page_runs(page, tmp_path):
    code = "\n\n".join(blocks(page)).replace("/var/lib/app/broker.db", f"{tmp_path}/broker.db")
    (tmp_path / "test_page.py").write_text(f"{code}\n\ndef test_the_page_ran():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    # Spark's workers must be this Python, not the first of the PATH.
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        file = page.parent / target
        drawn = file.suffix == ".svg" and file.with_suffix(".json").exists()  # when the site is built
        assert "://" in target or file.exists() or drawn, target
