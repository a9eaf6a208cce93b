"""Each page of the console has a picture, and each picture is shown on a page of the documentation."""

import re
from pathlib import Path

import pytest

from tests.support.pictures import CONSOLE, PICTURES

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"!\[[^]]+\]\((?:docs/)?(?:\.\./)*figures/([\w-]+\.png)\)")


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_shown_with_a_description(name):
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if name in SHOWN.findall(page.read_text())]


def test_every_page_of_the_console_has_a_picture():
    pytest.importorskip("playwright")
    from console_pages import HEADINGS

    assert tuple(HEADINGS) == CONSOLE
    assert {f"console-{name}.png" for name in CONSOLE} <= set(PICTURES)


def test_every_page_and_action_of_the_console_is_visited():
    """A template of a page, or a route, that the visit in the browser does not know is not looked at."""
    templates = {path.stem for path in (ROOT / "jmsjca" / "management" / "console" / "templates").glob("*.html")}
    looks = {"activations", "activation", "destinations", "messages", "message", "dead_letters", "capabilities"}
    assert templates == looks | {"changes", "error", "base", "macros"}  # "changes" are the plan and what was done
