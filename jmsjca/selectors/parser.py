"""Selectors read, within bounds."""

from collections.abc import Iterable

from jmsjca.errors import InvalidSelectorError
from jmsjca.selectors.ast import Expression, Literal, children
from jmsjca.selectors.literals import LONG
from jmsjca.selectors.mistakes import mistake

__all__ = ["DEEPEST", "LONGEST", "parse"]

LONGEST = 1 << 16
"""Characters of a selector at most."""

DEEPEST = 50
"""How deep operators may stand in each other."""


def parse(text: str) -> Expression | None:
    """Read a selector.

    Returns:
        Its tree; None if it is empty or blank, which selects everything (JMS 3.1, section 3.8.1.1).

    Raises:
        InvalidSelectorError: It is not a selector, or exceeds a bound.
    """
    _check_text(text)
    if not text.strip(" \t\f\r\n"):
        return None
    from jmsjca.selectors.reading import read_expression  # noqa: PLC0415  # loads lark, for those who do select

    expression = read_expression(text)
    _check_tree(expression)
    return expression


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidSelectorError(f"A selector is a str, not {type(text).__name__}.")
    if len(text) > LONGEST:
        raise InvalidSelectorError(f"The selector has {len(text)} characters; at most {LONGEST} are taken.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise mistake(error.start, "there is half of a surrogate pair, which is not Unicode") from None


def _check_tree(expression: Expression) -> None:
    level = [expression]
    for _ in range(DEEPEST):
        _check_numbers(level)
        level = [child for node in level for child in children(node)]
    if level:
        raise InvalidSelectorError(f"The selector nests operators more than {DEEPEST} deep; write it flatter.")


def _check_numbers(nodes: Iterable[Expression]) -> None:
    """Refuse the one number that fits 64 bits only with a minus before it."""
    for node in nodes:
        if isinstance(node, Literal) and type(node.value) is int and node.value == LONG:
            raise InvalidSelectorError(f"The selector has the number {LONG}, which does not fit the 64 bits of a long.")
