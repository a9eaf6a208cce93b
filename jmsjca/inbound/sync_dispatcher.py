"""Dispatching in mode sync: several receivers, each with a consumer of its own, each in a loop."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.inbound.concurrency import Outstanding, Turns
from jmsjca.inbound.dispatcher import ConcurrentDelivery
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.listener_context import inside
from jmsjca.inbound.redelivery import Arrivals

__all__ = ["Receiver", "Supplies", "Supply", "SyncDelivery"]

_NEXT_OF_BATCH = 0.1  # seconds that a batch waits for its next message

_LOOK_AGAIN = 1.0  # seconds until handlers of a lost connection are looked at again


class Receiver:
    """Receives, calls the handler, settles, and begins again. Runs on one thread.

    Args:
        group: What it belongs to.
    """

    def __init__(self, group: "SyncDelivery") -> None:
        self._group = group
        self._endpoint = group.endpoint
        self._outstanding = group.outstanding
        self._stopping = False
        self._size = group.endpoint.terms.batch_size or 1
        self._supplies = group.supplies
        self._supply = group.supplies.add()

    def run(self) -> None:
        """Deliver until told to stop, then give back what no handler saw.

        Raises:
            JMSError: The connection broke, or the broker refused something.
        """
        try:
            with self._endpoint.statistics.endpoint():
                while not self._stopping:
                    self._deliver_next()
        finally:
            self._supply.close()

    def stop(self) -> None:
        """Let `run` end after the unit in hand."""
        self._stopping = True
        self._supply.stop()

    def _deliver_next(self) -> None:
        if self._supply.empty:  # what it has is for it to deliver
            self._supplies.rest()
        delivery = self._first(self._endpoint.terms.receive_timeout)
        if delivery is not None:
            self._deliver_in_a_place(delivery)

    def _deliver_in_a_place(self, delivery: spi.Delivery) -> None:
        """Deliver when there is a place for one more unit; none is reserved before there is a message for it."""
        if self._outstanding.reserve(self._supply.patience(self._endpoint.terms.receive_timeout)):
            self._deliver(delivery)
        else:
            self._supply.put_back(delivery)
            self._supply.add_due()

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
            delivery = None if self._stopping else self._supply.next(self._size - got, _NEXT_OF_BATCH)
            if delivery is None:
                return
            if self._endpoint.comes_alone(delivery):
                self._supply.put_back(delivery)
                return
            yield delivery

    def _first(self, timeout: float) -> spi.Delivery | None:
        """Give the first message of a unit. None is received as long as nothing more may be outstanding."""
        self._supply.add_due()
        if self._supply.empty and self._outstanding.full:
            self._outstanding.wait(self._supply.patience(timeout))
            return None
        return self._supply.next(self._size, timeout)


class SyncDelivery(ConcurrentDelivery):
    """Runs the receivers, each on a thread of its own.

    Args:
        endpoint: Whose messages.
        link: Where they come from.

    Attributes:
        supplies: What the receivers have taken from there.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        super().__init__(endpoint, link)
        self.supplies = Supplies(endpoint, link, self.outstanding)
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

    def _start(self, receiver: Receiver) -> None:
        name = f"jmsjca sync #{self._receivers.index(receiver)}({self.endpoint.terms.destination.name})"
        thread = threading.Thread(target=inside(partial(self._receive, receiver)), name=name, daemon=True)
        with self._lock:
            self._running += 1
        thread.start()

    def _ended(self) -> bool:
        return not self._running or self._error is not None

    def _receive(self, receiver: Receiver) -> None:
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
        self.supplies.turns.close()
        for receiver in receivers:
            receiver.stop()


