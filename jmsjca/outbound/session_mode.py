"""Session modes: how a session settles; transacted sessions, and the transaction of a listener."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NoReturn

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, NotSupportedError, TransactionRolledBackError
from jmsjca.hooks import AroundCommit
from jmsjca.log_records import get_logger
from jmsjca.messages.message import Message
from jmsjca.outbound.session_lock import SessionLock
from jmsjca.outbound.unit_of_work import CurrentUnit, PrefetchOwner, UnitOfWork

__all__ = ["ListenerTransaction", "MessageListener", "SessionMode", "SessionTransacted"]


MessageListener = Callable[[Message], object]
"""Called with each message of a consumer (JMS 3.1, section 8.7)."""

logger = get_logger("jmsjca.outbound")


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
        listening: True while consumers of the session have message listeners.
    """

    transacted: ClassVar[bool] = False
    automatic: bool = False
    order: spi.Order = spi.Order.PREFIX

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

    def check_receives(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Raise an error if the session cannot have consumers."""

    def check_listens(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Raise an error if consumers of the session cannot have message listeners."""

    def check_idle(self) -> None:  # noqa: B027  # most modes have nothing to do
        """Raise an error if something waits for its commit or acknowledgement, and so keeps out of a transaction."""

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

    def check_commits(self) -> None:
        """Do nothing: the session can commit."""

    def check_idle(self) -> None:
        """Raise an error in an open transaction.

        Raises:
            IllegalStateError: Something belongs to it.
        """
        if self._current.unit is not None:
            raise IllegalStateError(
                "The session has received or sent in a transaction of its own, which is open: commit() or rollback() "
                "it before a transaction of the transaction manager begins."
            )

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
    """

    transacted: ClassVar[bool] = True

    def __init__(self, connection: spi.Connection, unit: UnitOfWork) -> None:
        super().__init__(connection)
        self._unit = unit

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a message that the handler has sent for hooks."""
        self._unit.note(message, to, around)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> NoReturn:
        """Raise an error: only the listener receives."""
        del delivery, source
        raise _belongs_to_delivery()

    def send(self, message: Message, to: Destination) -> None:
        """Add the message to the unit of the delivery."""
        self._unit.send(message, to)
        self._unit.sends += 1

    def begin_send(self, message: Message, to: Destination) -> NoReturn:
        """Raise an error: JMS does not permit asynchronous sends in a container (section 7.3.5)."""
        del message
        raise NotSupportedError(
            f"A send to {to} in the unit of a delivery is not asynchronous: it is sent when the handler has returned "
            "(JMS 3.1, section 7.3.5). Call send() without on_completion, or send with a session of your own."
        )

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


def _sent_already() -> None:
    """Do nothing: a send in a transaction has nothing to wait for before the commit."""


def _belongs_to_delivery() -> IllegalStateError:
    return IllegalStateError(
        "This session belongs to a delivery: the handler's return commits, its exception rolls back."
    )
