"""The tables of the connector's documents name tests and deviations that are there."""

import re

import pytest

from tests.docs.manual_rows import DOCS, named_in, read_rows

ROWS = read_rows(("connector-documents.md",))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.sentence)
def test_every_sentence_has_a_test_or_a_deviation(row):
    assert row.tests or row.pages
    for file, _, test in (cited.partition("::") for cited in row.tests):
        assert test in named_in(file), f"{file} has no {test}"
    for page, section in row.pages:
        headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}


def test_all_six_parts_have_rows_and_no_sentence_stands_twice():
    sections = {row.section for row in ROWS}
    assert len(sections) == 6
    assert len({(row.section, row.sentence) for row in ROWS}) == len(ROWS) > 115
