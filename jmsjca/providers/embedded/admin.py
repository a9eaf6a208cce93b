"""Administration of an embedded broker: destinations, depths, settings, purge, check and compact."""

from collections.abc import Iterator, Sequence

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import InvalidDestinationError
from jmsjca.providers.embedded import maintenance
from jmsjca.providers.embedded.consumer import browse
from jmsjca.providers.embedded.delivery import StoredMessage
from jmsjca.providers.embedded.store.queues import (
    find_queue,
    is_temporary,
    list_destinations,
    list_subscriptions,
    open_queue,
    purge_queue,
    read_settings,
    remove_queue,
    write_settings,
)
from jmsjca.providers.embedded.store.selector_scan import condition_of
from jmsjca.providers.embedded.store.store import Store
from jmsjca.spi import Activity, Depth

__all__ = ["EmbeddedAdmin"]

_READY = "SELECT count(*) FROM message WHERE queue_id = ? AND owner IS NULL AND due IS NULL"
_HELD = "SELECT count(*) FROM message WHERE queue_id = ? AND owner IS NOT NULL"
_DUE = "SELECT count(*) FROM message WHERE queue_id = ? AND due <= ? AND (expires IS NULL OR expires > ?)"
_SCHEDULED = "SELECT count(*) FROM message WHERE queue_id = ? AND due > ? AND (expires IS NULL OR expires > ?)"
_EXPIRED = """SELECT count(*) FROM message INDEXED BY message_expires
              WHERE queue_id = ? AND expires <= ? AND owner IS NULL AND due IS NULL"""
# In one statement, as other processes may write between two. Messages that came, are gone and were not removed were
# settled.
_ACTIVITY = """SELECT (SELECT count(*) FROM consumer WHERE consumer.queue_id = queue.id), added,
                      added - removed
                      - (SELECT count(*) FROM message
                         WHERE message.queue_id = queue.id AND message.owner IS NULL AND due IS NULL)
                      - (SELECT count(*) FROM message
                         WHERE message.queue_id = queue.id AND message.owner IS NOT NULL)
                      - (SELECT count(*) FROM message WHERE message.queue_id = queue.id AND due IS NOT NULL)
               FROM queue WHERE id = ?"""


class EmbeddedAdmin:
    """Administers the store of one broker.

    Args:
        store: The broker's database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def destinations(self) -> Sequence[Destination]:
        """Return all queues, and the topics that have subscriptions."""
        with self._store.read() as cursor:
            return list_destinations(cursor)

    def clock(self) -> float:
        """Return the time of the clock of this process, which stamps the messages."""
        return self._store.clock.now()

    def depth(self, source: Destination | Subscription) -> Depth:
        """Count the messages of a queue or a durable subscription; messages that dead processes held count as ready.

        Raises:
            ConnectionLostError: The file was removed or replaced.
        """
        self._store.database.check_identity()
        self._store.release_dead_owners()
        with self._store.read() as cursor:
            queue_id = find_queue(cursor, source)
            ready, held = (cursor.execute(q, (queue_id,)).fetchone()[0] for q in (_READY, _HELD))
            now = self._store.now()
            due, scheduled = (cursor.execute(q, (queue_id, now, now)).fetchone()[0] for q in (_DUE, _SCHEDULED))
            expired = cursor.execute(_EXPIRED, (queue_id, now)).fetchone()[0]
        return Depth(ready + due - expired, held, scheduled)

    def activity(self, source: Destination | Subscription) -> Activity:
        """Count the consumers and the messages of a queue or a durable subscription.

        Consumers of dead processes are left out. Messages that expired, were purged or dead-lettered are not settled.
        """
        self._store.release_dead_owners(now=True)
        with self._store.read() as cursor:
            queue_id = find_queue(cursor, source)
            if queue_id is None:
                return Activity(0, 0, 0)
            consumers, added, settled = cursor.execute(_ACTIVITY, (queue_id,)).fetchone()
            in_memory = self._store.added.get(queue_id, 0)
        return Activity(consumers, added + in_memory, settled + in_memory)

    def subscriptions(self) -> Sequence[Subscription]:
        """Return the durable subscriptions."""
        with self._store.read() as cursor:
            return list_subscriptions(cursor)

    def browse(self, source: Subscription, *, selector: str | None = None) -> Iterator[Sequence[StoredMessage]]:
        """Yield the waiting messages of a durable subscription in order, in chunks, without claiming them."""
        condition_of(selector)
        return browse(self._store, source, selector, None)

    def unsubscribe(self, source: Subscription) -> None:
        """Delete a durable subscription with its messages.

        Raises:
            InvalidDestinationError: There is no such subscription.
            IllegalStateError: It has consumers.
        """
        self._store.release_dead_owners(now=True)
        with self._store.write() as cursor:
            remove_queue(cursor, source)

    def create(self, queue: Destination) -> None:
        """Create a queue. An existing queue is not an error.

        Raises:
            InvalidDestinationError: It is a topic, or temporary.
        """
        if not isinstance(queue, Queue) or queue.temporary:
            raise InvalidDestinationError(f"{queue} cannot be created here: only queues with a name of yours are.")
        with self._store.write() as cursor:
            open_queue(cursor, queue.name)

    def remove(self, queue: Destination) -> None:
        """Delete a queue with its messages.

        Raises:
            InvalidDestinationError: The queue does not exist, or is temporary.
            IllegalStateError: The queue has consumers.
        """
        self._store.release_dead_owners(now=True)  # their consumers end here
        with self._store.write() as cursor:
            if is_temporary(cursor, queue):
                raise InvalidDestinationError(f"{queue} belongs to a connection, which deletes it when it is closed.")
            remove_queue(cursor, queue)

    def purge(self, source: Destination | Subscription) -> int:
        """Remove the waiting messages of a queue or a durable subscription, and return their number.

        Messages that a consumer holds stay.
        """
        with self._store.write() as cursor:
            queue_id = find_queue(cursor, source)
            return 0 if queue_id is None else purge_queue(cursor, queue_id)

    def configure(self, address: Destination | None, settings: DestinationSettings) -> None:
        """Set the settings of a destination for all processes; they are stored in the file.

        Args:
            address: The queue or the topic (with all its subscriptions); None sets the default of all destinations
                without their own settings.
            settings: The new settings.
        """
        with self._store.write() as cursor:
            write_settings(cursor, address, settings)
            wakeup_paths = self._store.other_wakeup_paths(cursor)
        self._store.wake_consumers(wakeup_paths)

    def settings(self, address: Destination | None) -> DestinationSettings:
        """Return the effective settings of a destination; None returns the default settings."""
        with self._store.read() as cursor:
            return read_settings(cursor, address)

    def check(self) -> list[str]:
        """Read the whole file and return one line for each fault; a memory broker has none."""
        path = self._store.path
        return [] if path is None else maintenance.check(path, self._store.limits.lock_timeout)

    def compact(self) -> int:
        """Release the unused space of the file to the disk, and return its bytes; 0 for a memory broker."""
        path = self._store.path
        return 0 if path is None else maintenance.compact(path, self._store.limits.lock_timeout)
