"""Connectors on Spark: typed tables, the routing of a connector, reports, and batches that are repeated."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from jmsjca import Message, Queue, TextMessage
from jmsjca.connector import BusinessObject, ConnectorConfig, DeliveryOutcome, EventPipeline
from tests.spark.conftest import Broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

DEFINITIONS = {
    "Order": {
        "attributes": {
            "id": {"type": "integer", "key": True},
            "price": {"type": "float"},
            "paid": {"type": "boolean"},
            "name": {},
            "line": {"type": "Line", "cardinality": "multiple"},
            "meta": {"type": "Headers"},
        },
        "meta_object": "meta",
    },
    "Line": {"attributes": {"article": {}, "tags": {"cardinality": "multiple"}}},
    "Headers": {"attributes": {"Priority": {"type": "integer"}, "Destination": {}}},
    "Offer": {"attributes": {"id": {"type": "integer"}}},
}
ROUTES = {
    "archive_destination": "archive",
    "error_destination": "errors",
    "unsubscribed_destination": "unsubscribed",
}


def order(number: int, **more: object) -> str:
    return json.dumps({"_type": "Order", "id": number, **more})


class Tables:
    """A subscriber that keeps the rows of each batch, under its number as a sink does."""

    def __init__(self, failures: int = 0) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self.attempts: list[list[int]] = []
        self._failures = failures

    def __call__(self, table: DataFrame, number: int) -> None:
        rows = [row.asDict(recursive=True) for row in table.collect()]
        self.attempts.append(sorted(row["id"] for row in rows))
        if len(self.attempts) <= self._failures:
            raise OSError("the table is locked")
        self.batches[number] = rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        return sorted((row for batch in self.batches.values() for row in batch), key=lambda row: row["id"])


class Shop:
    """A broker, the configuration of a pipeline, and what becomes of messages."""

    def __init__(self, broker: Broker, spark: SparkSession) -> None:
        self.broker = broker
        self.spark = spark

    def config(self, **fields: Any) -> ConnectorConfig:
        known = {"input_destination": ["orders"], "definitions": DEFINITIONS}
        return ConnectorConfig(connection_url=self.broker.url, **(known | ROUTES | fields))

    def run(self, pipeline: EventPipeline) -> None:
        writer = pipeline.write_stream(
            self.spark, f"{self.broker.folder}/checkpoint", options={"receiveIdleTimeout": 0, "pollInterval": 0}
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    def send(self, *messages: str | Message, to: Queue = Queue("orders")) -> None:  # noqa: B008
        with self.broker.factory.create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(to)
            for message in messages:
                producer.send(message)

    def received(self, queue: str) -> list[Message]:
        with self.broker.factory.create_connection() as connection, connection.create_session() as session:
            return list(session.create_browser(Queue(queue)))


@pytest.fixture
def shop(broker: Broker, spark: SparkSession) -> Shop:
    return Shop(broker, spark)


def test_a_table_has_the_types_of_the_definition(shop: Shop) -> None:
    line = {"article": "nail", "tags": ["new", "blue"]}
    shop.send(order(1, price=2.5, paid=True, name="Ada", line=[line]), order(2, price=3, _verb="Update"))
    tables = Tables()
    shop.run(EventPipeline(shop.config(), {"Order": tables}))
    first, second = tables.rows
    event_id = first.pop("_event_id")
    headers = {"Priority": 4, "Destination": "queue:orders"}
    assert first == {
        "id": 1,
        "price": 2.5,
        "paid": True,
        "name": "Ada",
        "line": [line],
        "meta": headers,
        "_verb": "Create",
    }
    assert (second["price"], second["_verb"], second["line"]) == (3.0, "Update", None)
    assert {message.properties["JMS_Sun_JMSJCA_OriginalJMSMessageID"] for message in shop.received("archive")} == {
        event_id,
        second["_event_id"],
    }
    assert shop.broker.waiting() == []


def test_events_are_routed_as_by_a_connector(shop: Shop) -> None:
    surrogate = order(6, name="\ud800")
    shop.send(order(1), "{", '{"_type": "Offer", "id": 3}', order(4), '{"id": 5}', surrogate)
    tables = Tables()
    shop.run(EventPipeline(shop.config(), {"Order": tables}, collaboration=rejecting(4)))
    assert [row["id"] for row in tables.rows] == [1]
    assert [message.body for message in shop.received("archive")] == [order(1)]
    assert {message.body for message in shop.received("unsubscribed")} == {'{"_type": "Offer", "id": 3}', '{"id": 5}'}
    failed = {m.body: m.properties["JMS_Sun_JMSJCA_ExceptionMessage"] for m in shop.received("errors")}
    assert failed.keys() == {"{", order(4), surrogate}
    assert "is not valid JSON" in failed["{"]
    assert "returned FAIL" in failed[order(4)]
    assert "cannot be stored as UTF-8" in failed[surrogate]


def rejecting(number: int) -> Callable[[BusinessObject], DeliveryOutcome | None]:
    """A collaboration. Spark's workers get it by value, because they cannot import the tests."""
    return lambda found: DeliveryOutcome.FAIL if found.attributes["id"] == number else None


