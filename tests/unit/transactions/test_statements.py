"""Bounds of the SQL statements per message, which do not depend on the machine."""

import pytest

from tests.unit.transactions.statements import WAYS, Work

MESSAGES = 100
AT_MOST = {
    "local": 1,  # the handler's own
    "required": 1,
    "inbox": 3,  # and its row, and what the handler has sent
    "inbox after": 3,  # it looks for the row, and inserts it with what the handler has sent
    "outbox": 3,  # and the message, and the share of the relay
}


@pytest.mark.parametrize("way", [*WAYS, "inbox after"])
def test_a_message_costs_so_many_statements(tmp_path, way, capsys):
    work = Work(way, f"embedded://statements-{way}", f"sqlite:///{tmp_path}/rows.db")
    work.fill(MESSAGES)
    with work.ready(MESSAGES) as act:
        act()
        statements = work.statements
    work.close()
    with capsys.disabled():
        print(f"\nSQL statements per message, {way}: {statements / MESSAGES:.2f}")
    assert 1 <= statements / MESSAGES <= AT_MOST[way] + 0.1
