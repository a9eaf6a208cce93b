"""Arithmetic of selectors: exact in 64 bits, in double precision beyond (JMS 3.1, section 3.8.1.1).

Numbers without a fraction are Java's long, others its double; together they are doubles. Where Java's long would wrap
around, the result is a double. Dividing by zero gives unknown, and so does what is not a number. All this is as SQLite
calculates, so that selectors mean the same in SQL.
"""

import operator
from collections.abc import Callable
from typing import TypeGuard

from jmsjca.selectors.literals import LONG

__all__ = ["ARITHMETIC", "Number", "is_number"]

Number = int | float
_Operation = Callable[[Number, Number], Number]


def is_number(value: object) -> TypeGuard[Number]:
    """Tell numbers from other values; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounded(operation: _Operation) -> Callable[[Number, Number], Number | None]:
    """Repeat an operation in double precision where its result leaves the 64 bits."""

    def calculate(left: Number, right: Number) -> Number | None:
        try:
            result = operation(left, right)
            if isinstance(result, int) and not -LONG <= result < LONG:
                result = operation(float(left), float(right))
        except OverflowError:  # an int that is larger than a double, and none of JMS
            return None
        return result if result == result else None  # noqa: PLR0124  # NaN is the one that is not

    return calculate


def _divide(left: Number, right: Number) -> Number | None:
    return _quotient(left, right) if right else None


def _truncated(left: Number, right: Number) -> Number:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_quotient = _bounded(_truncated)

ARITHMETIC: dict[str, Callable[[Number, Number], Number | None]] = {
    "+": _bounded(operator.add),
    "-": _bounded(operator.sub),
    "*": _bounded(operator.mul),
    "/": _divide,
}
"""What the operators do; None is unknown."""
