"""Values as texts in Arrow: dates and times, and the values of CSV."""

from importlib import import_module
from typing import Any

from jmsjca.spark.schema import pa

__all__ = ["from_text", "text_type"]

_compute: Any = import_module("pyarrow.compute")

_ZONE = r"(?:Z|[+-]\d{2}:?\d{2})$"


def text_type(kind: Any) -> Any:
    """Return the type with texts in place of dates and times, also within lists and structs."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, text_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, text_type(field.type)) for field in kind])
    return kind


def from_text(array: Any, kind: Any) -> Any:
    """Return an array with its texts converted, also within lists and structs.

    Args:
        array: An array of a type for which this is possible: see `text_type`.
        kind: The type of the result.

    Raises:
        ValueError: A text has another form.
    """
    if array.type == kind:
        return array
    if pa.types.is_list(kind):
        values = from_text(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    if pa.types.is_struct(kind):
        children = [from_text(child, field.type) for child, field in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        array = _with_zone(array)
    return _compute.cast(array, kind)


def _with_zone(array: Any) -> Any:
    """Return the texts of times, with the zone UTC where the zone is missing."""
    has_zone = _compute.match_substring_regex(array, _ZONE)
    return _compute.if_else(has_zone, array, _compute.binary_join_element_wise(array, pa.scalar("Z"), ""))
