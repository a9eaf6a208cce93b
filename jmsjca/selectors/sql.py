r"""Selectors translated to conditions of SQL, for SQLite.

SQLite gives values of JSON without their types: true is 1. A value is therefore always used beside its type.

Text read from JSON ends at its first U+0000 up to SQLite 3.44, and text for GLOB in all versions. So what seems equal
is looked at in its JSON, where that character is ``\u0000``; and GLOB is given a text with U+0001 in its place.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from jmsjca.errors import NotSupportedError
from jmsjca.selectors.ast import (
    And,
    Arithmetic,
    Comparison,
    Expression,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Value,
)
from jmsjca.selectors.evaluation import ARITHMETIC, MIRRORED, comparer, is_number
from jmsjca.selectors.like import split_pattern
from jmsjca.selectors.selector import Selector

__all__ = [
    "NULL",
    "Calculation",
    "Condition",
    "Constant",
    "Field",
    "Layout",
    "Operand",
    "SQLFragment",
    "as_number",
    "compare",
    "compose",
    "field",
    "is_in",
    "is_like",
    "is_true",
    "joined",
    "parameter",
    "raw_sql",
    "translate",
]

# Of the hundred words that the parser of SQLite keeps in mind, some belong to the query around the condition.
_MAX_PARSER_DEPTH = 80


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table holds messages. What stands here becomes part of the SQL, so none of it may come from a user.

    In the JSON a boolean is ``true`` or ``false``, a number of an exact type an integer, one of another type as Python
    writes it (infinite ones ``9e999`` and ``-9e999``), NaN is ``null``, and texts and names are escaped only where JSON
    requires it.

    Attributes:
        headers: For the name of a header the SQL expression of its value: a number, a text without U+0000, or NULL. All
            that selectors may name must be here; what else is here is taken from here, too, instead of a property.
        properties: The SQL expression, most simply a column, of the JSON text that holds the properties.
        path: The JSON path of the object of properties in it, such as ``$.p``.
    """

    headers: Mapping[str, str]
    properties: str
    path: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of SQL: true for the messages that are selected, else false or NULL.

    Attributes:
        sql: The text, in parentheses; it holds nothing that stood in the selector.
        parameters: The values of its question marks, in order.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()


_WORDS = re.compile(r"\w+|'[^']*'|[^\w\s]")
_MAX_JOINED = 50


@dataclass(frozen=True, slots=True)
class SQLFragment:
    """A piece of SQL.

    Attributes:
        sql: The text, with question marks for the parameters.
        parameters: Their values, in order.
        depth: How many words the parser of SQLite keeps in mind at most while it reads the piece, or a few less.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()
    depth: int = 1


NULL = SQLFragment("NULL")


def raw_sql(sql: str) -> SQLFragment:
    """Take over some SQL of which nothing is known."""
    return SQLFragment(sql, (), len(_WORDS.findall(sql)))


def parameter(value: str | int | float) -> SQLFragment:  # noqa: PYI041  # as sqlite3 tells them apart
    """A value of the selector: never a part of the text."""
    return SQLFragment("?", (value,))


def compose(template: str, *parts: SQLFragment) -> SQLFragment:
    """Put pieces into the ``{}`` of a text, in order. The texts are few."""
    depth = max(before + part.depth for before, part in zip(_words_before(template), parts, strict=True))
    parameters = tuple(value for part in parts for value in part.parameters)
    return SQLFragment(template.format(*(part.sql for part in parts)), parameters, depth)


@cache
def _words_before(template: str) -> tuple[int, ...]:
    """How many words stand before each ``{}``; one that is filled counts as one."""
    *between, _ = template.split("{}")
    return tuple(
        place + sum(len(_WORDS.findall(text)) for text in between[: place + 1]) for place in range(len(between))
    )


def joined(operator: str, parts: Sequence[SQLFragment]) -> SQLFragment:
    """Join pieces with AND or OR; many in groups, as SQLite's trees may not be deeper than 1000."""
    if len(parts) <= _MAX_JOINED:
        parameters = tuple(value for part in parts for value in part.parameters)
        sql = f" {operator} ".join(part.sql for part in parts)
        return SQLFragment(f"({sql})", parameters, max(parts[0].depth + 1, *(part.depth + 3 for part in parts[1:])))
    return joined(
        operator, [joined(operator, parts[start : start + _MAX_JOINED]) for start in range(0, len(parts), _MAX_JOINED)]
    )


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

    value: SQLFragment
    type: SQLFragment
    json: SQLFragment
    whole: SQLFragment
    like: SQLFragment


