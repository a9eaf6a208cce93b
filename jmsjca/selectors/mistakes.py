"""How a mistake in a selector is told: where it is, what it is, what to write instead."""

from typing import TYPE_CHECKING

from jmsjca.errors import InvalidSelectorError

if TYPE_CHECKING:
    from lark import UnexpectedInput

__all__ = ["mistake", "unexpected"]

_REMEDIES = {
    "'": "A string ends with a quote; a quote within it is written twice.",
    '"': "Strings stand in single quotes.",
    ".": "Names with dots cannot be selected.",
    "!": "Unequal is written <>.",
    "=": "Equal is written =, unequal <>.",
    "NULL": "Whether a property is set is asked with IS NULL or IS NOT NULL.",
    "IN": "IN takes strings in parentheses, as in region IN ('EU', 'US').",
}
_TERMINALS = {"STRING": "a string", "RPAR": "a closing parenthesis", "$END": "the end"}


def mistake(position: int, what: str, remedy: str = "") -> InvalidSelectorError:
    """Make the error.

    Args:
        position: Where in the text, from 0; the message counts from 1.
        what: What is wrong there.
        remedy: What to write instead.
    """
    return InvalidSelectorError(f"The selector is wrong at position {position + 1}: {what}.{remedy and ' '}{remedy}")


def unexpected(error: "UnexpectedInput", text: str) -> InvalidSelectorError:
    """Make the error for a text that the grammar does not allow.

    Args:
        error: What the parser says.
        text: The selector.
    """
    token = getattr(error, "token", None)  # none where no token begins at all
    if token is not None and token.type == "$END":
        return mistake(len(text), f"it ends where {_wanted(error)} must stand")
    position: int = error.pos_in_stream or 0  # type: ignore[redundant-expr]  # lark declares it None
    found = text[position] if token is None else str(token)
    wanted = "a word or a sign" if token is None else _wanted(error)
    return mistake(position, f"{found[:40]!r} stands where {wanted} must", _REMEDIES.get(found.upper(), ""))


def _wanted(error: "UnexpectedInput") -> str:
    expected: set[str] = getattr(error, "expected", set[str]())
    if "IDENTIFIER" in expected:
        return "a name, a literal or a parenthesis"
    if "AND" in expected and len(expected) > 1:
        return "AND, OR, another operator or the end"
    return " or ".join(sorted(_TERMINALS.get(name, name) for name in expected))
