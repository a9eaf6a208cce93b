"""Placeholders in texts: ``${name}`` of JMSJCA and ``{n}`` of the IBM adapter for JMS.

They are replaced in a single pass: what is put in is not looked at again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from jmsjca.errors import InvalidSelectorError

__all__ = ["INDEXED", "NAMED", "expand", "item", "substitute", "substitute_indexed"]

T = TypeVar("T")

NAMED = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<key>[^}]*)\}|(?P<open>\$\{)")
"""``${key}``; ``$${`` is a ``${`` that means nothing."""

INDEXED = re.compile(r"\{(?P<escaped>\{)|\{(?P<key>[0-9]+)\}|(?P<open>(?!))")
"""``{key}`` with a number for key; ``{{`` is a ``{`` that means nothing."""


def substitute(template: str, variables: Mapping[str, object]) -> str:
    """Replace each ``${name}`` by a value, as it is.

    A name without a value stays as it is written; ``$${`` gives ``${``; a ``$`` elsewhere stays.

    Args:
        template: The text.
        variables: The values; `str` of each is put in.

    Raises:
        InvalidSelectorError: A ``${`` has no ``}``.
    """
    return expand(template, NAMED, lambda name, _: str(variables[name]) if name in variables else None)


def substitute_indexed(template: str, values: Sequence[object]) -> str:
    """Replace each ``{n}`` by the n-th value, as it is; ``{1}`` is the first.

    ``{{`` gives ``{``; other braces stay.

    Args:
        template: The text.
        values: The values; `str` of each is put in.

    Raises:
        InvalidSelectorError: There is no n-th value, or it is None.
    """
    return expand(template, INDEXED, lambda number, _: str(item(values, number)))


def expand(template: str, placeholder: re.Pattern[str], value_of: Callable[[str, bool], str | None]) -> str:
    """Replace placeholders.

    Args:
        template: The text.
        placeholder: What they look like: `NAMED` or `INDEXED`.
        value_of: Gives what to put in for a key, told whether it stands within single quotes; None leaves it.

    Raises:
        InvalidSelectorError: A placeholder has no end.
    """
    parts: list[str] = []
    done = quotes = 0
    for match in placeholder.finditer(template):
        if match["open"]:
            raise InvalidSelectorError(
                f"The placeholder at position {match.start() + 1} of {template!r:.200} has no closing brace;"
                f" a {match['open']} that means nothing is written ${match['open']}."
            )
        before = quotes + template.count("'", done, match.start())
        text = match["escaped"] or value_of(match["key"], before % 2 == 1)
        if text is not None:
            parts += (template[done : match.start()], text)
            done, quotes = match.end(), before
    return "".join(parts) + template[done:]


def item(values: Sequence[T], number: str) -> T:
    """Give the value that a number written in a template means.

    Raises:
        InvalidSelectorError: There is none, or it is None.
    """
    index = int(number[:9]) - 1
    if not 0 <= index < len(values) or values[index] is None:
        raise InvalidSelectorError(
            f"There is no value for {{{number:.20}}}: {len(values)} are given, the first is {{1}}."
        )
    return values[index]
