"""A provider's unit together with its settlement, and the current unit of a session."""

from collections.abc import Callable
from threading import Lock
from typing import Protocol, Self

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, IllegalStateError, JMSError, NotSupportedError, TransactionInDoubtError
from jmsjca.messages import DeliveryContext, Message, Outcome, Settlement
from jmsjca.messages.delivery import bind_delivery
from jmsjca.messages.settlement import complete_settlement
from jmsjca.outbound.session_lock import SessionLock

__all__ = ["CurrentUnit", "PrefetchOwner", "UnitOfWork"]


class UnitOfWork:
    """Commits or rolls back a provider's unit, and tells its settlement how that went.

    Args:
        unit: The provider's unit.
        atomic: True if what it receives and what it sends happen together or not at all.
        lock: That of the session whose unit this is; None if the messages outlive the session.

    Attributes:
        outcome: How it ended; None while it is open.
        rollback_only: True once a message of this unit demanded it.
    """

    __slots__ = ("_atomic", "_ending", "_lock", "_settlement", "outcome", "rollback_only", "unit")

    endpoint: None = None  # a session delivers, no listener

    def __init__(self, unit: spi.Unit, *, atomic: bool = True, lock: SessionLock | None = None) -> None:
        self._atomic = atomic
        self._lock = lock
        self._ending = Lock()  # whoever ends the unit and whoever asks for its settlement learn of each other
        self._settlement: Settlement | None = None
        self.unit = unit
        self.outcome: Outcome | None = None
        self.rollback_only = False

    @classmethod
    def begin(cls, connection: spi.Connection, lock: SessionLock | None = None) -> Self:
        """Open a unit that is as strong as the broker can make it."""
        atomic = connection.capabilities.atomic
        return cls(connection.unit(atomic=atomic), atomic=atomic, lock=lock)

    @property
    def settlement(self) -> Settlement:
        """Tells whoever acknowledged a message of this unit how it ended. Made when asked for: most never are."""
        with self._ending:
            if self._settlement is None:
                self._settlement = Settlement()
                if self.outcome is not None:
                    complete_settlement(self._settlement, self.outcome)
            return self._settlement

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send.

        Raises:
            NotSupportedError: The broker cannot acknowledge and send together.
        """
        if not self._atomic:
            raise NotSupportedError(
                f"This broker cannot acknowledge a message and send another to {to} together (its capability atomic "
                "says so). Send with a session of your own, and expect the message again if the acknowledgement fails."
            )
        self.unit.send(message, to)

    def take(self, delivery: spi.Delivery, bound_to: DeliveryContext | None = None) -> Message:
        """Make a delivery part of this unit and bind its message to it.

        Args:
            delivery: What was received.
            bound_to: What the message is bound to; None for this unit.

        Raises:
            MessageFormatError: The message cannot be decoded; its delivery is part of the unit all the same.
        """
        self.unit.take([delivery])
        message = delivery.message
        bind_delivery(message, bound_to or self)
        return message

    def commit(self, *, confirmed: bool = True) -> None:
        """Commit the unit.

        Args:
            confirmed: False if nobody needs to know whether the broker has noted the acknowledgements.

        Raises:
            TransactionRolledBackError: It did not happen.
            TransactionInDoubtError: It may or may not have happened.
            ConnectionLostError: The connection was gone before; nothing happened.
        """
        try:
            self.unit.commit(confirmed=confirmed)
        except JMSError as error:
            self._end(_outcome(error))
            raise
        except BaseException:  # of a signal handler, say
            self._end(Outcome.IN_DOUBT)
            raise
        self._end(Outcome.COMMITTED)

    def rollback(self) -> None:
        """Roll the unit back; what it took comes again, counted."""
        try:
            self.unit.rollback()
        except JMSError as error:
            self._end(_outcome(error))
            raise
        except BaseException:
            self._end(Outcome.LOST)
            raise
        self._end(Outcome.ROLLED_BACK)

    def mark_lost(self) -> None:
        """Let it be lost if it has no outcome: it is given up without a word of the provider."""
        if self.outcome is None:
            self._end(Outcome.LOST)

    def acknowledge(self) -> Settlement:
        """Nothing to do: the unit's end acknowledges.

        Raises:
            IllegalStateError: The session is closed (JMS 3.1, section 6.2.15).
        """
        if self._lock is not None:
            self._lock.check_open()
        return self.settlement

    def set_rollback_only(self) -> None:
        """Let the unit end in a rollback."""
        if self.outcome is not None:
            raise IllegalStateError(f"The unit of this message is settled already: {self.outcome.value}.")
        self.rollback_only = True

    def _end(self, outcome: Outcome) -> None:
        with self._ending:
            self.outcome = outcome
            waiting = self._settlement
        if waiting is not None:
            complete_settlement(waiting, outcome)


def _outcome(error: JMSError) -> Outcome:
    if isinstance(error, TransactionInDoubtError):
        return Outcome.IN_DOUBT
    return Outcome.LOST if isinstance(error, ConnectionLostError) else Outcome.ROLLED_BACK


class PrefetchOwner(Protocol):
    """Whom a delivery came from: a consumer that takes messages ahead."""

    def discard_prefetched(self) -> None:
        """Forget what was taken ahead: to keep the order, a rollback has taken it back."""
        ...

    def return_prefetched(self) -> None:
        """Let what was taken ahead come again, if it did not go back already."""
        ...


class CurrentUnit:
    """One unit after the other.

    Args:
        begin: Opens the next one.
        context: What the messages of a unit are bound to, told the unit and this; None for the unit.

    Attributes:
        unit: The unit that is open; None before anything belongs to it.
    """

    def __init__(
        self,
        begin: Callable[[], UnitOfWork],
        context: "Callable[[UnitOfWork, CurrentUnit], DeliveryContext] | None" = None,
    ) -> None:
        self._begin = begin
        self._context = context
        self._bound_to: DeliveryContext | None = None
        self._sources: set[PrefetchOwner] = set()
        self.unit: UnitOfWork | None = None

    def get_or_begin(self) -> UnitOfWork:
        """Give the unit that is open, or open one."""
        if self.unit is None:
            unit = self._begin()
            self._bound_to = self._context and self._context(unit, self)
            self.unit = unit
        return self.unit

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Make a delivery part of the unit.

        Args:
            delivery: What was received.
            source: Whom from.

        Raises:
            MessageFormatError: The message cannot be decoded; its delivery is part of the unit all the same.
        """
        unit = self.unit or self.get_or_begin()
        self._sources.add(source)
        return unit.take(delivery, self._bound_to)

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send."""
        self.get_or_begin().send(message, to)

    def commit(self, *, confirmed: bool = True) -> None:
        """Commit, if anything belongs to the unit. ``confirmed`` is that of `WorkUnit.commit`."""
        self._end(lambda unit: unit.commit(confirmed=confirmed))

    def rollback(self) -> None:
        """Roll back, if anything belongs to the unit."""
        self._end(UnitOfWork.rollback)

    def _end(self, how: Callable[[UnitOfWork], None]) -> None:
        unit, self.unit, self._bound_to = self.unit, None, None  # nothing of it stays with who has come to its end
        sources, self._sources = self._sources, set()
        if unit is None:
            return
        try:
            how(unit)
        finally:
            for source in sources:
                if unit.outcome is Outcome.ROLLED_BACK:
                    source.discard_prefetched()
                elif unit.outcome is Outcome.IN_DOUBT:  # what it took may have gone back, and all behind that with it
                    source.return_prefetched()
