"""A connection to a broker over STOMP."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Literal
from weakref import WeakSet

from jmsjca.config import Clock, Limits
from jmsjca.destinations import Destination, Queue, Subscription, Topic
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    NotSupportedError,
)
from jmsjca.providers.stomp.consumer import STOMPConsumer
from jmsjca.providers.stomp.consumers import Consumers
from jmsjca.providers.stomp.delivery import STOMPDelivery
from jmsjca.providers.stomp.dialect import Dialect
from jmsjca.providers.stomp.durables import Durables
from jmsjca.providers.stomp.refusals import explained
from jmsjca.providers.stomp.sources import check_no_local, check_subscription
from jmsjca.providers.stomp.temporaries import Temporaries
from jmsjca.providers.stomp.unit import STOMPUnit
from jmsjca.providers.stomp.wire import Wire
from jmsjca.spi import Capabilities, Order

__all__ = ["STOMPConnection"]


class STOMPConnection:
    """Consumers and units over one connection. When it is lost it stays lost.

    Args:
        wire: The connection, logged in.
        dialect: What the broker calls things.
        aside: Opens another connection, for questions that may end it.
        client_id: Whose durable subscriptions these are.
        limits: The bounds.
        clock: Where time comes from.
    """

    def __init__(
        self,
        wire: Wire,
        dialect: Dialect,
        aside: Callable[[], Wire],
        *,
        client_id: str | None,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._wire = wire
        wire.incoming.confirmed_by = dialect.confirmed_by
        self._durables = Durables(wire, dialect, aside)
        self._temporaries = Temporaries(wire, dialect, aside)
        self._consumers = Consumers(wire, dialect, limits, clock)
        self._dialect = dialect
        self._broker = dialect.broker
        self._client_id = client_id
        self._limits = limits
        self._lock = threading.Lock()
        self._units: WeakSet[STOMPUnit] = WeakSet()
        self._closed = False
        self._lost: JMSError | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the broker can do."""
        return self._broker.capabilities

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
    ) -> STOMPConsumer:
        """Consume from a queue, a topic or a durable subscription."""
        self._check_open()
        self._broker.require("selectors", asked=bool(selector))
        source = Subscription(source) if isinstance(source, Topic) else source
        if no_local:
            check_no_local(self._broker, source)
        check_subscription(self._broker, source, self._client_id)
        self._temporaries.check_own(source)
        self._durables.note(source)
        consumer = self._consumers.open(source, selector=selector, no_local=no_local, order=order, window=window)
        self._durables.consumed_by(source, consumer)
        return consumer

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[STOMPDelivery]]:
        """Look at what waits in a queue."""
        self._check_open()
        del selector, limit
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        raise NotSupportedError(f"{self._dialect.broker.name} cannot be browsed over STOMP.")

    def unit(self, *, atomic: bool = True) -> STOMPUnit:
        """Open a unit. Not atomic: sends are confirmed first, then deliveries acknowledged.

        Raises:
            NotSupportedError: It shall be atomic, and the broker cannot settle and send as one.
        """
        self._check_open()
        self._broker.require("atomic", asked=atomic)
        unit = STOMPUnit(self._wire, self._dialect, self._limits.message_bytes, self._temporaries.check_not_removed)
        with self._lock:
            self._units.add(unit)
        return unit

    def check(self, target: Destination) -> None:
        """Check the name: over STOMP a broker says only at a send whether it takes a message.

        Raises:
            InvalidDestinationError: The broker would not take the name literally.
        """
        self._check_open()
        self._dialect.address(target)

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Make a destination that the broker removes with this connection."""
        self._check_open()
        self._broker.require("temporary")
        with explained(f"make a temporary {kind}"):
            return self._temporaries.make(kind)

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a durable subscription with what waits there, or give up a temporary destination.

        Raises:
            NotSupportedError: It is a queue or a topic that lasts, or the broker cannot.
            InvalidDestinationError: There is none.
            IllegalStateError: It has consumers.
        """
        self._check_open()
        if isinstance(what, Subscription) and what.durable:
            check_subscription(self._broker, what, self._client_id)
            with explained(f"remove the subscription {what.name}"):
                self._durables.remove(what)
        elif isinstance(what, Destination) and what.temporary:
            self._consumers.check_free(what)
            self._temporaries.remove(what)
        else:
            raise NotSupportedError(f"{self._dialect.broker.name} removes no destinations over STOMP.")

    def admin(self) -> None:
        """STOMP lets nobody look inside."""
        self._check_open()

    def close(self, timeout: float | None = None) -> None:
        """Say goodbye, and wait for the answer; what open units took comes again."""
        if self._wire.home.left:
            return  # a forked child: its parent closes it
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._lose(ConnectionLostError("This connection was closed."))
        self._wire.close(self._wire.reply_timeout if timeout is None else timeout)

    def lost(self, error: JMSError) -> None:
        """Let everybody know that the connection broke."""
        self._lost = error
        self._lose(error)

    def _lose(self, error: JMSError) -> None:
        with self._lock:
            units = list(self._units)
        for unit in units:
            unit.lost = True
        self._consumers.broken(error)

    def _check_open(self) -> None:
        self._wire.home.check()
        if self._closed:
            raise IllegalStateError("This connection is closed.")
        if self._lost is not None:
            raise ConnectionLostError(str(self._lost)) from self._lost
