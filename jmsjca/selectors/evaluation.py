"""Selectors evaluated in Python: a tree is turned into functions once, which are called for each message.

A condition is true, false or unknown (None): JMS 3.1, section 3.8.1.2. A property that is not set, is None or is NaN
makes unknown what it is compared with; one of another type than it is compared with makes it false.
"""

from collections.abc import Callable
from typing import Protocol

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
)
from jmsjca.selectors.comparison import Comparer, comparer
from jmsjca.selectors.like import Pattern
from jmsjca.selectors.numbers import ARITHMETIC, is_number

__all__ = ["Fields", "Predicate", "compile_condition"]


class Fields(Protocol):
    """What a selector looks at: the values of headers and properties by name; any mapping will do."""

    def get(self, name: str, /) -> object:
        """Give a value; None if there is none."""
        ...


Predicate = Callable[[Fields], bool | None]
_Operand = Callable[[Fields], object]


def compile_condition(node: Expression) -> Predicate:
    """Make the function that evaluates a condition."""
    match node:
        case And(operands):
            return _joined(operands, decisive=False)
        case Or(operands):
            return _joined(operands, decisive=True)
        case Not(operand):
            return _opposite(compile_condition(operand))
        case Comparison(symbol, left, right):
            return _comparison(comparer(symbol), _operand(left), _operand(right))
        case _:
            return _test(node)


def _test(node: Expression) -> Predicate:
    match node:
        case Like(name, pattern, escape):
            return _test_of_text(name, Pattern(pattern, escape).matches)
        case In(name, values):
            return _test_of_text(name, frozenset(values).__contains__)
        case IsNull(name):
            return _is_null(name)
        case _:
            return _truth(_operand(node))


def _operand(node: Expression) -> _Operand:
    match node:
        case Literal(value):
            return lambda _: value
        case Identifier(name):
            return _field(name)
        case Arithmetic(symbol, left, right):
            return _arithmetic(symbol, _operand(left), _operand(right))
        case _:
            raise TypeError(f"{type(node).__name__} is no value")  # the parser lets none through


def _field(name: str) -> _Operand:
    def read(fields: Fields) -> object:
        value = fields.get(name)
        return value if value == value else None  # noqa: PLR0124  # NaN is the one that is not

    return read


def _truth(operand: _Operand) -> Predicate:
    def evaluate(fields: Fields) -> bool | None:
        value = operand(fields)
        return value if isinstance(value, bool) else None

    return evaluate


def _opposite(condition: Predicate) -> Predicate:
    def evaluate(fields: Fields) -> bool | None:
        result = condition(fields)
        return None if result is None else not result

    return evaluate


def _joined(operands: tuple[Expression, ...], *, decisive: bool) -> Predicate:
    """AND or OR: one operand with the decisive value decides."""
    conditions = [compile_condition(operand) for operand in operands]

    def evaluate(fields: Fields) -> bool | None:
        result: bool | None = not decisive
        for condition in conditions:
            value = condition(fields)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return evaluate


def _comparison(compare: Comparer, left: _Operand, right: _Operand) -> Predicate:
    def evaluate(fields: Fields) -> bool | None:
        one, other = left(fields), right(fields)
        return None if one is None or other is None else compare(one, other)

    return evaluate


def _test_of_text(name: str, test: Callable[[str], bool]) -> Predicate:
    read = _field(name)

    def evaluate(fields: Fields) -> bool | None:
        value = read(fields)
        if value is None:
            return None
        return isinstance(value, str) and test(value)

    return evaluate


def _is_null(name: str) -> Predicate:
    read = _field(name)
    return lambda fields: read(fields) is None


def _arithmetic(symbol: str, left: _Operand, right: _Operand) -> _Operand:
    operation = ARITHMETIC[symbol]

    def calculate(fields: Fields) -> object:
        one, other = left(fields), right(fields)
        return operation(one, other) if is_number(one) and is_number(other) else None

    return calculate
