"""A connection to an embedded broker."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from jmsjca.config import Limits
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
)
from jmsjca.providers.embedded.admin import EmbeddedAdmin
from jmsjca.providers.embedded.consumer import ConsumerHandle, EmbeddedConsumer, browse
from jmsjca.providers.embedded.delivery import StoredMessage
from jmsjca.providers.embedded.store.messages import SenderInfo
from jmsjca.providers.embedded.store.queues import (
    check_exists,
    check_owned,
    create_temporary,
    drop_of_connection,
    drop_temporary,
    is_temporary,
    no_local_tag,
    open_queue,
    open_subscription,
    register_client_id,
    register_consumer,
    remove_queue,
    sender_tags,
)
from jmsjca.providers.embedded.store.selector_scan import condition_of
from jmsjca.providers.embedded.store.store import Store, close_store
from jmsjca.providers.embedded.unit import EmbeddedUnit, UnitContext
from jmsjca.spi import Capabilities, Order

__all__ = ["EmbeddedConnection"]


class EmbeddedConnection:
    """A connection to an embedded broker: consumers and units on the store that this process shares.

    Args:
        store: The broker's database.
        limits: The limits of this connection.
        capabilities: The capabilities of the broker.
        client_id: The client id, which no other connection may have; None for none.
        connection_id: The id under which the store is open for this connection.
    """

    def __init__(
        self, store: Store, limits: Limits, capabilities: Capabilities, client_id: str | None, connection_id: str
    ) -> None:
        self._store = store
        self._limits = limits
        self._client_id = client_id
        self._id = connection_id
        self._context = UnitContext(
            store, limits.message_bytes, SenderInfo(sender_tags(client_id, self._id), limits.duplicate_history)
        )
        self._consumers: set[EmbeddedConsumer] = set()
        self._close_lock = threading.RLock()  # several threads may close the connection
        self._is_closing = self._is_released = False
        self.capabilities = capabilities

    def register(self) -> None:
        """Register the client id.

        Raises:
            InvalidClientIDError: Another connection has it.
        """
        if self._client_id is not None:
            self._store.release_dead_owners(now=True)  # client ids of dead processes are free
            with self._store.write() as cursor:
                self._store.check_owner(cursor)  # otherwise the id would stay in use after the death of this process
                register_client_id(cursor, self._client_id, self._store.owner, self._id)

    @property
    def broker(self) -> str:
        """The embedded broker, and the version of its database."""
        return f"embedded broker, SQLite {sqlite3.sqlite_version}"

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
        together: int = 1,
    ) -> EmbeddedConsumer:
        """Create a consumer of a queue, a topic or a subscription.

        Raises:
            InvalidSelectorError: The selector is invalid.
            InvalidDestinationError: The temporary destination does not exist or belongs to another connection, or
                ``no_local`` was set for a queue.
            IllegalStateError: The durable subscription has a consumer, or is in use with another definition.
            NotSupportedError: ``no_local`` was set for a shared subscription.
        """
        del window, together  # there is no prefetch here, and a unit takes any delivery
        self._require_open()
        condition_of(selector)  # refuse an invalid selector before anything is created
        source = Subscription(source) if isinstance(source, Topic) else source
        if isinstance(source, Subscription):
            open_source = self._subscription_opener(source, selector or None, no_local=no_local)
            return self._register(open_source, None, order)
        if no_local:
            raise InvalidDestinationError(f"no_local is for topics; {source} is a queue. Use a selector instead.")
        return self._register(partial(self._open_queue, source), selector or None, order)

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[StoredMessage]]:
        """Yield the waiting messages of a queue in order, in chunks, without claiming them.

        Raises:
            InvalidSelectorError: The selector is invalid.
            InvalidDestinationError: The destination is not a queue.
            ConnectionLostError: The file was removed or replaced.
        """
        self._require_open()
        self._store.database.check_identity()
        condition_of(selector)
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        self._store.release_dead_owners()
        return browse(self._store, queue, selector, limit)

    def unit(self, *, atomic: bool = True) -> EmbeddedUnit:
        """Begin a unit of work."""
        del atomic  # it always is
        if self._context.closed:
            raise _closed_error()
        return EmbeddedUnit(self._context)

    def check(self, target: Destination) -> None:
        """Check that a destination exists; only a temporary one can be missing.

        Raises:
            InvalidDestinationError: The temporary destination does not exist any more.
        """
        self._require_open()
        if target.temporary:
            self._store.release_dead_owners(now=True)  # temporary destinations of dead processes end here
        with self._store.read() as cursor:
            check_exists(cursor, target)

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a destination that exists as long as this connection."""
        self._require_open()
        with self._store.write() as cursor:
            self._store.check_owner(cursor)
            return create_temporary(cursor, kind, self._store.owner, self._id)

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a queue, a named subscription or a temporary destination with its waiting messages.

        Raises:
            InvalidDestinationError: It does not exist.
            IllegalStateError: It has consumers.
        """
        self._require_open()
        self._store.release_dead_owners(now=True)  # their consumers end here
        with self._store.write() as cursor:
            if isinstance(what, Destination) and is_temporary(cursor, what):
                check_owned(cursor, what, self._id)
                drop_temporary(cursor, what)
            else:
                remove_queue(cursor, what)

    def admin(self) -> EmbeddedAdmin:
        """Return the administration of the broker."""
        self._require_open()
        return EmbeddedAdmin(self._store)

    def close(self, timeout: float | None = None) -> None:
        """Close all consumers, release the deliveries of open units (counted), and delete temporary destinations.

        A call that was interrupted can be repeated.
        """
        del timeout
        with self._close_lock:
            if self._is_closing:  # a signal handler has interrupted this thread, and calls it
                return
            self._context.closed = self._is_closing = True
            try:
                if not self._is_released:
                    self._release_all()
            finally:
                self._is_closing = False
                close_store(self._id)

    def _release_all(self) -> None:
        try:
            for consumer in self._consumers:
                self._store.release_postponed(consumer.queue_id)  # first, as it knows what counts
                consumer.close()
            with self._store.write() as cursor:
                wakeup_paths = self._release_in_transaction(cursor)
        except ConnectionLostError:  # the file was removed with all messages
            return
        except JMSError as error:
            self._is_released = True
            queue_ids = [consumer.queue_id for consumer in self._consumers]
            self._store.postpone(self._release_in_transaction, self._released, queue_ids, error)
            raise
        self._is_released = True
        self._released(wakeup_paths)

    def _released(self, wakeup_paths: list[str]) -> None:
        for consumer in self._consumers:
            self._store.forget(list(consumer.unsettled))
        self._store.wake_consumers(wakeup_paths)

    def _release_in_transaction(self, cursor: sqlite3.Cursor) -> list[str]:
        for consumer in self._consumers:
            consumer.release_all(cursor)
        drop_of_connection(cursor, self._id)
        return self._store.other_wakeup_paths(cursor)

    def _register(
        self, open_source: Callable[[sqlite3.Cursor], int], selector: str | None, order: Order
    ) -> EmbeddedConsumer:
        """Register a consumer at the queue or subscription that a function opens."""
        store = self._store
        with store.write() as cursor:
            store.check_owner(cursor)
            queue_id = open_source(cursor)
            consumer_id = register_consumer(cursor, queue_id, store.owner, self._id)
        handle = ConsumerHandle(queue_id, consumer_id)
        consumer = EmbeddedConsumer(store, handle, selector, order, self._limits.prefetch_bytes)
        self._consumers = {c for c in self._consumers if c.unsettled or not c.closed} | {consumer}
        return consumer

    def _open_queue(self, queue: Destination, cursor: sqlite3.Cursor) -> int:
        check_owned(cursor, queue, self._id)
        return open_queue(cursor, queue.name)

    def _subscription_opener(
        self, subscription: Subscription, selector: str | None, *, no_local: bool
    ) -> Callable[[sqlite3.Cursor], int]:
        self._store.release_dead_owners(now=True)  # their consumers end here
        tag = no_local_tag(subscription, self._id) if no_local else None

        def _open(cursor: sqlite3.Cursor) -> int:
            check_owned(cursor, subscription.topic, self._id)
            return open_subscription(cursor, subscription, owner=self._store.owner, selector=selector, no_local=tag)

        return _open

    def _require_open(self) -> None:
        if self._context.closed:
            raise _closed_error()


def _closed_error() -> IllegalStateError:
    return IllegalStateError("This connection is closed.")
