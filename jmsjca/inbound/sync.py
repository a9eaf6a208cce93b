"""Sync delivery: several receivers, each with a consumer of its own, each in a loop."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from jmsjca import spi
from jmsjca.errors import JMSError
from jmsjca.inbound.arrivals import Arrivals
from jmsjca.inbound.concurrent import ConcurrentDelivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.inside import inside
from jmsjca.inbound.turns import Turns

__all__ = ["SyncDelivery"]

_LOOK_AGAIN = 1.0  # seconds until handlers of a lost connection are looked at again
_NEXT_OF_BATCH = 0.1  # seconds that a batch waits for its next message


class SyncDelivery(ConcurrentDelivery):
    """Runs the receivers, each on a thread of its own.

    Args:
        endpoint: Whose messages.
        link: Where they come from.

    Attributes:
        turns: Who of the receivers goes on when few are needed.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        super().__init__(endpoint, link)
        self.turns = Turns()
        self._receivers = [Receiver(self)]  # so that a source that cannot be consumed from is known at once
        self._running = 0

    def _run(self) -> None:
        self._start(self._receivers[0])
        while not self._ended():
            self._start_missing()
            with self._lock:
                self._changed.wait_for(self._ended, _LOOK_AGAIN if self._missing() else None)

    def _missing(self) -> int:
        """Tell how many receivers are to be added; in place of a handler that is still at work there is none."""
        return self.endpoint.terms.pool_size - len(self._receivers)

    def _start_missing(self) -> None:
        for _ in range(self._missing() - self.endpoint.busy_elsewhere):
            receiver = Receiver(self)
            with self._lock:
                self._receivers.append(receiver)
                if self._stopping:
                    receiver.stop()
            self._start(receiver)

    def _start(self, receiver: "Receiver") -> None:
        name = f"jmsjca sync #{self._receivers.index(receiver)}({self.endpoint.terms.destination.name})"
        thread = threading.Thread(target=inside(partial(self._receive, receiver)), name=name, daemon=True)
        with self._lock:
            self._running += 1
        thread.start()

    def _ended(self) -> bool:
        return not self._running or self._error is not None

    def _receive(self, receiver: "Receiver") -> None:
        try:
            receiver.run()
        except Exception as error:  # noqa: BLE001  # raised by `run`
            self.stop(error)
        finally:
            with self._lock:
                self._running -= 1
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._lock:
            receivers = list(self._receivers)
        self.turns.close()
        for receiver in receivers:
            receiver.stop()


class Receiver:
    """Receives, calls the handler, settles, and begins again. Runs on one thread.

    Args:
        group: What it belongs to.
    """

    def __init__(self, group: SyncDelivery) -> None:
        self._group = group
        self._endpoint = group.endpoint
        self._outstanding = group.outstanding
        self._arrivals = Arrivals(group.endpoint, group.link, group.outstanding)
        self._ready: deque[spi.Delivery] = deque()
        self._stopping = False
        terms = group.endpoint.terms
        self._size = terms.batch_size or 1
        window = 0 if group.link.capabilities.exact_credit else self._size  # what it takes ahead the others cannot have
        self._consumer = group.link.consumer(terms.source, selector=terms.selector, order=spi.Order.ANY, window=window)

    def run(self) -> None:
        """Deliver until told to stop, then give back what no handler saw.

        Raises:
            JMSError: The connection broke, or the broker refused something.
        """
        try:
            with self._endpoint.statistics.endpoint():
                while not self._stopping:
                    if not self._ready:  # which nobody else can have
                        self._group.turns.rest()
                    delivery = self._first(self._endpoint.terms.receive_timeout)
                    if delivery is not None:
                        self._group.turns.took()
                        self._deliver_in_a_place(delivery)
        finally:
            self._give_back()

    def stop(self) -> None:
        """Let `run` end after the unit in hand."""
        self._stopping = True
        self._consumer.wake()

    def _deliver_in_a_place(self, delivery: spi.Delivery) -> None:
        """Deliver when there is a place for one more unit; none is reserved before there is a message for it."""
        if self._outstanding.reserve(self._arrivals.patience(self._endpoint.terms.receive_timeout)):
            self._deliver(delivery)
        else:
            self._ready.appendleft(delivery)
            self._ready.extend(self._arrivals.due())

    def _deliver(self, delivery: spi.Delivery) -> None:
        """Deliver one unit, in the place that is reserved for it."""
        hand = self._group.take_in_hand()
        try:
            hand.deliver(self._batch(delivery))
        finally:
            self._group.put_down(hand)

    def _batch(self, first: spi.Delivery) -> Iterator[spi.Delivery]:
        """Give the messages of one unit: as many as come without a pause, or one that has to be alone."""
        yield first
        if self._endpoint.comes_alone(first):
            return
        for got in range(1, self._size):
            delivery = None if self._stopping else self._next(self._size - got, _NEXT_OF_BATCH)
            if delivery is None:
                return
            if self._endpoint.comes_alone(delivery):
                self._ready.appendleft(delivery)
                return
            yield delivery

    def _first(self, timeout: float) -> spi.Delivery | None:
        """Give the first message of a unit. None is received as long as nothing more may be outstanding."""
        self._ready.extend(self._arrivals.due())
        if not self._ready and self._outstanding.full:
            self._outstanding.wait(self._arrivals.patience(timeout))
            return None
        return self._next(self._size, timeout)

    def _next(self, limit: int, timeout: float) -> spi.Delivery | None:
        """Give the next message for the handler; None if none came in time."""
        if not self._ready:
            self._ready.extend(self._arrivals.due())
        if not self._ready:
            chunk = self._consumer.receive(limit, self._arrivals.patience(timeout))
            self._ready.extend(self._arrivals.admit(chunk))
        return self._ready.popleft() if self._ready else None

    def _give_back(self) -> None:
        rest = [*self._ready, *self._arrivals.clear()]
        self._ready.clear()
        self._endpoint.put_off(rest)
        with suppress(JMSError):  # on a lost connection they come again by themselves
            self._consumer.give_back(rest)
