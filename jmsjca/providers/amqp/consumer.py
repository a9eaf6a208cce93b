"""A consumer over AMQP: what was taken ahead, what is held, and how it goes back."""

import itertools
import time
from collections.abc import Collection, Sequence

from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.providers.amqp.appetite import Appetite
from jmsjca.providers.amqp.asking import AskingConsumer
from jmsjca.providers.amqp.awaited import Awaited
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.failures import Failures
from jmsjca.providers.amqp.mapping.origin import Origin
from jmsjca.providers.amqp.receiver import ReceivingLink
from jmsjca.providers.amqp.source import Source
from jmsjca.spi import Delivery, Order

__all__ = ["AMQPConsumer"]


class AMQPConsumer(AskingConsumer):
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
        failures: What failed here on this connection.
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
        failures: Failures,
        keeps: bool,
    ) -> None:
        super().__init__(order, Appetite(window, limits.prefetch_bytes))
        self._engine = engine
        self._link = ReceivingLink(engine, source, self, limits.message_bytes, reply_timeout, drains=drains)
        self._failures = failures
        self._keeps = keeps
        self._awaited: Awaited | None = None
        self.origin = origin

    def open(self) -> None:
        """Attach.

        Raises:
            JMSError: The broker refuses.
        """
        self._link.attach()
        with self._changed:
            self._grant()

    def receive(self, limit: int, timeout: float | None) -> Sequence[AMQPDelivery]:
        """Take the next messages, up to a limit; wait for the first one.

        Args:
            limit: How many at most.
            timeout: Seconds to wait; None waits for ever, 0 does not wait.
        """
        self._home.check()
        with self._changed:
            self._check_usable()
            self._appetite.limit = limit
            self._grant()
            woken = self._wait(timeout)
            look = timeout == 0 and not self._shelf.ready
        if look:
            self._look()
        elif not self._appetite.window:
            self._stop()  # what is not here is left to others
        with self._changed:
            chunk = [] if woken else self._shelf.hand_out(limit)
            asked = self._appetite.window > 0 and self._grant()
        try:
            if asked and len(chunk) > 1:
                self._give_way()
            awaited = self._still_awaited(chunk)
            if awaited is None:
                return chunk
            self._return(chunk, (), awaited)
        except JMSError:
            raise
        except BaseException:  # of a signal handler, say: nobody gets the chunk
            self._keep(chunk)
            raise
        return self.receive(limit, timeout)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Return deliveries that no unit took; in order, so what came later goes back with them."""
        self._home.check()
        self.take_back([], [d for d in self._own(deliveries) if d.unit is None])

    def drain(self) -> Sequence[AMQPDelivery]:
        """Ask for no more, and give what was on its way."""
        self._home.check()
        self._stop()
        with self._changed:
            return self._shelf.hand_out(len(self._shelf.ready))

    def close(self) -> None:
        """Give back what no unit took; what a unit took stays with the unit."""
        if self._home.left:
            return
        with self._changed:
            if self.closed:
                return
            self._end_waiting()
        if self._error is None:
            self._stop()
            self._settle_unclaimed()
            self.end_if_done()
        else:
            self.let_go(self._shelf.unclaimed())  # the broker has them back

    def abandon(self) -> None:
        """Let everything go without waiting: the connection closes, and what is under way goes back with it."""
        with self._changed:
            self._end_waiting()
        self._settle_unclaimed(wait=False)

    def take_back(self, failed: Sequence[AMQPDelivery], unused: Sequence[AMQPDelivery]) -> None:
        """Let deliveries go to the broker: the failed ones counted, the others not.

        In order, whatever came after the first of them and was taken by no unit goes back, too.
        """
        self._return([*failed, *unused], {d.handle for d in failed})

    def _return(
        self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], awaited: Awaited | None = None
    ) -> None:
        if self._keeps and not self.closed:  # the broker would send it again, too, but behind what it sent meanwhile
            with self._changed:
                self._shelf.take_in(self._shelf.with_later(deliveries), counted)
                self._changed.notify_all()
            return
        if self.order is not Order.ANY and deliveries:
            self._stop()
        with self._changed:
            waiting = list(self._shelf.ready)
            back = self._shelf.with_later(deliveries)
            if self.order is not Order.ANY and back:
                here = [each for each in waiting if each.handle >= back[0].handle]
                self._awaited = awaited or Awaited.of(back).before(self._awaited, here)
            self._shelf.let_go([each for each in back if each.unit is None])  # nobody can take them any more
        for step in awaited.steps(back) if awaited else [back]:
            self._settle(step, counted)
        self._grant_waiting()
        self.end_if_done()

    def _keep(self, chunk: Sequence[AMQPDelivery]) -> None:
        """Let what is still here of a chunk wait again."""
        with self._changed:
            self._shelf.take_in([each for each in chunk if self._shelf.outstanding.get(each.handle) is each])

    def _still_awaited(self, chunk: Sequence[AMQPDelivery]) -> Awaited | None:
        """What should have come before some of a chunk; None if all is well."""
        if self._awaited is None or self._awaited.begins_with(chunk):
            self._awaited = self._awaited and self._awaited.behind(chunk)
            return None
        return self._awaited.again()

    def arrived(self, first: int, messages: Sequence[bytes]) -> None:
        """Messages are complete. On the engine's thread."""
        now, known = time.time(), zip(itertools.count(first), messages, self._failures.of(messages), strict=False)
        deliveries = [AMQPDelivery(encoded, handle, self, now, failures) for handle, encoded, failures in known]
        with self._changed:
            self._shelf.put(deliveries)
            self._appetite.arrived(list(map(len, messages)))
            self._grant_more()
            self._changed.notify_all()

    def _end_waiting(self) -> None:
        self.closed = True
        self._woken = True
        self._changed.notify_all()

    def _wait(self, timeout: float | None) -> bool:
        """Wait for a message; True if woken instead."""
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: self._shelf.ready or self._woken or self._error, timeout)
        finally:
            self._waiting -= 1
        if self._error is not None:
            self._check_usable()
        woken, self._woken = self._woken, False
        return woken

    def _check_usable(self) -> None:
        if self._error is not None:
            raise self._error
        if self.closed:
            raise IllegalStateError("This consumer is closed.")
