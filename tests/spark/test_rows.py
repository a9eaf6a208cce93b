"""Messages as rows, and rows as messages."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import InvalidDestinationError, InvalidOptionError, MessageFormatError
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
    type_name,
)
from jmsjca.spark.rows import RowEncoder, delivery_row, key_of, message_row, to_batch
from jmsjca.spark.schema import ARROW_SCHEMA, SCHEMA
from jmsjca.spark.staging import EpochPartition

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
    row = to_batch([delivery_row(Whole(message, 2), EpochPartition(7, 3), 5, "k")]).to_pylist()[0]
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
    row = to_batch([delivery_row(Whole(TextMessage(""), None), EpochPartition(1, 0), 0, None)]).to_pylist()[0]
    assert (row["delivery_count"], row["redelivered"]) == (None, True)


def test_the_body_is_text_or_bytes_or_none() -> None:
    bodies = [message_row(m) for m in (TextMessage("t"), BytesMessage(b"b"), Message(), TextMessage(None))]
    assert [(row["text"], row["body"]) for row in bodies] == [("t", None), (None, b"b"), (None, None), (None, None)]


@pytest.mark.parametrize("message", [MapMessage({"a": 1}), StreamMessage([1]), ObjectMessage([1])])
def test_a_body_of_values_is_given_as_it_came(message: Message) -> None:
    delivery = Whole(message)
    delivery.raw = b"as it came"
    row = delivery_row(delivery, EpochPartition(7, 3), 5, "k")
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
    row = to_batch([delivery_row(Broken(), EpochPartition(7, 3), 5, "k")]).to_pylist()[0]
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


TEXT, BINARY = StringType(), BinaryType()


def encoder(**columns: DataType) -> RowEncoder:
    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    return RowEncoder(schema)


def encode(columns: dict[str, DataType], **row: Any) -> Message:
    return encoder(**columns).message(row)[0]


@pytest.mark.parametrize(
    ("columns", "row", "kind", "body"),
    [
        ({"text": TEXT}, {"text": "é"}, TextMessage, "é"),
        ({"text": TEXT}, {"text": None}, TextMessage, None),
        ({"body": TEXT}, {"body": "é"}, TextMessage, "é"),
        ({"body": BINARY}, {"body": b"\xff"}, BytesMessage, b"\xff"),
        ({"body": BINARY}, {"body": None}, BytesMessage, None),
        ({"text": TEXT, "body": BINARY}, {"text": "t", "body": None}, TextMessage, "t"),
        ({"text": TEXT, "body": BINARY}, {"text": "", "body": None}, TextMessage, ""),
        ({"text": TEXT, "body": BINARY}, {"text": None, "body": b"b"}, BytesMessage, b"b"),
    ],
)
def test_the_body(columns: dict[str, DataType], row: dict[str, Any], kind: type, body: object) -> None:
    message = encode(columns, **row)
    assert (type(message), message.body) == (kind, body)


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        (StringType(), "x", "string"),
        (BooleanType(), True, "boolean"),
        (ByteType(), 1, "byte"),
        (ShortType(), 1, "short"),
        (IntegerType(), 1, "int"),
        (LongType(), 1, "long"),
        (FloatType(), 0.5, "float"),
        (DoubleType(), 0.5, "double"),
    ],
)
def test_properties_keep_their_types(kind: DataType, value: object, name: str) -> None:
    in_map = encode({"text": TEXT, "properties": MapType(TEXT, kind)}, text="", properties=[("p", value)])
    in_struct = encode({"text": TEXT, "properties": StructType().add("p", kind)}, text="", properties={"p": value})
    for message in (in_map, in_struct):
        assert message.properties == {"p": value}
        assert type_name(message.properties["p"]) == name


def test_a_struct_mixes_types_and_leaves_out_what_is_null() -> None:
    columns = {"text": TEXT, "properties": StructType().add("n", LongType()).add("s", TEXT).add("gone", TEXT)}
    message = encode(columns, text="", properties={"n": 1, "s": "x", "gone": None})
    assert {name: type_name(value) for name, value in message.properties.items()} == {"n": "long", "s": "string"}
    assert encode(columns, text="", properties=None).properties == {}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("properties", TEXT),
        ("properties", ArrayType(TEXT)),
        ("properties", MapType(TEXT, TimestampType())),
        ("properties", StructType().add("p", BINARY)),
        ("text", BINARY),
        ("text", LongType()),
        ("body", LongType()),
        ("correlation_id", LongType()),  # would be written as a number, which no reader expects
        ("type", LongType()),
        ("reply_to", LongType()),
        ("priority", TEXT),
        ("duplicate_id", DoubleType()),
    ],
)
def test_types_that_a_column_cannot_have(name: str, kind: DataType) -> None:
    columns = {"body": TEXT} | {name: kind}
    with pytest.raises(InvalidOptionError, match=name):
        encoder(**columns)


@pytest.mark.parametrize("name", ["correlation_id", "reply_to", "type", "priority", "duplicate_id"])
def test_a_column_of_nulls_has_no_type(name: str) -> None:
    assert encode({"text": TEXT, name: NullType()}, text="t", **{name: None}).body == "t"


def test_unknown_columns_are_named() -> None:
    with pytest.raises(InvalidOptionError, match="no column amount, region to write"):
        encoder(text=TEXT, region=TEXT, amount=LongType())


def test_a_body_is_needed() -> None:
    with pytest.raises(InvalidOptionError, match="needs a body"):
        encoder(correlation_id=TEXT)


def test_what_was_read_can_be_written() -> None:
    row = {field.name: None for field in SCHEMA.fields} | {"text": "t", "priority": 9, "message_id": "ID:1"}
    message, priority = RowEncoder(SCHEMA).message(row)
    assert (message.body, priority, message.message_id) == ("t", 9, None)


def test_headers() -> None:
    columns = {"text": TEXT, "correlation_id": TEXT, "reply_to": TEXT, "type": TEXT}
    message = encode(columns, text="", correlation_id="c", reply_to="topic:a:b", type="order")
    assert (message.correlation_id, message.reply_to, message.type) == ("c", Topic("a:b"), "order")
    assert encode(columns, text="", reply_to="queue:q").reply_to == Queue("q")
    assert encode(columns, text="").reply_to is None


@pytest.mark.parametrize(("text", "error"), [("orders", MessageFormatError), ("mail:x", InvalidDestinationError)])
def test_a_reply_to_that_names_no_destination(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode({"text": TEXT, "reply_to": TEXT}, text="", reply_to=text)


@pytest.mark.parametrize(("given", "used"), [(None, 4), (0, 0), (9, 9)])
def test_the_priority(given: int | None, used: int) -> None:
    assert encoder(text=TEXT, priority=IntegerType()).message({"text": "", "priority": given})[1] == used


@pytest.mark.parametrize(("given", "used"), [("a", "a"), (7, "7"), (0, "0"), ("", "made up"), (None, "made up")])
def test_the_duplicate_id(given: object, used: str) -> None:
    row = {"text": "", "duplicate_id": given, "properties": None}
    assert encoder(text=TEXT, duplicate_id=LongType()).duplicate_id(row, "made up") == used
