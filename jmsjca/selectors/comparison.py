"""How two values are compared (JMS 3.1, section 3.8.1.1): unlike ones are neither equal nor unequal, nor in order."""

import operator
from collections.abc import Callable

from jmsjca.selectors.numbers import is_number

__all__ = ["MIRRORED", "Comparer", "comparer"]

Comparer = Callable[[object, object], bool]

_EQUALITY: dict[str, Comparer] = {"=": operator.eq, "<>": operator.ne}
_ORDER: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator that says the same when left and right are exchanged."""


def comparer(symbol: str) -> Comparer:
    """Find the function that compares two values that are not None. Only numbers have an order."""
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
