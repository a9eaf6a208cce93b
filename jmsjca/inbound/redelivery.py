"""What has arrived, and what becomes of it before a handler sees it."""

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from jmsjca import spi
from jmsjca.inbound.endpoint import Endpoint, identity
from jmsjca.inbound.moving import Mover
from jmsjca.inbound.outstanding import Outstanding
from jmsjca.inbound.waiting import Waiting
from jmsjca.messages import Outcome
from jmsjca.redelivery import Delay, Delete, Move

__all__ = ["Arrivals"]

_LOOK_AGAIN = 0.2


class Arrivals:
    """Takes the redelivery decision for each message that arrives, and carries it out. For one thread.

    What waits for the end of a delay may be asked for by any thread.

    Args:
        endpoint: Whose messages.
        link: Where they come from.
        outstanding: Where those that wait are counted.
    """

    def __init__(self, endpoint: Endpoint, link: spi.Connection, outstanding: Outstanding) -> None:
        self._endpoint = endpoint
        self._link = link
        self._outstanding = outstanding
        self._mover = Mover(endpoint, link)
        self._mover.check_target()
        self._lock = Lock()
        self._waiting: Waiting[spi.Delivery] = Waiting(endpoint.clock)

    def admit(self, deliveries: Iterable[spi.Delivery]) -> Iterator[spi.Delivery]:
        """Give those that the handler is to see now. The others wait, have gone elsewhere, or are no more."""
        for delivery in deliveries:
            fate = self.decide(delivery)
            if isinstance(fate, Outcome):
                continue
            if self._endpoint.still_running(delivery):
                fate = max(fate, _LOOK_AGAIN)
            if fate > 0:
                self._let_wait(delivery, fate)
            else:
                yield delivery

    def due(self) -> Iterator[spi.Delivery]:
        """Give those that have waited long enough."""
        if not self._waiting:  # as nearly always, and asked for each message
            return
        with self._lock:
            due = list(self._waiting.due())
        for delivery in due:
            if self._endpoint.still_running(delivery):
                self._put(delivery, _LOOK_AGAIN)
            else:
                self._outstanding.release()
                yield delivery

    def patience(self, most: float | None) -> float | None:
        """Tell how long to wait for something else, at most."""
        if not self._waiting:
            return most
        with self._lock:
            return self._waiting.patience(most)

    def clear(self) -> list[spi.Delivery]:
        """Take out all that wait."""
        with self._lock:
            rest = self._waiting.clear()
        for _ in rest:
            self._outstanding.release()
        return rest

    def give_back(self, consumer: spi.Consumer, deliveries: Sequence[spi.Delivery], *, waited: bool = False) -> None:
        """Give back what no handler saw, although it was decided about: its return is not counted.

        Args:
            consumer: Where it came from.
            deliveries: Which.
            waited: True if they need not wait any more when they return.

        Raises:
            JMSError: They cannot be given back; on a lost connection they come again by themselves.
        """
        self._endpoint.put_off(deliveries, waited=waited)
        consumer.give_back(deliveries)
        if self._link.capabilities.give_back == "uncounted":
            self._endpoint.went_back_uncounted(deliveries)

    def decide(self, delivery: spi.Delivery) -> float | Outcome:
        """Tell after how many seconds the handler is to see a message, or what became of it instead."""
        count, redelivered = delivery.count, delivery.redelivered
        if not redelivered and (count or 0) <= 1:
            return 0.0
        decision = self._endpoint.redelivery.decide(identity(delivery), redelivered=redelivered, delivery_count=count)
        self._endpoint.statistics.redelivered(new=decision.new)
        match decision.action:
            case Delay(milliseconds):
                return milliseconds / 1000
            case Delete() | Move() as action:
                return self._mover.carry_out(action, delivery, decision.count) or 0.0
            case _:
                return 0.0

    def _let_wait(self, delivery: spi.Delivery, seconds: float) -> None:
        if self._link.capabilities.redelivery_delay:
            self._mover.put_off(delivery, seconds)
            return
        self._outstanding.add()
        self._put(delivery, seconds)

    def _put(self, delivery: spi.Delivery, seconds: float) -> None:
        with self._lock:
            self._waiting.put(delivery, seconds)
