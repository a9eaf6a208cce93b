"""A consumer over AMQP: what was taken ahead, what is held, and how it goes back."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError
from jmsjca.providers.amqp.budget import Budget
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.proton_calls import Pointer, fail, release
from jmsjca.providers.amqp.receiver import ReceivingLink
from jmsjca.providers.amqp.sections import bare
from jmsjca.providers.amqp.source import Source
from jmsjca.providers.holder import Holder
from jmsjca.spi import Delivery, Order

__all__ = ["AMQPConsumer"]


_MOST_RETURNS = 3


class _Awaited(NamedTuple):
    """What went back in order, and should be the next to come."""

    encoded: bytes
    returns: int  #: how often what comes instead is returned


class AMQPConsumer(Holder[AMQPDelivery]):
    """Takes messages ahead within its window, and hands them over in chunks.

    Args:
        engine: The connection.
        source: What to receive from.
        origin: The same, as messages name it, and what its broker does.
        order: How deliveries are settled.
        window: How many messages are taken ahead; 0 for none.
        limits: The bounds.
        reply_timeout: Seconds to wait for the broker's answers.
        drains: True if the broker understands drain.
        keeps: True if what goes back stays here until the consumer is closed.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        origin: Origin,
        *,
        order: Order,
        window: int,
        limits: Limits,
        reply_timeout: float,
        drains: bool,
        keeps: bool,
    ) -> None:
        super().__init__(order)
        self._engine = engine
        self._link = ReceivingLink(engine, source, self, limits.message_bytes, reply_timeout, drains=drains)
        self._window = window
        self._keeps = keeps
        self._budget = Budget(limits.prefetch_bytes)
        self._credit = 0
        self._limit = 0
        self._stopping = 0  # how many wait for the end of what is on its way
        self._awaited: _Awaited | None = None
        self.origin = origin

    def open(self) -> None:
        """Attach.

        Raises:
            JMSError: The broker refuses.
        """
        self._link.attach()
        with self._changed:
            self._grant(self._window)

    def receive(self, limit: int, timeout: float | None) -> Sequence[AMQPDelivery]:
        """Take the next messages, up to a limit; wait for the first one.

        Args:
            limit: How many at most.
            timeout: Seconds to wait; None waits for ever, 0 does not wait.
        """
        self._engine.check_process()
        with self._changed:
            self._check_usable()
            self._limit = limit
            self._grant(self._window or limit)
            woken = self._wait(timeout)
            look = timeout == 0 and not self._shelf.ready
        if look:
            self._look(limit)
        elif self._window == 0:
            self._stop()  # what is not here is left to others
        with self._changed:
            chunk = [] if woken else self._pop(limit)
        awaited = self._overtaken_by(chunk)
        if awaited is None:
            return chunk
        self._return(chunk, (), awaited)
        return self.receive(limit, timeout)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Return deliveries that no unit took; in order, so what came later goes back with them."""
        self._engine.check_process()
        self.take_back([], [d for d in self._own(deliveries) if d.unit is None])

    def drain(self) -> Sequence[AMQPDelivery]:
        """Ask for no more, and give what was on its way."""
        self._engine.check_process()
        self._stop()
        with self._changed:
            return self._pop(len(self._shelf.ready))

    def close(self) -> None:
        """Give back what no unit took; what a unit took stays with the unit."""
        if self._engine.left is not None:
            return
        with self._changed:
            if self.closed:
                return
            self.closed = True
            self._woken = True
            self._changed.notify_all()
        if self._error is None:
            self._stop()
            self._settle_unclaimed()
            self.end_if_done()

    def abandon(self) -> None:
        """Let everything go without waiting: the connection closes, and what is under way goes back with it."""
        with self._changed:
            self.closed = True
            self._woken = True
            self._changed.notify_all()
        self._settle_unclaimed(wait=False)

    def revoke(self) -> None:
        """Ask for no more, so that nothing that is let go comes back here."""
        self._engine.post(self._link.revoke)

    def let_fail(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Let the deliveries of a unit go, counted, without waiting."""
        self._settle(deliveries, {d.handle for d in deliveries}, wait=False)

    def take_back(self, failed: Sequence[AMQPDelivery], unused: Sequence[AMQPDelivery]) -> None:
        """Let deliveries go to the broker: the failed ones counted, the others not.

        In order, whatever came after the first of them and was taken by no unit goes back, too.
        """
        self._return([*failed, *unused], {d.handle for d in failed})

    def _return(
        self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], awaited: _Awaited | None = None
    ) -> None:
        if self._keeps and not self.closed:  # the broker would send it again, too, but behind what it sent meanwhile
            with self._changed:
                self._shelf.take_in(self._shelf.with_later(deliveries), counted)
                self._changed.notify_all()
            return
        if self.order is not Order.ANY and deliveries:
            self._stop()
        with self._changed:
            back = self._shelf.with_later(deliveries)
            if self.order is not Order.ANY and back:
                self._awaited = awaited or _Awaited(back[0].encoded, _MOST_RETURNS)
        self._settle(back, counted)
        self.end_if_done()

    def _overtaken_by(self, chunk: Sequence[AMQPDelivery]) -> _Awaited | None:
        """What is still awaited because something else came before it; None if all is well.

        Artemis may have chosen the next message before it takes back what is before that one, and send it at the next
        credit. But if that happens again and again, somebody else has got what went back.
        """
        if not chunk:
            return None
        awaited, self._awaited = self._awaited, None
        if awaited is None or not awaited.returns or bare(chunk[0].encoded) == bare(awaited.encoded):
            return None
        return _Awaited(awaited.encoded, awaited.returns - 1)

    def settle(self, deliveries: Sequence[AMQPDelivery], update: Callable[[Pointer], None]) -> None:
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

    def arrived(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Messages are complete. On the engine's thread."""
        deliveries = [AMQPDelivery(encoded, handle, self) for handle, encoded in messages]
        with self._changed:
            self._credit -= len(deliveries)
            self._shelf.put(deliveries)
            self._budget.arrived([len(encoded) for _, encoded in messages])
            if self._window and not self._stopping:
                self._grant(self._window)
            self._changed.notify_all()

    def missed(self) -> None:
        """Ask again for what does not come. On the engine's thread."""
        with self._changed:
            self._grant(self._window or self._limit)

    def credited(self, more: int) -> None:
        """Credit was taken back, or had to be more. On the engine's thread."""
        with self._changed:
            self._credit += more

    def _wait(self, timeout: float | None) -> bool:
        """Wait for a message; True if woken instead."""
        self._changed.wait_for(lambda: self._shelf.ready or self._woken or self._error, timeout)
        if self._error is not None:
            self._check_usable()
        woken, self._woken = self._woken, False
        return woken

    def _pop(self, limit: int) -> list[AMQPDelivery]:
        chunk = self._shelf.hand_out(limit)
        if self._window and not self.closed:
            self._grant(self._window)
        return chunk

    def _grant(self, ahead: int) -> None:
        """Ask for what is missing, so far as it fits in count and bytes."""
        if not self._missing(ahead) or self._error is not None or self.closed:
            return
        fitting = len(self._shelf.ready) + self._budget.room(self._shelf.size)
        if missing := self._missing(min(ahead, fitting)):
            self._credit += missing
            self._engine.tell(partial(self._link.grant, missing))

    def _missing(self, ahead: int) -> int:
        """What is missing, once that is half of what may be ahead; what came unasked makes that more."""
        missing = ahead - self._credit - len(self._shelf.ready)
        return missing if missing > 0 and missing * 2 >= ahead else 0

    def _look(self, limit: int) -> None:
        """Find out whether the broker really has nothing, without waiting for what comes later."""
        while not self._stop():
            with self._changed:
                if self._shelf.ready or self._error or self.closed:
                    return
                self._grant(self._window or limit)

    def _stop(self) -> bool:
        """Take the credit back; what was on its way is here then. True if the broker has no more."""
        with self._changed:
            self._stopping += 1
        try:
            return self._link.stop()
        finally:
            with self._changed:
                self._stopping -= 1

    def _settle_unclaimed(self, *, wait: bool = True) -> None:
        """Release all that no unit took."""
        with self._changed:
            self._shelf.hand_out(len(self._shelf.ready))
            unclaimed = self._shelf.unclaimed()
        self._settle(unclaimed, (), wait=wait)

    def _settle(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], *, wait: bool = True) -> None:
        failed = (
            fail if self.origin.counts else release
        )  # a broker that does not count may not know the state that counts
        states = [(d.handle, failed if d.handle in counted else release) for d in deliveries]
        (self._engine.call if wait else self._engine.post)(partial(self._link.settle_each, states))
        self.let_go(deliveries)

    def _check_usable(self) -> None:
        if self._error is not None:
            raise self._error
        if self.closed:
            raise IllegalStateError("This consumer is closed.")
