"""The columns that ``.schema(…)`` names: what they are, and what is refused when a query is planned."""

import pytest
from pyspark.sql import types as t
from spark_schemas import schema_of

from jmsjca.errors import InvalidOptionError
from jmsjca.spark import SCHEMA, JmsDataSource
from jmsjca.spark.data_source import plan_columns
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.schema import spark_columns

GIVEN = {"url": "embedded:///x/y.db", "destination": "orders", "stagingLocation": "/x"}
KEPT = {"body": "binary", "error": "string"}


def plan(schema: t.StructType, *, streaming: bool = True, **options: str) -> tuple[tuple[str, ...], list[str]]:
    """The names of all columns, and of those that come out of the body."""
    found, body = plan_columns(schema, SourceOptions.parse(GIVEN | options), streaming=streaming)
    return found.columns, [] if body is None else list(body.types)


def test_columns_of_messages_are_known_by_their_names() -> None:
    assert plan(SCHEMA) == (tuple(SCHEMA.names), [])
    assert plan(schema_of(text="string", message_id="string")) == (("text", "message_id"), [])
    assert plan(spark_columns(["typed_properties"])) == (("typed_properties",), [])


def test_all_other_columns_come_out_of_the_body() -> None:
    schema = schema_of(amount="int", message_id="string", region="string", **KEPT)
    assert plan(schema) == (("amount", "message_id", "region", "body", "error"), ["amount", "region"])


def test_a_table_that_is_no_stream_loses_nothing() -> None:
    assert plan(schema_of(amount="int"), streaming=False) == (("amount",), ["amount"])


@pytest.mark.parametrize(
    ("kinds", "missing"), [({}, "body BINARY, error STRING"), ({"body": "binary"}, "add error STRING to")]
)
def test_a_stream_needs_a_place_for_what_does_not_fit(kinds: dict[str, str], missing: str) -> None:
    with pytest.raises(InvalidOptionError, match=missing):
        plan(schema_of(amount="int", text="string", **kinds))


@pytest.mark.parametrize(
    ("kind", "body_format", "remedy"),
    [
        ("binary", "json", "unbase64"),
        ("map<string,int>", "json", "from_json"),
        ("array<map<string,int>>", "json", "from_json"),
        ("struct<x:array<binary>>", "json", r"'a.x\[\]' of the body cannot be binary"),
        ("variant", "json", "try_parse_json"),
        ("variant", "csv", "try_parse_json"),
        ("array<int>", "csv", "no parts"),
        ("struct<x:int>", "csv", "no parts"),
    ],
)
def test_types_that_no_body_has(kind: str, body_format: str, remedy: str) -> None:
    with pytest.raises(InvalidOptionError, match=remedy):
        plan(schema_of(a=kind, **KEPT), bodyFormat=body_format)


def test_a_column_of_a_message_has_its_type() -> None:
    with pytest.raises(InvalidOptionError, match=r"'timestamp' of a message is timestamp, not string.*from_json"):
        plan(schema_of(timestamp="string", **KEPT))


@pytest.mark.parametrize(
    "field",
    [
        t.StructField("a", t.IntegerType(), nullable=False),
        t.StructField("text", t.StringType(), nullable=False),
        t.StructField("a", t.ArrayType(t.IntegerType(), containsNull=False)),
        t.StructField("a", t.StructType([t.StructField("b", t.IntegerType(), nullable=False)])),
    ],
)
def test_each_column_may_be_null(field: t.StructField) -> None:
    with pytest.raises(InvalidOptionError, match="leave out NOT NULL"):
        plan(t.StructType([*schema_of(**KEPT).fields, field] if field.name == "a" else [field]))


def test_a_column_is_named_once() -> None:
    with pytest.raises(InvalidOptionError, match="'a' twice"):
        plan(schema_of(a="int", A="int", **KEPT))


@pytest.mark.parametrize(
    ("name", "meant"), [("TEXT", "text"), ("Error", "error"), ("Typed_Properties", "typed_properties")]
)
def test_a_column_of_a_message_is_spelled_in_one_way(name: str, meant: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"no column '{name}' \(did you mean {meant}\?\).*from_json"):
        plan(schema_of(**{name: "string"}), streaming=False)


@pytest.mark.parametrize("body_format", ["json", "csv"])
def test_a_format_needs_columns(body_format: str) -> None:
    with pytest.raises(InvalidOptionError, match="needs the columns"):
        JmsDataSource(GIVEN | {"bodyFormat": body_format}).schema()
    with pytest.raises(InvalidOptionError, match="needs the columns"):
        plan(SCHEMA, bodyFormat=body_format)


def test_columns_are_named_in_one_place() -> None:
    source = JmsDataSource(GIVEN | {"columns": "text,error"})
    assert source.streamReader(source.schema())
    with pytest.raises(InvalidOptionError, match="leave out the option 'columns'"):
        source.streamReader(schema_of(text="string")).initialOffset()


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    with pytest.raises(InvalidOptionError, match="delimiter"):
        SourceOptions.parse(GIVEN | {"delimiter": delimiter})


def test_an_unknown_format() -> None:
    with pytest.raises(InvalidOptionError, match="'bodyFormat' must be 'json' or 'csv', not 'xml'"):
        SourceOptions.parse(GIVEN | {"bodyFormat": "xml"})
