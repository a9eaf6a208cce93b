"""Typed columns out of bodies: JSON and CSV."""

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_schemas import schema_of

from jmsjca.spark.body_columns import Body, BodyColumns
from jmsjca.spark.data_source import plan_columns
from jmsjca.spark.options import SourceOptions

URL = "embedded:///x/y.db"
KEPT = {"body": "binary", "error": "string"}


def columns(kinds: dict[str, str], **options: str) -> BodyColumns:
    """The columns of a schema as in ``.schema("a INT, …")``."""
    given_options = SourceOptions.parse({"url": URL, "destination": "orders", **options})
    _, body = plan_columns(schema_of(**kinds), given_options, streaming=False)
    assert body is not None
    return body


def read(body: BodyColumns, *bodies: Body) -> list[dict[str, Any] | str]:
    """The row of each body, or the reason why it does not fit."""
    arrays, misfits = body.read(bodies)
    assert {name: array.type for name, array in arrays.items()} == body.types
    values = {name: array.to_pylist() for name, array in arrays.items()}
    rows = [{name: column[n] for name, column in values.items()} for n in range(len(bodies))]
    assert all(set(rows[n].values()) == {None} for n in misfits)
    return [misfits.get(n, row) for n, row in enumerate(rows)]


def read_one(kind: str, value: str, **options: str) -> Any:
    """The value of a column of one JSON member, or the reason."""
    (row,) = read(columns({"a": kind}, **options), f'{{"a": {value}}}')
    return row["a"] if isinstance(row, dict) else row


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("tinyint", "-128", -128),
        ("smallint", "32767", 32767),
        ("int", "-1", -1),
        ("bigint", "9223372036854775807", 2**63 - 1),
        ("float", "0.5", 0.5),
        ("double", "1", 1.0),
        ("double", "1e-3", 0.001),
        ("decimal(10,2)", "1.25", Decimal("1.25")),
        ("decimal(10,2)", '"1.5"', Decimal("1.50")),
        ("decimal(38,0)", "12345678901234567890123456789012345678", Decimal(12345678901234567890123456789012345678)),
        ("boolean", "true", True),
        ("string", '"\\u00e9\\n"', "é\n"),
        ("date", '"2026-01-02"', date(2026, 1, 2)),
        ("timestamp", '"2026-01-02T03:04:05Z"', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("timestamp", '"2026-01-02 03:04:05.678901+02:00"', datetime(2026, 1, 2, 1, 4, 5, 678901, UTC)),
        ("timestamp", '"2026-01-02T03:04:05"', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("timestamp", '"2026-01-02T03:04:05.123456789Z"', datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)),
        ("timestamp", '"1969-12-31T23:59:59.9999999"', datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ("timestamp", '"2026-01-02 03:04:05.1234567891+02:00"', datetime(2026, 1, 2, 1, 4, 5, 123456, UTC)),
        ("timestamp", '"2026-01-02T03:04:05+02"', datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("timestamp", '"2026-01-02"', datetime(2026, 1, 2, tzinfo=UTC)),
        ("timestamp_ntz", '"2026-01-02T03:04:05"', datetime(2026, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        ("timestamp_ntz", '"2026-01-02T03:04:05.123456789"', datetime(2026, 1, 2, 3, 4, 5, 123456)),  # noqa: DTZ001
        ("timestamp_ntz", '"2026-01-02"', datetime(2026, 1, 2)),  # noqa: DTZ001
        ("array<int>", "[1, null]", [1, None]),
        ("array<date>", '["2026-01-02", null]', [date(2026, 1, 2), None]),
        ("struct<b:string,c:struct<d:int>>", '{"c": {"d": 1, "e": 2}}', {"b": None, "c": {"d": 1}}),
        ("array<struct<t:timestamp>>", '[{"t": "2026-01-02T00:00:00Z"}, {}, null]', None),
        ("int", "null", None),
    ],
)
def test_a_member_of_json(kind: str, text: str, value: object) -> None:
    found = read_one(kind, text)
    if kind.startswith("array<struct"):
        value = [{"t": datetime(2026, 1, 2, tzinfo=UTC)}, {"t": None}, None]
    assert found == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tinyint", "128"),
        ("int", "2147483648"),
        ("int", "1.0"),
        ("int", '"1"'),
        ("int", "true"),
        ("bigint", "9223372036854775808"),
        ("double", '"1"'),
        ("double", "1e400"),
        ("decimal(10,2)", "1.255"),
        ("decimal(4,2)", "123.4"),
        ("boolean", "1"),
        ("string", "1"),
        ("string", "{}"),
        ("date", '"2026-02-30"'),
        ("date", "1"),
        ("timestamp", '"yesterday"'),
        ("timestamp", '"2026-02-30"'),
        ("timestamp", '"2026-01-02Z"'),
        ("timestamp", '"2026-01"'),
        ("timestamp", '"2026-01-02T03:04:05.123456789x"'),
        ("timestamp_ntz", '"2026-01-02T03:04:05.123456789Z"'),
        ("timestamp_ntz", '"2026-01-02T03:04:05Z"'),
        ("array<int>", "1"),
        ("array<int>", '["x"]'),
        ("array<date>", '["x"]'),
        ("struct<b:int>", '{"b": "x"}'),
        ("struct<b:int>", "[]"),
    ],
)
def test_a_member_of_json_that_does_not_fit_is_named(kind: str, text: str) -> None:
    reason = read_one(kind, text)
    assert reason.startswith("The body does not fit the columns: column a"), reason
    assert "row 0" not in reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "no body"),
        ("", "Invalid value"),
        ("null", "null"),
        ("[]", "array"),
        ('"x"', "string"),
        ('{"a": 1', "Missing"),
        ('{"a": 1}}', "empty"),
        ('{"a": 1}}\n{"":{"a": 2}', "more than one"),
        ('{"a": 1},"":{"a": 2}', "twice"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": 1}\0', "NUL"),
        (b'{"a": 1, "b": "\xff"}', "UTF-8, at byte 15"),
        ("[" * 100_000, "array"),
        ('{"b": ' + "[" * 100_000, "Invalid value"),
        ('{"a": 1, "\ud800": 2}', "surrogates"),
    ],
)
def test_a_body_that_is_no_json_object(body: Body, reason: str) -> None:
    before, found, after = read(columns({"a": "int"}), '{"a": 1}', body, '{"a": 2}')
    assert (before, after) == ({"a": 1}, {"a": 2})
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize("body", ["", "x", '{"a": 1', '{"a": 1} {"a": 2}', '{"c": 1e400}', '{"b": "\\ud800"}', "[]"])
def test_a_body_that_is_no_json_object_is_the_fault_of_no_column(body: str) -> None:
    (reason,) = read(columns({"a": "int", "b": "string"}), body)
    assert "column a" not in str(reason)
    assert "column b" not in str(reason)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("int", '"1"', "column a is a string, not a number"),
        ("string", "{}", "column a is an object, not a string"),
        ("array<int>", "true", "column a is a boolean, not an array"),
        ("array<int>", '["x"]', "column a/[] is a string, not a number"),
        ("struct<b:int>", "[]", "column a is an array, not an object"),
        ("array<double>", "[1, 1e400]", "column a: Number too big to be stored in double"),
        (
            "timestamp",
            '"yesterday"',
            "column a: Failed to parse string: 'yesterday' as a scalar of type timestamp[us, tz=UTC]",
        ),
        (
            "timestamp",
            '"12-31 24:61"',
            "column a: Failed to parse string: '12-31 24:61' as a scalar of type timestamp[us, tz=UTC]",
        ),
    ],
)
def test_the_reason_is_in_terms_of_the_body(kind: str, text: str, reason: str) -> None:
    assert read_one(kind, text) == f"The body does not fit the columns: {reason}"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("float", "3.5e38"),
        ("float", "-1e39"),
        ("array<float>", "[Infinity, 1e39]"),
        ("struct<b:array<float>>", '{"b": [null, 4e38]}'),
    ],
)
def test_a_number_that_is_too_large_for_its_column_does_not_become_infinity(kind: str, text: str) -> None:
    reason = "The body does not fit the columns: column a: a number is too large for a FLOAT"
    body = columns({"b": "float", "a": kind})
    assert read(body, '{"b": 1}', f'{{"a": {text}, "b": Infinity}}', '{"b": 2}') == [
        {"b": 1.0, "a": None},
        reason,
        {"b": 2.0, "a": None},
    ]


