"""What the receivers of mode sync have taken from the broker, and have not handed over yet."""

from collections import deque
from contextlib import suppress

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.inbound.arrivals import Arrivals
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.outstanding import Outstanding
from jmsjca.inbound.turns import Turns

__all__ = ["Supplies", "Supply"]


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
