"""The queries of the embedded broker find their rows by the index that was made for them."""

import ast
import re
from pathlib import Path

import pytest

from jmsjca.providers.embedded import admin, connection, mailboxes, owners, rows

QUERIES = [
    (rows._READY, "message_ready"),
    (rows._IS_READY, "message_ready"),
    (rows._HAS_DUE, "message_due"),
    (rows._NEXT_DUE, "message_due"),
    (rows._MAKE_READY, "message_due"),
    (rows._EXPIRE, "message_expires"),
    (rows._CLAIM, "INTEGER PRIMARY KEY"),
    (rows._SETTLE, "INTEGER PRIMARY KEY"),
    (rows._RELEASE, "INTEGER PRIMARY KEY"),
    (connection._BROWSE, "message_ready"),
    (admin._READY, "message_ready"),
    (admin._HELD, "message_held"),
    (admin._DUE, "message_due"),
    (admin._SCHEDULED, "message_due"),
    (owners._FREE, "message_held"),
    (owners._FORGET_HOMELESS, "message_held"),
    (mailboxes._EMPTY_READY, "message_ready"),
    (mailboxes._EMPTY_SCHEDULED, "message_due"),
    (rows._SWEEP, "INTEGER PRIMARY KEY"),
]


@pytest.mark.parametrize(("query", "index"), QUERIES, ids=lambda value: " ".join(value.split())[:60])
def test_plan(connected, query, index):
    with connected()._store.read() as cursor:
        plan = [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {query}", [1] * query.count("?"))]
    assert re.match(rf"SEARCH message USING .*{index}", plan[0]), plan
    assert not re.search("SCAN|TEMP B-TREE", "\n".join(plan)), plan


def test_no_query_of_messages_is_left_out():
    """A query that reads or changes messages is a constant, and has a row above."""
    known = {query for query, _ in QUERIES}
    texts = {
        node.value
        for path in Path(rows.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    queries = {text for text in texts if re.search(r"^(SELECT|UPDATE|DELETE)\b[^\0]*\bmessage\b", text)}
    assert queries == known
