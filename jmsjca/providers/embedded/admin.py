"""The operator's view of an embedded broker."""

from collections.abc import Sequence

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Subscription
from jmsjca.providers.embedded import maintenance
from jmsjca.providers.embedded.store.queues import (
    find_queue,
    list_destinations,
    purge_queue,
    read_settings,
    write_settings,
)
from jmsjca.providers.embedded.store.store import Store
from jmsjca.spi import Depth

__all__ = ["EmbeddedAdmin"]

_READY = "SELECT count(*) FROM message WHERE mailbox = ? AND owner IS NULL AND due IS NULL"
_HELD = "SELECT count(*) FROM message WHERE mailbox = ? AND owner IS NOT NULL"
_DUE = "SELECT count(*) FROM message WHERE mailbox = ? AND due <= ? AND (expires IS NULL OR expires > ?)"
_SCHEDULED = "SELECT count(*) FROM message WHERE mailbox = ? AND due > ? AND (expires IS NULL OR expires > ?)"
_EXPIRED = """SELECT count(*) FROM message INDEXED BY message_expires
              WHERE mailbox = ? AND expires <= ? AND owner IS NULL AND due IS NULL"""


class EmbeddedAdmin:
    """Looks into the store.

    Args:
        store: The broker's database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def destinations(self) -> Sequence[Destination]:
        """All queues, and the topics that have subscriptions."""
        with self._store.read() as cursor:
            return list_destinations(cursor)

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a durable subscription; what dead processes held counts as ready."""
        self._store.release_dead_owners()
        with self._store.read() as cursor:
            queue_id = find_queue(cursor, source)
            ready, held = (cursor.execute(q, (queue_id,)).fetchone()[0] for q in (_READY, _HELD))
            now = self._store.now()
            due, scheduled = (cursor.execute(q, (queue_id, now, now)).fetchone()[0] for q in (_DUE, _SCHEDULED))
            expired = cursor.execute(_EXPIRED, (queue_id, now)).fetchone()[0]
        return Depth(ready + due - expired, held, scheduled)

    def purge(self, source: Destination | Subscription) -> int:
        """Remove what waits in a queue or a durable subscription; what somebody holds stays."""
        with self._store.write() as cursor:
            queue_id = find_queue(cursor, source)
            return 0 if queue_id is None else purge_queue(cursor, queue_id)

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Set what a destination does with its messages, from now on and for everybody; the file keeps it.

        Args:
            address: The queue or topic (then all its subscriptions); None for all that have no settings of their own.
            settings: What holds there.
        """
        with self._store.write() as cursor:
            write_settings(cursor, address, settings)
            wakeup_paths = self._store.other_wakeup_paths(cursor)
        self._store.wake_consumers(wakeup_paths)

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Tell what holds for a destination; for None, for those that have no settings of their own."""
        with self._store.read() as cursor:
            return read_settings(cursor, address)

    def check(self) -> list[str]:
        """Read the whole file and tell what is wrong with it, a line for each fault. Memory has none."""
        path = self._store.path
        return [] if path is None else maintenance.check(path, self._store.limits.lock_timeout)

    def compact(self) -> int:
        """Give back the space of messages that are gone; tell how many bytes. Memory has none to give back."""
        path = self._store.path
        return 0 if path is None else maintenance.compact(path, self._store.limits.lock_timeout)
