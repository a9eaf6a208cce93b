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
from jmsjca.outbound.lifecycle import Gate
from jmsjca.outbound.unit_of_work import OpenUnit, Source, WorkUnit

__all__ = ["HandedOver", "Joined", "Mode", "Receipt", "Transacted", "acknowledging"]


class Mode(ABC):
    """One of the modes of JMS 3.1, sections 6.2.7 and 6.2.10; here what all have in common but the transacted ones.

    Args:
        link: The provider's connection.

    Attributes:
        transacted: True if sends and receipts belong to a transaction.
        automatic: True if a message is acknowledged because `receive` returned it.
        order: In which order what was received is settled.
        gate: Entered for every use of the session.
    """

    transacted: ClassVar[bool] = False
    automatic: ClassVar[bool] = False
    order: ClassVar[spi.Order] = spi.Order.PREFIX

    def __init__(self, link: spi.Connection) -> None:
        self._link = link
        self.gate = Gate()

    @abstractmethod
    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Hand a delivery over, acknowledged as the mode says.

        Raises:
            MessageFormatError: The message cannot be decoded.
        """

    def send(self, message: Message, to: Destination) -> None:
        """Send at once."""
        unit = self._link.unit(atomic=False)  # there is only one thing to do
        unit.send(message, to)
        unit.commit()

    def idle(self) -> None:  # noqa: B027  # nothing, in most modes
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


class HandedOver:
    """What all messages of a session are bound to that are acknowledged before anybody has them."""

    __slots__ = ("_gate", "_settlement")

    endpoint: None = None  # a session delivers, no listener
    rollback_only: bool = False

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._settlement = Settlement()
        self._settlement.settle(Outcome.COMMITTED)

    def acknowledge(self) -> Settlement:
        """Nothing is to be done."""
        self._gate.check_open()
        return self._settlement

    def set_rollback_only(self) -> None:
        """Refused: there is no unit to roll back."""
        raise _not_transacted()


class Receipt:
    """What a message that is not acknowledged yet is bound to."""

    __slots__ = ("_acknowledge", "_gate", "_work")

    endpoint: None = None  # a session delivers, no listener
    rollback_only: bool = False

    def __init__(self, work: WorkUnit, gate: Gate, acknowledge: Callable[[], None]) -> None:
        self._work = work
        self._gate = gate
        self._acknowledge = acknowledge

    def acknowledge(self) -> Settlement:
        """Acknowledge as the mode says. Again is harmless."""
        with self._gate:
            self._acknowledge()
        return self._work.settlement

    def set_rollback_only(self) -> None:
        """Refused: there is no unit to roll back."""
        raise _not_transacted()


def _not_transacted() -> IllegalStateError:
    return IllegalStateError(
        "A session that is not transacted has nothing to roll back; recover() lets messages come again."
    )


def acknowledging(mode: AcknowledgeMode, link: spi.Connection) -> Mode:
    """Make the mode of a session.

    Args:
        mode: Its name.
        link: The provider's connection.
    """
    return _MODES[mode](link)


class _Auto(Mode):
    """Acknowledges each message as it is handed over."""

    automatic: ClassVar[bool] = True

    def __init__(self, link: spi.Connection) -> None:
        super().__init__(link)
        self._handed_over = HandedOver(self.gate)

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Acknowledge it; what cannot be decoded is not acknowledged and comes again, counted."""
        unit = self._link.unit(atomic=False)  # itself: what an `OpenUnit` does beside would cost half as much again
        try:
            unit.take([delivery])
            message = delivery.message
            unit.commit(confirmed=False)  # should it get lost, the message comes again, as JMS allows
        except BaseException:  # a signal handler's, too: nobody has seen the message
            with suppress(JMSError):
                unit.rollback()  # if it has not ended
            source.give_ahead_back()
            raise
        message.bind(self._handed_over)
        return message

    def recover(self) -> None:
        """Nothing is left to come again."""

    def close(self) -> None:
        """Nothing is left to acknowledge."""


class _DupsOk(_Auto):
    """Acknowledges all that was handed over when a consumer has to ask the broker for more, and at the end."""

    def __init__(self, link: spi.Connection) -> None:
        super().__init__(link)
        gate = self.gate
        self._unit = OpenUnit(partial(_plain, link, gate), lambda work, _: Receipt(work, gate, _nothing))

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Note it, to be acknowledged later."""
        try:
            delivery.message  # noqa: B018  # decoded here, so that what cannot be stays out of the unit
        except MessageFormatError:
            self.idle()
            return super().take(delivery, source)
        return self._unit.take(delivery, source)

    def idle(self) -> None:
        """Acknowledge what was handed over."""
        self._unit.commit(confirmed=False)

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted."""
        self._unit.rollback()

    def close(self) -> None:
        """Acknowledge what was handed over: the client has seen it."""
        self._unit.commit()


class _Client(Mode):
    """`Message.acknowledge` acknowledges all that the session has received, whichever consumer it came from."""

    def __init__(self, link: spi.Connection) -> None:
        super().__init__(link)
        gate = self.gate
        self._unit = OpenUnit(
            partial(WorkUnit.opened_on, link, gate), lambda work, unit: Receipt(work, gate, unit.commit)
        )

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Keep it until a message of the session is acknowledged."""
        return self._unit.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        self._unit.commit()

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted."""
        self._unit.rollback()

    def close(self) -> None:
        """Closing does not acknowledge (JMS 3.1, section 6.2.15): it comes again, counted."""
        self._unit.rollback()


class _Individual(Mode):
    """`Message.acknowledge` acknowledges that message."""

    order: ClassVar[spi.Order] = spi.Order.MIXED

    def __init__(self, link: spi.Connection) -> None:
        super().__init__(link)
        self._pending: dict[WorkUnit, OpenUnit] = {}  # in order of receipt

    def take(self, delivery: spi.Delivery, source: Source) -> Message:
        """Keep it until it is acknowledged."""
        unit = OpenUnit(partial(WorkUnit.opened_on, self._link, self.gate), self._receipt)
        self._pending[unit.begun()] = unit
        return unit.take(delivery, source)

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        for work in list(self._pending):
            self._settle(work)

    def recover(self) -> None:
        """Let what was not acknowledged come again, counted; the last goes back first, so that none overtakes."""
        while self._pending:
            _, unit = self._pending.popitem()
            unit.rollback()

    def close(self) -> None:
        """Closing does not acknowledge."""
        self.recover()

    def _receipt(self, work: WorkUnit, unit: OpenUnit) -> Receipt:
        del unit
        return Receipt(work, self.gate, partial(self._settle, work))

    def _settle(self, work: WorkUnit) -> None:
        if unit := self._pending.pop(work, None):
            unit.commit()


def _plain(link: spi.Connection, gate: Gate) -> WorkUnit:
    """Open a unit that sends nothing."""
    return WorkUnit(link.unit(atomic=False), gate=gate)


def _nothing() -> None:
    """Acknowledged by itself, later."""


_MODES: dict[AcknowledgeMode, Callable[[spi.Connection], Mode]] = {
    AcknowledgeMode.AUTO: _Auto,
    AcknowledgeMode.DUPS_OK: _DupsOk,
    AcknowledgeMode.CLIENT: _Client,
    AcknowledgeMode.INDIVIDUAL: _Individual,
}
