"""The consumers of a connection: what each asks the broker for, and who hears of its end."""

import threading
from collections.abc import Callable, Mapping
from functools import partial

from jmsjca.config import Clock, Limits
from jmsjca.config.texts import check_text
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import IllegalStateError, InvalidSelectorError, JMSError
from jmsjca.providers.stomp.consumer import STOMPConsumer
from jmsjca.providers.stomp.dialect import Dialect, destination_of
from jmsjca.providers.stomp.refusals import explained
from jmsjca.providers.stomp.renewing import RenewedSubscriptions
from jmsjca.providers.stomp.supply import Subscriptions, taken_ahead
from jmsjca.providers.stomp.wire import Wire
from jmsjca.spi import Order

__all__ = ["Consumers"]


class Consumers:
    """Those of one connection.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        limits: The bounds.
        clock: Where time comes from.
    """

    def __init__(self, wire: Wire, dialect: Dialect, limits: Limits, clock: Clock) -> None:
        self._wire = wire
        self._dialect = dialect
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[STOMPConsumer] = set()
        self._broken: JMSError | None = None

    def open(
        self,
        source: Destination | Subscription,
        *,
        selector: str | None,
        no_local: bool,
        order: Order,
        window: int | None,
    ) -> STOMPConsumer:
        """Subscribe.

        Raises:
            InvalidSelectorError: The selector cannot be written.
            JMSError: The broker refuses.
        """
        check_text(selector, f"The selector {selector!a:.200}", InvalidSelectorError)
        ahead = taken_ahead(order, self._limits.prefetch_messages) if window is None else window
        ack = "client" if self._dialect.settles_up_to and order is Order.PREFIX else "client-individual"
        chosen = self._chosen(selector, no_local=no_local)
        supply = partial(self._kind(source), self._wire, self._dialect, source, chosen, ack=ack, window=ahead)
        target, size = destination_of(source), self._limits.prefetch_bytes
        with explained(f"consume from {target}"):
            consumer = STOMPConsumer(target, self._dialect, supply, order=order, max_bytes=size, clock=self._clock)
        self._keep(consumer)
        return consumer

    def check_free(self, what: Destination) -> None:
        """See whether something can be removed.

        Raises:
            IllegalStateError: A consumer of this connection has it.
        """
        if any(c.source == what and not c.done for c in list(self._open)):
            raise IllegalStateError(f"{what} has consumers.")

    def broken(self, error: JMSError) -> None:
        """Let everybody know that nothing more comes."""
        with self._lock:
            self._broken = error
            told = list(self._open)
        for consumer in told:
            consumer.broken(error)

    def _kind(self, source: Destination | Subscription) -> Callable[..., Subscriptions]:
        lasting = source.durable if isinstance(source, Subscription) else True
        if lasting and self._dialect.keeps_first_back:
            return partial(RenewedSubscriptions, clock=self._clock)
        return Subscriptions

    def _chosen(self, selector: str | None, *, no_local: bool) -> Mapping[str, str]:
        selected = self._dialect.selector(selector) if selector else {}
        return {**selected, **self._dialect.no_local} if no_local else selected

    def _keep(self, consumer: STOMPConsumer) -> None:
        with self._lock:
            self._open = {c for c in self._open if not c.done} | {consumer}
            broken = self._broken
        if broken is not None:  # while it was made
            consumer.broken(broken)
