"""The mode of sessions under a transaction manager: they take part in the transaction in which the caller is."""

from collections.abc import Callable
from contextlib import suppress

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, JMSError
from jmsjca.hooks import AroundCommit
from jmsjca.messages.message import Message
from jmsjca.outbound.session_mode import MessageListener, SessionMode
from jmsjca.outbound.unit_of_work import CurrentUnit, Enlistment, JoinedUnit, PrefetchOwner

__all__ = ["ManagedMode"]


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
        self._joined: JoinedUnit | None = None

    @property
    def defers_sends(self) -> bool:
        """True in the caller's transaction, which the session joins, and for a transacted session outside of one."""
        return self._unit() is not None or self._outside.defers_sends

    def note(self, message: Message, to: Destination, around: AroundCommit) -> None:
        """Record a sent message for hooks, in the caller's transaction or in that of the other mode."""
        unit = self._unit()
        if unit is None:
            self._outside.note(message, to, around)
        else:
            unit.get_or_begin().note(message, to, around)

    def take(self, delivery: spi.Delivery, source: PrefetchOwner) -> Message:
        """Return the message of a delivery, which belongs to the caller's transaction, if any."""
        try:
            unit = self._unit()
        except BaseException:
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
            raise _forbidden("An asynchronous send")
        unit = self._unit()
        if unit is None:
            return self._outside.begin_send(message, to)
        unit.send(message, to)
        return _sent_by_the_commit

    def deliver(self, delivery: spi.Delivery, source: PrefetchOwner, listener: MessageListener) -> None:
        """Pass the message to a message listener, outside of transactions: it runs on a thread of its own."""
        self._check_over()
        self._outside.deliver(delivery, source, listener)

    def on_prefetch_empty(self) -> None:
        """Complete postponed work of the other mode."""
        self._outside.on_prefetch_empty()

    def acknowledge(self) -> None:
        """Acknowledge what was received outside of transactions."""
        self._outside.acknowledge()

    def check_listens(self) -> None:
        """Raise an error if ``JMSJCA.Strict`` forbids message listeners."""
        if self._strict:
            raise _forbidden("A message listener")

    def check_commits(self) -> None:
        """Raise an error in a transaction that the sessions cannot end."""
        if self._is_inside() and not self._enlistment.emulates:
            raise IllegalStateError(
                "The session takes part in a transaction of the transaction manager: commit or roll back that one. Its "
                "commit settles what the session has received, and sends its messages."
            )
        if not self._is_inside():
            self._outside.check_commits()

    def check_idle(self) -> None:
        """Raise an error if something waits for its commit or acknowledgement."""
        self._outside.check_idle()

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
        self.check_commits()
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
                self._outside.check_idle()
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


def _forbidden(what: str) -> IllegalStateError:
    return IllegalStateError(f"{what} is forbidden in a container of Jakarta EE, which JMSJCA.Strict keeps to.")
