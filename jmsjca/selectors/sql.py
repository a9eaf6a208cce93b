"""From the tree of a selector to SQL."""

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
)
from jmsjca.selectors.numbers import ARITHMETIC
from jmsjca.selectors.selector import Selector
from jmsjca.selectors.sql.comparisons import Calculation, Constant, Operand, as_number, compare, is_in, is_like, is_true
from jmsjca.selectors.sql.fields import field
from jmsjca.selectors.sql.fragments import NULL, Fragment, fill, joined
from jmsjca.selectors.sql.layout import Condition, Layout

__all__ = ["translate"]

# Of the hundred words that the parser of SQLite keeps in mind, some belong to the query around the condition.
_DEEPEST = 80


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
    fragment = fill("({})", _Translation(layout).condition(selector.expression))
    if fragment.depth > _DEEPEST:
        raise NotSupportedError(f"The selector {str(selector)!r:.100} is nested too deep for SQLite; write it flatter.")
    return Condition(fragment.sql, fragment.parameters)


class _Translation:
    """Each part of a tree in the SQL of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def condition(self, node: Expression) -> Fragment:
        match node:
            case And(operands):
                return joined("AND", [self.condition(operand) for operand in operands])
            case Or(operands):
                return joined("OR", [self.condition(operand) for operand in operands])
            case Not(operand):
                return fill("NOT {}", self.condition(operand))
            case Comparison(symbol, left, right):
                return compare(symbol, self._operand(left), self._operand(right))
            case _:
                return self._test(node)

    def _test(self, node: Expression) -> Fragment:
        match node:
            case Like(name, pattern, escape):
                return is_like(field(name, self._layout), pattern, escape)
            case In(name, values):
                return is_in(field(name, self._layout), values)
            case IsNull(name):
                return fill("({} IS NULL)", field(name, self._layout).value)
            case Identifier(name):
                return is_true(field(name, self._layout))
            case _:
                return Fragment("TRUE" if node == Literal(value=True) else "FALSE")

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
                return Calculation(fill(f"({{}} {symbol} {{}})", as_number(left), as_number(right)))
