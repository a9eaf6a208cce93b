"""A connection over AMQP: one attempt, which never reconnects."""

from collections.abc import Iterator, Sequence
from typing import Literal
from weakref import WeakSet

from jmsjca.config import Limits
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    NotSupportedError,
)
from jmsjca.providers.amqp.addresses import address_of
from jmsjca.providers.amqp.broker import AMQPBroker
from jmsjca.providers.amqp.browser import browse
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import ReceivedMessage
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.source import Source
from jmsjca.providers.amqp.subscription import end_subscription
from jmsjca.providers.amqp.unit import AMQPUnit
from jmsjca.providers.amqp.wire import Wire
from jmsjca.spi import Capabilities, Order

__all__ = ["AMQPConnection"]

_CLOSE_TIMEOUT = 5.0


class AMQPConnection:
    """Consumers and units over one engine.

    Args:
        engine: The open connection.
        wire: What units write with.
        broker: What is at the other end.
        limits: The bounds.
        client_id: What durable subscriptions belong to; None if none was given.
    """

    def __init__(self, engine: Engine, wire: Wire, broker: AMQPBroker, limits: Limits, client_id: str | None) -> None:
        self._engine = engine
        self._wire = wire
        self._broker = broker
        self._limits = limits
        self._client_id = client_id
        self._consumers: set[AMQPConsumer] = set()
        self._units: WeakSet[AMQPUnit] = WeakSet()
        self._closed = False

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
        """Consume from a queue, a topic or a durable subscription."""
        self._check_open()
        self._broker.data.require("no_local", asked=no_local)
        destination = source.topic if isinstance(source, Subscription) else source
        self._broker.data.require("shared", asked=isinstance(source, Subscription) and source.shared)
        self._broker.data.require("durable", asked=isinstance(source, Subscription) and source.durable)
        durable = self._subscription_name(source) if isinstance(source, Subscription) else None
        address = address_of(destination, self._broker.naming)
        consumer = AMQPConsumer(
            self._engine,
            Source(address, selector=self._filter(selector), durable=durable),
            destination,
            order=order,
            window=self._limits.prefetch_messages if window is None else window,
            limits=self._limits,
            reply_timeout=self._wire.reply_timeout,
            naming=self._broker.naming,
            counts=self._broker.counts,
            drains=self._broker.drains,
            keeps=self.capabilities.give_back == "local",
        )
        consumer.open()
        self._consumers = {c for c in self._consumers if not c.done} | {consumer}
        return consumer

    def browse(
        self, queue: Destination, *, selector: str | None = None, limit: int | None = None
    ) -> Iterator[Sequence[ReceivedMessage]]:
        """Look at what waits in a queue, in order, chunk by chunk; nothing is taken."""
        self._check_open()
        self._broker.data.require("browse")
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"Only a queue can be browsed, not {queue}.")
        source = Source(address_of(queue, self._broker.naming), selector=self._filter(selector), browse=True)
        return browse(
            self._engine,
            source,
            queue,
            self._limits,
            self._wire.reply_timeout,
            limit=limit,
            naming=self._broker.naming,
            counts=self._broker.counts,
        )

    def unit(self, *, atomic: bool = True) -> AMQPUnit:
        """Open a unit.

        Raises:
            NotSupportedError: It must be atomic, and the broker has no transactions.
        """
        self._check_open()
        self._broker.data.require("atomic", asked=atomic)
        unit = AMQPUnit(self._wire, atomic=atomic)
        self._units.add(unit)
        return unit

    def check(self, target: Destination) -> None:
        """Attach a sender.

        Raises:
            InvalidDestinationError: The broker does not let us send there.
        """
        self._check_open()
        self._wire.prepare([target])

    def temporary(self, kind: Literal["queue", "topic"]) -> Destination:
        """Refused in this release."""
        raise NotSupportedError(f"There are no temporary {kind}s over AMQP in this release; use a named one.")

    def remove(self, what: Destination | Subscription) -> None:
        """Remove a durable subscription; queues cannot be removed over AMQP.

        Raises:
            InvalidDestinationError: There is no such subscription.
            NotSupportedError: It is a queue or a topic.
        """
        self._check_open()
        if not isinstance(what, Subscription):
            raise NotSupportedError(f"{what} cannot be removed over AMQP; use the broker's management.")
        name = self._subscription_name(what)
        if name is None:
            raise InvalidDestinationError(f"A subscription of {what.topic} without a name ends with its consumer.")
        end_subscription(self._engine, name, self._wire.reply_timeout)

    def admin(self) -> None:
        """None: AMQP has no management that all brokers share."""
        self._check_open()

    def close(self, timeout: float | None = None) -> None:
        """Give back what is held, and close. What open units took comes again, counted."""
        if self._closed:
            return
        self._closed = True
        try:
            for consumer in self._consumers:
                consumer.revoke()
            for unit in self._units:
                unit.give_up()
            for consumer in self._consumers:
                consumer.abandon()
        except JMSError:  # the connection is gone, and everything went back with it
            pass
        finally:
            self._engine.close(_CLOSE_TIMEOUT if timeout is None else timeout)

    def _filter(self, selector: str | None) -> str | None:
        self._broker.data.require("selectors", asked=bool(selector))
        return self._broker.filter_of(selector) if selector else None

    def _subscription_name(self, subscription: Subscription) -> str | None:
        if not subscription.durable:
            return None
        if not self._client_id or subscription.client_id not in {None, self._client_id}:
            raise InvalidClientIDError(
                f"The durable subscription {subscription.name!r} belongs to the client id {subscription.client_id!r}, "
                f"and this connection has {self._client_id!r}."
            )
        return subscription.name

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("This connection is closed.")
