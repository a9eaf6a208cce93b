"""Rewrites selectors for the engine of Artemis and ActiveMQ Classic, so that it selects as JMS specifies.

Both brokers have the same engine (``artemis-selector``, ``org.apache.activemq.filter``). It differs from JMS 3.1,
section 3.8.1:

- NOT binds closer than a comparison.
- With a missing property ``=`` is false and ``<>`` is true, and two missing properties are equal.
- Values of different types are unequal, and strings have an order. NOT LIKE is true for values that are not strings.
- A byte or short at the right of a wider number is unequal to it; ActiveMQ throws for a float at the right of a double.
- Ints overflow at 32 bits, ``/`` keeps the fraction and divides by zero, and arithmetic with a string throws.
- ``2f``, ``2d`` and ``0L`` are syntax errors, as are names beyond ASCII.

Each condition is rewritten to a condition that is true exactly when the original is true, or, below NOT, exactly when
it is false. NOT thereby moves down to the tests, and the engine's treatment of unknown values no longer matters.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jmsjca.errors import NotSupportedError
from jmsjca.messages.properties import KEYWORDS
from jmsjca.selectors.evaluation import ARITHMETIC, MIRRORED, comparer, is_number
from jmsjca.selectors.like import ANY, Characters, Pattern, split_pattern
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
    children,
    write_literal,
)

__all__ = ["EngineValues", "rewrite"]

_OWN_KEYWORDS = {"XPATH", "XQUERY"}
_LONG_ZERO = "0 * 4294967296"  # for a literal that fits an int the engine creates an int, whatever its suffix
_INFINITY = "1e999"
_ESCAPE = "!"


@dataclass(frozen=True, slots=True)
class EngineValues:
    """How the engine represents a header if it does not represent its values as JMS does.

    Args:
        literal: Returns the engine's text for a value of JMS, or raises `NotSupportedError`.
        known: All values of JMS, if the header has only a few.
        start: The common prefix of all values of JMS.
        differing: For LIKE: the values that the engine represents by other texts, and these texts. Each entry has the
            prefix of a kind, and the characters that may follow it; None for any.
    """

    literal: Callable[[str], str]
    known: tuple[str, ...] = ()
    start: str = ""
    differing: tuple[tuple[str, str | None], ...] = ()


_NO_VALUES: Mapping[str, EngineValues] = {}


def rewrite(
    text: str, headers: Mapping[str, str] | None = None, values: Mapping[str, EngineValues] = _NO_VALUES
) -> str:
    """Rewrite a selector for the engine of Artemis and ActiveMQ.

    A selector that the engine already decides as JMS specifies keeps its text, apart from the names of headers: a
    durable subscription keeps its messages only while the text of its selector is the same.

    Args:
        text: The selector.
        headers: The engine's names of headers that it does not know by the names of JMS.
        values: The headers with values that the engine does not represent as JMS does.

    Returns:
        The rewritten selector; empty for a blank selector, which selects everything.

    Raises:
        InvalidSelectorError: The text is not a selector.
        NotSupportedError: The engine cannot decide the selector as JMS specifies; the message says what to do.
    """
    selector = Selector.parse(text)
    if selector.expression is None:
        return ""
    headers = headers or {}
    rewritten = _Rewriting(headers, values).condition(selector.expression, truth=True).text
    renamed = _WORD.sub(lambda word: headers.get(word[0], word[0]), text)
    return renamed if _words(renamed) == _words(rewritten) else rewritten


_WORD = re.compile(r"'(?:[^']|'')*'|[\w$]+|<>|<=|>=|[^\w\s$]")


def _words(text: str) -> list[str]:
    """Return the words of a selector without parentheses; keywords in upper case."""
    words = (word for word in _WORD.findall(text) if word not in {"(", ")"})
    return [word.upper() if word.upper() in KEYWORDS else word for word in words]


class _Condition(NamedTuple):
    """A condition in the engine's syntax, and the operator that joins it: AND, OR, or none."""

    text: str
    operator: str = ""

    def within(self, operator: str) -> str:
        """Return the text as an operand of AND or OR."""
        return f"({self.text})" if self.operator not in {"", operator} else self.text


_TRUE, _FALSE = _Condition("TRUE"), _Condition("FALSE")


def _all(*conditions: _Condition) -> _Condition:
    return _joined("AND", conditions, neutral=_TRUE, decisive=_FALSE)


def _any(*conditions: _Condition) -> _Condition:
    return _joined("OR", conditions, neutral=_FALSE, decisive=_TRUE)


def _joined(
    operator: str, conditions: tuple[_Condition, ...], *, neutral: _Condition, decisive: _Condition
) -> _Condition:
    operands = [condition for condition in dict.fromkeys(conditions) if condition != neutral]
    if decisive in operands:
        return decisive
    if len(operands) < 2:  # noqa: PLR2004
        return operands[0] if operands else neutral
    return _Condition(f" {operator} ".join(operand.within(operator) for operand in operands), operator)


def _not(condition: _Condition) -> _Condition:
    return _Condition(f"NOT ({condition.text})")


