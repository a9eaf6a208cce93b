"""The selector parser: from text to syntax tree by ``grammar.lark``, with limits, checks and error messages.

An identifier may have any type: its type is only known when a message is evaluated.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import TypeVar, cast

import lark
from lark import Lark, Token, Transformer, UnexpectedInput

from jmsjca.errors import InvalidSelectorError
from jmsjca.messages.properties import KEYWORDS, is_identifier
from jmsjca.selectors.like import split_pattern
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
    children,
    read_integer,
    read_list,
    read_real,
    read_string,
)

__all__ = [
    "HEADERS",
    "MAX_DEPTH",
    "parse",
]

_MAX_LENGTH = 1 << 16
"""The maximum length of a selector, in characters."""

MAX_DEPTH = 50
"""The maximum nesting depth of operators."""

_MAX_TOKENS = 4000
"""The maximum number of tokens: names, literals, operators and parentheses; a list after IN counts as one."""


def parse(text: str) -> Expression | None:
    """Parse a selector.

    Returns:
        The syntax tree; None for an empty or blank text, which selects everything (JMS 3.1, section 3.8.1.1).

    Raises:
        InvalidSelectorError: The text is not a selector, or exceeds a limit.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # the type of a public argument
        raise InvalidSelectorError(f"A selector is a str, not {type(text).__name__}.")
    if len(text) > _MAX_LENGTH:
        raise InvalidSelectorError(f"The selector has {len(text)} characters; at most {_MAX_LENGTH} are taken.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _syntax_error(error.start, "it has half of a surrogate pair, which is not valid Unicode text") from None
    return _read_expression(text) if text.strip(" \t\f\r\n") else None


_Part = Expression | Token
_Joint = TypeVar("_Joint", And, Or)


class _AstBuilder(Transformer[Token, Expression]):
    """Builds the syntax tree: one method per rule of the grammar, called with the children of the rule.

    Each method may raise `InvalidSelectorError`: a literal is invalid, or an operand has a wrong type.
    """

    def disjunction(self, *parts: _Part) -> Expression:
        """``a OR b OR c``."""
        return _join(Or, parts)

    def conjunction(self, *parts: _Part) -> Expression:
        """``a AND b AND c``."""
        return _join(And, parts)

    def negation(self, word: Token, operand: Expression) -> Expression:
        """``NOT a``."""
        return Not(_require_condition(operand, word))

    def comparison(self, left: Expression, operator: Token, right: Expression) -> Expression:
        """``a = b``, ``a < b``."""
        if operator in {"=", "<>"}:
            _require_comparable(left, right, operator)
            return Comparison(str(operator), left, right)
        return Comparison(str(operator), _require_number(left, operator), _require_number(right, operator))

    def between(
        self, value: Expression, negated: Token | None, word: Token, low: Expression, _: Token, high: Expression
    ) -> Expression:
        """``a BETWEEN b AND c`` is ``a >= b AND a <= c``, and negated ``a < b OR a > c``."""
        value, low, high = (_require_number(part, word) for part in (value, low, high))
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
        _read_token(pattern, lambda text: split_pattern(read_string(text), character))
        return _negated(negated, Like(_require_identifier(value, word), read_string(pattern), character))

    def is_in(self, value: Expression, negated: Token | None, values: Token) -> Expression:
        """``a IN ('b', 'c')``."""
        return _negated(negated, In(_require_identifier(value, values), read_list(values)))

    def is_null(self, value: Expression, word: Token, negated: Token | None, _: Token) -> Expression:
        """``a IS NULL``."""
        return _negated(negated, IsNull(_require_identifier(value, word)))

    def sum(self, *parts: _Part) -> Expression:
        """``a + b - c``."""
        return _fold(parts)

    def product(self, *parts: _Part) -> Expression:
        """``a * b / c``."""
        return _fold(parts)

    def signed(self, sign: Token, operand: Expression) -> Expression:
        """``-a`` is ``0 - a``. A literal absorbs the sign, because otherwise the lowest long could not be written."""
        match _require_number(operand, sign):
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
        return Literal(_read_token(text, read_integer))

    def real(self, text: Token) -> Expression:
        """``5.7``."""
        return Literal(_read_token(text, read_real))

    def true(self, _: Token) -> Expression:
        """``TRUE``."""
        return Literal(value=True)

    def false(self, _: Token) -> Expression:
        """``FALSE``."""
        return Literal(value=False)


def _join(joint: type[_Joint], parts: tuple[_Part, ...]) -> _Joint:
    """Join conditions. Nested conditions with the same operator are merged, to keep the tree flat."""
    values, words = _split_operands(parts)
    operands: list[Expression] = []
    for value, word in zip(values, words[:1] + words, strict=True):
        operand = _require_condition(value, word)
        operands += operand.operands if isinstance(operand, joint) else (operand,)
    return joint(tuple(operands))


def _fold(parts: tuple[_Part, ...]) -> Expression:
    """Combine operands from left to right."""
    (left, *others), operators = _split_operands(parts)
    for right, operator in zip(others, operators, strict=True):
        left = Arithmetic(str(operator), _require_number(left, operator), _require_number(right, operator))
    return left


def _split_operands(parts: tuple[_Part, ...]) -> tuple[list[Expression], list[Token]]:
    values = [part for part in parts if not isinstance(part, Token)]
    return values, [part for part in parts if isinstance(part, Token)]


def _negated(word: Token | None, node: Expression) -> Expression:
    return node if word is None else Not(node)


def _read_expression(text: str) -> Expression:
    """Parse a selector that is not blank.

    Raises:
        InvalidSelectorError: The text is not a selector, or has too many tokens, or is nested too deeply.
    """
    try:
        tree = _parser().parse(text)  # pyright: ignore[reportUnknownMemberType]  # lark's types have gaps
    except UnexpectedInput as error:
        raise _unexpected_input_error(error, text) from None
    expression = _require_condition(cast("Expression", tree))
    level = [expression]
    for _ in range(MAX_DEPTH):
        if any(isinstance(node, Literal) and type(node.value) is int and node.value == LONG for node in level):
            raise InvalidSelectorError(f"The selector has the number {LONG}, which does not fit the 64 bits of a long.")
        level = [child for node in level for child in children(node)]
    if level:
        raise InvalidSelectorError(f"The selector nests operators more than {MAX_DEPTH} deep; write it flatter.")
    return expression


@cache
def _parser() -> Lark:
    grammar = files("jmsjca.selectors").joinpath("grammar.lark").read_text(encoding="utf-8")
    rules = lark.v_args(inline=True)(_AstBuilder)()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return Lark(
        grammar, parser="lalr", lexer="basic", postlex=_KeywordPostlex(), transformer=cast("_AstBuilder", rules)
    )


class _KeywordPostlex:
    """Processes the tokens between lexer and parser."""

    always_accept = ()

    def process(self, words: Iterator[Token]) -> Iterator[Token]:
        """Count the tokens, and distinguish keywords from names."""
        for number, word in enumerate(words):
            if number == _MAX_TOKENS:
                raise _syntax_error(
                    word.start_pos or 0, f"it has more than {_MAX_TOKENS} words", "Use IN for long lists."
                )
            yield _keyword_or_name(word) if word.type == "IDENTIFIER" else word


def _keyword_or_name(word: Token) -> Token:
    if word.isascii() and word.upper() in KEYWORDS:
        return word.update(type=word.upper())
    if objection := _invalid_name_reason(word):
        raise _syntax_error(word.start_pos or 0, objection)
    return word


T = TypeVar("T")

_CONDITIONS = Comparison | Like | In | IsNull | Not | And | Or


def _require_condition(node: Expression, beside: Token | None = None) -> Expression:
    """Return the node if it can be a condition.

    Args:
        node: The node.
        beside: The AND, OR or NOT of which it is an operand; None if it is the whole selector.

    Raises:
        InvalidSelectorError: The node is a number or a string.
    """
    if isinstance(node, _CONDITIONS | Identifier) or _is_boolean(node):
        return node
    remedy = "A condition compares, as in region = 'EU'."
    if beside is None:
        raise _syntax_error(0, f"{_kind(node)} is no condition", remedy)
    raise _syntax_error(_start(beside), f"{beside.upper()} takes conditions, not {_kind(node)}", remedy)


def _require_number(node: Expression, operator: Token) -> Expression:
    """Return the node if it can be a number.

    Raises:
        InvalidSelectorError: The node has another type.
    """
    if isinstance(node, Identifier | Arithmetic) or (isinstance(node, Literal) and _kind(node) == "a number"):
        return node
    raise _syntax_error(
        _start(operator), f"{operator.upper()} takes numbers, not {_kind(node)}", "Use = or <> for others."
    )


def _require_comparable(left: Expression, right: Expression, operator: Token) -> None:
    """Check the operands of = and <>. Values of different types may be compared: they are not equal.

    Raises:
        InvalidSelectorError: A condition is compared, or a boolean with a literal of another type.
    """
    for one, other in ((left, right), (right, left)):
        odd = _is_boolean(one) and not (isinstance(other, Identifier) or _is_boolean(other))
        if odd or isinstance(one, _CONDITIONS):
            raise _syntax_error(
                _start(operator),
                f"{operator} cannot compare {_kind(one)} with {_kind(other)}",
                "A boolean property is compared as in active = TRUE; a condition stands for itself.",
            )


def _require_identifier(node: Expression, operator: Token) -> str:
    """Return the name of a node that must be an identifier.

    Raises:
        InvalidSelectorError: The node is not an identifier.
    """
    if isinstance(node, Identifier):
        return node.name
    word = operator[:2].upper() if operator.type == "IN_LIST" else operator.upper()
    raise _syntax_error(
        _start(operator), f"before {word} stands {_kind(node)}", "It takes the name of a property or header."
    )


def _read_token(token: Token, reader: Callable[[str], T]) -> T:
    """Return the value of a token.

    Raises:
        InvalidSelectorError: The reader raised ValueError.
    """
    try:
        return reader(token)
    except ValueError as error:
        raise _syntax_error(_start(token), str(error)) from None


def _start(token: Token) -> int:
    return token.start_pos or 0


def _is_boolean(node: Expression) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, bool)


