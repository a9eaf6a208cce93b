"""Session modes of sessions that are not transacted: the acknowledge modes (JMS 3.1, section 6.2.10)."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from jmsjca import spi
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.errors import IllegalStateError, JMSError, MessageFormatError
from jmsjca.messages.delivery import bind_delivery
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome, Settlement, complete_settlement
from jmsjca.outbound.session_lock import SessionLock
from jmsjca.outbound.session_mode import MessageListener, SessionMode
from jmsjca.outbound.unit_of_work import CurrentUnit, PrefetchOwner, UnitOfWork

__all__ = ["session_mode_of"]


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
        except BaseException:  # also of a signal handler: the caller has not got the message
            with suppress(JMSError):
                unit.rollback()  # if it has not ended
            source.return_prefetched()
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
        try:
            message = delivery.message
            bind_delivery(message, self._acknowledged)
            listener(message)
        except BaseException:
            _redeliver(unit, source)
            raise
        finally:
            self._delivering = False
        if self._recovered:
            _redeliver(unit, source)
        else:
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

    def check_idle(self) -> None:
        """Acknowledge all returned messages, so that nothing waits."""
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

    def check_idle(self) -> None:
        """Raise an error if received messages are not acknowledged."""
        if self._current.unit is not None:
            raise _not_acknowledged()

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

    def check_idle(self) -> None:
        """Raise an error if received messages are not acknowledged."""
        if self._pending:
            raise _not_acknowledged()

    def close(self) -> None:
        """Request redelivery of pending messages: closing does not acknowledge."""
        self.recover()

    def _pending_context(self, unit: UnitOfWork, current: CurrentUnit) -> _PendingContext:
        del current
        return _PendingContext(unit, self.lock, partial(self._settle, unit))

    def _settle(self, unit: UnitOfWork) -> None:
        if current := self._pending.pop(unit, None):
            current.commit()


def _not_acknowledged() -> IllegalStateError:
    return IllegalStateError(
        "Messages that the session has received are not acknowledged: acknowledge() or recover() before the session "
        "is used in a transaction of the transaction manager."
    )


def _acknowledged_later() -> None:
    """Do nothing: the mode acknowledges by itself, later."""


_MODES: dict[AcknowledgeMode, Callable[[spi.Connection], SessionMode]] = {
    AcknowledgeMode.AUTO: AutoAcknowledge,
    AcknowledgeMode.DUPS_OK: DupsOkAcknowledge,
    AcknowledgeMode.CLIENT: ClientAcknowledge,
    AcknowledgeMode.INDIVIDUAL: IndividualAcknowledge,
}
