"""Rows as messages."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
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
    VariantType,
    VariantVal,
)

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import InvalidDestinationError, InvalidOptionError, MessageFormatError
from jmsjca.messages import BytesMessage, Double, Float, Int, Long, Message, Short, TextMessage, type_name
from jmsjca.spark.rows import RowEncoder
from jmsjca.spark.schema import SCHEMA
from jmsjca.spark.variants import encode_object

TEXT, BINARY = StringType(), BinaryType()


def encoder(**columns: DataType) -> RowEncoder:
    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    return RowEncoder(schema)


def value_of_row(kind: DataType, value: Any) -> Any:
    """A value as a `Row` has it, for one of Arrow."""
    if value is None:
        return None
    if isinstance(kind, MapType):
        return dict(value)
    if isinstance(kind, StructType):
        return Row(**value)
    if isinstance(kind, VariantType):
        return VariantVal(value["value"], value["metadata"])
    return bytearray(value) if isinstance(kind, BinaryType) else value


Encode: TypeAlias = Callable[..., Message]


@pytest.fixture(params=["arrow", "row"])
def encode(request: pytest.FixtureRequest) -> Encode:
    """Encodes a row, which the sink takes out of Arrow, and a ForeachWriter out of a `Row`."""

    def message_of(columns: dict[str, DataType], **row: Any) -> Message:
        if request.param == "row":
            row = Row(**{n: value_of_row(columns[n], value) for n, value in row.items()}).asDict(recursive=True)
        return encoder(**columns).message(row)[0]

    return message_of


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
        ({"text": TEXT, "body": BINARY}, {"text": None, "body": None}, TextMessage, None),
        ({"text": TEXT, "body": BINARY}, {"text": None, "body": b"b"}, BytesMessage, b"b"),
    ],
)
def test_the_body(encode: Encode, columns: dict[str, DataType], row: dict[str, Any], kind: type, body: object) -> None:
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
def test_properties_keep_their_types(encode: Encode, kind: DataType, value: object, name: str) -> None:
    in_map = encode({"text": TEXT, "properties": MapType(TEXT, kind)}, text="", properties=[("p", value)])
    in_struct = encode({"text": TEXT, "properties": StructType().add("p", kind)}, text="", properties={"p": value})
    for message in (in_map, in_struct):
        assert message.properties == {"p": value}
        assert type_name(message.properties["p"]) == name


def test_a_struct_mixes_types_and_leaves_out_what_is_null(encode: Encode) -> None:
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
        ("destination", LongType()),
        ("time_to_live", TEXT),
        ("delivery_delay", TEXT),
        ("delivery_mode", DoubleType()),
        ("group_id", LongType()),
        ("group_sequence", TEXT),
        ("duplicate_id", DoubleType()),
    ],
)
def test_types_that_a_column_cannot_have(name: str, kind: DataType) -> None:
    columns = {"body": TEXT} | {name: kind}
    with pytest.raises(InvalidOptionError, match=name):
        encoder(**columns)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NullType(), None),
        (MapType(TEXT, NullType()), [("p", None)]),
        (MapType(NullType(), NullType()), []),
        (StructType().add("p", NullType()), {"p": None}),
    ],
)
def test_properties_that_are_all_null_have_no_type(encode: Encode, kind: DataType, value: object) -> None:
    assert encode({"text": TEXT, "properties": kind}, text="t", properties=value).properties == {}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (StructType().add("price", DecimalType(10, 2)), r"'properties.price' is decimal\(10,2\)"),
        (MapType(TEXT, DateType()), "each value of 'properties' is date"),
        (StructType().add("parts", ArrayType(TEXT)), "'properties.parts' is array<string>"),
    ],
)
def test_a_type_that_no_property_has_is_refused_with_those_that_it_may_have(kind: DataType, name: str) -> None:
    remedy = "cast it to string, boolean, tinyint, smallint, int, bigint, float or double"
    with pytest.raises(InvalidOptionError, match=f"{name}, which no property has: {remedy}"):
        encoder(text=TEXT, properties=kind)


@pytest.mark.parametrize("name", ["correlation_id", "reply_to", "type", "priority", "duplicate_id"])
def test_a_column_of_nulls_has_no_type(encode: Encode, name: str) -> None:
    assert encode({"text": TEXT, name: NullType()}, text="t", **{name: None}).body == "t"


def test_unknown_columns_are_named() -> None:
    with pytest.raises(InvalidOptionError, match="no column amount, region to write"):
        encoder(text=TEXT, region=TEXT, amount=LongType())


@pytest.mark.parametrize(("name", "known"), [("TEXT", "text"), ("proprties", "properties")])
def test_an_unknown_column_gets_a_hint(name: str, known: str) -> None:
    """Spark itself does not distinguish upper and lower case."""
    with pytest.raises(InvalidOptionError, match=rf"no column {name} to write \(did you mean {known}\?\): rename it"):
        encoder(**{name: TEXT})


def test_a_body_is_needed() -> None:
    with pytest.raises(InvalidOptionError, match="needs a body"):
        encoder(correlation_id=TEXT)


def test_what_was_read_can_be_written() -> None:
    row = {field.name: None for field in SCHEMA.fields} | {"text": "t", "priority": 9, "message_id": "ID:1"}
    message, priority = RowEncoder(SCHEMA).message(row)
    assert (message.body, priority, message.message_id) == ("t", 9, None)


MAP = {"text": TEXT, "properties": MapType(TEXT, TEXT)}
TYPED: dict[str, DataType] = {"text": TEXT, "typed_properties": VariantType()}


def test_a_map_has_the_names_of_received_messages(encode: Encode) -> None:
    names = ["x-opt.key", "order", "null", "é è", "JMSFoo", "_AMQ_DUPL_ID", ""]
    message = encode(MAP, text="", properties=[(name, "x") for name in names])
    assert list(message.properties) == names
    message.properties["more"] = 1  # of the sink


def test_properties_of_the_provider_are_left_out(encode: Encode) -> None:
    pairs = [("JMSXDeliveryCount", "2"), ("JMSXUserID", "me"), ("JMSXGroupID", "g"), ("JMSXGroupSeq", "7")]
    message = encode(MAP, text="", properties=pairs)
    assert message.properties == {"JMSXGroupID": "g", "JMSXGroupSeq": 7}
    assert type_name(message.properties["JMSXGroupSeq"]) == "int"


@pytest.mark.parametrize("value", ["abc", "4294967295", "1.5", "", "1_0"])
def test_a_received_group_sequence_that_is_no_int_is_left_out(encode: Encode, value: str) -> None:
    message = encode(MAP, text="", properties=[("JMSXGroupID", "g"), ("JMSXGroupSeq", value)])
    assert message.properties == {"JMSXGroupID": "g"}


@pytest.mark.parametrize("value", ["abc", Long(2**40), Double(2.5), True, b"\xff"])
def test_a_typed_group_sequence_that_is_no_int_is_left_out(encode: Encode, value: object) -> None:
    typed = encode_object({"JMSXGroupSeq": value, "n": Int(1)})
    assert encode(TYPED, text="", typed_properties=typed).properties == {"n": 1}


def test_a_property_that_cannot_be_set_is_named(encode: Encode) -> None:
    with pytest.raises(MessageFormatError, match="The property 'JMSXGroupSeq' cannot be set: A number of 34 bits"):
        encode({"text": TEXT, "group_sequence": LongType()}, text="t", group_sequence=9_999_999_999)
    with pytest.raises(MessageFormatError, match="The property 'JMSXGroupSeq' cannot be set: 'x' is not a number"):
        encode(
            {"text": TEXT, "properties": StructType().add("JMSXGroupSeq", TEXT)},
            text="t",
            properties={"JMSXGroupSeq": "x"},
        )


def test_a_struct_has_names_that_a_sender_may_set(encode: Encode) -> None:
    with pytest.raises(MessageFormatError, match="x-y"):
        encode({"text": TEXT, "properties": StructType().add("x-y", TEXT)}, text="", properties={"x-y": "1"})


def test_a_struct_may_have_a_group_whose_number_is_an_int(encode: Encode) -> None:
    group = StructType().add("JMSXGroupID", TEXT).add("JMSXGroupSeq", LongType())
    message = encode({"text": TEXT, "properties": group}, text="", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 3})
    assert message.properties == {"JMSXGroupID": "g", "JMSXGroupSeq": 3}
    assert type_name(message.properties["JMSXGroupSeq"]) == "int"
    with pytest.raises(MessageFormatError, match="Int"):
        encode({"text": TEXT, "properties": group}, text="", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 2**40})


def test_more_properties_can_be_set_on_the_message_of_a_row(encode: Encode) -> None:
    message = encode({"text": TEXT, "properties": StructType().add("n", LongType())}, text="", properties={"n": 1})
    message.properties["more"] = "x"
    assert message.properties == {"n": 1, "more": "x"}


def test_typed_properties_take_the_place_of_texts(encode: Encode) -> None:
    columns = MAP | {"typed_properties": VariantType()}
    typed = {"n": Short(1), "x-y": Float(0.5), "b": True, "raw": b"\xff", "none": None, "JMSXGroupSeq": Int(3)}
    message = encode(columns, text="", properties=[("n", "1")], typed_properties=encode_object(typed))
    assert message.properties == typed | {"raw": "ff"}
    assert [type_name(message.properties[name]) for name in ("n", "x-y", "JMSXGroupSeq")] == ["short", "float", "int"]
    for null in (None, {"value": b"\x00", "metadata": b"\x01\x00\x00"}):  # of SQL, and of JSON
        message = encode(columns, text="", properties=[("n", "1")], typed_properties=null)
        assert message.properties == {"n": "1"}


def test_typed_properties_are_an_object(encode: Encode) -> None:
    number = VariantVal.parseJson("7")
    with pytest.raises(MessageFormatError, match="must be an object"):
        encode(TYPED, text="", typed_properties={"value": number.value, "metadata": number.metadata})


def test_headers(encode: Encode) -> None:
    columns = {"text": TEXT, "correlation_id": TEXT, "reply_to": TEXT, "type": TEXT}
    message = encode(columns, text="", correlation_id="c", reply_to="topic:a:b", type="order")
    assert (message.correlation_id, message.reply_to, message.type) == ("c", Topic("a:b"), "order")
    assert encode(columns, text="", reply_to="queue:q").reply_to == Queue("q")
    assert encode(columns, text="").reply_to is None


@pytest.mark.parametrize(("text", "error"), [("orders", MessageFormatError), ("mail:x", InvalidDestinationError)])
def test_a_reply_to_that_names_no_destination(encode: Encode, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode({"text": TEXT, "reply_to": TEXT}, text="", reply_to=text)


def test_send_options_are_those_that_are_not_null() -> None:
    columns = {"text": TEXT, "priority": IntegerType(), "time_to_live": DoubleType(), "delivery_mode": TEXT}
    row = {"text": "", "priority": 0, "time_to_live": None, "delivery_mode": "NON_PERSISTENT"}
    assert encoder(**columns).send_options(row) == {"priority": 0, "delivery_mode": "NON_PERSISTENT"}


def test_the_group_is_a_property(encode: Encode) -> None:
    columns = {"text": TEXT, "group_id": TEXT, "group_sequence": LongType()}
    assert encode(columns, text="", group_id="g", group_sequence=2).properties == {
        "JMSXGroupID": "g",
        "JMSXGroupSeq": 2,
    }
    assert encode(columns, text="", group_id=None, group_sequence=None).properties == {}


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("queue:a", "topic", Queue("a")),
        ("topic:a:b", "queue", Topic("a:b")),
        ("a", "topic", Topic("a")),
        ("a:b", "queue", Queue("a:b")),
        (None, "queue", Queue("default")),
    ],
)
def test_the_destination(text: str | None, kind: str, found: object) -> None:
    schema = StructType().add("text", TEXT).add("destination", TEXT)
    assert RowEncoder(schema, Queue("default"), kind).destination({"text": "", "destination": text}) == found
    with pytest.raises(MessageFormatError, match="destination of a row is null"):
        RowEncoder(schema).destination({"text": "", "destination": None})


@pytest.mark.parametrize(("given", "used"), [(None, 4), (0, 0), (9, 9)])
def test_the_priority(given: int | None, used: int) -> None:
    assert encoder(text=TEXT, priority=IntegerType()).message({"text": "", "priority": given})[1] == used


@pytest.mark.parametrize(("given", "used"), [("a", "a"), (7, "7"), (0, "0"), ("", ""), (None, "")])
def test_the_duplicate_id(given: object, used: str) -> None:
    row = {"text": "", "duplicate_id": given, "properties": None}
    assert encoder(text=TEXT, duplicate_id=LongType()).duplicate_id(row) == used
