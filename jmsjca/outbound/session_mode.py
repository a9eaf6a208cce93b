"""Session modes: the acknowledge modes (JMS 3.1, section 6.2.10), transacted, and a listener's transaction."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar, NoReturn

from jmsjca import spi
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, NotSupportedError, TransactionRolledBackError
from jmsjca.messages.delivery import bind_delivery
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome, Settlement, complete_settlement
from jmsjca.outbound.session_lock import SessionLock
from jmsjca.outbound.unit_of_work import CurrentUnit, PrefetchOwner, UnitOfWork

__all__ = ["ListenerTransaction", "SessionMode", "SessionTransacted", "session_mode_of"]


class SessionMode(ABC):
    """How a session settles what it receives and sends (JMS 3.1, sections 6.2.7 and 6.2.10).

    The methods here are those of an acknowledge mode; the transacted modes override them.

    Args:
        connection: The provider's connection.

    Attributes:
        transacted: True if sends and receipts belong to a transaction.
        automatic: True if a message is acknowledged because `receive` returns it.
        order: The order in which deliveries are settled.
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
        """Return the message of a delivery, acknowledged as the mode says.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """

    def send(self, message: Message, to: Destination) -> None:
        """Send a message at once."""
        unit = self._connection.unit(atomic=False)  # one send needs no atomicity
        unit.send(message, to)
        unit.commit()

    def on_prefetch_empty(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Complete postponed work before a consumer asks the broker for more messages."""

    def acknowledge(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Acknowledge all received messages if the client has to; no effect in other modes."""

    def check_receives(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Raise an error if the session cannot have consumers."""

    def check_commits(self) -> None:
        """Raise an error if the session cannot commit or roll back.

        Raises:
            IllegalStateError: The session is not transacted, or its transaction belongs to a listener.
        """
        raise IllegalStateError("This session is not transacted: create_session(transacted=True).")

    def commit(self) -> None:
        """Commit the open transaction."""
        self.check_commits()

    def rollback(self) -> None:
        """Roll back the open transaction."""
        self.check_commits()

    @abstractmethod
    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged."""

    @abstractmethod
    def close(self) -> None:
        """End the open unit. Idempotent."""


class SessionTransacted(SessionMode):
    """One transaction after the other, each with all receipts and sends (JMS 3.1, section 6.2.7).

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
        """Return the message; its delivery belongs to the transaction."""
        return self._current.take(delivery, source)

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the transaction; the commit sends it."""
        self._current.send(message, to)

    def check_commits(self) -> None:
        """Do nothing: the session can commit."""

    def commit(self) -> None:
        """Acknowledge and send together.

        Raises:
            TransactionRolledBackError: ``set_rollback_only()`` was called on a message of the transaction.
        """
        if (unit := self._current.unit) is not None and unit.rollback_only:
            self._current.rollback()
            raise TransactionRolledBackError(
                "The unit was rolled back: one of its messages demanded it (set_rollback_only)."
            )
        self._current.commit()

    def rollback(self) -> None:
        """Discard the sends and request redelivery of the received messages."""
        self._current.rollback()

    def recover(self) -> None:
        """Raise an error: a transacted session is recovered by its rollback."""
        raise IllegalStateError("A transacted session is recovered by rollback(), not by recover().")

    def close(self) -> None:
        """Roll back the open transaction (JMS 3.1, section 6.2.15)."""
        self._current.rollback()


class ListenerTransaction(SessionMode):
    """Sends in the unit of a delivery, which the listener settles.

    Args:
        connection: The provider's connection.
        unit: The unit of the delivery.
    """

    transacted: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection, unit: UnitOfWork) -> None:
        super().__init__(connection)
        self._unit = unit

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> NoReturn:
        """Raise an error: only the listener receives."""
        del delivery, source
        raise _belongs_to_delivery()

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the unit of the delivery."""
        self._unit.send(message, to)

    def check_receives(self) -> None:
        """Raise an error: only the listener receives."""
        raise IllegalStateError("The session of a listener sends; it does not consume. Open a connection of your own.")

    def check_commits(self) -> None:
        """Raise an error: the handler's return commits."""
        raise _belongs_to_delivery()

    def recover(self) -> None:
        """Raise an error: the handler's exception rolls back."""
        raise _belongs_to_delivery()

    def close(self) -> None:
        """Do nothing: the listener settles the unit."""


def _belongs_to_delivery() -> IllegalStateError:
    return IllegalStateError(
        "This session belongs to a delivery: the handler's return commits, its exception rolls back."
    )


class _AcknowledgeContext:
    """Base of the contexts that messages of a session with an acknowledge mode are bound to."""

    __slots__ = ()

    endpoint: None = None  # the messages of a session belong to no listener
    rollback_only: bool = False

    def set_rollback_only(self) -> None:
        """Raise an error: there is no transaction to roll back."""
        raise IllegalStateError(
            "A session that is not transacted has nothing to roll back; recover() requests redelivery."
        )


class _AcknowledgedContext(_AcknowledgeContext):
    """Context of all messages that were acknowledged before `receive` returned them."""

    __slots__ = ("_lock", "_settlement")

    def __init__(self, lock: SessionLock) -> None:
        self._lock = lock
        self._settlement = Settlement()
        complete_settlement(self._settlement, Outcome.COMMITTED)

    def acknowledge(self) -> Settlement:
        """Return the settlement: the message is acknowledged already.

        Raises:
            IllegalStateError: The session is closed (JMS 3.1, section 6.2.15).
        """
        self._lock.check_open()
        return self._settlement


class _PendingContext(_AcknowledgeContext):
    """Context of a message that is not acknowledged yet."""

    __slots__ = ("_acknowledge", "_lock", "_unit")

    def __init__(self, unit: UnitOfWork, lock: SessionLock, acknowledge: Callable[[], None]) -> None:
        self._unit = unit
        self._lock = lock
        self._acknowledge = acknowledge

    def acknowledge(self) -> Settlement:
        """Acknowledge as the mode says. Idempotent."""
        with self._lock:
            self._acknowledge()
        return self._unit.settlement


def session_mode_of(mode: AcknowledgeMode, connection: spi.Connection) -> SessionMode:
    """Return the session mode for an acknowledge mode.

    Args:
        mode: The acknowledge mode.
        connection: The provider's connection.
    """
    return _MODES[mode](connection)


class AutoAcknowledge(SessionMode):
    """Acknowledges each message before `receive` returns it."""

    automatic: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        self._acknowledged = _AcknowledgedContext(self.lock)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Acknowledge the delivery. A message that cannot be decoded is redelivered instead, and counted."""
        unit = self._connection.unit(atomic=False)  # not a `CurrentUnit`: its bookkeeping would cost half as much again
        try:
            unit.take([delivery])
            message = delivery.message
            unit.commit(confirmed=False)  # if the acknowledgement is lost, the message is redelivered, as JMS allows
        except BaseException:  # also of a signal handler: the caller has not got the message
            with suppress(JMSError):
                unit.rollback()  # if it has not ended
            source.return_prefetched()
            raise
        bind_delivery(message, self._acknowledged)
        return message

    def recover(self) -> None:
        """Do nothing: no message is pending."""

    def close(self) -> None:
        """Do nothing: no message is pending."""


class DupsOkAcknowledge(AutoAcknowledge):
    """Acknowledges all returned messages when a consumer asks the broker for more, and when the session closes."""

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        lock = self.lock
        self._current = CurrentUnit(
            partial(UnitOfWork.begin, connection, lock, sends=False),
            lambda unit, _: _PendingContext(unit, lock, _acknowledged_later),
        )

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message, to be acknowledged later."""
        try:
            delivery.message  # noqa: B018  # decoded here to keep an undecodable message out of the unit
        except MessageFormatError:
            self.on_prefetch_empty()
            return super().take(delivery, source)
        return self._current.take(delivery, source)

    def on_prefetch_empty(self) -> None:
        """Acknowledge all returned messages."""
        self._current.commit(confirmed=False)

    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged; they are counted."""
        self._current.rollback()

    def close(self) -> None:
        """Acknowledge all returned messages: the client has processed them."""
        self._current.commit()


class ClientAcknowledge(SessionMode):
    """`Message.acknowledge` acknowledges all messages that the session has received, from all of its consumers."""

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        lock = self.lock
        self._current = CurrentUnit(
            partial(UnitOfWork.begin, connection, lock),
            lambda unit, current: _PendingContext(unit, lock, current.commit),
        )

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message, pending until any message of the session is acknowledged."""
        return self._current.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all received messages."""
        self._current.commit()

    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged; they are counted."""
        self._current.rollback()

    def close(self) -> None:
        """Request redelivery of pending messages: closing does not acknowledge (JMS 3.1, section 6.2.15)."""
        self._current.rollback()


class IndividualAcknowledge(SessionMode):
    """`Message.acknowledge` acknowledges that one message."""

    order: ClassVar[spi.Order] = spi.Order.MIXED

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        self._pending: dict[UnitOfWork, CurrentUnit] = {}  # in order of receipt

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message, pending until it is acknowledged."""
        current = CurrentUnit(partial(UnitOfWork.begin, self._connection, self.lock), self._pending_context)
        self._pending[current.get_or_begin()] = current
        return current.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all received messages."""
        for unit in list(self._pending):
            self._settle(unit)

    def recover(self) -> None:
        """Request redelivery of all pending messages, counted, in reverse order of receipt, which keeps their order."""
        while self._pending:
            _, current = self._pending.popitem()
            current.rollback()

    def close(self) -> None:
        """Request redelivery of pending messages: closing does not acknowledge."""
        self.recover()

    def _pending_context(self, unit: UnitOfWork, current: CurrentUnit) -> _PendingContext:
        del current
        return _PendingContext(unit, self.lock, partial(self._settle, unit))

    def _settle(self, unit: UnitOfWork) -> None:
        if current := self._pending.pop(unit, None):
            current.commit()


def _acknowledged_later() -> None:
    """Do nothing: the mode acknowledges by itself, later."""


_MODES: dict[AcknowledgeMode, Callable[[spi.Connection], SessionMode]] = {
    AcknowledgeMode.AUTO: AutoAcknowledge,
    AcknowledgeMode.DUPS_OK: DupsOkAcknowledge,
    AcknowledgeMode.CLIENT: ClientAcknowledge,
    AcknowledgeMode.INDIVIDUAL: IndividualAcknowledge,
}
