"""Handlers for held acknowledgement: that acknowledge, here or elsewhere, and that leave it to the case."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jmsjca import Message, Session, Settlement
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.hearing import Chance
from jmsjca.testing.inbound.stage import Stage, forward

__all__ = ["Hands", "Holding", "HoldingOnItsOwn"]


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


class Hands:
    """A handler that puts messages where the case takes them; and the listener with held acknowledgement."""

    def __init__(self, stage: Stage, mode: str, **spec: Any) -> None:
        self._held: queue.Queue[Message] = queue.Queue()
        self.activation = stage.listen(self._held.put, concurrency_mode=mode, hold_until_ack=True, **spec)

    def take(self) -> Message:
        """Wait for the next message."""
        return self._held.get(timeout=PATIENCE)

    def take_batch(self) -> list[Message]:
        """Wait for the messages of a batch, its end among them."""
        messages = [self.take()]
        while not messages[-1].end_of_batch:
            messages.append(self.take())
        return messages

    def settle(self, message: Message, action: str) -> Settlement:
        """Settle a message by its id."""
        assert message.message_id
        return self.activation.settle(message.message_id, action)

    def __len__(self) -> int:
        return self._held.qsize()
