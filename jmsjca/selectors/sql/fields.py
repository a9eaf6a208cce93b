r"""Headers and properties in SQL: their values, and which type these have.

SQLite gives values of JSON without their types: true is 1. A value is therefore always used beside its type.

Text read from JSON ends at its first U+0000 up to SQLite 3.44, and text for GLOB in all versions. So what seems equal
is looked at in its JSON, where that character is ``\u0000``; and GLOB is given a text with U+0001 in its place.
"""

from dataclasses import dataclass

from jmsjca.selectors.sql.fragments import Fragment, fill, parameter, text
from jmsjca.selectors.sql.layout import Layout

__all__ = ["Field", "field"]


@dataclass(frozen=True, slots=True)
class Field:
    """A header or property.

    Attributes:
        value: As SQLite gives it; NULL if it is not set.
        type: The name of its type.
        json: The value twice in a JSON array: that tells all texts apart. (``->`` is not in SQLite 3.37.)
        whole: False if the value ended early.
        like: A text for GLOB.
    """

    value: Fragment
    type: Fragment
    json: Fragment
    whole: Fragment
    like: Fragment


def field(name: str, layout: Layout) -> Field:
    """Find where a header or property is."""
    if name in layout.headers:
        return _header(text(layout.headers[name]))
    return _property(text(layout.properties), parameter(f'{layout.path}."{name}"'))


def _header(expression: Fragment) -> Field:
    value = fill("+({})", expression)  # the plus keeps the affinity of a column out of comparisons
    json = fill("json_array({}, {})", value, value)
    return Field(value, fill("typeof({})", value), json, Fragment("TRUE"), value)


def _property(column: Fragment, path: Fragment) -> Field:
    value = fill("json_extract({}, {})", column, path)
    json = fill("json_extract({}, {}, {})", column, path, path)
    safe = fill(r"replace(replace({}, '\\', '\u005c'), '\u0000', '\u0001')", column)
    return Field(
        value,
        fill("json_type({}, {})", column, path),
        json,
        fill(r"instr(replace({}, '\\', ''), '\u0000') = 0", json),
        fill(r"CASE instr({}, '\u0000') WHEN 0 THEN {} ELSE json_extract({}, {}) END", column, value, safe, path),
    )