def test_a_batch_that_fails_is_repeated_and_copied_once(shop: Shop) -> None:
    config = shop.config(input_destination=["orders", "more"])
    shop.send(*map(order, range(3)))
    shop.send(order(3), to=Queue("more"))
    tables = Tables(failures=1)
    pipeline = EventPipeline(config, {"Order": tables, "Offer": Queue("offers")})
    with pytest.raises(StreamingQueryException, match="the table is locked"):
        shop.run(pipeline)
    assert (shop.received("archive"), shop.broker.waiting()) == ([], [])  # staged, and nowhere else
    shop.send('{"_type": "Offer", "id": 4}', to=Queue("more"))
    shop.run(pipeline)
    assert tables.attempts == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert {row["meta"]["Destination"] for row in tables.rows} == {"queue:orders", "queue:more"}
    assert len(shop.received("archive")) == 5
    assert [message.body for message in shop.received("offers")] == ['{"_type": "Offer", "_verb": "Create", "id": 4}']


def test_messages_that_were_sent_before_a_failure_are_not_sent_again(shop: Shop) -> None:
    shop.send(order(1, _verb="Update"), "{")
    messages = shop.spark.read.format("jms").options(**shop.broker.sink()).load()
    pipeline = EventPipeline(shop.config(), collaboration=Queue("hub"))
    for _ in range(2):
        pipeline.process(messages, 0)
    (sent,) = shop.received("hub")
    (copy,) = shop.received("archive")
    assert sent.properties["ObjectEventId"] == copy.properties["JMS_Sun_JMSJCA_OriginalJMSMessageID"]
    assert (json.loads(sent.body)["_verb"], len(shop.received("errors"))) == ("Update", 1)


def test_senders_get_the_reports_that_they_asked_for(shop: Shop) -> None:
    asked = {"JMS_IBM_Report_PAN": 1, "JMS_IBM_Report_NAN": 2, "JMS_IBM_MsgType": 8}
    accepted, failed, silent = (TextMessage(order(n), properties=asked, reply_to=Queue("reports")) for n in (1, 4, 5))
    silent.properties.clear()
    shop.send(accepted, failed, silent)
    messages = shop.spark.read.format("jms").options(**shop.broker.sink()).load()
    rules = {"Order_Create": "CollaborationName=Orders"}
    config = shop.config(configuration_meta_object=rules, message_response_result_property="result")
    tables = Tables()
    EventPipeline(config, {"Order": tables}, collaborations={"Orders": rejecting(4)}).process(messages, 0)
    reports = {report.correlation_id: report for report in shop.received("reports")}
    assert reports.keys() == {accepted.message_id, failed.message_id}
    success, failure = reports[accepted.message_id], reports[failed.message_id]
    assert (success.properties["JMS_IBM_Feedback"], failure.properties["JMS_IBM_Feedback"]) == (275, 276)
    assert [report.properties["JMS_IBM_MsgType"] for report in (success, failure)] == [4, 4]
    assert (success.properties["result"], json.loads(success.body)["id"]) == ("SUCCEED", 1)
    assert "returned FAIL" in failure.body
    assert [row["id"] for row in tables.rows] == [5]  # the others went to the named collaboration
