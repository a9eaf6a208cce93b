"""Rows that cannot be decoded: raised at access, never in receive; they expire and are dead-lettered as others."""

import json
import sqlite3

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.config import DestinationSettings
from jmsjca.errors import MessageFormatError
from jmsjca.testing.contract.harness import moment, prepare

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
    db.execute("UPDATE message SET headers = ?, body = ?, checksum = NULL WHERE id = 2", (request.param, BODY))
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
    db.execute("UPDATE message SET headers = substr(headers, 1, length(headers) - 9), checksum = NULL")
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


FAILING_QUEUE, AWAY = Queue("q"), Queue("away")
DAMAGED_HEADERS = {
    "no text": b"\xff\xfe",
    "no JSON": b'{"to":',
    "no object": b"[1]",
    "no destination": b'{"to":["queue"]}',
    "no properties": b'{"kind":"text","to":["queue","q"],"p":5}',
    "no types": b'{"kind":"text","to":["queue","q"],"p":{},"t":5}',
    "no text as its id": b'{"kind":"text","to":["queue","q"],"mode":2,"priority":4,"id":5}',
    "too deep": b'{"kind":"text","to":["queue","q"],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


def put(connection, *bodies, **headers):
    unit = connection.unit()
    for body in bodies:
        unit.send(prepare(TextMessage(body), FAILING_QUEUE, **headers), FAILING_QUEUE)
    unit.commit()


def damage(broker_file, headers):
    """Overwrite the headers of the first message."""
    database = sqlite3.connect(broker_file)
    database.execute("UPDATE message SET headers = CAST(? AS TEXT) WHERE id = 1", (headers,))
    database.commit()
    database.close()


def arrived(connection):
    """What came away: the damaged message first, which still cannot be read, then one that is sound."""
    poison, sound = connection.consumer(AWAY).receive(9, 0)
    with pytest.raises(MessageFormatError):
        dict(poison.message.properties)
    return poison.raw, sound.message.body


@pytest.mark.parametrize("headers", DAMAGED_HEADERS.values(), ids=DAMAGED_HEADERS)
def test_damaged_message_becomes_a_dead_letter(connected_file, broker_file, headers):
    connection = connected_file()
    connection.admin().configure(FAILING_QUEUE, DestinationSettings(max_deliveries=1, dead_letter=AWAY))
    put(connection, "a", "b")
    damage(broker_file, headers)
    unit = connection.unit()
    unit.take(connection.consumer(FAILING_QUEUE).receive(2, 0))
    unit.rollback()
    assert arrived(connection) == (b"a", "b")


@pytest.mark.parametrize("headers", DAMAGED_HEADERS.values(), ids=DAMAGED_HEADERS)
def test_damaged_message_expires(connected_file, broker_file, headers):
    connection = connected_file()
    connection.admin().configure(FAILING_QUEUE, DestinationSettings(expiry=AWAY))
    put(connection, "a", "b", expiration=moment(-1))
    damage(broker_file, headers)
    assert connection.consumer(FAILING_QUEUE).receive(2, 0) == []
    assert arrived(connection) == (b"a", "b")


@pytest.mark.parametrize("damaged", ["no text", "no JSON", "too deep"])
def test_selecting_consumer_passes_over_a_damaged_message(connected_file, broker_file, damaged):
    """Nothing can be said of it, so it matches nothing; who takes everything gets it."""
    connection = connected_file()
    put(connection, "a", "b")
    damage(broker_file, DAMAGED_HEADERS[damaged])
    selecting = connection.consumer(FAILING_QUEUE, selector="JMSPriority > 0")
    assert [d.message.body for d in selecting.receive(9, 0)] == ["b"]
    assert [d.raw for d in connection.consumer(FAILING_QUEUE).receive(9, 0)] == [b"a"]
