"""A connection to an embedded broker."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Literal
from weakref import WeakSet

from jmsjca.config import Limits
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from jmsjca.providers.embedded.admin import EmbeddedAdmin
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.delivery import StoredMessage
from jmsjca.providers.embedded.mailboxes import drop_mailbox, find_mailbox, open_queue, open_subscription
from jmsjca.providers.embedded.rows import Row, has_due, make_ready, release
from jmsjca.providers.embedded.store import Store
from jmsjca.providers.embedded.stores import leave
from jmsjca.providers.embedded.unit import EmbeddedUnit
from jmsjca.spi import Capabilities, Order

__all__ = ["CAPABILITIES", "EmbeddedConnection"]

CAPABILITIES = Capabilities(
    transacted_receive=True,
    transacted_send=True,
    atomic=True,
    give_back="uncounted",
    exact_credit=True,
    redelivery_delay=True,
    delivery_delay=True,
    delivery_count=True,
    counts_lost=True,
    priority=True,
    browse=True,
    durable=True,
    duplicate_detection=True,
    checks=True,
    admin=True,
    shared_between_processes=True,
)

_BROWSE_CHUNK = 100
_BROWSE = """SELECT urgency, id, deliveries, expires, CAST(headers AS BLOB), body FROM message
             WHERE mailbox = ? AND owner IS NULL AND due IS NULL AND (urgency, id) > (?, ?)
               AND (expires IS NULL OR expires > ?)
             ORDER BY urgency, id LIMIT ?"""


class EmbeddedConnection:
    """Consumers and units over the store that this process shares.

    Args:
        store: The broker's database.
        limits: The bounds of this connection.
        capabilities: What it can do.
    """

    def __init__(self, store: Store, limits: Limits, capabilities: Capabilities) -> None:
        self._store = store
        self._limits = limits
        self._consumers: set[EmbeddedConsumer] = set()
        self._units: WeakSet[EmbeddedUnit] = WeakSet()
        self._closed = False
        self.capabilities = capabilities

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,  # noqa: ARG002  # nothing is taken ahead here
    ) -> EmbeddedConsumer:
        """Consume from a queue, a topic or a durable subscription."""
        self._check_open()
        self._refuse(selector=selector, no_local=no_local)
        source = Subscription(source) if isinstance(source, Topic) else source
        with self._store.write() as cursor:
            self._store.check_owner(cursor)
            if isinstance(source, Subscription):
                mailbox = open_subscription(cursor, source, self._store.owner, uuid.uuid4().hex)
            else:
                mailbox = open_queue(cursor, source.name)
        volatile = isinstance(source, Subscription) and not source.durable
        consumer = EmbeddedConsumer(self._store, mailbox, order, self._limits.prefetch_bytes, volatile=volatile)
        self._consumers = {c for c in self._consumers if c.outstanding or not c.closed} | {consumer}
        return consumer

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[StoredMessage]]:
        """Look at what waits in a queue, in order, chunk by chunk; nothing is taken."""
        self._check_open()
        self._refuse(selector=selector)
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        self._store.reap()
        self._make_ready(queue)
        last = (-1, -1)
        while limit is None or limit > 0:
            rows = self._page(queue, last, min(limit or _BROWSE_CHUNK, _BROWSE_CHUNK))
            if not rows:
                return
            yield [StoredMessage(row) for _, row in rows]
            last = (rows[-1][0], rows[-1][1].id)
            limit = None if limit is None else limit - len(rows)

    def unit(self, *, atomic: bool = True) -> EmbeddedUnit:  # noqa: ARG002  # atomic is more than was asked for
        """Open a unit."""
        self._check_open()
        unit = EmbeddedUnit(self._store, self._limits.message_bytes, self._limits.duplicate_history)
        self._units.add(unit)
        return unit

    def check(self, target: Destination) -> None:
        """Nothing to check: destinations exist from their first use."""
        self._check_open()
        del target

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Refused: the embedded broker has no temporary destinations yet."""
        raise NotSupportedError(f"The embedded broker has no temporary {kind}s in this release; use a named one.")

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a queue or a durable subscription, with what waits in it.

        Raises:
            InvalidDestinationError: There is none.
        """
        self._check_open()
        with self._store.write() as cursor:
            mailbox = find_mailbox(cursor, what)
            if mailbox is None:
                raise InvalidDestinationError(f"There is no {what} to remove.")
            drop_mailbox(cursor, mailbox)

    def admin(self) -> EmbeddedAdmin:
        """Look into the broker."""
        self._check_open()
        return EmbeddedAdmin(self._store)

    def close(self, timeout: float | None = None) -> None:
        """Close consumers; what open units took comes again, counted."""
        del timeout
        if self._closed:
            return
        self._closed = True
        for unit in self._units:
            unit.lost = True
        for consumer in self._consumers:
            consumer.close()
        with self._store.write() as cursor:
            for consumer in self._consumers:
                release(cursor, [d.claim for d in consumer.outstanding.values()], uncount=0)
                consumer.outstanding.clear()
            doorbells = self._store.other_doorbells(cursor)
        self._store.ring(doorbells)
        leave(self._store)

    def _make_ready(self, queue: Destination) -> None:
        """Give what became due its place in the order, should no consumer have done so yet."""
        now = self._store.now()
        with self._store.read() as cursor:
            mailbox = find_mailbox(cursor, queue)
            if mailbox is None or not has_due(cursor, mailbox, now):
                return
        with self._store.write(durable=False) as cursor:
            make_ready(cursor, mailbox, now)

    def _page(self, queue: Destination, last: tuple[int, int], limit: int) -> list[tuple[int, Row]]:
        """The next rows after one, each with its urgency."""
        with self._store.read() as cursor:
            mailbox = find_mailbox(cursor, queue)
            rows = cursor.execute(_BROWSE, (mailbox, *last, self._store.now(), limit)).fetchall()
        return [(urgency, Row(*values)) for urgency, *values in rows]

    def _refuse(self, *, selector: str | None = None, no_local: bool = False) -> None:
        if selector:
            raise NotSupportedError(
                f"The embedded broker has no selectors in this release; it was given {selector[:100]!r}."
            )
        if no_local:
            raise NotSupportedError("The embedded broker has no no_local in this release.")

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("This connection is closed.")
