"""The base of units: deliveries taken, single use, loss of the connection, and the size limit of what they send."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, ResourceAllocationError
from jmsjca.spi import Delivery

__all__ = [
    "DeliveryOwner",
    "RequeuingUnit",
    "finished_unit_error",
    "lost_unit_error",
    "size_limit_error",
    "takes_deliveries_error",
]


class DeliveryOwner(Protocol):
    """The consumer of a delivery, as far as a unit uses it."""

    def assign_to_unit(self, deliveries: Sequence[Any], unit: Any) -> None:
        """Assign deliveries to a unit.

        Raises:
            IllegalStateError: A delivery is settled, returned or assigned to another unit.
        """
        ...

    def requeue(self, failed: Sequence[Any], unused: Sequence[Any]) -> None:
        """Return deliveries of a unit for redelivery; failed ones increment the delivery count, unused ones do not."""
        ...


_consumer_of = attrgetter("consumer")
C = TypeVar("C", bound=DeliveryOwner)
T = TypeVar("T")


class RequeuingUnit(Generic[C, T]):
    """A unit that returns its deliveries to the buffers of their consumers.

    Attributes:
        lost: True once the connection was lost or closed before the unit ended.
    """

    def __init__(self) -> None:
        self._taken: list[T] = []
        self._finished = False
        self.lost = False

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Record deliveries that are settled with this unit.

        Raises:
            IllegalStateError: The unit is finished, or a delivery is settled, returned or assigned to another unit.
            ConnectionLostError: The connection is lost.
        """
        self._check_open()
        for consumer, taken in _grouped_by_consumer(list(deliveries)):
            self._taken += taken  # before: a signal handler may interrupt the next line after its work
            try:
                consumer.assign_to_unit(taken, self)
            except JMSError:
                del self._taken[-len(taken) :]
                raise

    def _raise_lost(self) -> NoReturn:
        raise lost_unit_error()

    def _finish(self) -> None:
        """Mark the unit as used.

        The caller clears `_taken` at the end of commit or rollback: each delivery refers to its unit, and a reference
        cycle would delay its collection.
        """
        self._check_open()
        self._finished = True
        if self.lost:  # another thread sets `lost` first and reads `_finished` second, so one of both sees the other
            raise lost_unit_error()

    def _check_open(self) -> None:
        if self.lost:
            raise lost_unit_error()
        if self._finished:
            raise finished_unit_error()

    def _run_final(self, write: Callable[[], None]) -> None:
        """Finish the unit with a commit or rollback."""
        self._finish()
        try:
            write()
        finally:
            self._taken = []

    def _taken_by_consumer(self) -> dict[C, list[T]]:
        groups: dict[C, list[T]] = {}
        for consumer, group in _grouped_by_consumer(self._taken):
            groups.setdefault(consumer, []).extend(group)
        return groups

    def _requeue_taken(self, unused: Sequence[Delivery]) -> None:
        """Return all deliveries for redelivery; all but the unused ones increment the delivery count."""
        uncounted = {id(d) for d in unused}
        for consumer, deliveries in self._taken_by_consumer().items():
            consumer.requeue(
                [d for d in deliveries if id(d) not in uncounted], [d for d in deliveries if id(d) in uncounted]
            )


def lost_unit_error() -> ConnectionLostError:
    """Return the error for the use of a unit after its connection was lost or closed."""
    return ConnectionLostError(
        "The connection of this unit is lost: nothing was sent, and the messages that it took are redelivered."
    )


def finished_unit_error() -> IllegalStateError:
    """Return the error for the use of a unit that was committed or rolled back."""
    return IllegalStateError("This unit is finished: a unit commits or rolls back once.")


def takes_deliveries_error() -> IllegalStateError:
    """Return the error for a commit without waiting of a unit that took deliveries."""
    return IllegalStateError("Only a unit that took no delivery can be committed without waiting: use commit().")


def size_limit_error(what: str, size: int, limit: int, to: Destination) -> ResourceAllocationError:
    """Return the error for a message or body that exceeds the size limit.

    Args:
        what: The measured part, for example "body".
        size: Its size in bytes.
        limit: The limit in bytes.
        to: The destination of the message.
    """
    return ResourceAllocationError(f"A {what} of {size} bytes for {to} is over the limit of {limit} bytes.")


def _grouped_by_consumer(deliveries: Sequence[Any]) -> Iterable[tuple[Any, Sequence[Any]]]:
    """Return runs of deliveries of the same consumer, in order."""
    if len(deliveries) == 1:  # the usual case of a session
        return ((deliveries[0].consumer, deliveries),)
    return ((consumer, list(group)) for consumer, group in groupby(deliveries, _consumer_of))
