"""Batches that the driver sends in one transaction: over a connection that breaks, and with all that a row can set."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from amqp_peer import Broker, Peer
from amqp_peer.performatives import Discharge
from pyspark.sql.types import IntegerType, MapType, StringType, StructType

from jmsjca import ConnectionFactory, DeliveryMode, Queue, TextMessage
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DUPLICATE_ID
from jmsjca.spark.exactly_once import BatchSender, Rows
from jmsjca.spark.options import SinkOptions

TEXT = StructType().add("text", StringType())


def rows(*values: dict[str, object]) -> Rows:
    return Rows.collect(iter([pa.RecordBatch.from_pylist(list(values))] if values else []))


def texts(*values: str) -> Rows:
    return rows(*({"text": value} for value in values))


def test_rows_travel_in_their_order_over_several_batches() -> None:
    batches = [pa.RecordBatch.from_pylist([{"text": text}]) for text in "abc"]
    packed = Rows.collect(iter(batches))
    assert (packed.count, [row["text"] for row in packed.dicts()]) == (3, ["a", "b", "c"])
    assert (packed.query, packed.batch) == ("", None)  # outside of a task
    assert list(texts().dicts()) == []


class Sink:
    """A sink over a small broker of AMQP."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.peer = Peer(self.broker)
        self.url = f"amqp://{self.peer.address}"
        given = {"url": self.url, "destination": "results", "queryName": "q", "guarantee": "exactly-once"}
        self.sender = BatchSender(SinkOptions.parse(given), TEXT)

    def take(self, queue: str) -> list[str]:
        with ConnectionFactory(self.url).create_connection() as connection, connection.create_session() as session:
            consumer, bodies = session.create_consumer(Queue(queue)), list[str]()
            while message := consumer.receive(0):
                bodies.append(message.body)
            return bodies

    def cut_at_commit(self, *, done: bool) -> None:
        """Break the connection once at a commit, before or after the broker has carried it out."""

        def discharge(service, frame) -> None:
            del self.broker.instead[Discharge]
            if done:  # without an answer: the client may read it before the reset
                service.store.end(service._command(frame).txn_id, fail=False)
            service.line.end(reset=True)

        self.broker.instead[Discharge] = discharge


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.peer.close()


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_a_commit_in_doubt_is_decided_by_the_token(sink, done, number) -> None:
    for batch in range(3):
        if batch == number:
            sink.cut_at_commit(done=done)
        assert sink.sender.send([texts(f"{batch}a"), texts(f"{batch}b", "same")], batch) == (
            batch != number or not done
        )
    assert sink.take("results") == ["0a", "0b", "same", "1a", "1b", "same", "2a", "2b", "same"]
    assert [json.loads(body)["batch"] for body in sink.take("jmsjca.sink.q")] == [2]


def send(broker, schema: StructType, *parts: Rows, number: int = 0) -> bool:
    given = broker.sink(destination="results", queryName="q", guarantee="exactly-once", timeToLive=60)
    return BatchSender(SinkOptions.parse(given), schema).send(parts, number)


def results(broker) -> list[TextMessage]:
    with broker.factory.create_connection() as connection:
        return list(connection.create_session().create_browser(Queue("results")))


def test_a_row_sets_its_headers_and_has_no_id_that_brokers_drop_it_by(broker) -> None:
    schema = TEXT.add("properties", MapType(StringType(), StringType())).add("priority", IntegerType())
    schema = schema.add("delivery_mode", StringType())
    properties = [("region", "EU"), (DUPLICATE_ID, "was read so")]
    row = {"text": "a", "properties": properties, "priority": 9, "delivery_mode": "NON_PERSISTENT"}
    kind = pa.schema(
        [
            ("text", pa.string()),
            ("properties", pa.map_(pa.string(), pa.string())),
            ("priority", pa.int32()),
            ("delivery_mode", pa.string()),
        ]
    )
    assert send(broker, schema, Rows.collect(iter([pa.RecordBatch.from_pylist([row, row], kind)])))
    first, second = results(broker)
    assert first.properties == second.properties == {"region": "EU"}
    assert (first.priority, first.delivery_mode) == (9, DeliveryMode.NON_PERSISTENT)
    assert (first.expiration - first.timestamp).total_seconds() == 60


def test_a_row_that_cannot_be_sent_leaves_nothing(broker) -> None:
    schema = TEXT.add("reply_to", StringType())
    wrong = rows({"text": "a", "reply_to": None}, {"text": "b", "reply_to": "nowhere"})
    with pytest.raises(MessageFormatError, match="reply_to"):
        send(broker, schema, wrong)
    assert results(broker) == []
    assert send(broker, schema, rows({"text": "a", "reply_to": None}))
