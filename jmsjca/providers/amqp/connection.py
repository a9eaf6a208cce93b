"""An AMQP connection: one attempt, which never reconnects; opens consumers and keeps their registry."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from jmsjca.config import Limits
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.forking import ForkGuard
from jmsjca.providers.amqp.admin import ManagementAdmin
from jmsjca.providers.amqp.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.amqp.brokers.registry import admin_for
from jmsjca.providers.amqp.browser import browse
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.amqp.redelivery import FailureCounts
from jmsjca.providers.amqp.subscriptions import ConsumerSpec, SourceFactory, unsubscribe, unsubscribe_global
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.spi import Admin, Capabilities, Order

__all__ = ["AMQPConnection", "ConsumerRegistry", "Opening"]

_CLOSE_TIMEOUT = 5.0


class AMQPConnection:
    """Consumers and units over one engine.

    Args:
        engine: The open connection.
        links: What units write with.
        broker: What is at the other end.
        limits: The bounds.
        client_id: What durable subscriptions belong to; None if none was given.
    """

    def __init__(
        self, engine: Engine, links: LinkPool, broker: AMQPBrokerProfile, limits: Limits, client_id: str | None
    ) -> None:
        self._engine = engine
        self._links = links
        self._broker = broker
        self._limits = limits
        self._temporary_destinations = links.temporaries
        self._lock = threading.RLock()  # the broker's management is asked over this connection, too
        self._sources = SourceFactory(broker, links.temporaries, client_id)
        self._opening = Opening(engine, broker, self._sources, limits, links.reply_timeout)
        self._consumers = ConsumerRegistry()
        self._admin: ManagementAdmin | None = None  # made when it is asked for: it knows this connection
        self._close_lock = threading.Lock()
        self._fork_guard = ForkGuard()

    @property
    def capabilities(self) -> Capabilities:
        """What this connection can do."""
        return self._broker.data.capabilities

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
    ) -> AMQPConsumer:
        """Consume from a queue, a topic or a subscription."""
        self._check_open()
        self._sources.check_consumable(source, no_local=no_local)
        with self._lock:  # two threads may ask for one subscription
            terms = self._consumers.reserve(ConsumerSpec(source, selector, no_local))
            consumer = self._opening.open(terms, order, window)
            self._consumers.add(consumer, terms)
        return consumer

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[ReceivedMessage]]:
        """Look at what waits in a queue, in order, chunk by chunk; nothing is taken."""
        self._check_open()
        self._broker.data.require("browse")
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        source = self._sources.for_browser(queue, selector)
        return browse(
            self._engine,
            source,
            ReceiveContext(queue, self._broker.naming, self._broker.counts_deliveries),
            self._limits,
            self._links.reply_timeout,
            limit=limit,
        )

    def unit(self, *, atomic: bool = True) -> AMQPUnit:
        """Open a unit.

        Raises:
            NotSupportedError: It must be atomic, and the broker has no transactions.
        """
        self._check_open()
        if atomic:
            self._broker.data.require("atomic")
        return AMQPUnit(self._links, atomic=atomic)

    def check(self, target: Destination) -> None:
        """Attach a sender.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self._check_open()
        self._temporary_destinations.check_not_removed(target)
        self._links.check_target(target)

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Make a destination that the broker removes with this connection."""
        self._check_open()
        self._broker.data.require("temporary")
        return self._temporary_destinations.create(kind)

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a queue, a durable subscription, or a temporary destination of this connection.

        Raises:
            InvalidDestinationError: There is none.
            IllegalStateError: It has consumers.
            NotSupportedError: It is a queue or a topic, and the broker has no management over AMQP.
        """
        self._check_open()
        with self._lock:
            self._consumers.check_unused(what)
            if isinstance(what, Subscription):
                self._unsubscribe(what)
                return
            if what.temporary:
                self._temporary_destinations.remove(what)
                return
        self._remove_by_management(what)  # which opens and removes what it needs for its answers, one request at a time

    def admin(self) -> Admin | None:
        """The operator's view; None if the broker has no management over AMQP."""
        self._check_open()
        return self._management_admin()

    def close(self, timeout: float | None = None) -> None:
        """Give back what is held, and close. What open units took comes again, counted."""
        if self._fork_guard.in_child:
            return  # a forked child: its parent closes it
        with self._close_lock:
            if self._links.is_closing:
                return
            self._links.is_closing = True
        self._admin = None
        try:
            for consumer in self._consumers:
                consumer.revoke_credit()
            self._mark_units_lost()
            for consumer in self._consumers:
                consumer.close_nowait()
            self._mark_units_lost()  # those that took something meanwhile
        except JMSError:  # the connection is gone, and everything went back with it
            pass
        finally:
            self._engine.close(_CLOSE_TIMEOUT if timeout is None else timeout)

    def _remove_by_management(self, what: Destination) -> None:
        manager = self._management_admin()
        if manager is None:
            raise NotSupportedError(f"{what} cannot be removed over AMQP; use the broker's own tools.")
        manager.remove(what)

    def _management_admin(self) -> ManagementAdmin | None:
        with self._lock:
            self._admin = self._admin or admin_for(self._broker.product, self, self._links.reply_timeout)
            return self._admin

    def _unsubscribe(self, what: Subscription) -> None:
        self._sources.check_unsubscribable(what)
        seconds = self._links.reply_timeout
        if what.client_id is not None or not what.shared:
            unsubscribe(self._engine, str(what.name), seconds)
        else:
            unsubscribe_global(self._engine, self._sources.for_consumer(ConsumerSpec(what)), seconds)

    def _mark_units_lost(self) -> None:
        for unit in {unit for consumer in self._consumers for unit in consumer.units}:
            unit.mark_lost()

    def _check_open(self) -> None:
        self._fork_guard.check()  # another thread may hold a lock that is not there in a forked child
        if self._links.is_closing:
            raise IllegalStateError("This connection is closed.")


