"""From what the grammar recognises to the tree of a selector."""

from typing import TypeVar

from lark import Token, Transformer

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
from jmsjca.selectors.like import split_pattern
from jmsjca.selectors.literals import read_integer, read_list, read_real, read_string
from jmsjca.selectors.rules import name_of, read, require_comparable, require_condition, require_number

__all__ = ["Assembly"]

_Part = Expression | Token
_Joint = TypeVar("_Joint", And, Or)


class Assembly(Transformer[Token, Expression]):
    """One method for each rule of the grammar, given what the rule consists of.

    Each may raise `InvalidSelectorError`: the value of a literal does not exist, or must not stand there.
    """

    def disjunction(self, *parts: _Part) -> Expression:
        """``a OR b OR c``."""
        return _joined(Or, parts)

    def conjunction(self, *parts: _Part) -> Expression:
        """``a AND b AND c``."""
        return _joined(And, parts)

    def negation(self, word: Token, operand: Expression) -> Expression:
        """``NOT a``."""
        return Not(require_condition(operand, word))

    def comparison(self, left: Expression, operator: Token, right: Expression) -> Expression:
        """``a = b``, ``a < b``."""
        if operator in {"=", "<>"}:
            require_comparable(left, right, operator)
            return Comparison(str(operator), left, right)
        return Comparison(str(operator), require_number(left, operator), require_number(right, operator))

    def between(
        self, value: Expression, negated: Token | None, word: Token, low: Expression, _: Token, high: Expression
    ) -> Expression:
        """``a BETWEEN b AND c`` is ``a >= b AND a <= c``, and negated ``a < b OR a > c``."""
        value, low, high = (require_number(part, word) for part in (value, low, high))
        if negated:
            return Or((Comparison("<", value, low), Comparison(">", value, high)))
        return And((Comparison(">=", value, low), Comparison("<=", value, high)))

    def like(
        self,
        value: Expression,
        negated: Token | None,
        word: Token,
        pattern: Token,
        _: Token | None,
        escape: Token | None,
    ) -> Expression:
        """``a LIKE 'pattern' ESCAPE 'c'``."""
        character = None if escape is None else read_string(escape)
        read(pattern, lambda text: split_pattern(read_string(text), character))
        return _negated(negated, Like(name_of(value, word), read_string(pattern), character))

    def is_in(self, value: Expression, negated: Token | None, values: Token) -> Expression:
        """``a IN ('b', 'c')``."""
        return _negated(negated, In(name_of(value, values), read_list(values)))

    def is_null(self, value: Expression, word: Token, negated: Token | None, _: Token) -> Expression:
        """``a IS NULL``."""
        return _negated(negated, IsNull(name_of(value, word)))

    def sum(self, *parts: _Part) -> Expression:
        """``a + b - c``."""
        return _chained(parts)

    def product(self, *parts: _Part) -> Expression:
        """``a * b / c``."""
        return _chained(parts)

    def signed(self, sign: Token, operand: Expression) -> Expression:
        """``-a`` is ``0 - a``; a literal takes the sign in, else the lowest long could not be written."""
        match require_number(operand, sign):
            case Literal(int() | float() as value) if value >= 0:
                return Literal(-value if sign == "-" else value)
            case number:
                return Arithmetic(str(sign), Literal(0), number)

    def identifier(self, name: Token) -> Expression:
        """A header or a property."""
        return Identifier(str(name))

    def string(self, text: Token) -> Expression:
        """``'text'``."""
        return Literal(read_string(text))

    def integer(self, text: Token) -> Expression:
        """``57``."""
        return Literal(read(text, read_integer))

    def real(self, text: Token) -> Expression:
        """``5.7``."""
        return Literal(read(text, read_real))

    def true(self, _: Token) -> Expression:
        """``TRUE``."""
        return Literal(value=True)

    def false(self, _: Token) -> Expression:
        """``FALSE``."""
        return Literal(value=False)


def _joined(joint: type[_Joint], parts: tuple[_Part, ...]) -> _Joint:
    """Join conditions; those which are joined alike already are taken in, so that the tree stays flat."""
    values, words = _sorted(parts)
    operands: list[Expression] = []
    for value, word in zip(values, words[:1] + words, strict=True):
        operand = require_condition(value, word)
        operands += operand.operands if isinstance(operand, joint) else (operand,)
    return joint(tuple(operands))


def _chained(parts: tuple[_Part, ...]) -> Expression:
    """Calculate from left to right."""
    (left, *others), operators = _sorted(parts)
    for right, operator in zip(others, operators, strict=True):
        left = Arithmetic(str(operator), require_number(left, operator), require_number(right, operator))
    return left


def _sorted(parts: tuple[_Part, ...]) -> tuple[list[Expression], list[Token]]:
    values = [part for part in parts if not isinstance(part, Token)]
    return values, [part for part in parts if isinstance(part, Token)]


def _negated(word: Token | None, node: Expression) -> Expression:
    return node if word is None else Not(node)
