"""Transacted sessions: those that commit, and that of a listener's delivery."""

from functools import partial
from typing import ClassVar, NoReturn

from jmsjca import spi
from jmsjca.destinations import Destination
from jmsjca.errors import IllegalStateError, NotSupportedError, TransactionRolledBackError
from jmsjca.messages import Message
from jmsjca.outbound.modes import Mode
from jmsjca.outbound.open_unit import OpenUnit, Source
from jmsjca.outbound.work import WorkUnit

__all__ = ["Joined", "Transacted"]


class Transacted(Mode):
    """One transaction after the other, of all that is received and sent (JMS 3.1, section 6.2.7).

    Args:
        link: The provider's connection.

    Raises:
        NotSupportedError: The broker has no transactions.
    """

    transacted: ClassVar[bool] = True

    def __init__(self, link: spi.Connection) -> None:
        super().__init__(link)
        if not link.capabilities.atomic:
            raise NotSupportedError(
                "A transacted session needs a broker that sends and acknowledges together or not at all; this one "
                "cannot (its capability atomic says so). Use an acknowledge mode instead."
            )
        self._unit = OpenUnit(partial(WorkUnit.opened_on, link, self.gate))

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Make the delivery part of the transaction."""
        return self._unit.take(delivery, source)

    def send(self, message: Message, to: Destination) -> None:
        """Send with the commit."""
        self._unit.send(message, to)

    def check_commits(self) -> None:
        """It does."""

    def commit(self) -> None:
        """Acknowledge and send, together."""
        if self._unit.work is not None and self._unit.work.rollback_only:
            self._unit.rollback()
            raise TransactionRolledBackError(
                "The unit was rolled back: one of its messages demanded it (set_rollback_only)."
            )
        self._unit.commit()

    def rollback(self) -> None:
        """Forget what was sent, and let what was received come again."""
        self._unit.rollback()

    def recover(self) -> None:
        """Refused: rollback recovers."""
        raise IllegalStateError("A transacted session is recovered by rollback(), not by recover().")

    def close(self) -> None:
        """Roll back what is open (JMS 3.1, section 6.2.15)."""
        self._unit.rollback()


class Joined(Mode):
    """Sends belong to a unit that somebody else settles: that of a listener's delivery.

    Args:
        link: The provider's connection.
        work: The unit.
    """

    transacted: ClassVar[bool] = True

    def __init__(self, link: spi.Connection, work: WorkUnit) -> None:
        super().__init__(link)
        self._work = work

    def take(self, delivery: spi.Delivery, source: Source) -> NoReturn:
        """Refused: the listener receives."""
        del delivery, source
        raise _refusal()

    def send(self, message: Message, to: Destination) -> None:
        """Send with the delivery's unit."""
        self._work.send(message, to)

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
