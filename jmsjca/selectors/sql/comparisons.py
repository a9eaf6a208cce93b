"""Comparisons in SQL. Each is true, false or NULL as the evaluation in Python gives it."""

from dataclasses import dataclass

from jmsjca.errors import NotSupportedError
from jmsjca.selectors.ast import Value
from jmsjca.selectors.comparison import MIRRORED, comparer
from jmsjca.selectors.like import split_pattern
from jmsjca.selectors.numbers import is_number
from jmsjca.selectors.sql.fields import Field
from jmsjca.selectors.sql.fragments import NULL, Fragment, fill, parameter

__all__ = ["Calculation", "Constant", "Operand", "as_number", "compare", "is_in", "is_like", "is_true"]

# The types of SQLite by the kinds of values that selectors compare among themselves only.
_OF = {"number": "'integer', 'real'", "text": "'text'", "truth": "'true', 'false'"}
_NOT_OF = {kind: ", ".join(types for other, types in _OF.items() if other != kind) for kind in _OF}


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the selector itself tells."""

    value: Value


@dataclass(frozen=True, slots=True)
class Calculation:
    """A number that is calculated from headers or properties; or NULL."""

    number: Fragment


Operand = Constant | Calculation | Field


def compare(symbol: str, left: Operand, right: Operand) -> Fragment:
    """Compare two operands."""
    match left, right:
        case Constant(one), Constant(other):
            return Fragment(str(int(comparer(symbol)(one, other))))
        case Constant(value), Field():
            return _with_value(MIRRORED[symbol], right, value)
        case Field(), Constant(value):
            return _with_value(symbol, left, value)
        case _:
            return _with_any(symbol, left, right)


def is_in(field: Field, values: tuple[str, ...]) -> Fragment:
    """Tell whether a text is one of some."""
    marks = ", ".join("?" * len(values))
    texts = Fragment(marks, tuple(_checked(value) for value in values))
    return fill("({} IN ({}) AND {})", field.value, texts, field.whole)


def is_like(field: Field, pattern: str, escape: str | None) -> Fragment:
    """Tell whether a text is like a pattern; GLOB is LIKE with other signs, and tells capitals from small letters."""
    pieces = ["".join(map(_for_glob, piece)) for piece in split_pattern(pattern, escape)]
    glob = parameter(_checked("*".join(pieces), "\0\1\ufffd\ufffe\uffff"))
    return fill(f"({{}} GLOB {{}} AND {{}} NOT IN ({_NOT_OF['text']}))", field.like, glob, field.type)


def is_true(field: Field) -> Fragment:
    """Tell whether a boolean is true; NULL if it is no boolean."""
    return _of_kind("truth", field) or NULL


def as_number(operand: Operand) -> Fragment:
    """Give the number that an operand is; NULL if it is none."""
    return _of_kind("number", operand) or NULL


def _with_value(symbol: str, field: Field, value: Value) -> Fragment:
    if isinstance(value, str):
        same = fill("({} = {} AND {})", field.value, parameter(_checked(value)), field.whole)
        return same if symbol == "=" else fill(f"(NOT {{}} AND {{}} NOT IN ({_NOT_OF['text']}))", same, field.type)
    # The plus makes a boolean the number that SQLite has for it.
    others = _NOT_OF["truth" if isinstance(value, bool) else "number"]
    mine = _read_like(value, field) if isinstance(value, float) else field.value
    return fill(f"({{}} {symbol} {{}} AND {{}} NOT IN ({others}))", mine, parameter(+value), field.type)


def _read_like(value: float, field: Field) -> Fragment:
    """A number that is written as one in the selector is that one, however inexactly SQLite reads decimals."""
    written = f"[{value!r},{value!r}]"
    return fill("CASE {} WHEN {} THEN {} ELSE {} END", field.json, parameter(written), parameter(value), field.value)


def _with_any(symbol: str, left: Operand, right: Operand) -> Fragment:
    kinds = tuple(_OF) if symbol in {"=", "<>"} else ("number",)
    pairs = [(_of_kind(kind, left), _of_kind(kind, right)) for kind in kinds]
    alike = [fill(f"{{}} {symbol} {{}}", one, other) for one, other in pairs if one and other]
    unknown = fill("{} IS NULL OR {} IS NULL", _plain(left), _plain(right))
    return fill(f"CASE WHEN {{}} THEN NULL ELSE coalesce({'{}, ' * len(alike)}NULL, 0) END", unknown, *alike)


def _plain(operand: Operand) -> Fragment:
    match operand:
        case Field(value=value) | Calculation(value):
            return value
        case Constant(known):
            return parameter(known)


def _of_kind(kind: str, operand: Operand) -> Fragment | None:
    match operand:
        case Field():
            value = operand.json if kind == "text" else operand.value
            return fill(f"CASE WHEN {{}} IN ({_OF[kind]}) THEN {{}} END", operand.type, value)
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