class Supplies:
    """Those of all receivers of one listener. A message that one has taken is for whoever is free first.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        outstanding: Where those that wait for the end of a delay are counted.

    Attributes:
        turns: Who of the receivers goes on when few are needed.
        ahead: How many messages may be taken ahead of the handler; 0 if none may.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, outstanding: Outstanding) -> None:
        self._endpoint, self._link, self._outstanding = endpoint, link, outstanding
        self._all: list[Supply] = []
        exact = link.capabilities.exact_credit
        self.turns = Turns(shared=exact)
        self.ahead = endpoint.limits.prefetch_messages if exact and not endpoint.terms.batch_size else 0

    def add(self) -> "Supply":
        """Make that of one more receiver."""
        supply = Supply(self._endpoint, self._link, self._outstanding, self)
        self._all.append(supply)
        return supply

    def rest(self) -> None:
        """Wait as long as this thread is not needed. Before it takes anything from the broker, others share."""
        self.turns.rest()
        self.spread()

    def spread(self) -> None:
        """Let everybody have what was taken ahead; but what is to be one batch stays together."""
        for supply in self._all:
            if self.ahead and supply.has_some:
                supply.part()

    def patience(self, most: float) -> float:
        """Tell how long to wait for a message, at most: the delay of one that another has may be over before."""
        for supply in self._all if self.ahead else ():
            most = supply.patience(most)
        return most

    def delayed(self, by: "Supply") -> None:
        """Let the others, who may wait for messages, reckon with another delay."""
        for supply in self._all if self.ahead else ():
            if supply is not by:
                supply.wake()


class Supply:
    """Takes from the broker what is asked for. Used by one thread, but anybody may make it part with what it has.

    A few messages at a time cost little more than one, but what is taken ahead must not wait for a slow handler while
    another one is free. So more is taken only as long as somebody watches, who would see it and give it back.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        outstanding: Where those that wait for the end of a delay are counted.
        others: Those of all receivers.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, outstanding: Outstanding, others: Supplies) -> None:
        self._others = others
        self._arrivals = Arrivals(endpoint, link, outstanding)
        self._ready: deque[spi.Delivery] = deque()
        self._stopping = False
        terms = endpoint.terms
        # What the broker has sent ahead to one consumer the others cannot have.
        window = 0 if link.capabilities.exact_credit else terms.batch_size or 1
        self._consumer = link.consumer(terms.source, selector=terms.selector, order=spi.Order.ANY, window=window)

    @property
    def empty(self) -> bool:
        """True if the next message has to come from the broker."""
        return not self._ready

    @property
    def has_some(self) -> bool:
        """True if there is something to be delivered now."""
        return bool(self._ready) or self.patience(1) == 0

    def stop(self) -> None:
        """Let a wait for a message end, and take no more."""
        self._stopping = True  # before it is woken: the first of two looks may be all that ends
        self.wake()

    def wake(self) -> None:
        """Let a wait for a message end."""
        self._consumer.wake()

    def patience(self, most: float) -> float:
        """Tell how long to wait for something else, at most."""
        return self._arrivals.patience(most) or 0

    def next(self, limit: int, timeout: float) -> spi.Delivery | None:
        """Give the next message for the handler; None if none came in time, or somebody made this part with it.

        Args:
            limit: How many are wanted.
            timeout: Seconds to wait.
        """
        if not self._ready:
            self.add_due()
        if not self._ready:
            self._receive(limit, timeout)
        return self._pop()

    def add_due(self) -> None:
        """Add what has waited long enough."""
        self._ready.extend(self._arrivals.due())

    def put_back(self, delivery: spi.Delivery) -> None:
        """Put in again what is to be the next."""
        self._ready.appendleft(delivery)

    def part(self) -> None:
        """Give back what is here, which no handler saw and which need not wait any more.

        Raises:
            JMSError: It cannot be given back, and stays taken as long as the connection lives.
        """
        spare: list[spi.Delivery] = []
        while (delivery := self._pop()) is not None:
            spare.append(delivery)
        spare += self._arrivals.due()
        if spare:
            with suppress(ConnectionLostError):  # they come again by themselves
                self._arrivals.give_back(self._consumer, spare, waited=True)

    def close(self) -> None:
        """Give back all, also what waits for the end of a delay."""
        late = self._arrivals.clear()
        with suppress(JMSError):  # the connection is closed, and that gives back the rest
            self.part()
        with suppress(JMSError):
            self._arrivals.give_back(self._consumer, late)

    def _receive(self, limit: int, timeout: float) -> None:
        if self._others.ahead and self._others.turns.may_take_ahead() and self._take(self._others.ahead, 0):
            if not self._others.turns.may_take_ahead():  # any more
                self._keep_one()
        elif not self._stopping:
            with self._others.turns.waiting():
                self._others.spread()  # who waits here would not see a slow handler
                self._take(limit, self._others.patience(self.patience(timeout)))

    def _take(self, limit: int, timeout: float) -> bool:
        chunk = self._consumer.receive(limit, timeout)
        if chunk:
            self._others.turns.took(len(chunk))
        admitted = 0
        for delivery in self._arrivals.admit(chunk):
            self._ready.append(delivery)
            admitted += 1
        if admitted < len(chunk):
            self._others.delayed(self)
        return bool(chunk)

    def _keep_one(self) -> None:
        first = self._pop()
        self.part()
        if first is not None:
            self.put_back(first)

    def _pop(self) -> spi.Delivery | None:
        try:
            return self._ready.popleft()
        except IndexError:
            return None