@pytest.mark.parametrize(("kind", "text"), [("float", "3.5e38"), ("float", "-1e39"), ("double", "1e400")])
def test_a_number_of_csv_that_is_too_large_does_not_become_infinity(kind: str, text: str) -> None:
    (reason,) = read(columns({"b": kind, "a": kind}, bodyFormat="csv"), f"inf,{text}")
    assert reason == f"The body does not fit the columns: column a: {text} is too large for its type, {kind}"


@pytest.mark.parametrize(("kind", "value"), [("float", 3.4028234663852886e38), ("double", 1.7976931348623157e308)])
def test_the_largest_numbers_and_infinity_are_read(kind: str, value: float) -> None:
    assert read(columns({"a": kind}), f'{{"a": {value}}}', '{"a": Infinity}') == [{"a": value}, {"a": math.inf}]
    assert read(columns({"a": kind}, bodyFormat="csv"), f"{-value}", "-Infinity") == [{"a": -value}, {"a": -math.inf}]


def test_a_body_that_is_an_array_is_called_one() -> None:
    assert read(columns({"a": "int"}), "[1]") == ["The body does not fit the columns: it is an array, not an object"]


def test_unknown_members_and_line_breaks_are_no_matter() -> None:
    texts = ['{"b": [{"c": "[[{"}], "a":\n1}', b'\n{"a": 2}\r\n', '{"A": 3}']
    assert read(columns({"a": "int"}), *texts) == [{"a": 1}, {"a": 2}, {"a": None}]
    deep = '{"a": 1, "b": %s}' % ("[" * 100_000 + "]" * 100_000)
    assert read(columns({"a": "int"}), deep) == [{"a": 1}]


