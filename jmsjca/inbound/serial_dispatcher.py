"""Dispatching in mode serial: one message after the other, in order, each in a unit of its own."""

import threading
from collections.abc import Sequence

from jmsjca import spi
from jmsjca.inbound.concurrency import Outstanding
from jmsjca.inbound.delivery_attempt import InHand
from jmsjca.inbound.endpoint import Endpoint
from jmsjca.inbound.redelivery import Arrivals
from jmsjca.messages import Outcome

__all__ = ["SerialDelivery"]

_LOOK_AGAIN = 0.2


class SerialDelivery:
    """The handler's return commits; its exception rolls back, and the message comes again before all later ones.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection) -> None:
        self._endpoint = endpoint
        self._link = link
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._hand: InHand | None = None
        self._arrivals = Arrivals(endpoint, link, Outstanding(1))
        terms = endpoint.terms
        self._consumer = link.consumer(terms.source, selector=terms.selector, order=spi.Order.PREFIX)

    def run(self) -> None:
        """Deliver until told to stop.

        Raises:
            ConnectionLostError: The connection broke.
            JMSError: The broker refused something that a new connection may mend.
        """
        while self._endpoint.busy_elsewhere and not self._stopping.wait(_LOOK_AGAIN):
            pass  # a handler of a connection that was given up is still at work: one after the other
        with self._endpoint.statistics.endpoint():
            while not self._stopping.is_set():
                self._deliver_chunk(self._consumer.receive(self._endpoint.limits.chunk, None))
        if self._error is not None:
            raise self._error

    def stop(self, error: Exception | None = None) -> None:
        """Let `run` end after the message in hand; with an error that message comes again."""
        hand = self._hand
        if error is not None and hand is not None:
            self._endpoint.abandon([hand])
        self._error = self._error or error
        self._stopping.set()
        self._consumer.wake()

    def _deliver_chunk(self, chunk: Sequence[spi.Delivery]) -> None:
        for position, delivery in enumerate(chunk):
            if self._stopping.is_set():
                self._consumer.release(chunk[position:])
                return
            fate = self._arrivals.decide(delivery)
            outcome = fate if isinstance(fate, Outcome) else self._deliver(delivery, fate)
            if outcome is not Outcome.COMMITTED:
                return  # what went back took the rest of the chunk with it, to keep the order

    def _deliver(self, delivery: spi.Delivery, delay: float) -> Outcome | None:
        if delay and self._stopping.wait(delay):  # here, as everything behind it waits, too
            self._arrivals.give_back(self._consumer, [delivery])
            return None
        hand = self._hand = InHand(self._endpoint, self._link)
        try:
            hand.deliver([delivery])
        finally:
            self._hand = None
        return hand.work.outcome