class _Rewriting:
    """Rewrites the nodes of a syntax tree with the engine's names and values of headers."""

    def __init__(self, headers: Mapping[str, str], values: Mapping[str, EngineValues]) -> None:
        self._headers = headers
        self._values = values

    def condition(self, node: Expression, *, truth: bool) -> _Condition:
        """Return a condition that is true for the messages for which a node is true, or for which it is false."""
        match node:
            case Not(operand):
                return self.condition(operand, truth=not truth)
            case And(operands):
                return (_all if truth else _any)(*(self.condition(each, truth=truth) for each in operands))
            case Or(operands):
                return (_any if truth else _all)(*(self.condition(each, truth=truth) for each in operands))
            case Comparison(symbol, left, right):
                return self._comparison(symbol, _folded(left), _folded(right), truth=truth)
            case _:
                return self._test(node, truth=truth)

    def _test(self, node: Expression, *, truth: bool) -> _Condition:
        no = "" if truth else "NOT "
        match node:
            case IsNull(name):
                return _Condition(f"{self._name(name)} IS {no}NULL")
            case In(name, values):
                texts = ", ".join(self._text(name, value) for value in values)
                return _Condition(f"{self._name(name)} {no}IN ({texts})")
            case Like():
                return self._like(node, truth=truth)
            case Identifier(name):
                return _Condition(self._name(name) if truth else f"{self._name(name)} = FALSE")
            case _:
                return _TRUE if node == Literal(value=truth) else _FALSE

    def _like(self, node: Like, *, truth: bool) -> _Condition:
        shown = self._values.get(node.name)
        if shown is not None and shown.known:
            matching = tuple(filter(Pattern(node.pattern, node.escape).matches, shown.known)) or ("",)
            return self._test(In(node.name, matching), truth=truth)
        if shown is not None:
            head, *others = split_pattern(node.pattern, node.escape)
            if others == [()] and None not in head and shown.start.startswith("".join(map(str, head))):
                return self._is_string(node.name) if truth else _FALSE  # each value matches
            if any(_may_match((head, *others), start, following) for start, following in shown.differing):
                raise NotSupportedError(
                    f"This broker represents some values of {node.name} by other texts, and cannot decide which of them"
                    f" match {node.pattern!r:.100}. Begin the pattern with more of the values, or use = or IN."
                )
        no = "" if truth else "NOT "
        matched = _Condition(f"{self._name(node.name)} {no}LIKE {_pattern(node.pattern, node.escape)}")
        return matched if truth else _all(self._is_string(node.name), matched)

    def _comparison(self, symbol: str, left: Expression | None, right: Expression | None, *, truth: bool) -> _Condition:
        if left is None or right is None:
            return _FALSE  # an operand is unknown for every message
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                return _TRUE if comparer(symbol)(left.value, right.value) is truth else _FALSE
            symbol, left, right = MIRRORED[symbol], right, left
        if truth:  # a missing property makes the comparison unknown or false
            return _all(*self._guards(left), *self._guards(right), self._compared(symbol, left, right))
        known = [condition for side in (left, right) for condition in self._known(side)]
        return _all(*known, _not(self._compared(symbol, left, right)))

    def _compared(self, symbol: str, left: Expression, right: Expression) -> _Condition:
        """Return the comparison of operands that are known: true or false."""
        match left, right:
            case Identifier(name), Literal(value):
                return self._compared_with_literal(symbol, name, value)
            case _, Literal(str()):
                return _FALSE
            case Identifier(one), Identifier(other) if symbol in {"=", "<>"}:
                return _any(self._compared_numbers(symbol, left, right), *self._compared_others(symbol, one, other))
            case _:
                return self._compared_numbers(symbol, left, right)

    def _compared_with_literal(self, symbol: str, name: str, value: Value) -> _Condition:
        mine = self._name(name)
        if isinstance(value, str):
            same = f"{mine} {symbol} {self._text(name, value)}"
            return _Condition(same) if symbol == "=" else _all(self._is_string(name), _Condition(same))
        if isinstance(value, bool):
            return _Condition(f"{mine} = {write_literal(value is (symbol == '='))}")
        number = write_literal(value)
        if symbol == "<>":  # a value of another type does not count as unequal
            return _any(_Condition(f"{mine} < {number}"), _Condition(f"{mine} > {number}"))
        return _Condition(f"{mine} {symbol} {number}")

    def _compared_numbers(self, symbol: str, left: Expression, right: Expression) -> _Condition:
        numbers = [_is_number(self._name(side.name)) for side in (left, right) if isinstance(side, Identifier)]
        return _all(*numbers, _Condition(f"{self._operand(left)} {symbol} {self._operand(right)}"))

    def _compared_others(self, symbol: str, one: str, other: str) -> Iterator[_Condition]:
        """Yield the comparisons of two properties, for strings and for booleans."""
        for name in {one, other} & self._values.keys():
            raise NotSupportedError(f"This broker cannot compare {name} with a property; use a literal.")
        mine, its = self._name(one), self._name(other)
        yield _all(self._is_string(one), self._is_string(other), _Condition(f"{mine} {symbol} {its}"))
        for value in (True, False):
            counterpart = value is (symbol == "=")
            yield _all(
                _Condition(f"{mine} = {write_literal(value)}"), _Condition(f"{its} = {write_literal(counterpart)}")
            )

    def _known(self, node: Expression) -> list[_Condition]:
        """Return the conditions that make an operand known."""
        if isinstance(node, Identifier):
            return [_Condition(f"{self._name(node.name)} IS NOT NULL")]
        return self._guards(node)

    def _guards(self, node: Expression) -> list[_Condition]:
        """Return the conditions that make arithmetic known: its operands are numbers, and no divisor is zero."""
        if not isinstance(node, Arithmetic):
            return []
        nodes: list[Expression] = [node]
        for each in nodes:
            nodes += children(each)
        names = [_is_number(self._name(each.name)) for each in nodes if isinstance(each, Identifier)]
        divisors = [each.right for each in nodes if isinstance(each, Arithmetic) and each.operator == "/"]
        return names + [self._is_not_zero(each) for each in divisors if not isinstance(each, Literal)]

    def _is_not_zero(self, node: Expression) -> _Condition:
        number = self._operand(node)
        return _any(_Condition(f"{number} < 0"), _Condition(f"{number} > 0"))

    def _operand(self, node: Expression) -> str:
        """Return a number for a comparison, with 0.0 for -0.0, because the engine sorts -0.0 before 0.0."""
        return f"({self._number(node)} + 0)" if isinstance(node, Arithmetic) else self._number(node)

    def _number(self, node: Expression) -> str:
        """Return a number in a comparable form: exact numbers as longs, others as doubles."""
        match node:
            case Literal(int() | float() as value):
                return write_literal(value)
            case Identifier(name):
                return f"({self._name(name)} + {_LONG_ZERO})"
            case Arithmetic("/", left, right) if not (_is_double(left) or _is_double(right)):
                raise NotSupportedError(
                    "This broker keeps the fraction of a division of exact numbers, and JMS drops it. Write the"
                    " divisor with a point, as in size / 2.0, if you want the fraction; else compare without a"
                    " division."
                )
            case Arithmetic(symbol, left, right):
                return f"({self._number(left)} {symbol} {self._number(right)})"
            case _:
                raise TypeError(f"{type(node).__name__} is no number")  # the parser rejects these

    def _text(self, name: str, value: str) -> str:
        return write_literal(self._values[name].literal(value) if name in self._values else value)

    def _is_string(self, name: str) -> _Condition:
        """Return the condition that a value is a string. In JMS, headers in ``values`` always have strings."""
        test = "IS NOT NULL" if name in self._values else "LIKE '%'"
        return _Condition(f"{self._name(name)} {test}")

    def _name(self, name: str) -> str:
        if not name.isascii() or name.upper() in _OWN_KEYWORDS:
            raise NotSupportedError(
                f"This broker cannot select by {name!r:.100}: its selectors accept names of ASCII letters, digits, _"
                " and $ that are not XPATH or XQUERY. Rename the property."
            )
        return self._headers.get(name, name)