def field(name: str, layout: Layout) -> Field:
    """Find where a header or property is."""
    if name in layout.headers:
        return _header(raw_sql(layout.headers[name]))
    return _property(raw_sql(layout.properties), parameter(f'{layout.path}."{name}"'))


def _header(expression: SQLFragment) -> Field:
    value = compose("+({})", expression)  # the plus keeps the affinity of a column out of comparisons
    json = compose("json_array({}, {})", value, value)
    return Field(value, compose("typeof({})", value), json, SQLFragment("TRUE"), value)


def _property(column: SQLFragment, path: SQLFragment) -> Field:
    value = compose("json_extract({}, {})", column, path)
    json = compose("json_extract({}, {}, {})", column, path, path)
    safe = compose(r"replace(replace({}, '\\', '\u005c'), '\u0000', '\u0001')", column)
    return Field(
        value,
        compose("json_type({}, {})", column, path),
        json,
        compose(r"instr(replace({}, '\\', ''), '\u0000') = 0", json),
        compose(r"CASE instr({}, '\u0000') WHEN 0 THEN {} ELSE json_extract({}, {}) END", column, value, safe, path),
    )


# The types of SQLite by the kinds of values that selectors compare among themselves only.
_TYPES_OF = {"number": "'integer', 'real'", "text": "'text'", "truth": "'true', 'false'"}
_TYPES_EXCEPT = {kind: ", ".join(types for other, types in _TYPES_OF.items() if other != kind) for kind in _TYPES_OF}


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the selector itself tells."""

    value: Value


@dataclass(frozen=True, slots=True)
class Calculation:
    """A number that is calculated from headers or properties; or NULL."""

    number: SQLFragment


Operand = Constant | Calculation | Field


def compare(symbol: str, left: Operand, right: Operand) -> SQLFragment:
    """Compare two operands."""
    match left, right:
        case Constant(one), Constant(other):
            return SQLFragment(str(int(comparer(symbol)(one, other))))
        case Constant(value), Field():
            return _compare_with_constant(MIRRORED[symbol], right, value)
        case Field(), Constant(value):
            return _compare_with_constant(symbol, left, value)
        case _:
            return _compare_dynamic(symbol, left, right)


def is_in(field: Field, values: tuple[str, ...]) -> SQLFragment:
    """Tell whether a text is one of some."""
    marks = ", ".join("?" * len(values))
    texts = SQLFragment(marks, tuple(_checked(value) for value in values))
    return compose("({} IN ({}) AND {})", field.value, texts, field.whole)


def is_like(field: Field, pattern: str, escape: str | None) -> SQLFragment:
    """Tell whether a text is like a pattern; GLOB is LIKE with other signs, and tells capitals from small letters."""
    pieces = ["".join(map(_for_glob, piece)) for piece in split_pattern(pattern, escape)]
    glob = parameter(_checked("*".join(pieces), "\0\1\ufffd\ufffe\uffff"))
    return compose(f"({{}} GLOB {{}} AND {{}} NOT IN ({_TYPES_EXCEPT['text']}))", field.like, glob, field.type)


def is_true(field: Field) -> SQLFragment:
    """Tell whether a boolean is true; NULL if it is no boolean."""
    return _as_kind("truth", field) or NULL


def as_number(operand: Operand) -> SQLFragment:
    """Give the number that an operand is; NULL if it is none."""
    return _as_kind("number", operand) or NULL


def _compare_with_constant(symbol: str, field: Field, value: Value) -> SQLFragment:
    if isinstance(value, str):
        same = compose("({} = {} AND {})", field.value, parameter(_checked(value)), field.whole)
        return (
            same
            if symbol == "="
            else compose(f"(NOT {{}} AND {{}} NOT IN ({_TYPES_EXCEPT['text']}))", same, field.type)
        )
    # The plus makes a boolean the number that SQLite has for it.
    others = _TYPES_EXCEPT["truth" if isinstance(value, bool) else "number"]
    mine = _parsed_like(value, field) if isinstance(value, float) else field.value
    return compose(f"({{}} {symbol} {{}} AND {{}} NOT IN ({others}))", mine, parameter(+value), field.type)


def _parsed_like(value: float, field: Field) -> SQLFragment:
    """A number that is written as one in the selector is that one, however inexactly SQLite reads decimals."""
    written = f"[{value!r},{value!r}]"
    return compose("CASE {} WHEN {} THEN {} ELSE {} END", field.json, parameter(written), parameter(value), field.value)


def _compare_dynamic(symbol: str, left: Operand, right: Operand) -> SQLFragment:
    kinds = tuple(_TYPES_OF) if symbol in {"=", "<>"} else ("number",)
    pairs = [(_as_kind(kind, left), _as_kind(kind, right)) for kind in kinds]
    alike = [compose(f"{{}} {symbol} {{}}", one, other) for one, other in pairs if one and other]
    unknown = compose("{} IS NULL OR {} IS NULL", _raw_value(left), _raw_value(right))
    return compose(f"CASE WHEN {{}} THEN NULL ELSE coalesce({'{}, ' * len(alike)}NULL, 0) END", unknown, *alike)


def _raw_value(operand: Operand) -> SQLFragment:
    match operand:
        case Field(value=value) | Calculation(value):
            return value
        case Constant(known):
            return parameter(known)


def _as_kind(kind: str, operand: Operand) -> SQLFragment | None:
    match operand:
        case Field():
            value = operand.json if kind == "text" else operand.value
            return compose(f"CASE WHEN {{}} IN ({_TYPES_OF[kind]}) THEN {{}} END", operand.type, value)
        case Calculation(number):
            return number if kind == "number" else None
        case Constant(value):
            return parameter(value) if kind == "number" and is_number(value) else None


def _checked(text: str, refused: str = "\0") -> str:
    if any(character in refused for character in text):
        raise NotSupportedError(
            f"The text {text!r:.100} of the selector holds a character that SQLite cannot compare:"
            f" {', '.join(f'U+{ord(character):04X}' for character in refused)}."
        )
    return text


def _for_glob(character: str | None) -> str:
    if character is None:  # ANY
        return "?"
    return f"[{character}]" if character in "*?[" else character


def translate(selector: Selector, layout: Layout) -> Condition:
    """Write a selector as a condition for SQLite 3.37 or later.

    The condition is true exactly for the messages that `Selector.evaluate` gives True for.

    Args:
        selector: Which.
        layout: How the table holds messages.

    Returns:
        The condition. No text of the selector is part of its SQL.

    Raises:
        NotSupportedError: A string of the selector holds U+0000, or a pattern of LIKE U+0001, U+FFFD, U+FFFE or
            U+FFFF, which SQLite cannot tell from others; or the selector is nested deeper than SQLite reads, which is
            at least 15 operators, each right of the one that it stands in. `Selector.evaluate` takes these, too.
    """
    if selector.expression is None:
        return Condition("(1)")
    fragment = compose("({})", _Translation(layout).condition(selector.expression))
    if fragment.depth > _MAX_PARSER_DEPTH:
        raise NotSupportedError(f"The selector {str(selector)!r:.100} is nested too deep for SQLite; write it flatter.")
    return Condition(fragment.sql, fragment.parameters)


class _Translation:
    """Each part of a tree in the SQL of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def condition(self, node: Expression) -> SQLFragment:
        match node:
            case And(operands):
                return joined("AND", [self.condition(operand) for operand in operands])
            case Or(operands):
                return joined("OR", [self.condition(operand) for operand in operands])
            case Not(operand):
                return compose("NOT {}", self.condition(operand))
            case Comparison(symbol, left, right):
                return compare(symbol, self._operand(left), self._operand(right))
            case _:
                return self._test(node)

    def _test(self, node: Expression) -> SQLFragment:
        match node:
            case Like(name, pattern, escape):
                return is_like(field(name, self._layout), pattern, escape)
            case In(name, values):
                return is_in(field(name, self._layout), values)
            case IsNull(name):
                return compose("({} IS NULL)", field(name, self._layout).value)
            case Identifier(name):
                return is_true(field(name, self._layout))
            case _:
                return SQLFragment("TRUE" if node == Literal(value=True) else "FALSE")

    def _operand(self, node: Expression) -> Operand:
        match node:
            case Literal(value):
                return Constant(value)
            case Identifier(name):
                return field(name, self._layout)
            case Arithmetic(symbol, left, right):
                return self._calculation(symbol, self._operand(left), self._operand(right))
            case _:
                raise TypeError(f"{type(node).__name__} is no value")  # the parser lets none through

    def _calculation(self, symbol: str, left: Operand, right: Operand) -> Operand:
        match left, right:
            case Constant(int() | float() as one), Constant(int() | float() as other):
                result = ARITHMETIC[symbol](one, other)
                return Calculation(NULL) if result is None else Constant(result)
            case _:
                return Calculation(compose(f"({{}} {symbol} {{}})", as_number(left), as_number(right)))
