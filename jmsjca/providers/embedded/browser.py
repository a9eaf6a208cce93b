"""Queue browsing: the waiting messages of a queue in order, without claiming them."""

from collections.abc import Iterator, Sequence

from jmsjca.destinations import Queue
from jmsjca.providers.embedded.delivery import StoredMessage
from jmsjca.providers.embedded.store.messages import Row, has_due, make_due_ready
from jmsjca.providers.embedded.store.queues import find_queue
from jmsjca.providers.embedded.store.selector_scan import condition_of
from jmsjca.providers.embedded.store.store import Store

__all__ = ["browse"]

_CHUNK = 100
_PAGE = """SELECT urgency, id, deliveries + 1, expires, CAST(headers AS BLOB), CAST(body AS BLOB), digest FROM message
           WHERE mailbox = ? AND owner IS NULL AND due IS NULL AND (urgency, id) > (?, ?)
             AND (expires IS NULL OR expires > ?)"""
_IN_ORDER = " ORDER BY urgency, id LIMIT ?"


def browse(store: Store, queue: Queue, selector: str | None, limit: int | None) -> Iterator[Sequence[StoredMessage]]:
    """Yield the waiting messages of a queue in chunks; each chunk shows the queue at the time when it is read.

    Args:
        store: The broker's database.
        queue: The queue to browse.
        selector: Only messages that match; None for all.
        limit: Maximum number of messages; None for all.
    """
    _make_ready(store, queue)
    last = (-1, -1)
    while limit is None or limit > 0:
        page = _page(store, queue, selector, last, min(limit or _CHUNK, _CHUNK))
        if not page:
            return
        yield [StoredMessage(row) for _, row in page]
        last = (page[-1][0], page[-1][1][0])
        limit = None if limit is None else limit - len(page)


def _make_ready(store: Store, queue: Queue) -> None:
    """Move due messages to their place in the order, if no consumer has done so yet."""
    now = store.now()
    with store.read() as cursor:
        queue_id = find_queue(cursor, queue)
        if queue_id is None or not has_due(cursor, queue_id, now):
            return
    with store.write(durable=False) as cursor:
        make_due_ready(cursor, queue_id, now)


def _page(store: Store, queue: Queue, selector: str | None, last: tuple[int, int], limit: int) -> list[tuple[int, Row]]:
    """Return the rows that follow `last`, each with its urgency."""
    where, parameters = condition_of(selector)
    with store.read() as cursor:
        place = (find_queue(cursor, queue), *last, store.now())
        rows = cursor.execute(_PAGE + where + _IN_ORDER, (*place, *parameters, limit)).fetchall()
    return [(row[0], row[1:]) for row in rows]
