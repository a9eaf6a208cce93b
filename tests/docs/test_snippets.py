"""Every Python block of the documentation runs, page by page, as a test module of its own."""

import ast
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pictures import PICTURES
from tests.support.snippets import CONFTEST, blocks, checked, program

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SPARK = {"event-pipeline", "spark", "spark-jobs", "spark-replay", "staging-bucket"}
PAGES = [page for page in PAGES if page.parent.name != "api"]  # generated when the site is built
SPARK_SETTINGS = (  # a page has few rows: most of its time is the start of Java, and of tasks
    "--driver-java-options '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' --conf spark.ui.enabled=false"
    " --conf spark.sql.shuffle.partitions=2 pyspark-shell"
)


def name(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")


def test_there_are_pages_with_code():
    assert sum(len(blocks(page.read_text())) for page in PAGES) > 10


def assertions(tree):
    """Return the lines with assertions outside tests, which have them as one would write them."""
    found = []
    for node in ast.iter_child_nodes(tree):
        is_test = str(getattr(node, "name", "")).lower().startswith("test")
        found += [node.lineno] if isinstance(node, ast.Assert) else [] if is_test else assertions(node)
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page.read_text())], ids=name)
def test_an_example_is_not_written_like_a_test(page):
    """What a page says is printed stands behind `print`, and other checks are hidden: see tests/support/snippets.py."""
    for block in blocks(page.read_text()):
        assert assertions(ast.parse(block)) == [], block
        assert "ModuleType" not in block


processes = multiprocessing.get_context("forkserver")  # in which the imports are done once for all pages
processes.set_forkserver_preload(["pytest", "sqlalchemy", "jmsjca.adapter", "jmsjca.connector", "jmsjca.testing"])


def run_page(folder, text):
    """Run the code of a page in a folder by pytest; return its exit status and what it says."""
    [result] = run_pages({folder: text})
    return result


def run_pages(texts):
    """Run the code of pages, each in its folder, in one process; give the exit status of each, and what it says."""
    for folder, text in texts.items():
        folder.mkdir(exist_ok=True)
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "test_page.py").write_text(checked(program(text)))
    process = processes.Process(target=run_modules, args=[list(texts)])
    process.start()
    process.join(600)
    process.kill()  # which has an effect only if it has not ended
    process.join()
    for folder in texts:
        status = folder / "status.txt"
        if status.exists():
            yield int(status.read_text()), (folder / "said.txt").read_text()
        else:
            yield -1, f"{folder.name}, or a page before it, ended its process, or did not end."


def run_modules(folders):
    # Spark's workers must be this Python, not the first of the PATH.
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": SPARK_SETTINGS,
    }
    for folder in folders:
        os.chdir(folder)
        said = os.open("said.txt", os.O_CREAT | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(said, stream)
        status = pytest.main(["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "test_page.py"])
        Path("status.txt").write_text(str(int(status)))
        for module in ("test_page", "conftest"):
            sys.modules.pop(module, None)  # of this folder


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page.read_text()) and page.stem not in SPARK], ids=name
)
def test_the_code_of_a_page_runs(page, tmp_path):
    text = page.read_text().replace("/var/lib/app/broker.db", f"{tmp_path}/broker.db")
    status, said = run_page(tmp_path, text)
    assert status == 0, said


@pytest.mark.spark
@pytest.mark.timeout(700)  # Spark starts slowly on a busy machine
def test_the_code_of_the_pages_with_spark_runs(tmp_path):
    """In one process, because the start of Java takes longest; it keeps the environment, which one page sets."""
    first = [page for page in PAGES if page.stem == "staging-bucket"]
    pages = [*first, *(page for page in PAGES if page.stem in SPARK and page not in first)]
    pages = {tmp_path / page.stem: page.read_text() for page in pages}
    for folder, (status, said) in zip(pages, run_pages(pages), strict=True):
        assert status == 0, (folder.name, said)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        file = page.parent / target  # figures and the reference are made when the site is built
        built = file.suffix == ".svg" and any(file.with_suffix(f".{kind}").exists() for kind in ("json", "dot"))
        built = built or file.name in PICTURES
        built = built or target.endswith("api/index.md")
        assert "://" in target or file.exists() or built, target


BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_section_leads_somewhere(page):
    for target, section in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", page.read_text()):
        file = page.parent / target if target else page
        assert section in anchors(file), f"{target}#{section}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("```python\nfor fruit in ('pear', 'fig'):\n    print(fruit)  # pear, then fig\n```\n", ""),
        ("```python\nprint('a', 'pear')  # a p…r\n```\n<!-- tested\nassert 1\n-->\n", ""),
        ("```python\nif 1:\n    fruit = 1\n```\n<!-- tested\n    assert fruit\n-->\n", ""),
        ("```python\nprint(\n    'a', 'pear'\n)\n# a pear\n```\n", ""),
        ("```python\nprint('a', 'pear')\n# a fig\n```\n", "printed ['a pear'], and the page shows 'a fig'"),
        ("```python\nprint('a', 'pear')  # a fig\n```\n", "printed ['a pear'], and the page shows 'a fig'"),
        ("```python\ndef never() -> None:\n    print('a fig')  # a fig\n```\n", "printed []"),
        ("```python\nfruit = 0\n```\n<!-- tested\nassert fruit\n-->\n", "assert 0"),
        ("```python\nimport os\n\nos._exit(0)\n```\n", "ended its process, or did not end"),
    ],
)
def test_what_a_page_says_is_printed_is_compared(code, found, tmp_path):
    status, said = run_page(tmp_path, code)
    assert (status != 0) == bool(found), said
    assert found in said


CONTINUED = "continue one another"  # the sentence of a page with examples that need the ones before them


@pytest.mark.parametrize("page", [page for page in PAGES if len(blocks(page.read_text())) > 1], ids=name)
def test_each_example_runs_alone_or_the_page_says_what_it_needs(page, tmp_path):
    for number, block in enumerate(blocks(page.read_text())):
        (tmp_path / f"block_{number}.py").write_text(block)
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821",
        "--output-format",
        "concise",
        ".",
    ]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode in {0, 1}, found.stderr
    assert found.returncode == 0 or CONTINUED in " ".join(page.read_text().split()), (
        f"The examples of this page {CONTINUED}: run them from top to bottom.\n{found.stdout}"
    )


def test_a_search_for_dead_letter_replay_finds_the_page_on_dead_letters_first():
    """The search of the site ranks headings above text, so only this page may have these words in one heading."""
    words = ("dead", "letter", "replay")
    headings = {page: re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE) for page in PAGES}
    found = [page for page, lines in headings.items() for line in lines if all(word in line.lower() for word in words)]
    assert {name(page) for page in found} == {"how-to/dead-letters"}
