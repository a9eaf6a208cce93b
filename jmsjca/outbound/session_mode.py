"""Session modes: the acknowledge modes (JMS 3.1, section 6.2.10), transacted, and a listener's transaction."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar, NoReturn

from jmsjca import spi
from jmsjca.config import AcknowledgeMode
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, NotSupportedError, TransactionRolledBackError
from jmsjca.messages import Message, Outcome, Settlement
from jmsjca.messages.delivery import bind_delivery
from jmsjca.messages.settlement import complete_settlement
from jmsjca.outbound.session_lock import SessionLock
from jmsjca.outbound.unit_of_work import CurrentUnit, PrefetchOwner, UnitOfWork

__all__ = ["ListenerTransaction", "SessionMode", "SessionTransacted", "session_mode_of"]


class SessionMode(ABC):
    """One of the modes of JMS 3.1, sections 6.2.7 and 6.2.10; here what all have in common but the transacted ones.

    Args:
        connection: The provider's connection.

    Attributes:
        transacted: True if sends and receipts belong to a transaction.
        automatic: True if a message is acknowledged because `receive` returned it.
        order: In which order what was received is settled.
        lock: Entered for every use of the session.
    """

    transacted: ClassVar[bool] = False
    automatic: ClassVar[bool] = False
    order: ClassVar[spi.Order] = spi.Order.PREFIX

    def __init__(self, connection: spi.Connection) -> None:
        self._connection = connection
        self.lock = SessionLock()

    @abstractmethod
    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Hand a delivery over, acknowledged as the mode says.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """

    def send(self, message: Message, to: Destination) -> None:
        """Send at once."""
        unit = self._connection.unit(atomic=False)  # there is only one thing to do
        unit.send(message, to)
        unit.commit()

    def on_prefetch_empty(self) -> None:  # noqa: B027  # nothing, in most modes
        """Do what was put off until a consumer has nothing left to hand over."""

    def acknowledge(self) -> None:  # noqa: B027  # nothing, in most modes
        """Acknowledge what was received, where that is up to the client; no effect elsewhere."""

    def check_receives(self) -> None:  # noqa: B027  # nothing, in most modes
        """Refuse consumers, where somebody else receives."""

    def check_commits(self) -> None:
        """Refuse `commit` and `rollback` but in a transacted session.

        Raises:
            IllegalStateError: It has no transaction, or not one of its own.
        """
        raise IllegalStateError("This session is not transacted: create_session(transacted=True).")

    def commit(self) -> None:
        """Commit what is open."""
        self.check_commits()

    def rollback(self) -> None:
        """Roll back what is open."""
        self.check_commits()

    @abstractmethod
    def recover(self) -> None:
        """Let what was not acknowledged come again."""

    @abstractmethod
    def close(self) -> None:
        """End what is open. Closing twice does nothing."""


class SessionTransacted(SessionMode):
    """One transaction after the other, of all that is received and sent (JMS 3.1, section 6.2.7).

    Args:
        connection: The provider's connection.

    Raises:
        NotSupportedError: The broker has no transactions.
    """

    transacted: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        if not connection.capabilities.atomic:
            raise NotSupportedError(
                "A transacted session needs a broker that sends and acknowledges together or not at all; this one "
                "cannot (its capability atomic says so). Use an acknowledge mode instead."
            )
        self._current = CurrentUnit(partial(UnitOfWork.begin, connection, self.lock))

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Make the delivery part of the transaction."""
        return self._current.take(delivery, source)

    def send(self, message: Message, to: Destination) -> None:
        """Send with the commit."""
        self._current.send(message, to)

    def check_commits(self) -> None:
        """It does."""

    def commit(self) -> None:
        """Acknowledge and send, together."""
        if (unit := self._current.unit) is not None and unit.rollback_only:
            self._current.rollback()
            raise TransactionRolledBackError(
                "The unit was rolled back: one of its messages demanded it (set_rollback_only)."
            )
        self._current.commit()

    def rollback(self) -> None:
        """Forget what was sent, and let what was received come again."""
        self._current.rollback()

    def recover(self) -> None:
        """Refused: rollback recovers."""
        raise IllegalStateError("A transacted session is recovered by rollback(), not by recover().")

    def close(self) -> None:
        """Roll back what is open (JMS 3.1, section 6.2.15)."""
        self._current.rollback()


class ListenerTransaction(SessionMode):
    """Sends belong to a unit that somebody else settles: that of a listener's delivery.

    Args:
        connection: The provider's connection.
        unit: The unit.
    """

    transacted: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection, unit: UnitOfWork) -> None:
        super().__init__(connection)
        self._unit = unit

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> NoReturn:
        """Refused: the listener receives."""
        del delivery, source
        raise _refusal()

    def send(self, message: Message, to: Destination) -> None:
        """Send with the delivery's unit."""
        self._unit.send(message, to)

    def check_receives(self) -> None:
        """Refused: the listener receives."""
        raise IllegalStateError("The session of a listener sends; it does not consume. Open a connection of your own.")

    def check_commits(self) -> None:
        """Refused: the handler's return commits."""
        raise _refusal()

    def recover(self) -> None:
        """Refused: the handler's exception rolls back."""
        raise _refusal()

    def close(self) -> None:
        """Leave the unit to the listener."""


def _refusal() -> IllegalStateError:
    return IllegalStateError(
        "This session belongs to a delivery: the handler's return commits, its exception rolls back."
    )


