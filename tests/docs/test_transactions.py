"""Each failure in the tables of ``docs/transactions.md`` names a test that is there."""

import re

import pytest

from tests.docs.manual_rows import DOCS, named_in

ROWS = re.findall(
    r"^\| (.+?) \|.* \| `([\w/]+\.py)::([\w:]+)` \|$", (DOCS / "transactions.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize(("failure", "file", "test"), ROWS)
def test_a_failure_is_shown_by_a_test(failure, file, test):
    assert test in named_in(file), f"{file} has no {test}"


def test_there_are_rows():
    assert len(ROWS) > 10
