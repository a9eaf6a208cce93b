"""The table of the manual's sentences names tests and deviations that are there."""

import re

import pytest

from tests.docs.manual_rows import DOCS, named_in, read_rows


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row.sentence)
def test_every_sentence_has_a_test_or_a_deviation(row):
    assert row.tests or row.pages
    for file, _, test in (cited.partition("::") for cited in row.tests):
        assert test in named_in(file), f"{file} has no {test}"
    for page, section in row.pages:
        headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.MULTILINE)
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}


def test_there_are_rows():
    assert len(read_rows()) > 100


def test_no_sentence_stands_twice():
    assert len({row.sentence for row in read_rows()}) == len(read_rows())