@dataclass(frozen=True, slots=True)
class Opening:
    """Makes consumers.

    Args:
        engine: The connection.
        broker: What is at the other end.
        sources: What may be consumed from.
        limits: The bounds.
        reply_timeout: Seconds to wait for the broker's answers.
        failures: What failed here, for all consumers.
    """

    engine: Engine
    broker: AMQPBrokerProfile
    sources: SourceFactory
    limits: Limits
    reply_timeout: float
    failures: FailureCounts = field(default_factory=FailureCounts)

    def open(self, terms: ConsumerSpec, order: Order, window: int | None) -> AMQPConsumer:
        """Open a consumer.

        Args:
            terms: What it asks for.
            order: How its deliveries are settled.
            window: How many messages it takes ahead; None for as many as the limits say.

        Raises:
            JMSError: The broker refuses.
        """
        consumer = self._make(terms, order, self.limits.prefetch_messages if window is None else window)
        try:
            consumer.open()
        except ConnectionLostError as error:  # so hard a broker may refuse what another consumer has
            if any(words in str(error) for words in self.broker.in_use_texts):
                raise IllegalStateError(f"{terms.source} is in use: {error}") from error
            raise
        return consumer

    def _make(self, terms: ConsumerSpec, order: Order, window: int) -> AMQPConsumer:
        return AMQPConsumer(
            self.engine,
            self.sources.for_consumer(terms),
            ReceiveContext(terms.topic, self.broker.naming, self.broker.counts_deliveries),
            order=order,
            window=window,
            limits=self.limits,
            reply_timeout=self.reply_timeout,
            supports_drain=self.broker.supports_drain,
            failure_counts=self.failures,
            redelivers_locally=self.broker.data.capabilities.give_back == "local",
        )


class ConsumerRegistry:
    """Brokers differ in what they do about two consumers of one subscription, so what is wrong is refused here."""

    def __init__(self) -> None:
        self._active: dict[AMQPConsumer, ConsumerSpec] = {}

    def __iter__(self) -> Iterator[AMQPConsumer]:
        """Go through all that are not done."""
        return iter(tuple(self._active))

    def reserve(self, terms: ConsumerSpec) -> ConsumerSpec:
        """Find the number for one more consumer.

        Raises:
            IllegalStateError: Another consumer of this connection has the subscription (JMS 3.1, section 8.3).
        """
        source = terms.source
        if not isinstance(source, Subscription) or source.name is None:
            return terms
        others = [self._active[consumer] for consumer in self._consumers_of(source)]
        if others and not all(source.shared and _has_same_terms(terms, other) for other in others):
            raise IllegalStateError(
                f"The subscription {source.name!r} has a consumer of this connection already, on other terms or not"
                " shared; or a unit still holds messages of a closed one: end that first."
            )
        taken = {other.ordinal for other in others}
        return replace(terms, ordinal=next(n for n in range(1, len(taken) + 2) if n not in taken))

    def add(self, consumer: AMQPConsumer, terms: ConsumerSpec) -> None:
        """Note a consumer, and forget those that are done."""
        self._active = {c: t for c, t in self._active.items() if not c.is_finished} | {consumer: terms}

    def check_unused(self, what: Destination | Subscription) -> None:
        """See whether something can be removed.

        Raises:
            IllegalStateError: A consumer of this connection has it.
        """
        if self._consumers_of(what) if isinstance(what, Subscription) else self._open_consumers_of(what):
            raise IllegalStateError(f"{what} still has consumers; close them first.")

    def _open_consumers_of(self, what: Destination) -> list[AMQPConsumer]:
        return [c for c, terms in self._active.items() if terms.topic == what and not c.closed]

    def _consumers_of(self, source: Subscription) -> list[AMQPConsumer]:
        return [c for c, t in self._active.items() if not c.is_finished and _is_same_subscription(t.source, source)]


def _is_same_subscription(one: Destination | Subscription, other: Subscription) -> bool:
    """True if they are one subscription: by its name, its client, and whether it lasts."""
    return isinstance(one, Subscription) and (one.name, one.client_id, one.volatile) == (
        other.name,
        other.client_id,
        other.volatile,
    )


def _has_same_terms(one: ConsumerSpec, other: ConsumerSpec) -> bool:
    return (one.source, one.selector, one.no_local) == (other.source, other.selector, other.no_local)
