r"""Translation of selectors to SQL conditions for SQLite.

SQLite returns JSON values without their types: true is returned as 1. Therefore a value is always checked together with
its type.

Up to SQLite 3.44, text read from JSON ends at its first U+0000; in all versions, text for GLOB does. Therefore values
that seem equal are compared in their JSON form, where that character is ``\u0000``, and GLOB gets a text with U+0001
instead.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from jmsjca.errors import NotSupportedError
from jmsjca.selectors.evaluation import ARITHMETIC, MIRRORED, comparer, is_number
from jmsjca.selectors.like import split_pattern
from jmsjca.selectors.selector import Selector
from jmsjca.selectors.syntax import (
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

__all__ = [
    "Condition",
    "Layout",
    "translate",
]

# The stack of SQLite's parser has 100 entries; the query around the condition uses some of them.
_MAX_PARSER_DEPTH = 80


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table of messages. These texts become part of the SQL, so they must not come from a user.

    In the JSON a boolean is ``true`` or ``false``, a number of an exact type is an integer, other numbers are written
    as in Python (infinite ones as ``9e999`` and ``-9e999``), and NaN is ``null``. Texts and names are escaped only
    where JSON requires it.

    Attributes:
        headers: The SQL expression of each header's value by name: a number, a text without U+0000, or NULL. It must
            have all headers that selectors may name. Further names in it replace the properties of these names.
        properties: The SQL expression, usually a column, of the JSON text with the properties.
        path: The JSON path of the properties object in that text, such as ``$.p``.
    """

    headers: Mapping[str, str]
    properties: str
    path: str


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition: true for selected messages, otherwise false or NULL.

    Attributes:
        sql: The text, in parentheses; it contains no text of the selector.
        parameters: The values of its ``?`` placeholders, in order.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()


_WORDS = re.compile(r"\w+|'[^']*'|[^\w\s]")
_MAX_JOINED = 50


