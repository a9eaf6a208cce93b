"""A handler for held acknowledgement, which now and then acknowledges elsewhere and now and then rolls back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from jmsjca import Message, Session
from jmsjca.testing.inbound.hearing import Chance
from jmsjca.testing.inbound.stage import Stage, forward

__all__ = ["Holding", "HoldingOnItsOwn"]


class Holding:
    """Forwards each message in its unit, and acknowledges: one in ten on another thread.

    Args:
        stage: Where it plays.
        rollbacks: How often a message rolls its unit back; what is sent then never arrives.
    """

    def __init__(self, stage: Stage, rollbacks: float = 0.0) -> None:
        self._stage = stage
        self._rolls_back = Chance(rollbacks)
        self._goes_elsewhere = Chance(0.1)
        self._others = ThreadPoolExecutor()

    def __call__(self, message: Message, session: Session) -> None:
        """Do the work for a message, or for the end of a batch."""
        self.work(message, session)
        self.acknowledge(message)

    def work(self, message: Message, session: Session) -> None:
        """Forward a message, and roll it back now and then."""
        forward(message, session, self._stage.ends if message.end_of_batch else self._stage.out)
        if self._rolls_back(message.body):
            message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            forward(message, session, self._stage.never)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge a message here or elsewhere."""
        if self._goes_elsewhere(message.body):
            self._others.submit(message.acknowledge)
        else:
            message.acknowledge()


class HoldingOnItsOwn(Holding):
    """Forwards in a transaction of its own, which it rolls back when it rolls back the receipt."""

    def __call__(self, message: Message) -> None:  # type: ignore[override]  # jmsjca looks which parameters there are
        """Do the work for a message, or for the end of a batch."""
        with self._stage.connection.create_session(transacted=True) as session:
            self.work(message, session)
            if message.rollback_only:
                session.rollback()
            else:
                session.commit()
        self.acknowledge(message)
