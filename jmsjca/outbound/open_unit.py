"""The open unit of a session: begun when something is received or sent, and the next one after its end."""

from collections.abc import Callable
from typing import Protocol

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.messages import DeliveryContext, Message, Outcome
from jmsjca.outbound.work import WorkUnit

__all__ = ["OpenUnit", "Source"]


class Source(Protocol):
    """Whom a delivery came from: a consumer that takes messages ahead."""

    def forget_ahead(self) -> None:
        """Forget what was taken ahead: to keep the order, a rollback has taken it back."""
        ...

    def give_ahead_back(self) -> None:
        """Let what was taken ahead come again, if it did not go back already."""
        ...


class OpenUnit:
    """One unit after the other.

    Args:
        begin: Opens the next one.
        context: What the messages of a unit are bound to, told the unit and this; None for the unit.

    Attributes:
        work: The unit that is open; None before anything belongs to it.
    """

    def __init__(
        self, begin: Callable[[], WorkUnit], context: "Callable[[WorkUnit, OpenUnit], DeliveryContext] | None" = None
    ) -> None:
        self._begin = begin
        self._context = context
        self._bound_to: DeliveryContext | None = None
        self._sources: set[Source] = set()
        self.work: WorkUnit | None = None

    def begun(self) -> WorkUnit:
        """Give the unit that is open, or open one."""
        if self.work is None:
            work = self._begin()
            self._bound_to = self._context and self._context(work, self)
            self.work = work
        return self.work

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Make a delivery part of the unit.

        Args:
            delivery: What was received.
            source: Whom from.

        Raises:
            MessageFormatError: The message cannot be decoded; its delivery is part of the unit all the same.
        """
        work = self.work or self.begun()
        self._sources.add(source)
        return work.take(delivery, self._bound_to)

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send."""
        self.begun().send(message, to)

    def commit(self, *, confirmed: bool = True) -> None:
        """Commit, if anything belongs to the unit. ``confirmed`` is that of `WorkUnit.commit`."""
        self._end(lambda work: work.commit(confirmed=confirmed))

    def rollback(self) -> None:
        """Roll back, if anything belongs to the unit."""
        self._end(WorkUnit.rollback)

    def _end(self, how: Callable[[WorkUnit], None]) -> None:
        work, self.work, self._bound_to = self.work, None, None  # nothing of it stays with who has come to its end
        sources, self._sources = self._sources, set()
        if work is None:
            return
        try:
            how(work)
        finally:
            for source in sources:
                if work.outcome is Outcome.ROLLED_BACK:
                    source.forget_ahead()
                elif work.outcome is Outcome.IN_DOUBT:  # what it took may have gone back, and all behind that with it
                    source.give_ahead_back()
