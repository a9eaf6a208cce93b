"""Pieces of SQL with their parameters."""

from collections.abc import Sequence

from jmsjca.selectors.sql.layout import Condition

__all__ = ["NULL", "Fragment", "balanced", "fill", "parameter"]

Fragment = Condition
"""A piece of SQL is made as a condition is: a text with question marks, and their values in order."""

NULL = Fragment("NULL")


def parameter(value: str | int | float) -> Fragment:  # noqa: PYI041  # as sqlite3 tells them apart
    """A value of the selector: never a part of the text."""
    return Fragment("?", (value,))


def fill(template: str, *parts: Fragment) -> Fragment:
    """Put pieces into the ``{}`` of a text, in order."""
    parameters = [value for part in parts for value in part.parameters]
    return Fragment(template.format(*(part.sql for part in parts)), tuple(parameters))


def balanced(operator: str, parts: Sequence[Fragment]) -> Fragment:
    """Join many pieces with AND or OR so that SQLite's tree stays flat; it is limited to a depth of 1000."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return fill(f"({{}} {operator} {{}})", balanced(operator, parts[:middle]), balanced(operator, parts[middle:]))
