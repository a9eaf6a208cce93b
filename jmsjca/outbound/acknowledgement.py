"""How a session that is not transacted acknowledges what it receives."""

from collections.abc import Callable

from jmsjca import spi
from jmsjca.config import AcknowledgeMode
from jmsjca.errors import IllegalStateError
from jmsjca.messages import Message, Outcome, Settlement
from jmsjca.outbound.work import WorkUnit

__all__ = ["Acknowledgement"]


class Acknowledgement:
    """Settles deliveries by the acknowledge mode (JMS 3.1, section 6.2.10).

    Args:
        link: The provider's connection.
        mode: The acknowledge mode.
    """

    def __init__(self, link: spi.Connection, mode: AcknowledgeMode) -> None:
        self._link = link
        self._mode = mode
        self._pending: list[_Received] = []

    def received(self, delivery: spi.Delivery) -> Message:
        """Acknowledge a delivery now, or keep it until its message is acknowledged."""
        if self._mode in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK):
            work = WorkUnit(self._link.unit(atomic=False))
            message = work.take(delivery)
            work.commit(confirmed=False)  # should it get lost, the message comes again, as JMS allows
            return message
        message = delivery.message
        pending = _Received(self, delivery)
        self._pending.append(pending)
        message.bind(pending)
        return message

    def acknowledge(self, one: "_Received") -> Settlement:
        """Acknowledge one message, or all so far: as the mode says. Again is harmless."""
        if one in self._pending:
            settled = [one] if self._mode is AcknowledgeMode.INDIVIDUAL else list(self._pending)
            self._pending = [p for p in self._pending if p not in settled]
            self._settle(settled, WorkUnit.commit)
        return one.settlement

    def give_up(self) -> None:
        """Let what was not acknowledged come again, counted: it was seen."""
        pending, self._pending = self._pending, []
        if pending:
            self._settle(pending, WorkUnit.rollback)

    def _settle(self, pending: "list[_Received]", end: Callable[[WorkUnit], None]) -> None:
        work = WorkUnit.opened_on(self._link)
        try:
            work.unit.take([p.delivery for p in pending])
            end(work)
        finally:
            for received in pending:
                received.settlement.settle(work.settlement.outcome or Outcome.LOST)


class _Received:
    """One delivery waiting for its acknowledgement."""

    def __init__(self, owner: Acknowledgement, delivery: spi.Delivery) -> None:
        self._owner = owner
        self.delivery = delivery
        self.settlement = Settlement()

    def acknowledge(self) -> Settlement:
        """Acknowledge it, or all so far."""
        return self._owner.acknowledge(self)

    def set_rollback_only(self) -> None:
        """Refused: there is no unit to roll back."""
        raise IllegalStateError(
            "A session that is not transacted has nothing to roll back; leave the message unacknowledged."
        )
