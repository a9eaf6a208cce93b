"""Typed values as VARIANT."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, Short, type_name
from jmsjca.spark.variants import decode_object, encode_object

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False).map(Double),
    TEXTS,
    st.binary(),
)
OBJECTS = st.dictionaries(TEXTS, VALUES)
MANY = {f"name {n}": Int(n) for n in range(300)}


@given(OBJECTS)
@example({})
@example(MANY)
@example({"long": "x" * 70_000, "longer": "é" * 70_000})
def test_values_keep_their_types(values: dict[str, Any]) -> None:
    found = decode_object(**encode_object(values))
    assert found == values
    assert {n: v is None or type_name(v) for n, v in found.items()} == {
        n: v is None or type_name(v) for n, v in values.items()
    }


@given(OBJECTS)
@example(MANY)
@example({"x" * 70_000: Int(1), "y": "é" * 63})
def test_spark_reads_the_same_values(values: dict[str, Any]) -> None:
    made = encode_object(values)
    assert VariantVal(made["value"], made["metadata"]).toPython() == values


def test_fields_are_in_the_order_of_java() -> None:
    """Spark looks up the fields of a large object by bisection, and Java compares halves of surrogate pairs."""
    found = decode_object(**encode_object({"\uffff": Int(1), "\U0001f600": Int(2), "b": Int(3), "a": Int(4)}))
    assert list(found) == ["a", "b", "\U0001f600", "\uffff"]


def test_python_numbers_have_the_types_of_properties() -> None:
    found = decode_object(**encode_object({"i": 1, "l": 2**40, "d": 0.5}))
    assert [type(value) for value in found.values()] == [Double, Int, Long]


@pytest.mark.parametrize("value", [2**63, object(), ["x"], "half \ud800", "x" * (1 << 24)])
def test_a_value_that_does_not_fit(value: object) -> None:
    with pytest.raises((MessageFormatError, UnicodeEncodeError)):
        encode_object({"a": value})


def test_objects_of_other_programs() -> None:
    made = VariantVal.parseJson('{"d": 1.25, "n": 1, "s": "x", "big": 12345678901.5, "t": true, "none": null}')
    found = decode_object(made.value, made.metadata)
    assert found == {"big": 12345678901.5, "d": 1.25, "n": 1, "none": None, "s": "x", "t": True}
    assert (type(found["d"]), type(found["n"])) == (Double, Byte)
    assert Decimal(str(found["d"])) == Decimal("1.25")


@pytest.mark.parametrize("text", ["1", "[1]", '{"a": {"b": 1}}', '{"a": [1]}'])
def test_what_is_no_object_of_properties_is_refused(text: str) -> None:
    made = VariantVal.parseJson(text)
    with pytest.raises(MessageFormatError, match=r"to_variant_object|cast it"):
        decode_object(made.value, made.metadata)


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_damaged_bytes_are_refused_in_words(value: bytes, metadata: bytes) -> None:
    try:
        decode_object(value, metadata)
    except MessageFormatError:
        return
