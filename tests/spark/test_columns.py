"""Messages as Arrow columns."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from spark_schemas import schema_of

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
from jmsjca.spark.columns import ColumnBuilder, key_reader
from jmsjca.spark.data_source import plan_columns
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.part_file import StagedPart
from jmsjca.spark.schema import ARROW_SCHEMA, COLUMNS, SCHEMA
from jmsjca.spark.variants import decode_object

JSON_OF_MAP = '{"a":1,"b":"é\\n","c":null,"d":0.5,"e":true,"f":"/w=="}'
PLACE = {"_epoch": 7, "_partition": 3, "_seq": 0}


class Broken:
    """A delivery that cannot be decoded."""

    raw = b"\xff\x00"
    size = 2
    count = 4
    redelivered = True

    def drop_content(self) -> None:
        pass

    @property
    def message(self) -> Message:
        raise MessageFormatError("no such kind")


class Whole:
    """A delivery of a message."""

    raw = b""
    size = 0

    def __init__(self, message: Message, count: int | None = 1) -> None:
        self.message = message
        self.count = count
        self.redelivered = count != 1

    def drop_content(self) -> None:
        pass


def staged(*deliveries: Any, names: Any = tuple(ARROW_SCHEMA.names), dedup_key: str = "JMSMessageID") -> StagedPart:
    builder = ColumnBuilder(names, key_reader(dedup_key))
    builder.extend(deliveries)
    return builder.staged(7, 3, set())


def rows(*messages: Message) -> list[dict[str, Any]]:
    return staged(*map(Whole, messages)).table.to_pylist()


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
    assert rows(TextMessage("", properties={"p": value}))[0]["properties"] == [("p", text)]


def test_each_message_has_its_own_properties() -> None:
    sent: list[dict[str, object]] = [{}, {"a": 1, "b": "x"}, {}, {"c": True}]
    found = rows(*(TextMessage("", properties=properties) for properties in sent))
    assert [row["properties"] for row in found] == [[], [("a", "1"), ("b", "x")], [], [("c", "true")]]


def test_all_headers_reach_arrow() -> None:
    message = BytesMessage(b"\x00", correlation_id="c", reply_to=Topic("t"), type="order")
    message.message_id, message.destination, message.priority = "ID:1", Queue("q"), 7
    made = staged(Whole(message, 2))
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
    assert made.table.to_pylist() == [expected | PLACE]
    assert made.keys == ["ID:1"]


def test_a_broker_that_does_not_count_leaves_the_count_open() -> None:
    (row,) = staged(Whole(TextMessage(""), None)).table.to_pylist()
    assert (row["delivery_count"], row["redelivered"]) == (None, True)


def test_a_count_beyond_the_column_is_its_largest_number() -> None:
    (row,) = staged(Whole(TextMessage("t"), 2**32 - 1)).table.to_pylist()
    assert (row["delivery_count"], row["text"], row["error"]) == (2**31 - 1, "t", None)


def test_the_body_is_text_or_bytes_or_none() -> None:
    found = rows(TextMessage("t"), BytesMessage(b"b"), Message(), TextMessage(None))
    assert [(row["text"], row["body"]) for row in found] == [("t", None), (None, b"b"), (None, None), (None, None)]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (MapMessage({"a": 1, "b": "é\n", "c": None, "d": Float(0.5), "e": True, "f": b"\xff"}), JSON_OF_MAP),
        (MapMessage({}), "{}"),
        (StreamMessage([Byte(1), "x", Double("NaN"), Float("-Infinity")]), '[1,"x","NaN","-Infinity"]'),
        (ObjectMessage.from_data({"a": [1, {"b": UUID(int=1)}]}), f'{{"a":[1,{{"b":"{UUID(int=1)}"}}]}}'),
        (ObjectMessage.from_data("x"), '"x"'),
        (ObjectMessage([1]), None),  # to unpickle it could run any code
        (ObjectMessage(), None),
    ],
)
def test_a_body_of_values_is_json_beside_its_bytes(message: Message, text: str | None) -> None:
    delivery = Whole(message)
    delivery.raw = b"as it came"
    (row,) = staged(delivery).table.to_pylist()
    assert (row["text"], row["body"], row["error"]) == (text, b"as it came", None)
    assert staged(delivery, names=["text"]).table.to_pylist() == [{"text": text}]
    assert staged(delivery, names=["body"]).table.to_pylist() == [{"body": b"as it came"}]


@pytest.mark.parametrize("data", [{(1, 2): "x"}, [{1}], "half \ud800"])
def test_a_body_without_json_form(data: object) -> None:
    delivery = Whole(ObjectMessage.from_data(data))
    delivery.raw = b"as it came"
    (row,) = staged(delivery).table.to_pylist()
    assert (row["text"], row["body"], bool(row["error"])) == (None, b"as it came", True)


def typed(*messages: Any, kinds: dict[str, str] | None = None, names: Any = ("body", "error")) -> list[dict[str, Any]]:
    """The rows of deliveries with columns of their bodies."""
    schema = schema_of(**(kinds or {"amount": "int", "region": "string"}))
    given = SourceOptions.parse({"url": "embedded:///x/y.db", "destination": "orders"})
    _, body = plan_columns(schema, given, streaming=False)
    builder = ColumnBuilder([*schema.names, *names], key_reader("JMSMessageID"), body)
    builder.extend(m if not isinstance(m, Message) else Whole(m) for m in messages)
    return builder.staged(7, 3, set()).table.to_pylist()


def test_bodies_are_columns() -> None:
    messages = [TextMessage('{"amount": 1, "region": "EU"}'), BytesMessage(b'{"amount": 2}'), MapMessage({"amount": 3})]
    rows = typed(*messages, names=["error", "text"])
    assert [(row["amount"], row["region"], row["error"]) for row in rows] == [
        (1, "EU", None),
        (2, None, None),
        (3, None, None),
    ]
    assert [row["text"] for row in rows] == ['{"amount": 1, "region": "EU"}', None, '{"amount":3}']


def test_a_body_that_does_not_fit_keeps_its_bytes() -> None:
    pickled = Whole(ObjectMessage([1]))
    pickled.raw = b"pickle"
    bad = [TextMessage("é"), BytesMessage(b"\xff"), pickled, Message(), Broken()]
    rows = typed(TextMessage('{"amount": 1}'), *bad, TextMessage('{"amount": 2}'))
    assert [row["amount"] for row in rows] == [1, None, None, None, None, None, 2]
    assert [row["body"] for row in rows] == [None, "é".encode(), b"\xff", b"pickle", None, b"\xff\x00", None]
    assert [bool(row["error"]) for row in rows] == [False, True, True, True, True, True, False]
    assert rows[3]["error"] == "The body does not fit the columns: it is an object, and no plain data."
    assert rows[5]["error"] == "no such kind"


def test_a_header_and_a_body_that_do_not_fit() -> None:
    unstorable = with_header("type", "half \ud800")
    unstorable.message.body = '{"amount": 1}'
    rows = typed(TextMessage('{"amount": 1}'), unstorable, TextMessage("x"), names=["type", "body", "error"])
    assert [(row["amount"], row["body"]) for row in rows] == [(1, None), (None, b"raw"), (None, b"x")]
    assert [row["error"] and row["error"][:28] for row in rows] == [
        None,
        "The message does not fit the",
        "The body does not fit the co",
    ]


def test_typed_properties_keep_their_types() -> None:
    properties = {"n": Short(1), "x": Float(0.5), "s": "é", "b": True}
    rows = staged(Whole(TextMessage("", properties=properties)), Broken(), names=["typed_properties"]).table.to_pylist()
    found = decode_object(**rows[0]["typed_properties"])
    assert found == properties
    assert [type(value) for value in found.values()] == [bool, Short, str, Float]
    assert rows[1] == {"typed_properties": None}


def test_times_are_told_in_utc() -> None:
    message = TextMessage("")
    message.timestamp = datetime(2026, 1, 2, 3, 4, 5, 678000, timezone(timedelta(hours=5)))
    message.expiration = datetime(2026, 1, 2, tzinfo=UTC)
    made = staged(Whole(message))
    (row,) = made.table.to_pylist()
    assert row["timestamp"] == datetime(2026, 1, 1, 22, 4, 5, 678000, UTC)
    assert row["timestamp"].utcoffset() == timedelta(0)
    assert row["expiration"] == datetime(2026, 1, 2, tzinfo=UTC)
    assert made.counts.latest == round(row["timestamp"].timestamp() * 1000)


def test_what_cannot_be_decoded_gives_its_bytes_and_the_reason() -> None:
    (row,) = staged(Broken()).table.to_pylist()
    told = {"body": b"\xff\x00", "error": "no such kind", "delivery_count": 4, "redelivered": True}
    assert {name: value for name, value in row.items() if value is not None} == told | PLACE


class Hopeless:
    """A delivery of which nothing can be read, with errors that no provider should raise."""

    def drop_content(self) -> None:
        pass

    def __getattr__(self, name: str) -> object:
        raise KeyError(name)


def test_no_message_ends_the_stream() -> None:
    made = staged(Whole(TextMessage("before")), Hopeless(), Whole(TextMessage("after")))
    found = made.table.to_pylist()
    assert [(row["text"], bool(row["error"]), row["body"]) for row in found] == [
        ("before", False, None),
        (None, True, None),
        ("after", False, None),
    ]
    assert (made.counts.received, made.counts.rows) == (3, 3)


def with_header(name: str, value: Any) -> Whole:
    message = TextMessage("t")
    message.message_id = "ID:1"
    setattr(message, name, value)
    delivery = Whole(message)
    delivery.raw = b"raw"
    return delivery


@pytest.mark.parametrize(
    ("name", "value"),
    [("priority", 2**40), ("type", "half \ud800"), ("correlation_id", 7), ("expiration", "soon")],
)
def test_a_value_that_does_not_fit_its_column(name: str, value: Any) -> None:
    made = staged(Whole(TextMessage("before")), with_header(name, value), Whole(TextMessage("after")))
    found = made.table.to_pylist()
    assert [(row["text"], row["body"]) for row in found] == [("before", None), (None, b"raw"), ("after", None)]
    assert [row["error"] is None or name in row["error"] for row in found] == [True] * 3
    assert [row["error"] is None for row in found] == [True, False, True]
    assert list(made.keys) == [None, "ID:1", None]


def test_several_values_that_do_not_fit() -> None:
    bad, worse, fine = (with_header(*header) for header in [("priority", 2**40), ("type", "\ud800"), ("type", "fine")])
    bad.message.message_id, worse.message.message_id = "ID:2", "ID:3"
    made = staged(bad, fine, worse)
    assert [bool(row["error"]) for row in made.table.to_pylist()] == [True, False, True]
    assert list(made.keys) == ["ID:2", "ID:1", "ID:3"]


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
    assert list(staged(Whole(message), Broken(), dedup_key=dedup_key).keys) == [key, None]


def test_a_key_that_arrow_does_not_hold_is_made_readable() -> None:
    message = TextMessage("t")
    message.message_id = "ID:\ud800é"
    assert list(staged(Whole(message)).keys) == ["ID:\\ud800é"]


def test_no_messages_make_a_table_too() -> None:
    table = staged().table
    assert table.num_rows == 0
    assert table.schema == ARROW_SCHEMA
    assert table.schema.names == SCHEMA.names


def test_duplicates_are_dropped_and_counted() -> None:
    builder = ColumnBuilder(ARROW_SCHEMA.names, key_reader("JMSCorrelationID"))
    builder.extend(Whole(TextMessage(text, correlation_id=key)) for text, key in zip("abcdef", "xyxzwx", strict=True))
    builder.extend([Whole(TextMessage("g"))])
    made = builder.staged(1, 0, {"z"})
    assert [(row["text"], row["_seq"]) for row in made.table.to_pylist()] == [("a", 0), ("b", 1), ("e", 2), ("g", 3)]
    assert list(made.keys) == ["x", "y", "w", None]
    counts = made.counts
    assert (counts.received, counts.rows, counts.duplicates, counts.same_key, counts.without_key) == (7, 4, 1, 2, 1)


@pytest.mark.parametrize("text", ["half \ud800", "whole"])
def test_an_error_may_have_any_text(text: str) -> None:
    class Poison(Whole):
        @property
        def raw(self) -> bytes:
            raise KeyError(self)

        def __getattribute__(self, name: str) -> Any:
            if name == "message":
                raise ValueError(text)
            return super().__getattribute__(name)

    (row,) = staged(Poison(TextMessage(""))).table.to_pylist()
    assert row["error"] == text.replace("\ud800", "\\ud800")


def test_an_error_may_have_no_text() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise KeyError

    class Poison(Broken):
        @property
        def message(self) -> Message:
            raise MuteError

    (row,) = staged(Poison()).table.to_pylist()
    assert row["error"] == "(its text cannot be had: KeyError)"


@pytest.mark.parametrize(("count", "column"), [(-(2**40), 0), (2**40, 2**31 - 1), ("x", None)])
def test_a_history_may_have_any_value(count: Any, column: int | None) -> None:
    delivery = Whole(TextMessage("t"), count)
    delivery.redelivered = count
    (row,) = staged(delivery).table.to_pylist()
    assert row["delivery_count"] == column
    assert (row["error"] is None) == isinstance(count, int)


@pytest.mark.parametrize("names", [["_seq"], ["_partition", "_epoch"], *([name] for name in COLUMNS)])
def test_each_column_alone_has_all_rows(names: list[str]) -> None:
    made = staged(*map(Whole, map(TextMessage, "abc")), names=names)
    assert (made.table.num_rows, made.table.column_names, made.counts.rows) == (3, names, 3)


def test_what_cannot_be_decoded_comes_from_its_queue() -> None:
    builder = ColumnBuilder(["destination", "error"], None, source=Queue("orders"))
    builder.extend([Broken()])
    assert builder.staged(1, 0, set()).table.to_pylist() == [{"destination": "queue:orders", "error": "no such kind"}]


def test_many_messages_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are converted in chunks."""
    monkeypatch.setattr("jmsjca.spark.columns._CHUNK_ROWS", 4)
    builder = ColumnBuilder(ARROW_SCHEMA.names, None)
    for chunk in ("abc", "defghijk", "l"):
        builder.extend(Whole(TextMessage(text)) for text in chunk)
    table = builder.staged(1, 0, set()).table
    assert table.column("text").to_pylist() == [*"abcdefghijkl"]
    assert table.column("_seq").to_pylist() == list(range(12))


def test_only_wanted_columns_are_decoded() -> None:
    class Guarded(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            assert name in {"message_id", "type", "timestamp"}
            return super().__getitem__(name)

    headers = Guarded(message_id="ID:1", type="order", timestamp=None)
    message = TextMessage.received("t", lambda: headers)
    assert staged(Whole(message), names=["type", "_seq"]).table.to_pylist() == [{"type": "order", "_seq": 0}]
