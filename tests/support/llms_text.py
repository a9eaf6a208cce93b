"""Writes docs/llms.txt, an index of the documentation for language models: ``python -m tests.support.llms_text``."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
LONGEST = 300  # characters of the description of a page


def text():
    """Return the index: a line for each page of the navigation, with its title and its first sentence."""
    lines = ["# jmsjca", "", f"> {first_sentence(DOCS / 'index.md')}", "", "## Pages", ""]
    lines += [f"- [{title(page)}]({page.relative_to(DOCS)}): {first_sentence(page)}" for page in pages()]
    return "\n".join(lines) + "\n"


def pages():
    """Return the pages of the navigation, without those of the reference, which are generated."""
    names = re.findall(r"^ +- .*: ([\w/.-]+\.md)$", (DOCS / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    return [DOCS / name for name in names if not name.startswith("reference/")]


def title(page):
    return re.search(r"^# (.*)$", page.read_text(), flags=re.MULTILINE)[1]


def first_sentence(page):
    """Return the first sentence of a page, without links and code blocks."""
    plain = re.sub(r"^```.*?^```|^<!--.*?-->|^#.*?$|^\|.*?$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    words = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain).split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", words)[0][:LONGEST]


if __name__ == "__main__":
    (DOCS / "llms.txt").write_text(text())
