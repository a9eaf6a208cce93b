"""One receiver of mode sync: it receives, calls the handler, settles, and begins again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jmsjca import spi

if TYPE_CHECKING:
    from jmsjca.inbound.sync import SyncDelivery

__all__ = ["Receiver"]

_NEXT_OF_BATCH = 0.1  # seconds that a batch waits for its next message


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
