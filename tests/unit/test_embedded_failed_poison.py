"""Messages whose headers are damaged fail and expire as others do: they go where the settings say, as they are."""

import sqlite3

import pytest

from jmsjca import Queue, TextMessage
from jmsjca.config import DestinationSettings
from jmsjca.errors import MessageFormatError
from jmsjca.testing.contract.harness import moment, prepare

QUEUE, AWAY = Queue("q"), Queue("away")
HEADERS = {
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
        unit.send(prepare(TextMessage(body), QUEUE, **headers), QUEUE)
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


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_damaged_message_becomes_a_dead_letter(connected_file, broker_file, headers):
    connection = connected_file()
    connection.admin().configure(QUEUE, DestinationSettings(max_deliveries=1, dead_letter=AWAY))
    put(connection, "a", "b")
    damage(broker_file, headers)
    unit = connection.unit()
    unit.take(connection.consumer(QUEUE).receive(2, 0))
    unit.rollback()
    assert arrived(connection) == (b"a", "b")


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_damaged_message_expires(connected_file, broker_file, headers):
    connection = connected_file()
    connection.admin().configure(QUEUE, DestinationSettings(expiry=AWAY))
    put(connection, "a", "b", expiration=moment(-1))
    damage(broker_file, headers)
    assert connection.consumer(QUEUE).receive(2, 0) == []
    assert arrived(connection) == (b"a", "b")


@pytest.mark.parametrize("damaged", ["no text", "no JSON", "too deep"])
def test_selecting_consumer_passes_over_a_damaged_message(connected_file, broker_file, damaged):
    """Nothing can be said of it, so it matches nothing; who takes everything gets it."""
    connection = connected_file()
    put(connection, "a", "b")
    damage(broker_file, HEADERS[damaged])
    selecting = connection.consumer(QUEUE, selector="JMSPriority > 0")
    assert [d.message.body for d in selecting.receive(9, 0)] == ["b"]
    assert [d.raw for d in connection.consumer(QUEUE).receive(9, 0)] == [b"a"]