@dataclass(frozen=True, slots=True)
class _SQLFragment:
    """A piece of SQL.

    Attributes:
        sql: The text, with ``?`` for the parameters.
        parameters: Their values, in order.
        depth: The approximate number of entries on the stack of SQLite's parser while it reads the fragment.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()
    depth: int = 1


_NULL = _SQLFragment("NULL")


def _raw_sql(sql: str) -> _SQLFragment:
    """Return a fragment of fixed SQL text."""
    return _SQLFragment(sql, (), len(_WORDS.findall(sql)))


def _parameter(value: str | int | float) -> _SQLFragment:  # noqa: PYI041  # sqlite3 distinguishes them
    """Return a parameter fragment: a value of the selector never becomes part of the SQL text."""
    return _SQLFragment("?", (value,))


def _compose(template: str, *parts: _SQLFragment) -> _SQLFragment:
    """Insert fragments into the ``{}`` of a template, in order."""
    depth = max(before + part.depth for before, part in zip(_words_before(template), parts, strict=True))
    parameters = tuple(value for part in parts for value in part.parameters)
    return _SQLFragment(template.format(*(part.sql for part in parts)), parameters, depth)


@cache
def _words_before(template: str) -> tuple[int, ...]:
    """Return the number of tokens before each ``{}``; a filled ``{}`` counts as one."""
    *between, _ = template.split("{}")
    return tuple(
        place + sum(len(_WORDS.findall(text)) for text in between[: place + 1]) for place in range(len(between))
    )


def _joined(operator: str, parts: Sequence[_SQLFragment]) -> _SQLFragment:
    """Join fragments with AND or OR; many of them in groups, because SQLite limits expressions to a depth of 1000."""
    if len(parts) <= _MAX_JOINED:
        parameters = tuple(value for part in parts for value in part.parameters)
        sql = f" {operator} ".join(part.sql for part in parts)
        return _SQLFragment(f"({sql})", parameters, max(parts[0].depth + 1, *(part.depth + 3 for part in parts[1:])))
    return _joined(
        operator, [_joined(operator, parts[start : start + _MAX_JOINED]) for start in range(0, len(parts), _MAX_JOINED)]
    )


@dataclass(frozen=True, slots=True)
class _Field:
    """A header or property.

    Attributes:
        value: The value as SQLite returns it; NULL if it is not set.
        type: The name of its SQLite or JSON type.
        json: A JSON array with the value twice, so that all texts differ. (SQLite 3.37 lacks ``->``.)
        whole: False if the value is truncated.
        like: A text for GLOB.
    """

    value: _SQLFragment
    type: _SQLFragment
    json: _SQLFragment
    whole: _SQLFragment
    like: _SQLFragment


def _field_of(name: str, layout: Layout) -> _Field:
    """Return the SQL of a header or property."""
    if name in layout.headers:
        return _header(_raw_sql(layout.headers[name]))
    return _property(_raw_sql(layout.properties), _parameter(f'{layout.path}."{name}"'))


def _header(expression: _SQLFragment) -> _Field:
    value = _compose("+({})", expression)  # the plus removes the affinity of a column from comparisons
    json = _compose("json_array({}, {})", value, value)
    return _Field(value, _compose("typeof({})", value), json, _SQLFragment("TRUE"), value)


def _property(column: _SQLFragment, path: _SQLFragment) -> _Field:
    value = _compose("json_extract({}, {})", column, path)
    json = _compose("json_extract({}, {}, {})", column, path, path)
    safe = _compose(r"replace(replace({}, '\\', '\u005c'), '\u0000', '\u0001')", column)
    return _Field(
        value,
        _compose("json_type({}, {})", column, path),
        json,
        _compose(r"instr(replace({}, '\\', ''), '\u0000') = 0", json),
        _compose(r"CASE instr({}, '\u0000') WHEN 0 THEN {} ELSE json_extract({}, {}) END", column, value, safe, path),
    )


# The types of SQLite for each kind of value; selectors compare only values of the same kind.
_TYPES_OF = {"number": "'integer', 'real'", "text": "'text'", "truth": "'true', 'false'"}
_TYPES_EXCEPT = {kind: ", ".join(types for other, types in _TYPES_OF.items() if other != kind) for kind in _TYPES_OF}


@dataclass(frozen=True, slots=True)
class _Constant:
    """A value that is constant in the selector."""

    value: Value


@dataclass(frozen=True, slots=True)
class _Calculation:
    """A number calculated from headers or properties, or NULL."""

    number: _SQLFragment


_Operand = _Constant | _Calculation | _Field


def _compare(symbol: str, left: _Operand, right: _Operand) -> _SQLFragment:
    """Return the comparison of two operands."""
    match left, right:
        case _Constant(one), _Constant(other):
            return _SQLFragment(str(int(comparer(symbol)(one, other))))
        case _Constant(value), _Field():
            return _compare_with_constant(MIRRORED[symbol], right, value)
        case _Field(), _Constant(value):
            return _compare_with_constant(symbol, left, value)
        case _:
            return _compare_dynamic(symbol, left, right)


def _is_in(field: _Field, values: tuple[str, ...]) -> _SQLFragment:
    """Return the condition that a text is in a list; NULL for values that are not texts."""
    marks = ", ".join("?" * len(values))
    texts = _SQLFragment(marks, tuple(_checked(value) for value in values))
    return _if_text(field, _compose("{} IN ({}) AND {}", field.value, texts, field.whole))


def _is_like(field: _Field, pattern: str, escape: str | None) -> _SQLFragment:
    """Return the condition that a text matches a pattern; NULL for values that are not texts.

    GLOB, unlike LIKE, is case-sensitive in SQLite.
    """
    pieces = ["".join(map(_for_glob, piece)) for piece in split_pattern(pattern, escape)]
    glob = _parameter(_checked("*".join(pieces), "\0\1\ufffd\ufffe\uffff"))
    return _if_text(field, _compose("{} GLOB {}", field.like, glob))


def _if_text(field: _Field, condition: _SQLFragment) -> _SQLFragment:
    """Return a condition for texts. It is NULL for other types, even if it is negated."""
    return _compose(f"CASE WHEN {{}} = {_TYPES_OF['text']} THEN {{}} END", field.type, condition)


def _is_true(field: _Field) -> _SQLFragment:
    """Return the value of a boolean; NULL for other types."""
    return _as_kind("truth", field) or _NULL


def _as_number(operand: _Operand) -> _SQLFragment:
    """Return the value of a number; NULL for other types."""
    return _as_kind("number", operand) or _NULL


def _compare_with_constant(symbol: str, field: _Field, value: Value) -> _SQLFragment:
    if isinstance(value, str):
        same = _compose("({} = {} AND {})", field.value, _parameter(_checked(value)), field.whole)
        return (
            same
            if symbol == "="
            else _compose(f"(NOT {{}} AND {{}} NOT IN ({_TYPES_EXCEPT['text']}))", same, field.type)
        )
    # The plus converts a boolean to SQLite's number for it.
    others = _TYPES_EXCEPT["truth" if isinstance(value, bool) else "number"]
    mine = _parsed_like(value, field) if isinstance(value, float) else field.value
    return _compose(f"({{}} {symbol} {{}} AND {{}} NOT IN ({others}))", mine, _parameter(+value), field.type)


def _parsed_like(value: float, field: _Field) -> _SQLFragment:
    """Return a number that equals the literal in the selector, even if SQLite parses decimals inexactly."""
    written = f"[{value!r},{value!r}]"
    return _compose(
        "CASE {} WHEN {} THEN {} ELSE {} END", field.json, _parameter(written), _parameter(value), field.value
    )


def _compare_dynamic(symbol: str, left: _Operand, right: _Operand) -> _SQLFragment:
    kinds = tuple(_TYPES_OF) if symbol in {"=", "<>"} else ("number",)
    pairs = [(_as_kind(kind, left), _as_kind(kind, right)) for kind in kinds]
    alike = [_compose(f"{{}} {symbol} {{}}", one, other) for one, other in pairs if one and other]
    unknown = _compose("{} IS NULL OR {} IS NULL", _raw_value(left), _raw_value(right))
    return _compose(f"CASE WHEN {{}} THEN NULL ELSE coalesce({'{}, ' * len(alike)}NULL, 0) END", unknown, *alike)


def _raw_value(operand: _Operand) -> _SQLFragment:
    match operand:
        case _Field(value=value) | _Calculation(value):
            return value
        case _Constant(known):
            return _parameter(known)


def _as_kind(kind: str, operand: _Operand) -> _SQLFragment | None:
    match operand:
        case _Field():
            value = operand.json if kind == "text" else operand.value
            return _compose(f"CASE WHEN {{}} IN ({_TYPES_OF[kind]}) THEN {{}} END", operand.type, value)
        case _Calculation(number):
            return number if kind == "number" else None
        case _Constant(value):
            return _parameter(value) if kind == "number" and is_number(value) else None


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
    """Translate a selector to a condition for SQLite 3.37 or later.

    The condition is true exactly for the messages for which `Selector.evaluate` returns True.

    Args:
        selector: The selector.
        layout: The columns of the table.

    Returns:
        The condition. Its SQL contains no text of the selector.

    Raises:
        NotSupportedError: A string of the selector contains U+0000, or a pattern of LIKE contains U+0001, U+FFFD,
            U+FFFE or U+FFFF, which SQLite cannot distinguish from others; or the selector is nested too deep for
            SQLite, which accepts at least 15 right-nested operators. `Selector.evaluate` supports all of these.
    """
    if selector.expression is None:
        return Condition("(1)")
    fragment = _compose("({})", _Translation(layout).condition(selector.expression))
    if fragment.depth > _MAX_PARSER_DEPTH:
        raise NotSupportedError(f"The selector {str(selector)!r:.100} is nested too deep for SQLite; write it flatter.")
    return Condition(fragment.sql, fragment.parameters)


class _Translation:
    """Translates the nodes of a syntax tree for one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def condition(self, node: Expression) -> _SQLFragment:
        """Return the SQL condition of a node."""
        match node:
            case And(operands):
                return _joined("AND", [self.condition(operand) for operand in operands])
            case Or(operands):
                return _joined("OR", [self.condition(operand) for operand in operands])
            case Not(operand):
                return _compose("NOT {}", self.condition(operand))
            case Comparison(symbol, left, right):
                return _compare(symbol, self._operand(left), self._operand(right))
            case _:
                return self._test(node)

    def _test(self, node: Expression) -> _SQLFragment:
        match node:
            case Like(name, pattern, escape):
                return _is_like(_field_of(name, self._layout), pattern, escape)
            case In(name, values):
                return _is_in(_field_of(name, self._layout), values)
            case IsNull(name):
                return _compose("({} IS NULL)", _field_of(name, self._layout).value)
            case Identifier(name):
                return _is_true(_field_of(name, self._layout))
            case _:
                return _SQLFragment("TRUE" if node == Literal(value=True) else "FALSE")

    def _operand(self, node: Expression) -> _Operand:
        match node:
            case Literal(value):
                return _Constant(value)
            case Identifier(name):
                return _field_of(name, self._layout)
            case Arithmetic(symbol, left, right):
                return self._calculation(symbol, self._operand(left), self._operand(right))
            case _:
                raise TypeError(f"{type(node).__name__} is no value")  # the parser rejects these

    def _calculation(self, symbol: str, left: _Operand, right: _Operand) -> _Operand:
        match left, right:
            case _Constant(int() | float() as one), _Constant(int() | float() as other):
                result = ARITHMETIC[symbol](one, other)
                return _Calculation(_NULL) if result is None else _Constant(result)
            case _:
                return _Calculation(_compose(f"({{}} {symbol} {{}})", _as_number(left), _as_number(right)))
