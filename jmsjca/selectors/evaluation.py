"""Evaluation of selectors in Python: compiles a syntax tree once to functions that are called for each message.

A condition is true, false or unknown (None): JMS 3.1, section 3.8.1.2. A comparison with a missing property, or with
None or NaN, is unknown; a comparison of different types is false. IN and LIKE are unknown for a value that is not a
string, so neither they nor NOT IN and NOT LIKE select it.

Numbers without a fraction correspond to Java's long, others to its double; mixed arithmetic uses doubles. Where Java's
long would wrap around, the result is a double. Division by zero is unknown, and so is arithmetic with values that are
not numbers. SQLite calculates in the same way, so selectors have the same result in SQL.
"""

import operator
from collections.abc import Callable
from typing import Protocol, TypeGuard

from jmsjca.selectors.like import Pattern
from jmsjca.selectors.syntax import (
    LONG,
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
)

__all__ = [
    "ARITHMETIC",
    "MIRRORED",
    "Comparer",
    "Fields",
    "Number",
    "Predicate",
    "comparer",
    "compile_condition",
    "is_number",
]

Comparer = Callable[[object, object], bool]

_EQUALITY: dict[str, Comparer] = {"=": operator.eq, "<>": operator.ne}
_ORDER: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The equivalent operator after an exchange of left and right."""


def comparer(symbol: str) -> Comparer:
    """Return the function that compares two values that are not None. Only numbers are ordered."""
    if symbol in _EQUALITY:
        equality = _EQUALITY[symbol]
        return lambda one, other: _are_alike(one, other) and equality(one, other)
    order = _ORDER[symbol]
    return lambda one, other: is_number(one) and is_number(other) and order(one, other)


def _are_alike(one: object, other: object) -> bool:
    for kind in (str, bool):
        if isinstance(one, kind):
            return isinstance(other, kind)
    return is_number(one) and is_number(other)


class Fields(Protocol):
    """The values of headers and properties by name, for example a mapping."""

    def get(self, name: str, /) -> object:
        """Return a value; None if it is not set."""
        ...


Predicate = Callable[[Fields], bool | None]
_Operand = Callable[[Fields], object]


def compile_condition(node: Expression) -> Predicate:
    """Return the function that evaluates a condition."""
    match node:
        case And(operands):
            return _conjunction_or_disjunction(operands, decisive=False)
        case Or(operands):
            return _conjunction_or_disjunction(operands, decisive=True)
        case Not(operand):
            return _negation(compile_condition(operand))
        case Comparison(symbol, left, right):
            return _comparison(comparer(symbol), _operand(left), _operand(right))
        case _:
            return _test(node)


def _test(node: Expression) -> Predicate:
    match node:
        case Like(name, pattern, escape):
            return _text_test(name, Pattern(pattern, escape).matches)
        case In(name, values):
            return _text_test(name, frozenset(values).__contains__)
        case IsNull(name):
            return _is_null(name)
        case _:
            return _boolean_test(_operand(node))


def _operand(node: Expression) -> _Operand:
    match node:
        case Literal(value):
            return lambda _: value
        case Identifier(name):
            return _field(name)
        case Arithmetic(symbol, left, right):
            return _arithmetic(symbol, _operand(left), _operand(right))
        case _:
            raise TypeError(f"{type(node).__name__} is no value")  # the parser rejects these


def _field(name: str) -> _Operand:
    def _read(fields: Fields) -> object:
        value = fields.get(name)
        return value if value == value else None  # noqa: PLR0124  # only NaN differs from itself

    return _read


def _boolean_test(operand: _Operand) -> Predicate:
    def _evaluate(fields: Fields) -> bool | None:
        value = operand(fields)
        return value if isinstance(value, bool) else None

    return _evaluate


def _negation(condition: Predicate) -> Predicate:
    def _evaluate(fields: Fields) -> bool | None:
        result = condition(fields)
        return None if result is None else not result

    return _evaluate


def _conjunction_or_disjunction(operands: tuple[Expression, ...], *, decisive: bool) -> Predicate:
    """Return AND or OR: one operand with the decisive value determines the result."""
    conditions = [compile_condition(operand) for operand in operands]

    def _evaluate(fields: Fields) -> bool | None:
        result: bool | None = not decisive
        for condition in conditions:
            value = condition(fields)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return _evaluate


def _comparison(compare: Comparer, left: _Operand, right: _Operand) -> Predicate:
    def _evaluate(fields: Fields) -> bool | None:
        one, other = left(fields), right(fields)
        return None if one is None or other is None else compare(one, other)

    return _evaluate


def _text_test(name: str, test: Callable[[str], bool]) -> Predicate:
    """Return the test of a string; it is unknown for values of other types."""
    read = _field(name)

    def _evaluate(fields: Fields) -> bool | None:
        value = read(fields)
        return test(value) if isinstance(value, str) else None

    return _evaluate


def _is_null(name: str) -> Predicate:
    read = _field(name)
    return lambda fields: read(fields) is None


def _arithmetic(symbol: str, left: _Operand, right: _Operand) -> _Operand:
    operation = ARITHMETIC[symbol]

    def _calculate(fields: Fields) -> object:
        one, other = left(fields), right(fields)
        return operation(one, other) if is_number(one) and is_number(other) else None

    return _calculate


Number = int | float
_Operation = Callable[[Number, Number], Number]


def is_number(value: object) -> TypeGuard[Number]:
    """Return True for numbers; booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounded(operation: _Operation) -> Callable[[Number, Number], Number | None]:
    """Return an operation that is repeated in double precision if its result exceeds 64 bits."""

    def _calculate(left: Number, right: Number) -> Number | None:
        try:
            result = operation(left, right)
            if isinstance(result, int) and not -LONG <= result < LONG:
                result = operation(float(left), float(right))
        except OverflowError:  # an int beyond the range of a double, which JMS does not have
            return None
        return result if result == result else None  # noqa: PLR0124  # only NaN differs from itself

    return _calculate


def _divide(left: Number, right: Number) -> Number | None:
    return _quotient(left, right) if right else None


def _java_quotient(left: Number, right: Number) -> Number:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_quotient = _bounded(_java_quotient)

ARITHMETIC: dict[str, Callable[[Number, Number], Number | None]] = {
    "+": _bounded(operator.add),
    "-": _bounded(operator.sub),
    "*": _bounded(operator.mul),
    "/": _divide,
}
"""The functions of the arithmetic operators. They return None for unknown."""
