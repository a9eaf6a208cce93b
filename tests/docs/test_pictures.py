"""No picture of a page is dead, each is shown, and each page of the console has one."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.pictures import CONSOLE, PICTURES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
SHOWN = re.compile(r"!\[[^]]+\]\((?:docs/)?(?:\.\./)*figures/([\w-]+\.png)\)")
IMAGE = re.compile(r"!\[[^]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_shown_with_a_description(name):
    assert [page for page in PAGES if name in SHOWN.findall(page.read_text())]


def images(page):
    """Return the files that a page shows; those of other sites are none of its files."""
    targets = (first or second for first, second in IMAGE.findall(CODE.sub("", page.read_text())))
    return [(page.parent / target).resolve() for target in targets if "://" not in target]


def made_by_make_docs():
    figures = ROOT / "docs" / "figures"
    drawn = [file.with_suffix(".svg") for file in (*figures.glob("*.dot"), figures / "scale.json")]
    return {*(figures / name for name in PICTURES), *drawn}


def test_every_picture_of_a_page_is_in_the_repository_or_made_with_the_site():
    committed = {path for path in (ROOT / "docs" / "figures" / "readme").iterdir() if path.suffix == ".png"}
    known = committed | made_by_make_docs()
    assert [(page.name, image.name) for page in PAGES for image in images(page) if image not in known] == []


def test_the_pictures_of_the_front_page_are_committed_and_small():
    shown = images(ROOT / "README.md")
    assert shown
    listed = subprocess.run(["git", "ls-files", *shown], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:  # in a checkout, not in an unpacked sdist
        assert len(listed.stdout.splitlines()) == len(shown)
    assert sum(image.stat().st_size for image in shown) < 200_000


def test_every_page_of_the_console_has_a_picture():
    pytest.importorskip("playwright")
    from console_pages import HEADINGS

    assert tuple(HEADINGS) == CONSOLE
    assert {f"console-{name}.png" for name in CONSOLE} <= set(PICTURES)


def test_every_page_and_action_of_the_console_is_visited():
    """A template of a page, or a route, that the visit in the browser does not know is not looked at."""
    templates = {path.stem for path in (ROOT / "jmsjca" / "management" / "console" / "templates").glob("*.html")}
    looks = {"home", "activations", "activation", "destinations", "subscriptions", "subscription"}
    looks |= {"messages", "message", "dead_letters", "capabilities"}
    assert templates == looks | {"changes", "error", "base", "macros"}  # "changes" are the plan and what was done
