"""The tables of ``docs/how-to/transactions.md`` are what the tests say, and each failure names a test that is there."""

import re

import failure_tables
import pytest

from tests.docs.manual_rows import named_in

CITED = sorted(set(re.findall(r"`([\w/]+\.py)::([\w:]+)`", failure_tables.PAGE.read_text())))


def test_the_page_is_up_to_date():
    assert failure_tables.PAGE.read_text() == failure_tables.page(), "python -m tests.support.failure_tables"


@pytest.mark.parametrize(("file", "test"), CITED)
def test_a_failure_is_shown_by_a_test(file, test):
    assert test in named_in(file), f"{file} has no {test}"


def test_there_are_rows():
    assert len(list(failure_tables.marked())) > 10
