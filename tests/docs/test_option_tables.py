"""The tables of Spark's options and of the connector's fields are those of the declarations."""

import pytest

from tests.support.option_tables import BEGIN, DOCS, PAGES, written


@pytest.mark.parametrize("page", PAGES)
def test_the_table_is_that_of_the_declarations(page):
    text = (DOCS / page).read_text()
    assert BEGIN in text
    assert text == written(text, PAGES[page]()), "run python -m tests.support.option_tables"
