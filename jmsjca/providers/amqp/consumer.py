"""An AMQP consumer: prefetch, credit, receive, give back and settle."""

import itertools
import time
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from jmsjca.config import Limits
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import Disposition, accept, modify_failed, release
from jmsjca.providers.amqp.links.credit import PrefetchWindow
from jmsjca.providers.amqp.links.receiver import ReceiverLink
from jmsjca.providers.amqp.links.source import Source
from jmsjca.providers.amqp.redelivery import Awaited, Failures
from jmsjca.providers.common.consumer import BaseConsumer
from jmsjca.spi import Delivery, Order

__all__ = ["AMQPConsumer", "AskingConsumer", "SettlingConsumer"]

_MOMENT = 3e-5  # seconds


class SettlingConsumer(BaseConsumer[AMQPDelivery]):
    """Who receives has the link.

    Args:
        order: How its deliveries are settled.

    Attributes:
        origin: What it receives from, as messages name it, and what its broker does.
    """

    _engine: Engine
    _failures: Failures
    _link: ReceiverLink
    origin: ReceiveContext

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._accepted: deque[AMQPDelivery] = deque()  # not told yet
        self._telling = False  # whether somebody comes for these

    @property
    def units(self) -> list[Any]:
        """Those that hold deliveries, each as often as it holds one."""
        with self._lock:
            return [d.unit for d in self._buffer.unsettled.values() if d.unit is not None]

    def accept_soon(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Acknowledge without waiting; what comes until the engine's thread gets to it is told with it.

        Raises:
            ConnectionLostError: The connection is gone.
        """
        self._engine.check_open()
        with self._lock:  # who finds that somebody comes may rely on it
            self._accepted.extend(deliveries)
            if not self._telling:
                self._telling = True
                self._engine.submit_nowait(self._accept, urgent=False)

    def settle(self, deliveries: Sequence[AMQPDelivery], update: Disposition) -> None:
        """Give deliveries a state and forget them. On the engine's thread."""
        self._link.settle([d.sequence for d in deliveries], update)

    def check_link(self) -> None:
        """Raise why the link ended, if it did: then the broker has taken the deliveries back."""
        if self._error is not None:
            raise self._error

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled all that was settled before. On the engine's thread."""
        return self._link.round_trip()

    def end_if_done(self) -> None:
        """Close the link of a closed consumer when no unit holds a delivery any more."""
        if self.closed and not self._buffer.unsettled and self._error is None:
            self._link.close()

    def let_fail(self, deliveries: Sequence[AMQPDelivery]) -> None:
        """Let the deliveries of a unit go, counted, without waiting."""
        self._settle(deliveries, {d.sequence for d in deliveries}, wait=False)

    def on_link_failed(self, error: JMSError) -> None:
        """Nothing more will come, or can be told."""
        super().on_connection_lost(error)
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
            self._buffer.take(len(self._buffer.ready))
            unclaimed = self._buffer.unassigned()
            self._buffer.forget(unclaimed)  # nobody can take them any more
        self._settle(unclaimed, (), wait=wait)

    def _settle(self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], *, wait: bool = True) -> None:
        # A broker that does not count may not know the state that counts.
        failed = modify_failed if self.origin.counts_deliveries else release
        if self.origin.counts_deliveries and wait:  # else nothing comes again on this connection
            self._failures.note(d for d in deliveries if d.sequence in counted)
        states = [(d.sequence, failed if d.sequence in counted else release) for d in deliveries]
        (self._engine.call if wait else self._engine.submit)(partial(self._link.settle_each, states))
        self.forget(deliveries)