def _kind(node: Expression) -> str:
    match node:
        case Literal(bool()):
            return "a boolean"
        case Literal(str()):
            return "a string"
        case Literal() | Arithmetic():
            return "a number"
        case Identifier():
            return "an identifier"
        case _:
            return "a condition"


_REMEDIES = {
    "'": "A string ends with a quote; a quote within it is written twice.",
    '"': "Strings stand in single quotes.",
    ".": "Names with dots cannot be selected.",
    "!": "Unequal is written <>.",
    "=": "Equal is written =, unequal <>.",
    "&": "Both is written AND.",
    "|": "Either is written OR.",
    "NULL": "Use IS NULL or IS NOT NULL to test whether a property is set.",
    "IN": "IN takes strings in parentheses, as in region IN ('EU', 'US').",
}
_TERMINALS = {"STRING": "a string", "RPAR": "a closing parenthesis", "$END": "the end"}


def _syntax_error(position: int, what: str, remedy: str = "") -> InvalidSelectorError:
    """Return the error for a position.

    Args:
        position: The position in the text, from 0; the message counts from 1.
        what: The problem.
        remedy: The remedy.
    """
    return InvalidSelectorError(f"The selector is wrong at position {position + 1}: {what}.{remedy and ' '}{remedy}")


def _unexpected_input_error(error: "UnexpectedInput", text: str) -> InvalidSelectorError:
    """Return the error for a text that does not match the grammar.

    Args:
        error: The error of the parser.
        text: The selector.
    """
    token = getattr(error, "token", None)  # None if no token begins at the position
    if token is not None and token.type == "$END":
        return _syntax_error(len(text), f"it ends where {_expected_tokens(error)} must stand")
    position: int = error.pos_in_stream or 0  # type: ignore[redundant-expr]  # lark declares it None
    found = text[position] if token is None else str(token)
    wanted = "a word or a sign" if token is None else _expected_tokens(error)
    return _syntax_error(position, f"{found[:40]!r} stands where {wanted} must", _REMEDIES.get(found.upper(), ""))


def _expected_tokens(error: "UnexpectedInput") -> str:
    expected: set[str] = getattr(error, "expected", set[str]())
    if "IDENTIFIER" in expected:
        return "a name, a literal or a parenthesis"
    if "AND" in expected and len(expected) > 1:
        return "AND, OR, another operator or the end"
    return " or ".join(sorted(_TERMINALS.get(name, name) for name in expected))


HEADERS = ("JMSCorrelationID", "JMSDeliveryMode", "JMSMessageID", "JMSPriority", "JMSTimestamp", "JMSType")
"""The headers that a selector may name; all other identifiers are properties."""


def _invalid_name_reason(name: str) -> str:
    """Return the reason why a name cannot be used in a selector; empty if it can."""
    if not is_identifier(name):
        return f"{name[:100]!r} is not an identifier as in Java"
    if name.startswith("JMS") and name not in HEADERS and not name.startswith(("JMSX", "JMS_")):
        return f"{name[:100]} is not for selectors; of the headers these are: {', '.join(HEADERS)}"
    return ""
