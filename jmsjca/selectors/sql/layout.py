"""What the translation is given, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Condition", "Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table holds messages. What stands here becomes part of the SQL, so none of it may come from a user.

    In the JSON a boolean is ``true`` or ``false``, a number of an exact type an integer, one of another type as Python
    writes it (infinite ones ``9e999`` and ``-9e999``), NaN is ``null``, and texts and names are escaped only where JSON
    requires it.

    Attributes:
        headers: For the name of a header the SQL expression of its value: a number, a text without U+0000, or NULL. All
            that selectors may name must be here; what else is here is taken from here, too, instead of a property.
        properties: The SQL expression, most simply a column, of the JSON text that holds the properties.
        path: The JSON path of the object of properties in it, such as ``$.p``.
    """

    headers: Mapping[str, str]
    properties: str
    path: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of SQL: true for the messages that are selected, else false or NULL.

    Attributes:
        sql: The text, in parentheses; it holds nothing that stood in the selector.
        parameters: The values of its question marks, in order.
    """

    sql: str
    parameters: tuple[str | int | float, ...] = ()
