"""The table of fail-overs is written from the recorded runs."""

from tests.support import failover_table


def test_the_table_is_what_was_recorded():
    assert failover_table.PAGE.read_text() == failover_table.page(), "python -m tests.support.failover_table"
