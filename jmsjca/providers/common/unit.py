"""The base of units: deliveries taken, used once, lost with the connection."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.spi import Delivery

__all__ = ["BaseUnit", "DeliveryOwner"]


class DeliveryOwner(Protocol):
    """A consumer, as the units that take its deliveries know it."""

    def assign_to_unit(self, deliveries: Sequence[Any], unit: Any) -> None:
        """Let a unit have deliveries; `IllegalStateError` if one is settled, given back or another unit's."""
        ...

    def requeue(self, failed: Sequence[Any], unused: Sequence[Any]) -> None:
        """Let deliveries of a unit come again, the failed ones counted."""
        ...


class OwnedDelivery(Protocol):
    @property
    def consumer(self) -> DeliveryOwner:
        """Who received it."""
        ...


_consumer_of = attrgetter("consumer")
C = TypeVar("C", bound=DeliveryOwner)
D = TypeVar("D", bound=OwnedDelivery)


class BaseUnit(Generic[C, D]):
    """A unit until its end: what it has taken, and whether it can still be used.

    Attributes:
        lost: True once the connection has ended over it.
    """

    def __init__(self) -> None:
        self._taken: list[D] = []
        self._finished = False
        self.lost = False

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Note that these deliveries are settled with this unit.

        Raises:
            IllegalStateError: The unit is finished, or a delivery is settled, given back or another unit's.
            ConnectionLostError: The connection is gone.
        """
        self._check_open()
        for consumer, taken in _grouped_by_consumer(list(deliveries)):
            consumer.assign_to_unit(taken, self)
            self._taken += taken

    def _taken_by_consumer(self) -> dict[C, list[D]]:
        groups: dict[C, list[D]] = {}
        for consumer, group in _grouped_by_consumer(self._taken):
            groups.setdefault(consumer, []).extend(group)
        return groups

    def _requeue_taken(self, unused: Sequence[Delivery]) -> None:
        """Let everything come again, counted but for what was not used."""
        spared = {id(d) for d in unused}
        for consumer, deliveries in self._taken_by_consumer().items():
            consumer.requeue([d for d in deliveries if id(d) not in spared], [d for d in deliveries if id(d) in spared])

    def _finish(self) -> None:
        """Begin the end. At the end of that the unit keeps nothing of what it took, which has it: no circle stays."""
        self._check_open()
        self._finished = True
        if self.lost:  # in between: who does that looks then whether the unit is finished
            self._raise_lost()

    def _check_open(self) -> None:
        if self.lost:
            self._raise_lost()
        if self._finished:
            raise IllegalStateError("This unit is finished: a unit commits or rolls back once.")

    def _raise_lost(self) -> NoReturn:
        raise ConnectionLostError("The connection of this unit is gone; its deliveries come again, nothing was sent.")


def _grouped_by_consumer(deliveries: Sequence[Any]) -> Iterable[tuple[Any, Sequence[Any]]]:
    """Deliveries of one consumer after the other, as they come."""
    if len(deliveries) == 1:  # as a session takes them
        return ((deliveries[0].consumer, deliveries),)
    return ((consumer, list(group)) for consumer, group in groupby(deliveries, _consumer_of))
