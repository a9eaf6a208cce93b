"""Writes docs/llms.txt, an index of the documentation for language models: ``python -m tests.support.llms_text``."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
LONGEST = 300  # characters of the description of a page


def text():
    """Return the index: a line for each page of the navigation, with its title and its first sentence, by section."""
    lines = ["# jmsjca", "", f"> {first_sentence(DOCS / 'index.md')}"]
    for section, names in sections().items():
        lines += ["", f"## {section}", ""]
        lines += [f"- [{title(page)}]({page.relative_to(DOCS)}): {first_sentence(page)}" for page in names]
    return "\n".join(lines) + "\n"


def sections():
    """Return the pages of each section of the navigation, without those that are generated."""
    found, name = {}, "Pages"
    for line in (DOCS / "mkdocs.yml").read_text().partition("nav:\n")[2].splitlines():
        if line.startswith("  - "):
            name = line[4:-1] if line.endswith(":") else "Pages"
        if (page := re.fullmatch(r" +- .*: ([\w/.-]+\.md)", line)) and not page[1].startswith("reference/api/"):
            found.setdefault(name, []).append(DOCS / page[1])
    return found


def pages():
    """Return the pages of all sections."""
    return [page for names in sections().values() for page in names]


def title(page):
    return re.search(r"^# (.*)$", page.read_text(), flags=re.MULTILINE)[1]


def first_sentence(page):
    """Return the first sentence of a page, without links and code blocks."""
    plain = re.sub(r"^```.*?^```|^<!--.*?-->|^#.*?$|^\|.*?$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    paragraph = re.search(r"\S.*?(?=\n\n|\Z)", plain, flags=re.DOTALL)[0]
    words = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).split())
    return re.split(r"(?<=[.:]) (?=[A-Z`])", words)[0][:LONGEST]


if __name__ == "__main__":
    (DOCS / "llms.txt").write_text(text())
