"""What the messages of sessions are bound to that are not transacted: what `Message.acknowledge` does."""

from collections.abc import Callable

from jmsjca.errors import IllegalStateError
from jmsjca.messages import Outcome, Settlement
from jmsjca.outbound.gate import Gate
from jmsjca.outbound.work import WorkUnit

__all__ = ["HandedOver", "Receipt"]


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
        raise _refusal()


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
        raise _refusal()


def _refusal() -> IllegalStateError:
    return IllegalStateError(
        "A session that is not transacted has nothing to roll back; recover() lets messages come again."
    )