def _is_number(name: str) -> _Condition:
    """Return the condition that a property is a number but not NaN, which the engine sorts after all numbers."""
    return _Condition(f"{name} <= {_INFINITY}")


def _may_match(pieces: Sequence[Characters], start: str, following: str | None) -> bool:
    """Return False if no text matches that begins with ``start`` and continues with characters of ``following``."""
    if any(mine not in {ANY, its} for mine, its in zip(pieces[0], start, strict=False)):
        return False
    return following is None or all(each is None or each in start + following for piece in pieces for each in piece)


def _folded(node: Expression) -> Expression | None:
    """Calculate the constant parts of an operand. Return None if the operand is unknown for every message."""
    if not isinstance(node, Arithmetic):
        return node
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None or (node.operator == "/" and right == Literal(0)):
        return None
    match left, right:
        case Literal(one), Literal(other) if is_number(one) and is_number(other):
            result = ARITHMETIC[node.operator](one, other)
            return None if result is None else Literal(result)
        case _:
            return Arithmetic(node.operator, left, right)


def _is_double(node: Expression) -> bool:
    match node:
        case Literal(value):
            return isinstance(value, float)
        case Arithmetic(_, left, right):
            return _is_double(left) or _is_double(right)
        case _:
            return False


def _pattern(pattern: str, escape: str | None) -> str:
    """Return a pattern that escapes only wildcards: the engine handles other escapes wrongly or not at all."""
    if escape is None:
        return write_literal(pattern)
    plain = "%".join("".join(map(_escaped, piece)) for piece in split_pattern(pattern, escape))
    return f"{write_literal(plain)} ESCAPE '{_ESCAPE}'"


def _escaped(character: str | None) -> str:
    if character is ANY:
        return "_"
    return f"{_ESCAPE}{character}" if character in {"%", "_", _ESCAPE} else str(character)
