"""Messages as rows."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import MessageFormatError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
)
from jmsjca.spark.rows import delivery_row, key_of, message_row, to_batch
from jmsjca.spark.schema import ARROW_SCHEMA, SCHEMA
from jmsjca.spark.staging import Part

PLACE = {"_epoch": 7, "_partition": 3, "_seq": 5, "_key": "k"}


class Broken:
    """A delivery that cannot be decoded."""

    raw = b"\xff\x00"
    count = 4
    redelivered = True

    @property
    def message(self) -> Message:
        raise MessageFormatError("no such kind")


class Whole:
    """A delivery of a message."""

    raw = b""

    def __init__(self, message: Message, count: int | None = 1) -> None:
        self.message = message
        self.count = count
        self.redelivered = count != 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (Byte(-1), "-1"),
        (Short(2), "2"),
        (Int(3), "3"),
        (Long(1 << 40), "1099511627776"),
        (Float(0.5), "0.5"),
        (Double(1e300), "1e+300"),
        ("é", "é"),
        (None, None),
    ],
)
def test_properties_are_text(value: object, text: str | None) -> None:
    assert message_row(TextMessage("", properties={"p": value}))["properties"] == [("p", text)]


def test_all_headers_reach_arrow() -> None:
    message = BytesMessage(b"\x00", correlation_id="c", reply_to=Topic("t"), type="order")
    message.message_id, message.destination, message.priority = "ID:1", Queue("q"), 7
    row = to_batch([delivery_row(Whole(message, 2), Part(7, 3), 5, "k")]).to_pylist()[0]
    expected = {
        "message_id": "ID:1",
        "correlation_id": "c",
        "destination": "queue:q",
        "reply_to": "topic:t",
        "type": "order",
        "priority": 7,
        "timestamp": None,
        "expiration": None,
        "redelivered": True,
        "delivery_count": 2,
        "properties": [],
        "text": None,
        "body": b"\x00",
        "error": None,
    }
    assert row == expected | PLACE


def test_a_broker_that_does_not_count_leaves_the_count_open() -> None:
    row = to_batch([delivery_row(Whole(TextMessage(""), None), Part(1, 0), 0, None)]).to_pylist()[0]
    assert (row["delivery_count"], row["redelivered"]) == (None, True)


def test_the_body_is_text_or_bytes_or_none() -> None:
    bodies = [message_row(m) for m in (TextMessage("t"), BytesMessage(b"b"), Message(), TextMessage(None))]
    assert [(row["text"], row["body"]) for row in bodies] == [("t", None), (None, b"b"), (None, None), (None, None)]


@pytest.mark.parametrize("message", [MapMessage({"a": 1}), StreamMessage([1]), ObjectMessage([1])])
def test_a_body_of_values_is_given_as_it_came(message: Message) -> None:
    delivery = Whole(message)
    delivery.raw = b"as it came"
    row = delivery_row(delivery, Part(7, 3), 5, "k")
    assert (row["text"], row["body"]) == (None, b"as it came")


def test_times_are_told_in_utc() -> None:
    message = TextMessage("")
    message.timestamp = datetime(2026, 1, 2, 3, 4, 5, 678000, timezone(timedelta(hours=5)))
    message.expiration = datetime(2026, 1, 2, tzinfo=UTC)
    row = to_batch([message_row(message)]).to_pylist()[0]
    assert row["timestamp"] == datetime(2026, 1, 1, 22, 4, 5, 678000, UTC)
    assert row["timestamp"].utcoffset() == timedelta(0)
    assert row["expiration"] == datetime(2026, 1, 2, tzinfo=UTC)


def test_what_cannot_be_decoded_gives_its_bytes_and_the_reason() -> None:
    row = to_batch([delivery_row(Broken(), Part(7, 3), 5, "k")]).to_pylist()[0]
    told = {"body": b"\xff\x00", "error": "no such kind", "delivery_count": 4, "redelivered": True}
    assert {name: value for name, value in row.items() if value is not None} == told | PLACE


@pytest.mark.parametrize(
    ("dedup_key", "key"),
    [
        ("JMSMessageID", "ID:1"),
        ("JMSCorrelationID", "c"),
        ("property:order", "17"),
        ("property:absent", None),
        ("none", None),
    ],
)
def test_the_key_of_a_message(dedup_key: str, key: str | None) -> None:
    message = TextMessage("", correlation_id="c", properties={"order": 17})
    message.message_id = "ID:1"
    assert key_of(Whole(message), dedup_key) == key
    assert key_of(Broken(), dedup_key) is None


def test_no_rows_make_a_batch_too() -> None:
    batch = to_batch([], ARROW_SCHEMA)
    assert batch.num_rows == 0
    assert batch.schema == ARROW_SCHEMA
    assert batch.schema.names == SCHEMA.names
