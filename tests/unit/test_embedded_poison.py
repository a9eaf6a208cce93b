"""Rows that hold no message: refused when looked at, never in a receive, and their neighbours are delivered."""

import json
import sqlite3

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.errors import MessageFormatError
from jmsjca.testing.contract.harness import prepare

QUEUE = Queue("q")
GOOD = {"kind": "text", "to": ["queue", "q"], "mode": 2, "priority": 4}
BODY = b"readable \xff whatever it is"

HEADERS = {
    "no JSON": "{",
    "empty": "",
    "a list": "[]",
    "a text": '"text"',
    "a number": "5",
    "null": "null",
    "too deep": "[" * 100_000,
    "no UTF-8": b"\xff\xfe{}",
    "no kind": json.dumps({k: v for k, v in GOOD.items() if k != "kind"}),
    "no destination": json.dumps({k: v for k, v in GOOD.items() if k != "to"}),
    "empty destination": json.dumps({**GOOD, "kind": "bytes", "to": []}),
    "destination of no kind": json.dumps({**GOOD, "kind": "bytes", "to": ["table", "q"]}),
    "destination without a name": json.dumps({**GOOD, "kind": "bytes", "to": ["queue", ""]}),
    "no such mode": json.dumps({**GOOD, "kind": "bytes", "mode": 7}),
    "properties that are none": json.dumps({**GOOD, "kind": "bytes", "p": [1]}),
    "property that is none": json.dumps({**GOOD, "kind": "bytes", "p": {"a": [1]}}),
    "property beyond its type": json.dumps({**GOOD, "kind": "bytes", "p": {"a": 300}, "t": {"a": "byte"}}),
    "property of no type": json.dumps({**GOOD, "kind": "bytes", "p": {"a": 1}, "t": {"a": "word"}}),
    "time beyond the calendar": json.dumps({**GOOD, "kind": "bytes", "time": 10**30}),
    "id that is no text": json.dumps({**GOOD, "kind": "bytes", "id": ["a"]}),
    "text body that is none": json.dumps(GOOD),
}


@pytest.fixture(params=HEADERS.values(), ids=HEADERS.keys())
def poisoned(request, connected_file, broker_file):
    """A connection to a queue whose second message of three is broken."""
    connection = connected_file()
    unit = connection.unit()
    for body in "abc":
        unit.send(prepare(TextMessage(body), QUEUE), QUEUE)
    unit.commit()
    db = sqlite3.connect(broker_file)
    db.execute("UPDATE message SET headers = ?, body = ?, digest = NULL WHERE id = 2", (request.param, BODY))
    db.commit()
    db.close()
    return connection


def test_poison_is_refused_when_looked_at(poisoned):
    first, poison, last = poisoned.consumer(QUEUE).receive(3, 0)
    assert (first.message.body, last.message.body) == ("a", "c")
    with pytest.raises(MessageFormatError, match="cannot be decoded"):
        _ = poison.message
    assert poison.raw == BODY
    assert (poison.count, poison.redelivered) == (1, False)


def test_headers_that_are_damaged_hide_no_body(connected_file, broker_file):
    """They are decoded when one is asked for, and refused then, each time."""
    connection = connected_file()
    unit = connection.unit()
    unit.send(prepare(TextMessage("a"), QUEUE), QUEUE)
    unit.commit()
    db = sqlite3.connect(broker_file)
    db.execute("UPDATE message SET headers = substr(headers, 1, length(headers) - 9), digest = NULL")
    db.commit()
    db.close()
    [delivery] = connection.consumer(QUEUE).receive(1, 0)
    message = delivery.message
    assert message.body == "a"
    for look in (lambda: message.priority, lambda: message.properties):
        with pytest.raises(MessageFormatError, match="cannot be decoded"):
            look()
    assert repr(message) == "<TextMessage that cannot be decoded>"


def test_poison_can_be_settled(poisoned):
    deliveries = poisoned.consumer(QUEUE).receive(3, 0)
    unit = poisoned.unit()
    unit.take(deliveries)
    unit.commit()
    assert poisoned.admin().depth(QUEUE).total == 0


def test_poison_hides_nothing_from_a_browser(poisoned, broker_file):
    ((first, poison, last),) = poisoned.browse(QUEUE)
    assert (first.message.body, poison.raw, last.message.body) == ("a", BODY, "c")
    with ConnectionFactory(f"embedded://{broker_file}").create_connection() as connection:
        messages = iter(connection.create_session().create_browser(QUEUE))
        assert next(messages).body == "a"
        with pytest.raises(MessageFormatError):
            next(messages)
        assert next(messages).body == "c"
        assert next(messages, None) is None


def test_text_in_the_store_that_is_no_text(connected_file, broker_file):
    """A column of type TEXT with bytes that are not UTF-8: no receive may fail over it."""
    connection = connected_file()
    unit = connection.unit()
    for body in "ab":
        unit.send(prepare(TextMessage(body), QUEUE), QUEUE)
    unit.commit()
    db = sqlite3.connect(broker_file)
    db.execute("UPDATE message SET headers = CAST(x'fffe' AS TEXT) WHERE id = 1")
    db.commit()
    db.close()
    poison, good = connection.consumer(QUEUE).receive(2, 0)
    assert (poison.raw, good.message.body) == (b"a", "b")
    with pytest.raises(MessageFormatError):
        _ = poison.message
