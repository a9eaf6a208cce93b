"""Which value may stand where in a selector, as far as it shows without a message (JMS 3.1, section 3.8.1.1).

An identifier may stand for anything: what it holds is known when there is a message.
"""

from collections.abc import Callable
from typing import TypeVar

from lark import Token

from jmsjca.selectors.ast import And, Arithmetic, Comparison, Expression, Identifier, In, IsNull, Like, Literal, Not, Or
from jmsjca.selectors.mistakes import mistake

__all__ = ["name_of", "read", "require_comparable", "require_condition", "require_number"]

T = TypeVar("T")

_CONDITIONS = Comparison | Like | In | IsNull | Not | And | Or


def require_condition(node: Expression, beside: Token | None = None) -> Expression:
    """Give the node back if it can be true or false.

    Args:
        node: Which.
        beside: The AND, OR or NOT that it stands beside; None if it is the whole selector.

    Raises:
        InvalidSelectorError: It is a number or a string.
    """
    if isinstance(node, _CONDITIONS | Identifier) or _is_boolean(node):
        return node
    remedy = "A condition compares, as in region = 'EU'."
    if beside is None:
        raise mistake(0, f"{_kind(node)} is no condition", remedy)
    raise mistake(_start(beside), f"{beside.upper()} takes conditions, not {_kind(node)}", remedy)


def require_number(node: Expression, operator: Token) -> Expression:
    """Give the node back if it can be a number.

    Raises:
        InvalidSelectorError: It is something else.
    """
    if isinstance(node, Identifier | Arithmetic) or (isinstance(node, Literal) and _kind(node) == "a number"):
        return node
    raise mistake(_start(operator), f"{operator.upper()} takes numbers, not {_kind(node)}", "Use = or <> for others.")


def require_comparable(left: Expression, right: Expression, operator: Token) -> None:
    """Let pass what = and <> may compare; unlike values are compared, too: they are not equal.

    Raises:
        InvalidSelectorError: A condition is compared, or a boolean with a literal of another type.
    """
    for one, other in ((left, right), (right, left)):
        odd = _is_boolean(one) and not (isinstance(other, Identifier) or _is_boolean(other))
        if odd or isinstance(one, _CONDITIONS):
            raise mistake(
                _start(operator),
                f"{operator} cannot compare {_kind(one)} with {_kind(other)}",
                "A boolean property is compared as in active = TRUE; a condition stands for itself.",
            )


def name_of(node: Expression, operator: Token) -> str:
    """Give the name of what must be an identifier.

    Raises:
        InvalidSelectorError: It is none.
    """
    if isinstance(node, Identifier):
        return node.name
    word = operator[:2].upper() if operator.type == "IN_LIST" else operator.upper()
    raise mistake(_start(operator), f"before {word} stands {_kind(node)}", "It takes the name of a property or header.")


def read(token: Token, reader: Callable[[str], T]) -> T:
    """Read the text of a token.

    Raises:
        InvalidSelectorError: The reader raised ValueError.
    """
    try:
        return reader(token)
    except ValueError as error:
        raise mistake(_start(token), str(error)) from None


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
