"""A consumer over AMQP as its units see it: its deliveries are settled, and its link ends with the last of them."""

from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from jmsjca.errors import JMSError
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.failures import Failures
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.proton_deliveries import Settle, accept, fail, release
from jmsjca.providers.amqp.receiver import ReceivingLink
from jmsjca.providers.holder import Holder
from jmsjca.spi import Order

__all__ = ["SettlingConsumer"]


class SettlingConsumer(Holder[AMQPDelivery]):
    """Who receives has the link.

    Args:
        order: How its deliveries are settled.

    Attributes:
        origin: What it receives from, as messages name it, and what its broker does.
    """

    _engine: Engine
    _failures: Failures
    _link: ReceivingLink
    origin: Origin

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._accepted: deque[AMQPDelivery] = deque()  # not told yet
        self._telling = False  # whether somebody comes for these

    @property
    def units(self) -> list[Any]:
        """Those that hold deliveries, each as often as it holds one."""
        with self._lock:
            return [d.unit for d in self._shelf.outstanding.values() if d.unit is not None]

    def accept_soon(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Acknowledge without waiting; what comes until the engine's thread gets to it is told with it.

        Raises:
            ConnectionLostError: The connection is gone.
        """
        self._engine.check()
        with self._lock:  # who finds that somebody comes may rely on it
            self._accepted.extend(deliveries)
            if not self._telling:
                self._telling = True
                self._engine.tell(self._accept, urgent=False)

    def settle(self, deliveries: Sequence[AMQPDelivery], update: Settle) -> None:
        """Give deliveries a state and forget them. On the engine's thread."""
        self._link.settle([d.handle for d in deliveries], update)

    def check_link(self) -> None:
        """Raise why the link ended, if it did: then the broker has taken the deliveries back."""
        if self._error is not None:
            raise self._error

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled all that was settled before. On the engine's thread."""
        return self._link.round_trip()

    def end_if_done(self) -> None:
        """Close the link of a closed consumer when no unit holds a delivery any more."""
        if self.closed and not self._shelf.outstanding and self._error is None:
            self._link.close()

    def let_fail(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Let the deliveries of a unit go, counted, without waiting."""
        self._settle(deliveries, {d.handle for d in deliveries}, wait=False)

    def broken(self, error: JMSError) -> None:
        """Nothing more will come, or can be told."""
        super().broken(error)
        self._accepted.clear()

    def _accept(self) -> None:
        """Acknowledge what was noted for that. On the engine's thread."""
        self._telling = False  # before: what is noted from now on is told now, or somebody comes again
        noted = [self._accepted.popleft() for _ in range(len(self._accepted))]
        with suppress(JMSError):  # a link that has ended holds up no other; why, `check_link` tells
            self.settle(noted, accept)

    def _settle_unclaimed(self, *, wait: bool = True) -> None:
        """Release all that no unit took."""
        with self._changed:
            self._shelf.hand_out(len(self._shelf.ready))
            unclaimed = self._shelf.unclaimed()
            self._shelf.let_go(unclaimed)  # nobody can take them any more
        self._settle(unclaimed, (), wait=wait)

    def _settle(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], *, wait: bool = True) -> None:
        # A broker that does not count may not know the state that counts.
        failed = fail if self.origin.counts else release
        if self.origin.counts and wait:  # else nothing comes again on this connection
            self._failures.note(d for d in deliveries if d.handle in counted)
        states = [(d.handle, failed if d.handle in counted else release) for d in deliveries]
        (self._engine.call if wait else self._engine.post)(partial(self._link.settle_each, states))
        self.let_go(deliveries)
