"""An AMQP connection, which never reconnects: its consumers, subscriptions and temporary destinations."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from proton import Described, symbol, ulong

from jmsjca.arguments import plain_text
from jmsjca.config import Clock, Limits
from jmsjca.destinations import Destination, DestinationKind, Queue, Subscription, destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, InvalidDestinationError, JMSError, NotSupportedError
from jmsjca.forking import ForkGuard
from jmsjca.providers.amqp.codec.addresses import Address, ReceiveContext, address_of, source_address_of
from jmsjca.providers.amqp.consumer import AMQPConsumer, browse
from jmsjca.providers.amqp.delivery import FailureCounts, ReceivedMessage
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import EXPIRE_WITH_LINK, TERMINUS_UNSPECIFIED
from jmsjca.providers.amqp.errors import condition_text
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.link_pool import LinkPool
from jmsjca.providers.amqp.links.source import Source, SubscriptionLink, subscription_link
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.providers.brokers.profile import AMQPBrokerProfile
from jmsjca.providers.brokers.rabbitmq_amqp import RabbitMQTopology
from jmsjca.providers.common.network import OwnedDestinations
from jmsjca.spi import Admin, Capabilities, Order

__all__ = [
    "AMQPConnection",
    "ConsumerSpec",
    "DeclaredTemporaryDestinations",
    "SourceFactory",
    "TemporaryDestinations",
    "unsubscribe",
    "unsubscribe_global",
]

_CLOSE_TIMEOUT = 5.0

_LIFETIME = symbol("lifetime-policy")
_DELETE_ON_CLOSE = 0x2B
_MAX_NAME_LENGTH = 1024


class TemporaryDestinations(OwnedDestinations["_DynamicTargetLink"]):
    """The temporary destinations of a connection, each with the link that keeps it alive.

    Args:
        engine: The engine of the connection.
        reply_timeout: Seconds to wait for the broker's responses.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__()
        self._engine = engine
        self._reply_timeout = reply_timeout

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            JMSError: The broker refuses it.
        """
        link = _DynamicTargetLink(self._engine, kind, self._reply_timeout)
        link.attach()
        created = destination(link.name, kind, temporary=True)
        self._add(created, link)
        return created

    def remove(self, what: Destination) -> None:
        """Remove a temporary destination with its messages.

        Raises:
            InvalidDestinationError: This connection does not own it.
        """
        self._discard(what).close()


class DeclaredTemporaryDestinations(OwnedDestinations[None]):
    """The temporary destinations of a connection to a broker that does not create them itself.

    Args:
        topology: Declares them.
    """

    def __init__(self, topology: RabbitMQTopology) -> None:
        super().__init__()
        self._topology = topology

    def create(self, kind: DestinationKind) -> Destination:
        """Create a temporary destination.

        Raises:
            JMSError: The broker refuses it.
        """
        created = self._topology.create_temporary(kind)
        self._add(created, None)
        return created

    def remove(self, what: Destination) -> None:
        """Remove a temporary destination with its messages.

        Raises:
            InvalidDestinationError: This connection does not own it.
        """
        self._discard(what)
        self._topology.delete_temporary(what)


class _DynamicTargetLink(Link):
    """A sender link with a dynamic target: the broker creates the node, and deletes it when the link is closed."""

    def __init__(self, engine: Engine, kind: DestinationKind, reply_timeout: float) -> None:
        super().__init__(engine, f"the creation of a temporary {kind}", reply_timeout)
        self._capability = symbol(f"temporary-{kind}")
        self.name = ""

    def on_attached(self) -> None:
        """Store the name that the broker has assigned. On the engine thread."""
        self.name = (self._link.remote_target.address or "")[:_MAX_NAME_LENGTH]
        super().on_attached()

    def _create(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        link.source.address = name
        link.target.dynamic = True
        link.target.expiry_policy = EXPIRE_WITH_LINK
        link.target.properties.put_dict({_LIFETIME: Described(ulong(_DELETE_ON_CLOSE), [])})
        link.target.capabilities.put_object(self._capability)
        return link

    def _is_refused(self) -> bool:
        return not self.name


def unsubscribe(engine: Engine, name: str, reply_timeout: float) -> None:
    """Remove a durable subscription of this client id: attach a link of its name without a source, and close it.

    Raises:
        InvalidDestinationError: The subscription does not exist.
        IllegalStateError: The subscription has consumers.
    """
    _attach_and_close(_LookupLink(engine, name, reply_timeout))


def unsubscribe_global(engine: Engine, source: Source, reply_timeout: float) -> None:
    """Remove a durable subscription that is shared between clients (without a client id).

    The consumers share the name of the subscription and not the link. So attach as a consumer does, but with another
    selector: for that the broker recreates the subscription, unless it has consumers. Whether the subscription existed
    before cannot be detected.

    Args:
        engine: The connection's engine.
        source: The subscription, with its topic.
        reply_timeout: Seconds to wait for each reply of the broker.

    Raises:
        IllegalStateError: The subscription has consumers.
    """
    nothing = f"jmsjca_ends = '{uuid.uuid4().hex}'"
    _attach_and_close(_SubscriptionLink(engine, replace(source, selector=nothing), reply_timeout))


def _attach_and_close(link: "_SubscriptionLink") -> None:
    link.attach()
    link.close()
    if link.close_error is not None:
        raise link.close_error


class _SubscriptionLink(Link):
    """A receiver link without credit, which attaches to a subscription to close it."""

    def __init__(self, engine: Engine, source: Source, reply_timeout: float) -> None:
        super().__init__(engine, f"the subscription at {source.address.name}", reply_timeout)
        self._source = source
        self.close_error: JMSError | None = None

    def on_closed(self, condition: Any) -> None:
        """Record the error with which the broker refuses to remove the subscription."""
        if condition is not None and self._attached.done():
            self.close_error = IllegalStateError(
                f"The broker does not end {self._purpose}: {condition_text(condition)}"
            )
        super().on_closed(condition)

    def _create(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _refusal_error(self, condition: Any) -> JMSError:
        error = self._source.refusal_error(condition)
        return super()._refusal_error(condition) if error is None else error


class _LookupLink(_SubscriptionLink):
    """A link that finds its subscription by the link name alone."""

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, Source(Address(name, None), subscription=SubscriptionLink(name, True)), reply_timeout)

    def _create(self, session: Any, name: str) -> Any:
        link = super()._create(session, name)
        link.source.type = TERMINUS_UNSPECIFIED  # no source: the link name identifies the subscription
        return link

    def _refusal_error(self, condition: Any) -> JMSError:
        return InvalidDestinationError(f"There is nothing to remove as {self._purpose}: {condition_text(condition)}")


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """The parameters of a consumer.

    Args:
        source: The destination or subscription.
        selector: The message selector; None for all messages.
        no_local: True to exclude messages that the same connection sent.
        ordinal: The number of the consumer among the consumers of a shared subscription, starting with 1.
    """

    source: Destination | Subscription
    selector: str | None = None
    no_local: bool = False
    ordinal: int = 1

    @property
    def topic(self) -> Destination:
        """The queue, or the topic of the subscription."""
        return self.source.topic if isinstance(self.source, Subscription) else self.source


class SourceFactory:
    """Creates the source termini of a connection's receiver links.

    Args:
        broker: The profile of the broker.
        temporaries: The temporary destinations of the connection.
    """

    def __init__(self, broker: AMQPBrokerProfile, temporaries: OwnedDestinations[Any]) -> None:
        self._broker = broker
        self._temporaries = temporaries

    def for_consumer(self, terms: ConsumerSpec) -> Source:
        """Return the source of a consumer."""
        selector = self._translate_selector(terms.selector)
        return Source(
            source_address_of(self._temporaries.resolve(terms.topic), self._broker.naming),
            selector=f"({selector})" if selector and terms.no_local else selector,  # some brokers append "AND …"
            no_local=terms.no_local,
            subscription=subscription_link(terms.source, terms.ordinal),
            in_use=self._broker.in_use_texts,
            other_kind=self._broker.other_kind_texts,
        )

    def for_browser(self, queue: Destination, selector: str | None) -> Source:
        """Return the source of a browser."""
        self._temporaries.check_owned(queue)
        chosen, other_kind = self._translate_selector(selector), self._broker.other_kind_texts
        return Source(
            source_address_of(self._temporaries.resolve(queue), self._broker.naming),
            selector=chosen,
            browse=True,
            other_kind=other_kind,
        )

    def _address(self, what: Destination) -> Address:
        return address_of(self._temporaries.resolve(what), self._broker.naming)

    def _translate_selector(self, selector: str | None) -> str | None:
        self._broker.require("selectors", requested=bool(selector))
        return self._broker.translate_selector(plain_text(selector)) if selector else None


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
        self._sources = SourceFactory(links.broker, self._temporary_destinations)
        self._client_id = client_id
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
        together: int = 1,
    ) -> AMQPConsumer:
        """Create a consumer of a queue, a topic or a subscription. None is the default size of the prefetch window."""
        del together  # a unit takes any delivery
        self._check_open()
        self._broker.require_source(source, self._client_id, no_local=no_local)
        self._temporary_destinations.check_owned(source)
        with self._lock:  # two threads may open the same subscription
            terms = self._consumers.reserve(ConsumerSpec(source, selector, no_local))
            consumer = self._open_consumer(terms, order, window)
            self._consumers.add(consumer, terms)
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
        if self._links.is_closing:  # an unconditional call costs more
            self._check_open()
        if atomic and not self._broker.capabilities.atomic:
            self._broker.require("atomic")
        return AMQPUnit(self._links, self._limits.message_bytes, self._clock, self._reach_temporary, atomic=atomic)

    def _reach_temporary(self, target: Destination) -> None:
        """Attach the link to a temporary destination: a commit that its end refused would roll back what was received.

        A relay would accept the message, and the broker refuse it at the commit.

        Raises:
            InvalidDestinationError: It was removed by this connection, or does not exist any more.
        """
        self._temporary_destinations.check_not_removed(target)
        if self._broker.refuses_links_to_missing:
            self._links.attach_own_link(target)
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
        self._links.attach_own_link(target)

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
            if self._consumers.uses(what):
                raise IllegalStateError(f"{what} still has consumers; close them first.")
            if isinstance(what, Subscription):
                self._unsubscribe(what)
                return
            if what.temporary:
                self._temporary_destinations.remove(what)
                return
        self._remove_by_management(what)  # without the lock: it opens its own consumer for the responses

    def admin(self) -> Admin | None:
        """Return the management API; None if the broker has no management over AMQP."""
        self._check_open()
        return self._management_admin()

    def close(self, timeout: float | None = None) -> None:
        """Close the connection and requeue its deliveries. Deliveries of open units increment the delivery count.

        A timeout of 0 aborts the connection, even during another close: the broker requeues unsettled deliveries.
        """
        if self._fork_guard.in_child:
            return  # the parent process closes it
        if timeout == 0:
            self._links.is_closing = self._engine.connection_handler.closing = True
            self._engine.abort(ConnectionLostError("The connection was aborted."))
            return
        with self._close_lock:
            if self._links.is_closing:
                return
            self._links.is_closing = True
        self._close(_CLOSE_TIMEOUT if timeout is None else timeout)

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
            self._mark_units_lost()  # units that took deliveries during the close
        except JMSError:  # the connection is lost, and the broker has requeued all deliveries
            pass
        finally:
            self._engine.close(timeout)

    def _open_consumer(self, terms: ConsumerSpec, order: Order, window: int | None) -> AMQPConsumer:
        broker = self._broker
        source, counts = self._sources.for_consumer(terms), broker.counts_deliveries
        redelivers_locally, drops_returned, selects = broker.capabilities.give_back == "local", False, None
        if self._topology is not None:
            declared = self._topology.declare_source(terms.source)
            address, counts, redelivers_locally, drops_returned, filters, selects = declared
            source = Source(address, in_use=broker.in_use_texts, filters=filters)
        consumer = AMQPConsumer(
            self._engine,
            source,
            ReceiveContext(terms.topic, broker.naming, counts),
            order=order,
            window=self._limits.prefetch_messages if window is None else window,
            limits=self._limits,
            reply_timeout=self._links.reply_timeout,
            credit=broker.credit,
            failure_counts=self._failure_counts,
            redelivers_locally=redelivers_locally,
            drops_returned=drops_returned,
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
                return self._topology.admin
            create = self._broker.create_admin
            if self._admin is None and create is not None:
                self._admin = create(self, self._links.reply_timeout)
            return self._admin

    def _unsubscribe(self, what: Subscription) -> None:
        if not what.durable:
            raise InvalidDestinationError(f"A subscription of {what.topic} that is not durable ends by itself.")
        self._broker.require_owner(what, self._client_id)
        self._broker.require("shared", requested=what.shared and what.client_id is None)
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

    def uses(self, what: Destination | Subscription) -> bool:
        """Return True if a consumer of this connection uses a destination or subscription."""
        return bool(self._consumers_of(what) if isinstance(what, Subscription) else self._open_consumers_of(what))

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
