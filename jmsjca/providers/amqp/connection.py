"""An AMQP connection, which never reconnects, and the registry of its consumers."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from jmsjca.config import Clock, Limits
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.forking import ForkGuard
from jmsjca.providers.amqp.browser import browse
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.amqp.links.source import Source
from jmsjca.providers.amqp.redelivery import FailureCounts
from jmsjca.providers.amqp.subscriptions import ConsumerSpec, SourceFactory, unsubscribe, unsubscribe_global
from jmsjca.providers.amqp.temporary_destinations import DeclaredTemporaryDestinations, TemporaryDestinations
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.spi import Admin, Capabilities, Order

__all__ = ["AMQPConnection"]

_CLOSE_TIMEOUT = 5.0


class AMQPConnection:
    """An open connection: creates consumers, units and temporary destinations.

    Args:
        engine: The engine of the connection.
        links: The links that the units share; they have the profile of the broker.
        limits: The limits of the connection.
        clock: The source of time.
        client_id: The client id of durable subscriptions; None if the connection has none.
    """

    def __init__(self, engine: Engine, links: LinkPool, limits: Limits, clock: Clock, client_id: str | None) -> None:
        self._engine = engine
        self._links = links
        self._broker = links.broker
        self._limits = limits
        self._clock = clock
        self._topology = links.topology
        self._temporary_destinations = (
            TemporaryDestinations(engine, links.reply_timeout)
            if links.topology is None
            else DeclaredTemporaryDestinations(links.topology)
        )
        self._lock = threading.RLock()  # reentrant: management requests use this connection while it is held
        self._sources = SourceFactory(links.broker, self._temporary_destinations, client_id)
        self._consumers = ConsumerRegistry()
        self._failure_counts = FailureCounts()
        self._admin: Admin | None = None  # created on demand; refers to this connection
        self._close_lock = threading.Lock()
        self._fork_guard = ForkGuard()

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this connection."""
        return self._broker.capabilities

    @property
    def broker(self) -> str:
        """The product and the version in the broker's open frame."""
        return self._broker.announced

    def consumer(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None = None,
        no_local: bool = False,
        order: Order = Order.PREFIX,
        window: int | None = None,
    ) -> AMQPConsumer:
        """Create a consumer of a queue, a topic or a subscription. None is the default size of the prefetch window."""
        self._check_open()
        self._sources.check_consumable(source, no_local=no_local)
        try:
            with self._lock:  # two threads may open the same subscription
                terms = self._consumers.reserve(ConsumerSpec(source, selector, no_local))
                consumer = self._open_consumer(terms, order, window)
                self._consumers.add(consumer, terms)
        except JMSError:
            raise
        except BaseException:  # of a signal handler: a link would hold messages of no consumer
            self._engine.abort(ConnectionLostError("The opening of a consumer was interrupted."))
            raise
        return consumer

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[ReceivedMessage]]:
        """Yield the messages of a queue in order, in chunks, without consuming them."""
        self._check_open()
        self._broker.require("browse")
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
        """Return a new unit.

        Raises:
            NotSupportedError: The unit must be atomic, and the broker has no transactions.
        """
        self._check_open()
        if atomic:
            self._broker.require("atomic")
        return AMQPUnit(self._links, self._limits.message_bytes, self._clock, self._check_temporary, atomic=atomic)

    def _check_temporary(self, target: Destination) -> None:
        """Attach the link to a temporary destination: a commit that its end refused would roll back what was received.

        A relay would accept the message, and the broker refuse it at the commit.

        Raises:
            InvalidDestinationError: It was removed by this connection, or does not exist any more.
        """
        self._temporary_destinations.check_not_removed(target)
        if self._broker.refuses_links_to_missing:
            self._links.check_target(target)
            return
        with self._links.commit_lock:
            self._links.ensure_links([target], self._links.reply_timeout)

    def check(self, target: Destination) -> None:
        """Check that messages can be sent to a destination: attach a sender link.

        Raises:
            InvalidDestinationError: The broker refuses the link.
        """
        self._check_open()
        self._temporary_destinations.check_not_removed(target)
        self._links.check_target(target)

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Create a destination that the broker deletes together with this connection."""
        self._check_open()
        self._broker.require("temporary")
        return self._temporary_destinations.create(kind)

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a queue, a durable subscription, or a temporary destination of this connection.

        Raises:
            InvalidDestinationError: The destination or subscription does not exist.
            IllegalStateError: The destination or subscription has consumers.
            NotSupportedError: The destination is not temporary, and the broker has no management over AMQP.
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
        self._remove_by_management(what)  # without the lock: it opens a consumer of its own for the responses

    def admin(self) -> Admin | None:
        """Return the management API; None if the broker has no management over AMQP."""
        self._check_open()
        return self._management_admin()

    def close(self, timeout: float | None = None) -> None:
        """Close the connection and requeue deliveries; those of open units increment the delivery count."""
        if self._fork_guard.in_child:
            return  # the parent process closes it
        try:
            with self._close_lock:
                if self._links.is_closing:
                    return
                self._links.is_closing = True
            self._close(_CLOSE_TIMEOUT if timeout is None else timeout)
        except BaseException:  # of a signal handler: a second call would not end the connection
            self._engine.connection_handler.closing = True
            self._engine.abort(ConnectionLostError("The close of the connection was interrupted."))
            raise

    def _close(self, timeout: float) -> None:
        self._admin = None
        try:
            for consumer in self._consumers:
                consumer.revoke_credit()
            self._mark_units_lost()
            for consumer in self._consumers:
                consumer.close_nowait()
            if self._topology is not None:  # the broker ends links some time after their connection
                for consumer in self._consumers.of_subscriptions():
                    consumer.detach()
            self._mark_units_lost()  # units that have taken deliveries meanwhile
        except JMSError:  # the connection is lost, and the broker has requeued all deliveries
            pass
        finally:
            self._engine.close(timeout)

    def _open_consumer(self, terms: ConsumerSpec, order: Order, window: int | None) -> AMQPConsumer:
        broker = self._broker
        source, counts = self._sources.for_consumer(terms), broker.counts_deliveries
        redelivers_locally, selects = broker.capabilities.give_back == "local", None
        if self._topology is not None:
            address, counts, redelivers_locally, filters, selects = self._topology.declare_source(terms.source)
            source = Source(address, in_use=broker.in_use_texts, filters=filters)
        consumer = AMQPConsumer(
            self._engine,
            source,
            ReceiveContext(terms.topic, broker.naming, counts),
            order=order,
            window=self._limits.prefetch_messages if window is None else window,
            limits=self._limits,
            reply_timeout=self._links.reply_timeout,
            supports_drain=broker.supports_drain,
            answers_drain=broker.answers_drain,
            failure_counts=self._failure_counts,
            redelivers_locally=redelivers_locally,
            selects=selects,
        )
        try:
            consumer.open()
        except ConnectionLostError as error:  # some brokers close the connection over a subscription that is in use
            if any(text in str(error) for text in broker.in_use_texts):
                raise IllegalStateError(f"{terms.source} is in use: {error}") from error
            raise
        return consumer

    def _remove_by_management(self, what: Destination) -> None:
        manager = self._management_admin()
        if manager is None:
            raise NotSupportedError(f"{what} cannot be removed over AMQP; use the broker's own tools.")
        manager.remove(what)

    def _management_admin(self) -> Admin | None:
        with self._lock:
            if self._topology is not None:
                extend = self._broker.extend_admin
                return self._topology.admin if extend is None else extend(self._topology.admin)
            create = self._broker.create_admin
            if self._admin is None and create is not None:
                self._admin = create(self, self._links.reply_timeout)
            return self._admin

    def _unsubscribe(self, what: Subscription) -> None:
        self._sources.check_unsubscribable(what)
        seconds = self._links.reply_timeout
        if self._topology is not None:
            self._topology.unsubscribe(what)
        elif what.client_id is not None or not what.shared:
            unsubscribe(self._engine, str(what.name), seconds)
        else:
            unsubscribe_global(self._engine, self._sources.for_consumer(ConsumerSpec(what)), seconds)

    def _mark_units_lost(self) -> None:
        for unit in {unit for consumer in self._consumers for unit in consumer.units}:
            unit.mark_lost()

    def _check_open(self) -> None:
        self._fork_guard.check()  # first: in a forked child, a lock may be held by a thread that does not exist
        if self._links.is_closing:
            raise IllegalStateError("This connection is closed.")


class ConsumerRegistry:
    """The consumers of a connection.

    Brokers differ in how they treat two consumers of one subscription, so conflicts are refused here.
    """

    def __init__(self) -> None:
        self._active: dict[AMQPConsumer, ConsumerSpec] = {}

    def __iter__(self) -> Iterator[AMQPConsumer]:
        """Iterate over the consumers that are open or have unsettled deliveries."""
        return iter(tuple(self._active))

    def reserve(self, terms: ConsumerSpec) -> ConsumerSpec:
        """Return the terms of a new consumer with the next free ordinal of its subscription.

        Raises:
            IllegalStateError: Another consumer of this connection uses the subscription (JMS 3.1, section 8.3).
        """
        source = terms.source
        if not isinstance(source, Subscription) or source.name is None:
            return terms
        others = [self._active[consumer] for consumer in self._consumers_of(source)]
        if others and not all(source.shared and _has_same_terms(terms, other) for other in others):
            raise IllegalStateError(
                f"The subscription {source.name!r} already has a consumer of this connection, with other terms or not"
                " shared; or a unit still holds messages of a closed consumer: close it or end the unit first."
            )
        taken = {other.ordinal for other in others}
        return replace(terms, ordinal=next(n for n in range(1, len(taken) + 2) if n not in taken))

    def add(self, consumer: AMQPConsumer, terms: ConsumerSpec) -> None:
        """Add a consumer, and remove finished ones."""
        self._active = {c: t for c, t in self._active.items() if not c.is_finished} | {consumer: terms}

    def check_unused(self, what: Destination | Subscription) -> None:
        """Raise an error if a destination or subscription is in use.

        Raises:
            IllegalStateError: A consumer of this connection uses it.
        """
        if self._consumers_of(what) if isinstance(what, Subscription) else self._open_consumers_of(what):
            raise IllegalStateError(f"{what} still has consumers; close them first.")

    def of_subscriptions(self) -> list[AMQPConsumer]:
        """Return the consumers of named subscriptions, which others may want as soon as the connection is closed."""
        return [each for each, terms in self._active.items() if isinstance(terms.source, Subscription)]

    def _open_consumers_of(self, what: Destination) -> list[AMQPConsumer]:
        return [c for c, terms in self._active.items() if terms.topic == what and not c.closed]

    def _consumers_of(self, source: Subscription) -> list[AMQPConsumer]:
        return [c for c, t in self._active.items() if not c.is_finished and _is_same_subscription(t.source, source)]


def _is_same_subscription(one: Destination | Subscription, other: Subscription) -> bool:
    """Return True if both are the same subscription: by name, client id and volatility."""
    return isinstance(one, Subscription) and (one.name, one.client_id, one.volatile) == (
        other.name,
        other.client_id,
        other.volatile,
    )


def _has_same_terms(one: ConsumerSpec, other: ConsumerSpec) -> bool:
    return (one.source, one.selector, one.no_local) == (other.source, other.selector, other.no_local)
