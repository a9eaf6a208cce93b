"""The tables of ``docs/explanation/spark-failures.md`` are what pytest collects, and no row is without a test."""

import pytest
import spark_failures

ROWS = [*spark_failures.FAILURES, *spark_failures.PROPERTIES]


def test_the_page_is_up_to_date():
    assert spark_failures.PAGE.read_text() == spark_failures.page(), "python -m tests.support.spark_failures"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.failure)
def test_each_row_has_cases(row):
    for shown in row.shown:
        assert spark_failures.cases_of(shown), f"{shown} has no case"


def test_how_many_run(capsys):
    some, total = spark_failures.visited()
    with capsys.disabled():
        print(f"\ncrashes and failures of a real Spark in every run: {some} / {total} visited")
    page = (spark_failures.ROOT / "docs" / "explanation" / "reliability.md").read_text()
    assert f"| {some} of {total} | the other {total - some} |" in page
