"""The queries of the embedded broker find their rows by the index that was made for them."""

import ast
import re
from pathlib import Path

import pytest

from jmsjca.providers.embedded import admin, browsing, claiming, failures, mailboxes, matching, owners, rows, scan

QUERIES = [
    (claiming._READY, "message_ready"),
    (claiming._ONE, "INTEGER PRIMARY KEY"),
    (mailboxes._STATE, "message_ready"),
    (mailboxes._STATE, "message_due"),
    (mailboxes._STATE, "message_expires"),
    (claiming._HAS_DUE, "message_due"),
    (claiming._NEXT_DUE, "message_due"),
    (claiming._MAKE_READY, "message_due"),
    (claiming._CLAIM, "INTEGER PRIMARY KEY"),
    (scan._NEXT_URGENCY, "message_ready"),
    (scan._BOUND, "message_ready"),
    (matching._CANDIDATES, "message_ready"),
    (failures._EXPIRED_TO_MOVE, "message_expires"),
    (failures._EXPIRE, "message_expires"),
    (failures._FAILED, "INTEGER PRIMARY KEY"),
    (failures._CONTENT, "INTEGER PRIMARY KEY"),
    (failures._DELETE, "INTEGER PRIMARY KEY"),
    (rows._SETTLE, "INTEGER PRIMARY KEY"),
    (rows._RELEASE, "INTEGER PRIMARY KEY"),
    (rows._SWEEP, "INTEGER PRIMARY KEY"),
    (browsing._PAGE, "message_ready"),
    (admin._READY, "message_ready"),
    (admin._HELD, "message_held"),
    (admin._DUE, "message_due"),
    (admin._SCHEDULED, "message_due"),
    (admin._EXPIRED, "message_expires"),
    (owners._HELD, "message_held"),
    (owners._FREE, "message_held"),
    (owners._FORGET_HOMELESS, "message_held"),
    (mailboxes._EMPTY_READY, "message_ready"),
    (mailboxes._EMPTY_SCHEDULED, "message_due"),
]


@pytest.mark.parametrize(("query", "index"), QUERIES, ids=lambda value: " ".join(value.split())[:60])
def test_plan(connected, query, index):
    with connected()._store.read() as cursor:
        plan = [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {query}", [1] * query.count("?"))]
    assert any(re.match(rf"SEARCH message USING .*{index}", step) for step in plan), plan
    assert not re.search("SCAN|TEMP B-TREE", "\n".join(plan)), plan


def test_no_query_of_messages_is_left_out():
    """A query that reads or changes messages is a constant, and has a row above."""
    known = {query for query, _ in QUERIES}
    texts = {
        node.value
        for path in Path(rows.__file__).parent.glob("*.py")
        if path.name != "maintenance.py"  # it reads all there is, on purpose
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    of_messages = re.compile(r"^(?=SELECT|UPDATE|DELETE)[^\0]*\b(FROM|UPDATE|JOIN) message\b")
    assert {text for text in texts if of_messages.search(text)} == known