@pytest.mark.parametrize(("body_format", "text"), [("json", '{"a": "x"}'), ("csv", "x"), ("csv", '"x"')])
def test_a_byte_order_mark_is_no_part_of_a_body(body_format: str, text: str) -> None:
    body = columns({"a": "string"}, bodyFormat=body_format)
    assert read(body, text, f"\ufeff{text}", b"\xef\xbb\xbf" + text.encode()) == [{"a": "x"}] * 3
    assert isinstance(read(columns({"a": "int"}), "\ufeff\ufeff{}")[0], str)


@pytest.mark.parametrize("body_format", ["json", "csv"])
def test_no_body_gives_no_row(body_format: str) -> None:
    assert read(columns({"a": "int"}, bodyFormat=body_format)) == []


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "array<int>": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)),
    "struct<x:string,y:array<double>>": st.fixed_dictionaries(
        {"x": st.none() | st.text(), "y": st.lists(st.floats(-1e9, 1e9))}
    ),
}
NAMES = dict(zip("abcdef", VALUES, strict=True))
OBJECTS = st.fixed_dictionaries({name: st.none() | VALUES[kind] for name, kind in NAMES.items()})


@given(st.lists(OBJECTS, max_size=5), st.booleans())
def test_objects_are_read_as_they_were_written(objects: list[dict[str, Any]], ascii_only: bool) -> None:
    texts = [json.dumps(each, ensure_ascii=ascii_only) for each in objects]
    assert read(columns(NAMES), *texts) == objects


FRAGMENTS = st.lists(
    st.sampled_from([*'{}[],:"\\\n\r\0 a1', '{"a":1}', '{"":', '"a":', "1,x", '"x"', "}\n", "null"]), max_size=8
).map("".join)


@given(st.lists(FRAGMENTS | st.just('{"a": 1}') | st.just('1,"b c"') | st.none(), max_size=8))
@pytest.mark.parametrize("body_format", ["json", "csv"])
def test_a_body_is_read_in_the_same_way_alone_and_among_others(body_format: str, bodies: list[Body]) -> None:
    body = columns({"a": "int", "b": "string"}, bodyFormat=body_format)
    assert read(body, *bodies) == [row for each in bodies for row in read(body, each)]


