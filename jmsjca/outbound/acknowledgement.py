"""The acknowledge modes of sessions that are not transacted (JMS 3.1, section 6.2.10)."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar

from jmsjca import spi
from jmsjca.config import AcknowledgeMode
from jmsjca.errors import JMSError, MessageFormatError
from jmsjca.messages import Message
from jmsjca.outbound.gate import Gate
from jmsjca.outbound.modes import Mode
from jmsjca.outbound.open_unit import OpenUnit, Source
from jmsjca.outbound.receipts import HandedOver, Receipt
from jmsjca.outbound.work import WorkUnit

__all__ = ["acknowledging"]


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
