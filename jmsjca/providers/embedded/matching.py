"""Which messages a consumer takes: its selector and the groups of others, as one query."""

import sqlite3
from functools import lru_cache
from typing import NamedTuple

from jmsjca.providers.embedded.codec import SELECTABLE

__all__ = ["Match", "Stretch", "condition_of"]

_CANDIDATES = """SELECT id FROM message WHERE mailbox = ? AND urgency = ? AND id > ? AND id <= ?
                 AND owner IS NULL AND due IS NULL AND (bucket IS NULL OR NOT EXISTS (
                     SELECT 1 FROM message_group
                     WHERE message_group.mailbox = message.mailbox AND message_group.bucket = message.bucket
                       AND consumer <> ?))"""
_IN_ORDER = " ORDER BY id LIMIT ?"
_HEADERS = {
    **{name: f"json_extract(headers, '$.{field}')" for name, field in SELECTABLE.items()},
    "JMSPriority": "(9 - urgency)",
    "JMSDeliveryMode": "CASE json_extract(headers, '$.mode') WHEN 1 THEN 'NON_PERSISTENT' ELSE 'PERSISTENT' END",
    "JMSXDeliveryCount": "(deliveries + 1)",
}


class Stretch(NamedTuple):
    """The messages of one urgency in a mailbox with ids after one and up to another."""

    mailbox: int
    urgency: int
    after: int
    last: int


class Match:
    """Finds the ids of candidates.

    Args:
        selector: Which messages; None for all.
        consumer: Whose groups are its own.
    """

    def __init__(self, selector: str | None, consumer: int) -> None:
        where, self._parameters = condition_of(selector)
        self._query = _CANDIDATES + where + _IN_ORDER
        self._consumer = consumer

    def ids(self, cursor: sqlite3.Cursor, where: Stretch, limit: int) -> list[int]:
        """The first candidates of a stretch, in order."""
        rows = cursor.execute(self._query, (*where, self._consumer, *self._parameters, limit))
        return [number for (number,) in rows]


@lru_cache(1000)
def condition_of(selector: str | None) -> tuple[str, tuple[str | int | float, ...]]:
    """What a selector adds to the WHERE of a query of messages, with its parameters.

    A message whose headers are damaged matches no selector; it is found by those who have none.

    Raises:
        InvalidSelectorError: It is not a selector.
    """
    if not selector:
        return "", ()
    from jmsjca.selectors import Layout, Selector, translate  # noqa: PLC0415  # loads a grammar; most never need it

    condition = translate(Selector.parse(selector), Layout(headers=_HEADERS, properties="headers", path="$.p"))
    return f" AND json_valid(headers) AND ({condition.sql})", condition.parameters