@given(FRAGMENTS)
def test_only_json_objects_fit(text: str) -> None:
    (row,) = read(columns({"a": "int"}), text)
    try:
        value: object = json.loads(text)
    except ValueError:
        value = None
    if isinstance(row, dict):
        assert isinstance(value, dict)
        assert row["a"] == value.get("a")


KINDS = {"i": "int", "s": "string", "d": "decimal(10,2)", "b": "boolean", "t": "timestamp", "l": "date", "f": "double"}


def test_csv_has_a_value_for_each_column_in_order() -> None:
    texts = [
        "1,x,1.25,true,2026-01-02T03:04:05Z,2026-01-02,1e3",
        '2,"a, ""b""\nc",,,,,\r\n',
        "3,,0,false,2026-01-02 03:04:05+01:00,,-1",
    ]
    rows = read(columns(KINDS, bodyFormat="csv"), *texts)
    assert [tuple(row.values()) for row in rows if isinstance(row, dict)] == [
        (1, "x", Decimal("1.25"), True, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), 1000.0),
        (2, 'a, "b"\nc', None, None, None, None, None),
        (3, "", Decimal(0), False, datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC), None, -1.0),
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("1", "1 values, not 2"),
        ("", "1 values, not 2"),
        ("1,2,3", "3 values, not 2"),
        ("x,y", "column a: "),
        (" 1,y", "column a: "),
        ("1.5,y", "column a: "),
        ("2147483648,y", "column a: "),
        ("1,y\n2,z", "not one record"),
        ('1,"y', "not one record"),
        ("1,\ud800", "surrogates"),
        (b"1,\xff", "UTF-8"),
        (None, "no body"),
    ],
)
def test_csv_that_does_not_fit(body: Body, reason: str) -> None:
    before, found, after = read(columns({"a": "int", "b": "string"}, bodyFormat="csv"), "0,x", body, "2,z")
    assert (before, after) == ({"a": 0, "b": "x"}, {"a": 2, "b": "z"})
    assert isinstance(found, str)
    assert reason in found


def test_a_quoted_value_of_csv_is_as_long_as_another() -> None:
    """Python's own limit, which is one of the process, stays as it was."""
    limit = csv.field_size_limit()
    long = "x" * (limit + 1)
    body = columns({"a": "int", "b": "string"}, bodyFormat="csv")
    assert read(body, f"1,{long}", f'2,"{long}"', f'3,"{long}\n""') == [
        {"a": 1, "b": long},
        {"a": 2, "b": long},
        "The body does not fit the columns: it is not one record of CSV: unexpected end of data",
    ]
    assert csv.field_size_limit() == limit


def test_long_values_of_csv_in_several_threads() -> None:
    limit = csv.field_size_limit()
    body = columns({"a": "string"}, bodyFormat="csv")
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: read(body, '"' + "x" * (limit + n) + '"'), range(1, 200))
        assert [len(row["a"]) for (row,) in found if isinstance(row, dict)] == [limit + n for n in range(1, 200)]
    assert csv.field_size_limit() == limit


def test_csv_with_another_delimiter() -> None:
    body = columns({"a": "int", "b": "string"}, bodyFormat="csv", delimiter=";")
    assert read(body, "1;a,b", '2;"c;d"') == [{"a": 1, "b": "a,b"}, {"a": 2, "b": "c;d"}]


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.text(), st.none() | st.floats(allow_nan=False))))
def test_records_are_read_as_they_were_written(records: list[tuple[int, str, float | None]]) -> None:
    texts: list[str] = []
    for record in records:
        written = io.StringIO()
        csv.writer(written).writerow(record)
        texts.append(written.getvalue())
    rows = read(columns({"a": "int", "b": "string", "c": "double"}, bodyFormat="csv"), *texts)
    assert [tuple(row.values()) for row in rows if isinstance(row, dict)] == records