class AskingConsumer(SettlingConsumer):
    """Who receives tells it what arrives.

    Args:
        order: How its deliveries are settled.
        appetite: How many messages it wants.
    """

    def __init__(self, order: Order, appetite: PrefetchWindow) -> None:
        super().__init__(order)
        self._appetite = appetite
        self._waiting = 0  # how many wait for a message
        self._stopping = 0  # how many wait for the end of what is on its way

    def on_credit_lost(self) -> None:
        """Ask again for what does not come. On the engine's thread."""
        with self._changed:
            self._grant()

    def on_credit_changed(self, more: int) -> None:
        """Credit was taken back, or had to be more. On the engine's thread."""
        with self._changed:
            self._appetite.credit += more

    def revoke(self) -> None:
        """Ask for no more, so that nothing that is let go comes back here."""
        self._engine.submit(self._link.revoke_credit)

    def _grant_more(self) -> None:
        """Ask for what fits beside what has arrived, if somebody did not just stop that."""
        if self._appetite.window and not self._stopping:
            self._grant()

    def _grant_waiting(self) -> None:
        """Ask again for those who wait: to take something back, the credit that they asked for was taken, too."""
        with self._changed:
            if self._waiting and not self._stopping:
                self._grant()

    def _grant(self) -> bool:
        """Ask for what is missing; True if something is."""
        if self._error is not None or self.closed:
            return False
        missing = self._appetite.credit_to_grant(len(self._buffer.ready), self._buffer.size)
        if missing:
            self._engine.submit_nowait(partial(self._link.grant, missing))
        return missing > 0

    def _give_way(self) -> None:
        """Let the engine's thread write what was asked for, so that it comes while this thread handles what is here.

        Python changes threads every 5 ms (`sys.setswitchinterval`), when a short chunk may be handled already.
        """
        time.sleep(_MOMENT)

    def _look(self) -> None:
        """Find out whether the broker really has nothing, without waiting for what comes later."""
        while not self._stop():
            with self._changed:
                if self._buffer.ready or self._error or self.closed:
                    return
                self._grant()

    def _stop(self) -> bool:
        """Take the credit back; what was on its way is here then. True if the broker has no more."""
        with self._changed:
            self._stopping += 1
        try:
            return self._link.drain()
        finally:
            with self._changed:
                self._stopping -= 1


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
        origin: ReceiveContext,
        *,
        order: Order,
        window: int,
        limits: Limits,
        reply_timeout: float,
        drains: bool,
        failures: Failures,
        keeps: bool,
    ) -> None:
        super().__init__(order, PrefetchWindow(window, limits.prefetch_bytes))
        self._engine = engine
        self._link = ReceiverLink(engine, source, self, limits.message_bytes, reply_timeout, supports_drain=drains)
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
            look = timeout == 0 and not self._buffer.ready
        if look:
            self._look()
        elif not self._appetite.window:
            self._stop()  # what is not here is left to others
        with self._changed:
            chunk = [] if woken else self._buffer.take(limit)
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

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Return deliveries that no unit took; in order, so what came later goes back with them."""
        self._home.check()
        self.requeue([], [d for d in self._owned(deliveries) if d.unit is None])

    def drain(self) -> Sequence[AMQPDelivery]:
        """Ask for no more, and give what was on its way."""
        self._home.check()
        self._stop()
        with self._changed:
            return self._buffer.take(len(self._buffer.ready))

    def close(self) -> None:
        """Give back what no unit took; what a unit took stays with the unit."""
        if self._home.in_child:
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
            self.forget(self._buffer.unassigned())  # the broker has them back

    def abandon(self) -> None:
        """Let everything go without waiting: the connection closes, and what is under way goes back with it."""
        with self._changed:
            self._end_waiting()
        self._settle_unclaimed(wait=False)

    def requeue(self, failed: Sequence[AMQPDelivery], unused: Sequence[AMQPDelivery]) -> None:
        """Let deliveries go to the broker: the failed ones counted, the others not.

        In order, whatever came after the first of them and was taken by no unit goes back, too.
        """
        self._return([*failed, *unused], {d.sequence for d in failed})

    def _return(
        self, deliveries: Sequence[AMQPDelivery], counted: Collection[int], awaited: Awaited | None = None
    ) -> None:
        if self._keeps and not self.closed:  # the broker would send it again, too, but behind what it sent meanwhile
            with self._changed:
                self._buffer.requeue(self._buffer.with_later(deliveries), counted)
                self._changed.notify_all()
            return
        if self.order is not Order.ANY and deliveries:
            self._stop()
        with self._changed:
            waiting = list(self._buffer.ready)
            back = self._buffer.with_later(deliveries)
            if self.order is not Order.ANY and back:
                here = [each for each in waiting if each.sequence >= back[0].sequence]
                self._awaited = awaited or Awaited.of(back).before(self._awaited, here)
            self._buffer.forget([each for each in back if each.unit is None])  # nobody can take them any more
        for step in awaited.steps(back) if awaited else [back]:
            self._settle(step, counted)
        self._grant_waiting()
        self.end_if_done()

    def _keep(self, chunk: Sequence[AMQPDelivery]) -> None:
        """Let what is still here of a chunk wait again."""
        with self._changed:
            self._buffer.requeue([each for each in chunk if self._buffer.unsettled.get(each.sequence) is each])

    def _still_awaited(self, chunk: Sequence[AMQPDelivery]) -> Awaited | None:
        """What should have come before some of a chunk; None if all is well."""
        if self._awaited is None or self._awaited.begins_with(chunk):
            self._awaited = self._awaited and self._awaited.behind(chunk)
            return None
        return self._awaited.again()

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Messages are complete. On the engine's thread."""
        now, known = time.time(), zip(itertools.count(first), messages, self._failures.of(messages), strict=False)
        deliveries = [AMQPDelivery(encoded, handle, self, now, failures) for handle, encoded, failures in known]
        with self._changed:
            self._buffer.append(deliveries)
            self._appetite.on_messages(list(map(len, messages)))
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
            self._changed.wait_for(lambda: self._buffer.ready or self._woken or self._error, timeout)
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
