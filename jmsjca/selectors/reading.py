"""From text to tree, by the grammar in ``grammar.lark``."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import cast

import lark
from lark import Lark, Token, UnexpectedInput

from jmsjca.messages.names import KEYWORDS
from jmsjca.selectors.assembly import Assembly
from jmsjca.selectors.ast import Expression
from jmsjca.selectors.mistakes import mistake, unexpected
from jmsjca.selectors.names import objection_to
from jmsjca.selectors.rules import require_condition

__all__ = ["MOST_WORDS", "read_expression"]

MOST_WORDS = 4000
"""Names, literals, operators and parentheses of a selector at most; a list behind IN counts as one."""


def read_expression(text: str) -> Expression:
    """Read a selector that is not blank.

    Raises:
        InvalidSelectorError: It is not a selector, or has too many words.
    """
    try:
        tree = _parser().parse(text)  # pyright: ignore[reportUnknownMemberType]  # lark's types have gaps
    except UnexpectedInput as error:
        raise unexpected(error, text) from None
    return require_condition(cast("Expression", tree))


@cache
def _parser() -> Lark:
    grammar = files("jmsjca.selectors").joinpath("grammar.lark").read_text(encoding="utf-8")
    rules = lark.v_args(inline=True)(Assembly)()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return Lark(grammar, parser="lalr", lexer="basic", postlex=_Words(), transformer=cast("Assembly", rules))


class _Words:
    """Looks at every word between lexer and parser."""

    always_accept = ()

    def process(self, words: Iterator[Token]) -> Iterator[Token]:
        """Count the words, and tell keywords from names."""
        for number, word in enumerate(words):
            if number == MOST_WORDS:
                raise mistake(word.start_pos or 0, f"it has more than {MOST_WORDS} words", "Use IN for long lists.")
            yield _keyword_or_name(word) if word.type == "IDENTIFIER" else word


def _keyword_or_name(word: Token) -> Token:
    if word.isascii() and word.upper() in KEYWORDS:
        return word.update(type=word.upper())
    if objection := objection_to(word):
        raise mistake(word.start_pos or 0, objection)
    return word
