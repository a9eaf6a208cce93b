"""Session modes: how a session settles, transacted, by acknowledge mode, or under a transaction manager."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar, NoReturn

from jmsjca import spi
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError, NotSupportedError, TransactionRolledBackError
from jmsjca.hooks import AroundCommit
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import Outcome, Settlement, bind_delivery, complete_settlement
from jmsjca.messages.message import Message
from jmsjca.outbound.unit_of_work import (
    CurrentUnit,
    Enlistment,
    JoinedUnit,
    PrefetchOwner,
    SessionLock,
    SessionMember,
    UnitOfWork,
    aborts_if_interrupted,
)

__all__ = [
    "ListenerTransaction",
    "ManagedMode",
    "MessageListener",
    "SessionMode",
    "SessionTransacted",
    "session_mode_of",
]

logger = get_logger("jmsjca.outbound")


MessageListener = Callable[[Message], object]
"""Called with each message of a consumer (JMS 3.1, section 8.7)."""


class SessionMode(ABC):
    """How a session settles what it receives and sends (JMS 3.1, sections 6.2.7 and 6.2.10).

    The methods of this class implement the acknowledge modes. The transacted modes override them.

    Args:
        connection: The provider's connection.

    Attributes:
        transacted: True if sends and receipts belong to a transaction.
        automatic: True if a message is acknowledged because `receive` returns it.
        order: The order in which deliveries are settled.
        no_consumers: The error of a session that cannot have consumers; empty if it can.
        no_listeners: The error of a session that cannot have message listeners; empty if it can.
        lock: Entered for every use of the session.
        listening: True while consumers of the session have message listeners.
    """

    transacted: ClassVar[bool] = False
    automatic: bool = False
    order: spi.Order = spi.Order.PREFIX
    no_consumers: ClassVar[str] = ""
    no_listeners: str = ""

    def __init__(self, connection: spi.Connection) -> None:
        self._connection = connection
        self.lock = SessionLock()
        self.listening = False

    @abstractmethod
    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message of a delivery, acknowledged as the mode says.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """

    @property
    def defers_sends(self) -> bool:
        """True if a send now only adds the message to a unit: its commit sends it."""
        return self.transacted

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:  # noqa: B027  # others send at once
        """Record a sent message for hooks, where sends are deferred; see `UnitOfWork.note`."""

    def send(self, message: Message, to: Destination) -> None:
        """Send a message at once."""
        unit = self._connection.unit(atomic=False)  # one send needs no atomicity
        unit.send(message, to)
        unit.commit()

    def begin_send(self, message: Message, to: Destination) -> Callable[[], None]:
        """Begin to send a message at once; return a function that waits until it is sent, and raises as `send`."""
        unit = self._connection.unit(atomic=False)
        unit.send(message, to)
        return unit.start_commit()

    def deliver(self, delivery: spi.Delivery, source: PrefetchOwner, listener: MessageListener) -> None:
        """Pass the message of a delivery to a message listener; an exception leaves it received (section 8.7).

        Raises:
            MessageFormatError: The message cannot be decoded.
            Exception: Raised by the listener.
        """
        listener(self.take(delivery, source))

    def on_prefetch_empty(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Complete postponed work before a consumer asks the broker for more messages."""

    def acknowledge(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Acknowledge all received messages if the client has to; no effect in other modes."""

    @property
    def unfinished(self) -> str:
        """Why the session cannot join a transaction: something waits for its commit or acknowledgement. Else empty."""
        return ""

    @property
    def no_commits(self) -> str:
        """Why the session cannot commit or roll back; empty if it can."""
        return "This session is not transacted: create_session(transacted=True)."

    def commit(self) -> None:
        """Commit the open transaction."""
        raise IllegalStateError(self.no_commits)

    def rollback(self) -> None:
        """Roll back the open transaction."""
        raise IllegalStateError(self.no_commits)

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
        self._uncommitted_sends = 0

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a sent message of the transaction for hooks."""
        self._current.get_or_begin().note(message, to, around)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message; its delivery belongs to the transaction."""
        return self._current.take(delivery, source)

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the transaction; the commit sends it."""
        self._current.send(message, to)
        self._uncommitted_sends += 1

    def begin_send(self, message: Message, to: Destination) -> Callable[[], None]:
        """Add the message to the transaction, which is all that a send in a transaction does."""
        self._current.send(message, to)
        return _sent_already

    @property
    def no_commits(self) -> str:
        """Empty: the session can commit."""
        return ""

    @property
    def unfinished(self) -> str:
        """Not empty in an open transaction to which something belongs."""
        return _OPEN if self._current.unit is not None else ""

    def commit(self) -> None:
        """Acknowledge and send together.

        Raises:
            TransactionRolledBackError: ``set_rollback_only()`` was called on a message of the transaction.
        """
        self._uncommitted_sends = 0
        if (unit := self._current.unit) is not None and unit.rollback_only:
            self._current.rollback()
            raise TransactionRolledBackError(
                "The unit was rolled back: one of its messages demanded it (set_rollback_only)."
            )
        self._current.commit()

    def rollback(self) -> None:
        """Discard the sends and request redelivery of the received messages."""
        self._uncommitted_sends = 0
        self._current.rollback()

    def recover(self) -> None:
        """Raise an error: a transacted session is recovered by its rollback."""
        raise IllegalStateError("A transacted session is recovered by rollback(), not by recover().")

    def close(self) -> None:
        """Roll back the open transaction (JMS 3.1, section 6.2.15). Discarded sends are logged."""
        if self._uncommitted_sends:
            logger.warning(
                "A transacted session was closed before the commit of %d sent message(s), which are discarded: call "
                "commit() first, or send within 'with session.transaction()'.",
                self._uncommitted_sends,
            )
        self.rollback()


class ListenerTransaction(SessionMode):
    """Sends in the unit of a delivery, which the listener settles.

    Args:
        connection: The provider's connection.
        unit: The unit of the delivery.
        atomic: As for `UnitOfWork.send`.
    """

    transacted: ClassVar[bool] = True
    no_consumers = "The session of a listener sends; it does not consume. Open a connection of your own."

    def __init__(self, connection: spi.Connection, unit: UnitOfWork, *, atomic: bool = True) -> None:
        super().__init__(connection)
        self._unit = unit
        self._atomic = atomic

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a message that the handler has sent for hooks."""
        with self._unit.sending:
            self._unit.note(message, to, around)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> NoReturn:
        """Raise an error: only the listener receives."""
        del delivery, source
        raise IllegalStateError(_BELONGS_TO_DELIVERY)

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the unit of the delivery."""
        with self._unit.sending:
            self._unit.send(message, to, atomic=self._atomic)
            self._unit.sends += 1

    def begin_send(self, message: Message, to: Destination) -> NoReturn:
        """Raise an error: JMS does not permit asynchronous sends in a container (section 7.3.5)."""
        del message
        raise NotSupportedError(
            f"A send to {to} in the unit of a delivery is not asynchronous: it is sent when the handler has returned "
            "(JMS 3.1, section 7.3.5). Call send() without on_completion, or send with a session of your own."
        )

    @property
    def no_commits(self) -> str:
        """The handler's return commits."""
        return _BELONGS_TO_DELIVERY

    def recover(self) -> None:
        """Raise an error: the handler's exception rolls back."""
        raise IllegalStateError(_BELONGS_TO_DELIVERY)

    def close(self) -> None:
        """Do nothing: the listener settles the unit."""


def _sent_already() -> None:
    """Do nothing: a send in a transaction has nothing to wait for before the commit."""


_BELONGS_TO_DELIVERY = "This session belongs to a delivery: the handler's return commits, its exception rolls back."
_OPEN = (
    "The session has received or sent in a transaction of its own, which is open: commit() or rollback() it before a "
    "transaction of the transaction manager begins."
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


class _PendingContext(SessionMember, _AcknowledgeContext):
    """Context of a message that is not acknowledged yet."""

    __slots__ = ("_acknowledge", "_lock", "_unit")

    _lock: SessionLock

    def __init__(self, unit: UnitOfWork, lock: SessionLock, acknowledge: Callable[[], None]) -> None:
        self._unit = unit
        self._lock = lock
        self._acknowledge = acknowledge

    @aborts_if_interrupted
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

    automatic = True

    def __init__(self, connection: spi.Connection) -> None:
        super().__init__(connection)
        self._acknowledged = _AcknowledgedContext(self.lock)
        self._delivering = self._recovered = False  # to a message listener

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Acknowledge the delivery. A message that cannot be decoded is redelivered instead, and counted."""
        unit = self._connection.unit(atomic=False)  # not a `CurrentUnit`: its bookkeeping would cost half as much again
        try:
            unit.take([delivery])
            message = delivery.message
            unit.commit(confirmed=False)  # if the acknowledgement is lost, the message is redelivered, as JMS allows
        except JMSError:
            _redeliver(unit, source)  # if it has not ended
            raise
        bind_delivery(message, self._acknowledged)
        return message

    def deliver(self, delivery: spi.Delivery, source: PrefetchOwner, listener: MessageListener) -> None:
        """Pass the message to a listener, and acknowledge it after the listener has returned.

        After an exception, or if the listener called `recover`, the message is redelivered at once, and counted.
        """
        unit = self._connection.unit(atomic=False)
        unit.take([delivery])
        self._delivering, self._recovered = True, False
        returned = False
        try:
            message = delivery.message
            bind_delivery(message, self._acknowledged)
            listener(message)
            returned = True
        finally:
            self._delivering = False
            if self._recovered or not returned:
                _redeliver(unit, source)
        if not self._recovered:
            unit.commit(confirmed=False)

    def recover(self) -> None:
        """Request redelivery of the message that a listener has received and not finished, if any."""
        self._recovered = self._delivering

    def close(self) -> None:
        """Do nothing: no message is pending."""


def _redeliver(unit: spi.Unit, source: PrefetchOwner) -> None:
    """Roll a unit back, and release what its consumer has prefetched after it."""
    with suppress(JMSError):  # on a lost connection the broker redelivers by itself
        unit.rollback()
    source.return_prefetched()


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
        super().recover()
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

    @property
    def unfinished(self) -> str:
        """Not empty if received messages are not acknowledged."""
        return _NOT_ACKNOWLEDGED if self._current.unit is not None else ""

    def recover(self) -> None:
        """Request redelivery of all messages that are not acknowledged; they are counted."""
        self._current.rollback()

    def close(self) -> None:
        """Request redelivery of pending messages: closing does not acknowledge (JMS 3.1, section 6.2.15)."""
        self._current.rollback()


class IndividualAcknowledge(SessionMode):
    """`Message.acknowledge` acknowledges that one message."""

    order = spi.Order.MIXED

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

    @property
    def unfinished(self) -> str:
        """Not empty if received messages are not acknowledged."""
        return _NOT_ACKNOWLEDGED if self._pending else ""

    def close(self) -> None:
        """Request redelivery of pending messages: closing does not acknowledge."""
        self.recover()

    def _pending_context(self, unit: UnitOfWork, current: CurrentUnit) -> _PendingContext:
        del current
        return _PendingContext(unit, self.lock, partial(self._settle, unit))

    def _settle(self, unit: UnitOfWork) -> None:
        if current := self._pending.pop(unit, None):
            current.commit()


_NOT_ACKNOWLEDGED = (
    "Messages that the session has received are not acknowledged: acknowledge() or recover() before the session is "
    "used in a transaction of the transaction manager."
)


def _acknowledged_later() -> None:
    """Do nothing: the mode acknowledges by itself, later."""


_MODES: dict[AcknowledgeMode, Callable[[spi.Connection], SessionMode]] = {
    AcknowledgeMode.AUTO: AutoAcknowledge,
    AcknowledgeMode.DUPS_OK: DupsOkAcknowledge,
    AcknowledgeMode.CLIENT: ClientAcknowledge,
    AcknowledgeMode.INDIVIDUAL: IndividualAcknowledge,
}


class ManagedMode(SessionMode):
    """Receives and sends in the caller's transaction; outside of one, as another mode does.

    Args:
        connection: The provider's connection.
        outside: The mode outside of transactions.
        enlistment: Joins the sessions of the connection to transactions.
        strict: True to refuse what Jakarta EE forbids in its containers (``JMSJCA.Strict``).
    """

    def __init__(
        self, connection: spi.Connection, outside: SessionMode, enlistment: Enlistment, *, strict: bool = False
    ) -> None:
        super().__init__(connection)
        self.lock = outside.lock
        self.automatic, self.order = outside.automatic, outside.order
        self._outside = outside
        self._enlistment = enlistment
        self._strict = strict
        self.no_listeners = _FORBIDDEN.format("A message listener") if strict else ""
        self._joined: JoinedUnit | None = None

    @property
    def defers_sends(self) -> bool:
        """True in the caller's transaction, which the session joins, and for a transacted session outside of one."""
        return self._unit() is not None or self._outside.defers_sends

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a sent message for hooks, in the caller's transaction; outside of one, in the other mode."""
        unit = self._unit()
        if unit is None:
            self._outside.note(message, to, around)
        else:
            unit.get_or_begin().note(message, to, around)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message of a delivery, which belongs to the caller's transaction, if any."""
        try:
            unit = self._unit()
        except Exception:  # also of the transaction manager
            self._return(delivery, source)
            raise
        return self._outside.take(delivery, source) if unit is None else unit.take(delivery, source)

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the caller's transaction, if any; else send it."""
        unit = self._unit()
        if unit is None:
            self._outside.send(message, to)
        else:
            unit.send(message, to)

    def begin_send(self, message: Message, to: Destination) -> Callable[[], None]:
        """Add the message to the caller's transaction, if any; else begin to send it.

        Raises:
            IllegalStateError: Jakarta EE forbids asynchronous sends, and ``JMSJCA.Strict`` is in force.
        """
        if self._strict:
            raise IllegalStateError(_FORBIDDEN.format("An asynchronous send"))
        unit = self._unit()
        if unit is None:
            return self._outside.begin_send(message, to)
        unit.send(message, to)
        return _sent_by_the_commit

    def deliver(self, delivery: spi.Delivery, source: PrefetchOwner, listener: MessageListener) -> None:
        """Pass the message to a message listener, outside of transactions: the listener runs on a separate thread."""
        self._check_over()
        self._outside.deliver(delivery, source, listener)

    def on_prefetch_empty(self) -> None:
        """Complete postponed work of the other mode."""
        self._outside.on_prefetch_empty()

    def acknowledge(self) -> None:
        """Acknowledge what was received outside of transactions."""
        self._outside.acknowledge()

    @property
    def no_commits(self) -> str:
        """Not empty in a transaction that the sessions cannot end; outside of one as the other mode has it."""
        if not self._is_inside():
            return self._outside.no_commits
        return "" if self._enlistment.emulates else _IN_TRANSACTION

    def commit(self) -> None:
        """Commit outside of transactions; in one, with ``JMSJCA.NoXA`` only, what the connection did in it so far."""
        self._end(self._outside.commit, CurrentUnit.commit)

    def rollback(self) -> None:
        """Roll back, as `commit` commits."""
        self._end(self._outside.rollback, CurrentUnit.rollback)

    def recover(self) -> None:
        """Request redelivery of what is not acknowledged, outside of transactions."""
        if self._is_inside():
            raise IllegalStateError("In a transaction, received messages are redelivered by its rollback.")
        self._outside.recover()

    def close(self) -> None:
        """End the work outside of transactions. The end of a transaction ends the work that belongs to it."""
        self._outside.close()

    def _end(self, outside: Callable[[], None], inside: Callable[[CurrentUnit], None]) -> None:
        if text := self.no_commits:
            raise IllegalStateError(text)
        if not self._is_inside():
            outside()
        elif (unit := self._unit()) is not None:
            inside(unit)

    def _unit(self) -> CurrentUnit | None:
        """Return the receipts and sends of the caller's transaction, which the session joins; None outside of one."""
        unit = self._enlistment.unit()
        if unit is not self._joined:
            self._check_over()
            if unit is not None:
                self._outside.on_prefetch_empty()
                if text := self._outside.unfinished:
                    raise IllegalStateError(text)
            self._joined = unit
        return None if unit is None else unit.current

    def _is_inside(self) -> bool:
        return (self._joined is not None and not self._joined.is_over) or self._enlistment.is_inside

    def _check_over(self) -> None:
        if self._joined is not None and not self._joined.is_over:
            raise IllegalStateError(
                "The session has joined a transaction that is still open: commit it or roll it back before the session "
                "is used outside of it, or use another session."
            )

    def _return(self, delivery: spi.Delivery, source: PrefetchOwner) -> None:
        """Release a delivery that no unit takes, and what its consumer has prefetched after it."""
        unit = self._connection.unit(atomic=False)
        unit.take([delivery])
        with suppress(JMSError):  # on a lost connection the broker redelivers by itself
            unit.rollback()
        source.return_prefetched()


def _sent_by_the_commit() -> None:
    """Do nothing: a send in a transaction has nothing to wait for before the commit."""


_IN_TRANSACTION = (
    "The session takes part in a transaction of the transaction manager: commit or roll back that one. Its commit "
    "settles what the session has received, and sends its messages."
)
_FORBIDDEN = "{} is forbidden in a container of Jakarta EE, which JMSJCA.Strict keeps to."
