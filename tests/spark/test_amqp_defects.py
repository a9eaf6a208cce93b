"""Whatever another client sends over AMQP is staged, with its raw bytes where it has no row, and ends no stream."""

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from amqp_peer import Broker as AMQPBroker
from amqp_peer import Peer
from proton import Message

from jmsjca.spark.staging import EpochPartition
from tests.unit.inbound.poison_forms import amqp_messages, drawn
from tests.unit.inbound.test_poison import DEFECTS

FIRST, NEXT = EpochPartition(1, 0), EpochPartition(2, 0)
QUEUE = "orders"
MANY = 300
GOOD = DEFECTS["no message id"]  # which is legal, and has a body of one byte
UNREADABLE = {
    "a list as correlation id": (b"x", "not list"),
    "a list as message id": (b"x", "not list"),
    "a header that is long": (b"x", "cannot be decoded"),  # its time to live is a text
    "no message at all": (DEFECTS["no message at all"], "cannot be decoded"),
}
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
READ = {
    "expires after the year 9999": {"expiration": LAST_MOMENT},
    "created after the year 9999": {"timestamp": LAST_MOMENT},
    "a correlation id of a type that AMQP does not allow": {"correlation_id": "ID:AMQP_ULONG:7"},
    "a long as message id": {"message_id": "ID:AMQP_ULONG:7"},
    "JMS_AMQP_TTL that is a text": {"properties": [("JMS_AMQP_TTL", "x")], "message_id": "ID:1"},
    "bytes as a property": {"properties": [("key", "ff")]},
    "no sections": {"message_id": None, "properties": [], "body": None},
}


class Source:
    """A small AMQP broker that takes messages as they are, and the staging of a partition of its queue."""

    def __init__(self, broker) -> None:
        self._broker = broker
        self._store = AMQPBroker()
        self.peer = Peer(self._store)
        self.options = {"url": f"amqp://{self.peer.address}", "receiveIdleTimeout": 0.2}

    def put(self, *payloads: bytes) -> None:
        for payload in payloads:
            self._store.store.put(QUEUE, payload)

    def read(self, part: EpochPartition, quota: int = 1000) -> list[dict[str, object]]:
        return self._broker.read(part, quota, **self.options)

    @property
    def waiting(self) -> int:
        return len(self._store.store.queues[QUEUE])


@pytest.fixture
def source(broker) -> Iterator[Source]:
    made = Source(broker)
    yield made
    made.peer.close()


@pytest.mark.parametrize("defect", DEFECTS)
def test_it_is_staged_and_so_is_what_is_behind_it(broker, source, defect) -> None:
    """As a row like any other, or with the error and the bytes that could not be read."""
    source.put(DEFECTS[defect], GOOD, GOOD)
    rows = source.read(FIRST)
    assert ([row["body"] for row in rows[1:]], source.waiting) == ([b"x", b"x"], 0)
    assert broker.staging().is_confirmed(FIRST)
    if defect in UNREADABLE:
        body, error = UNREADABLE[defect]
        assert (rows[0]["body"], error in str(rows[0]["error"])) == (body, True)
    else:
        wanted = {"error": None} | READ.get(defect, {})
        assert {name: rows[0][name] for name in wanted} == wanted
    assert source.read(FIRST) == rows  # in a replay, too
    source.put(GOOD)
    assert len(source.read(NEXT)) == 1


def test_a_body_with_a_content_encoding_is_a_row_with_its_id_and_properties(source) -> None:
    zipped, told = gzip.compress(b'{"a": 1}'), {"content_type": "application/json", "content_encoding": "gzip"}
    source.put(Message(id="ID:1", body=zipped, inferred=True, properties={"shop": "Bern"}, **told).encode())
    [row] = source.read(FIRST)
    assert (row["body"], row["message_id"], row["error"]) == (zipped, "ID:1", None)
    assert row["properties"] == [("shop", "Bern")]


@pytest.mark.parametrize("dedup_key", ["JMSMessageID", "JMSCorrelationID", "property:JMS_AMQP_TTL", "none"])
def test_no_message_of_any_form_ends_the_stream(source, dedup_key) -> None:
    """Those of the poison run, whatever is the key that tells a message from its redelivery."""
    source.options["dedupKey"] = dedup_key
    source.put(*drawn(amqp_messages(), MANY, 21))
    rows = source.read(FIRST)
    keys = {"JMSMessageID": "message_id", "JMSCorrelationID": "correlation_id"}
    told = [row.get(keys.get(dedup_key, "")) for row in rows]
    assert source.waiting == 0
    assert 1 < sum(row["error"] is None for row in rows) < len(rows)
    if dedup_key == "none":
        assert len(rows) == MANY
    assert len(set(told)) == len(told) - max(0, told.count(None) - 1)  # each key once, and all that have none
