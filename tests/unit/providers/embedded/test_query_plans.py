"""The queries use the indexes that were made for them."""

import ast
import re
from pathlib import Path

import pytest

from jmsjca.providers.embedded import admin, consumer
from jmsjca.providers.embedded.store import messages, queues, selector_scan, shared_file

QUERIES = [
    (messages._READY, "message_ready"),
    (messages._READY_BY_ID, "INTEGER PRIMARY KEY"),
    (queues._STATE, "message_ready"),
    (queues._STATE, "message_due"),
    (queues._STATE, "message_expires"),
    (messages._HAS_DUE, "message_due"),
    (messages._NEXT_DUE, "message_due"),
    (messages._MAKE_DUE_READY, "message_due"),
    (messages._CLAIM, "INTEGER PRIMARY KEY"),
    (selector_scan._NEXT_URGENCY, "message_ready"),
    (selector_scan._BOUND, "message_ready"),
    (selector_scan._CANDIDATES, "message_ready"),
    (messages._EXPIRED_TO_MOVE, "message_expires"),
    (messages._EXPIRE, "message_expires"),
    (messages._FAILED, "INTEGER PRIMARY KEY"),
    (messages._CONTENT, "INTEGER PRIMARY KEY"),
    (messages._DELETE, "INTEGER PRIMARY KEY"),
    (messages._SETTLE, "INTEGER PRIMARY KEY"),
    (messages._RELEASE, "INTEGER PRIMARY KEY"),
    (messages._OF_CLAIM, "message_held"),
    (messages._DELETE_WITHOUT_QUEUE, "INTEGER PRIMARY KEY"),
    (consumer._PAGE, "message_ready"),
    (admin._READY, "message_ready"),
    (admin._HELD, "message_held"),
    (admin._DUE, "message_due"),
    (admin._SCHEDULED, "message_due"),
    (admin._EXPIRED, "message_expires"),
    (admin._ACTIVITY, "message_ready"),
    (admin._ACTIVITY, "message_held"),
    (admin._ACTIVITY, "message_due"),
    (shared_file._HELD, "message_held"),
    (shared_file._UNCOUNT, "INTEGER PRIMARY KEY"),
    (shared_file._RELEASE_ALL, "message_held"),
    (shared_file._DELETE_WITHOUT_QUEUE, "message_held"),
    (queues._PURGE_READY, "message_ready"),
    (queues._PURGE_SCHEDULED, "message_due"),
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
        for path in Path(admin.__file__).parent.rglob("*.py")
        if path.name != "maintenance.py"  # it reads all there is, on purpose
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    of_messages = re.compile(r"^(?=SELECT|UPDATE|DELETE)[^\0]*\b(FROM|UPDATE|JOIN) message\b")
    assert {text for text in texts if of_messages.search(text)} == known
