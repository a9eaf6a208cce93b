"""What a pipeline does on Spark's executors, without Spark: rows of messages become rows of events."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from jmsjca import Queue
from jmsjca.connector import ConnectorConfig, DeliveryOutcome, EventPipeline
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.event_conversion import default_data_handler
from jmsjca.connector.event_pipeline import ORIGIN, EventRows, ObjectColumns, Subscription
from jmsjca.errors import ConfigurationError, JMSError

DEFINITIONS = BusinessObjectDefinitions(
    {
        "Order": {"attributes": {"id": {"type": "integer"}, "name": {}, "next": {"type": "Line"}}, "meta_object": None},
        "Line": {"attributes": {"id": {"type": "integer"}}},
        "Tree": {"attributes": {"left": {"type": "Branch"}}},
        "Branch": {"attributes": {"trees": {"type": "Tree", "cardinality": "multiple"}}},
        "Twins": {"attributes": {"id": {}, "ID": {}}},
        "Reserved": {"attributes": {"_verb": {}}},
    }
)
HEADERS = (
    *("message_id", "correlation_id", "destination", "reply_to", "type", "priority", "timestamp", "expiration"),
    *("redelivered", "delivery_count", "properties", "text", "body", "error"),
)


def row(text=None, **columns):
    known = {"message_id": "ID:1", "text": text, ORIGIN: "queue:orders", "destination": "queue:orders"}
    return dict.fromkeys(HEADERS) | known | columns


@pytest.fixture
def events():
    """Process rows; with a table of orders unless a test says otherwise."""

    def process(*rows, collaboration=None, subscriptions=None, **fields):
        config = ConnectorConfig(
            connection_url="embedded://x",
            input_destination=["orders"],
            **{
                "definitions": DEFINITIONS,
                "error_destination": "errors",
                "unsubscribed_destination": "unsubscribed",
                **fields,
            },
        )
        if subscriptions is None:
            subscriptions = {"Order": Subscription(None, "orders", ObjectColumns("Order", DEFINITIONS))}
        handler = default_data_handler(config)
        made = EventRows(config, subscriptions, collaboration, {}, handler)
        (array,) = made.convert(iter([pa.array(rows)]))
        return array.to_pylist()

    return process


def order(**attributes):
    return json.dumps({"_type": "Order", **attributes})


def test_an_event_has_its_object_in_the_column_of_its_table(events):
    (event,) = events(row(order(id=7, next={"id": 8})))
    assert (event["outcome"], event["message_id"], event["messages"]) == ("SUCCEED", "ID:1", [])
    columns = {"id": 7, "name": None, "next": {"id": 8}, "_verb": "Create", "_event_id": "ID:1"}
    assert event["orders"] == columns


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (order(id=2**63), "64 bits"),
        (order(id="seven"), "not of type integer"),
        (order(id=1, other=2), "not in the definition"),
        ("{", "not valid JSON"),
    ],
)
def test_an_object_that_no_column_holds_fails(events, body, reason):
    (event,) = events(row(body))
    (copy,) = event["messages"]
    properties = dict(copy["properties"])
    assert (event["outcome"], event["orders"], copy["destination"], copy["text"]) == (
        *("FAIL", None, "queue:errors"),
        body,
    )
    assert reason in properties["JMS_Sun_JMSJCA_ExceptionMessage"]


def test_a_message_that_could_not_be_decoded_fails_with_its_bytes(events):
    (event,) = events(row(None, message_id=None, destination=None, body=b"\xff\x00", error="unknown kind 7"))
    (copy,) = event["messages"]
    assert (copy["destination"], copy["body"], copy["duplicate_id"]) == ("queue:errors", b"\xff\x00", None)
    assert "unknown kind 7" in dict(copy["properties"])["JMS_Sun_JMSJCA_ExceptionMessage"]


def test_a_copy_has_the_headers_and_properties_of_its_message(events):
    headers = {"correlation_id": "c", "reply_to": "topic:answers", "type": "t", "priority": 7}
    time = datetime(2026, 1, 2, tzinfo=UTC)
    properties = [("region", "EU"), ("JMSXGroupID", "g")]
    given = row("{}", **headers, timestamp=time, redelivered=True, delivery_count=3, properties=properties)
    (event,) = events(given)
    (copy,) = event["messages"]
    assert copy.items() >= {**headers, "destination": "queue:unsubscribed", "text": "{}", "body": None}.items()
    found = dict(copy["properties"])
    assert (found["region"], found["_JMSJCA_JMSXGroupID"], "JMSXGroupID" in found) == ("EU", "g", False)
    assert found["JMS_Sun_JMSJCA_RedeliveryCount"] == "2"
    assert found["JMS_Sun_JMSJCA_OriginalTimestamp"] == str(int(time.timestamp() * 1000))


def test_a_repetition_sends_the_same_duplicate_ids(events):
    rows = row("{"), row("{}", message_id="ID:2")
    ids = [message["duplicate_id"] for event in events(*rows) for message in event["messages"]]
    assert len(set(ids)) == 2
    assert [message["duplicate_id"] for event in events(*rows) for message in event["messages"]] == ids


def test_what_a_failed_event_would_have_sent_is_not_sent(events):
    (event,) = events(row(order(id=2**63)), collaboration=Queue("hub"))
    assert [message["destination"] for message in event["messages"]] == ["queue:errors"]


def test_a_collaboration_alone_takes_every_type(events):
    outcomes = iter([None, DeliveryOutcome.NO_SUBSCRIPTION_FOUND])
    found = events(
        row('{"_type": "Any"}'),
        row('{"_type": "Other"}'),
        collaboration=lambda _: next(outcomes),
        definitions=None,
        subscriptions={},
    )
    assert [event["outcome"] for event in found] == ["SUCCEED", "NO_SUBSCRIPTION_FOUND"]


def test_an_inactive_collaboration_fails_the_batch(events):
    with pytest.raises(JMSError, match="CONNECTOR_NOT_ACTIVE for message ID:1"):
        events(row(order(id=1)), collaboration=lambda _: DeliveryOutcome.CONNECTOR_NOT_ACTIVE)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("Nothing", "needs its definition"),
        ("Tree", "Tree has Branch has Tree"),
        ("Twins", "differ by case only"),
        ("Reserved", "rename it"),
    ],
)
def test_a_type_that_no_table_can_have_is_refused(kind, problem):
    with pytest.raises(ConfigurationError, match=problem):
        ObjectColumns(kind, DEFINITIONS)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"in_progress_destination": "held"}, "in_progress_destination is not for a pipeline"),
        ({"duplicate_event_elimination": True, "connector_name": "HUB"}, "duplicate_event_elimination is not for"),
        ({"input_destination": [], "container_managed_events": True, "connector_name": "HUB"}, "managed_events is not"),
        ({"archival_connection_url": "embedded://y"}, "writes to one broker"),
        ({"input_destination": []}, "set input_destination"),
        ({"connection_url": "lookup://hub"}, "set the URL"),
        ({"data_handler_mime_type": "text/none"}, "No data handler"),
    ],
)
def test_a_configuration_that_spark_cannot_carry_out_is_refused(fields, problem):
    config = ConnectorConfig(**{"connection_url": "embedded://x", "input_destination": ["orders"], **fields})
    with pytest.raises(ConfigurationError, match=problem):
        EventPipeline(config, collaboration=Queue("hub"))


def test_a_pipeline_without_a_taker_is_refused():
    config = ConnectorConfig(connection_url="embedded://x", input_destination=["orders"])
    with pytest.raises(ConfigurationError, match="needs subscribers"):
        EventPipeline(config)