class AcknowledgedContext:
    """What all messages of a session are bound to that are acknowledged before anybody has them."""

    __slots__ = ("_lock", "_settlement")

    endpoint: None = None  # a session delivers, no listener
    rollback_only: bool = False

    def __init__(self, lock: SessionLock) -> None:
        self._lock = lock
        self._settlement = Settlement()
        complete_settlement(self._settlement, Outcome.COMMITTED)

    def acknowledge(self) -> Settlement:
        """Nothing is to be done."""
        self._lock.check_open()
        return self._settlement

    def set_rollback_only(self) -> None:
        """Refused: there is no unit to roll back."""
        raise _not_transacted()


class PendingContext:
    """What a message that is not acknowledged yet is bound to."""

    __slots__ = ("_acknowledge", "_lock", "_unit")

    endpoint: None = None  # a session delivers, no listener
    rollback_only: bool = False

    def __init__(self, unit: UnitOfWork, lock: SessionLock, acknowledge: Callable[[], None]) -> None:
        self._unit = unit
        self._lock = lock
        self._acknowledge = acknowledge

    def acknowledge(self) -> Settlement:
        """Acknowledge as the mode says. Again is harmless."""
        with self._lock:
            self._acknowledge()
        return self._unit.settlement

    def set_rollback_only(self) -> None:
        """Refused: there is no unit to roll back."""
        raise _not_transacted()


def _not_transacted() -> IllegalStateError:
    return IllegalStateError(
        "A session that is not transacted has nothing to roll back; recover() lets messages come again."
    )


def session_mode_of(mode: AcknowledgeMode, connection: spi.Connection) -> SessionMode:
    """Make the mode of a session.

    Args:
        mode: Its name.
        connection: The provider's connection.
    """
    return _MODES[mode](connection)


class AutoAcknowledge(SessionMode):
    """Acknowledges each message as it is handed over."""

    automatic: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        self._handed_over = AcknowledgedContext(self.lock)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Acknowledge it; what cannot be decoded is not acknowledged and comes again, counted."""
        unit = self._connection.unit(atomic=False)  # not a `CurrentUnit`: its bookkeeping would cost half as much again
        try:
            unit.take([delivery])
            message = delivery.message
            unit.commit(confirmed=False)  # should it get lost, the message comes again, as JMS allows
        except BaseException:  # a signal handler's, too: nobody has seen the message
            with suppress(JMSError):
                unit.rollback()  # if it has not ended
            source.return_prefetched()
            raise
        bind_delivery(message, self._handed_over)
        return message

    def recover(self) -> None:
        """Nothing is left to come again."""

    def close(self) -> None:
        """Nothing is left to acknowledge."""


class DupsOkAcknowledge(AutoAcknowledge):
    """Acknowledges all that was handed over when a consumer has to ask the broker for more, and at the end."""

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        lock = self.lock
        self._current = CurrentUnit(
            partial(_plain, connection, lock), lambda unit, _: PendingContext(unit, lock, _nothing)
        )

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Note it, to be acknowledged later."""
        try:
            delivery.message  # noqa: B018  # decoded here, so that what cannot be stays out of the unit
        except MessageFormatError:
            self.on_prefetch_empty()
            return super().take(delivery, source)
        return self._current.take(delivery, source)

    def on_prefetch_empty(self) -> None:
        """Acknowledge what was handed over."""
        self._current.commit(confirmed=False)

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted."""
        self._current.rollback()

    def close(self) -> None:
        """Acknowledge what was handed over: the client has seen it."""
        self._current.commit()


class ClientAcknowledge(SessionMode):
    """`Message.acknowledge` acknowledges all that the session has received, whichever consumer it came from."""

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        lock = self.lock
        self._current = CurrentUnit(
            partial(UnitOfWork.begin, connection, lock),
            lambda unit, current: PendingContext(unit, lock, current.commit),
        )

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Keep it until a message of the session is acknowledged."""
        return self._current.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        self._current.commit()

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted."""
        self._current.rollback()

    def close(self) -> None:
        """Closing does not acknowledge (JMS 3.1, section 6.2.15): it comes again, counted."""
        self._current.rollback()


class IndividualAcknowledge(SessionMode):
    """`Message.acknowledge` acknowledges that message."""

    order: ClassVar[spi.Order] = spi.Order.MIXED

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        self._pending: dict[UnitOfWork, CurrentUnit] = {}  # in order of receipt

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Keep it until it is acknowledged."""
        current = CurrentUnit(partial(UnitOfWork.begin, self._connection, self.lock), self._pending_context)
        self._pending[current.get_or_begin()] = current
        return current.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        for unit in list(self._pending):
            self._settle(unit)

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted; the last goes back first, so that none overtakes."""
        while self._pending:
            _, current = self._pending.popitem()
            current.rollback()

    def close(self) -> None:
        """Closing does not acknowledge."""
        self.recover()

    def _pending_context(self, unit: UnitOfWork, current: CurrentUnit) -> PendingContext:
        del current
        return PendingContext(unit, self.lock, partial(self._settle, unit))

    def _settle(self, unit: UnitOfWork) -> None:
        if current := self._pending.pop(unit, None):
            current.commit()


def _plain(connection: spi.Connection, lock: SessionLock) -> UnitOfWork:
    """Open a unit that sends nothing."""
    return UnitOfWork(connection.unit(atomic=False), lock=lock)


def _nothing() -> None:
    """Acknowledged by itself, later."""


_MODES: dict[AcknowledgeMode, Callable[[spi.Connection], SessionMode]] = {
    AcknowledgeMode.AUTO: AutoAcknowledge,
    AcknowledgeMode.DUPS_OK: DupsOkAcknowledge,
    AcknowledgeMode.CLIENT: ClientAcknowledge,
    AcknowledgeMode.INDIVIDUAL: IndividualAcknowledge,
}
