"""Pieces of SQL with their parameters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["NULL", "Fragment", "fill", "joined", "parameter", "text"]

_WORDS = re.compile(r"\w+|'[^']*'|[^\w\s]")
_MANY = 50


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of SQL.

    Attributes:
        sql: The text, with question marks for the parameters.
        parameters: Their values, in order.
        depth: How many words the parser of SQLite keeps in mind at most while it reads the piece, or a few less.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()
    depth: int = 1


NULL = Fragment("NULL")


def text(sql: str) -> Fragment:
    """Take over some SQL of which nothing is known."""
    return Fragment(sql, (), len(_WORDS.findall(sql)))


def parameter(value: str | int | float) -> Fragment:  # noqa: PYI041  # as sqlite3 tells them apart
    """A value of the selector: never a part of the text."""
    return Fragment("?", (value,))


def fill(template: str, *parts: Fragment) -> Fragment:
    """Put pieces into the ``{}`` of a text, in order. The texts are few."""
    depth = max(before + part.depth for before, part in zip(_words_before(template), parts, strict=True))
    parameters = tuple(value for part in parts for value in part.parameters)
    return Fragment(template.format(*(part.sql for part in parts)), parameters, depth)


@cache
def _words_before(template: str) -> tuple[int, ...]:
    """How many words stand before each ``{}``; one that is filled counts as one."""
    *between, _ = template.split("{}")
    return tuple(
        place + sum(len(_WORDS.findall(text)) for text in between[: place + 1]) for place in range(len(between))
    )


def joined(operator: str, parts: Sequence[Fragment]) -> Fragment:
    """Join pieces with AND or OR; many in groups, as SQLite's trees may not be deeper than 1000."""
    if len(parts) <= _MANY:
        parameters = tuple(value for part in parts for value in part.parameters)
        sql = f" {operator} ".join(part.sql for part in parts)
        return Fragment(f"({sql})", parameters, max(parts[0].depth + 1, *(part.depth + 3 for part in parts[1:])))
    return joined(operator, [joined(operator, parts[start : start + _MANY]) for start in range(0, len(parts), _MANY)])
