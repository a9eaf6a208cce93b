"""Serial delivery: one message after the other, in order, each in a local transaction of its own."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.config import Limits
from jmsjca.errors import JMSError
from jmsjca.hooks import HookChain
from jmsjca.inbound.handlers import Handler
from jmsjca.inbound.replies import send_reply
from jmsjca.inbound.statistics import Statistics
from jmsjca.messages import Outcome
from jmsjca.outbound import Session
from jmsjca.outbound.work import WorkUnit

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["SerialDelivery"]

logger = logging.getLogger("jmsjca.inbound")


class SerialDelivery:
    """The handler's return commits; its exception rolls back, and the message comes again before all later ones.

    Args:
        connection: Where messages come from.
        spec: What to listen to.
        handler: Whom to call.
        name: The endpoint's display name.
        statistics: Where to count.
        hooks: What surrounds the handler.
        limits: How much is taken ahead.
    """

    def __init__(
        self,
        connection: spi.Connection,
        spec: "ActivationSpec",
        handler: Handler,
        *,
        name: str,
        statistics: Statistics,
        hooks: HookChain,
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._handler = handler
        self._name = name
        self._statistics = statistics
        self._hooks = hooks
        self._limits = limits
        self._consumer = connection.consumer(spec.source(), selector=spec.selector, order=spi.Order.PREFIX)

    def run(self, stopping: threading.Event) -> None:
        """Deliver until told to stop.

        Raises:
            ConnectionLostError: The connection broke.
            JMSError: The broker refused something that a new connection may mend.
        """
        with self._statistics.endpoint():
            while not stopping.is_set():
                self._deliver_chunk(self._consumer.receive(self._limits.prefetch_messages, None), stopping)

    def wake(self) -> None:
        """Let a wait for messages end."""
        self._consumer.wake()

    def _deliver_chunk(self, chunk: Sequence[spi.Delivery], stopping: threading.Event) -> None:
        for position, delivery in enumerate(chunk):
            if stopping.is_set():
                self._consumer.give_back(chunk[position:])
                return
            if self._deliver(delivery) is not Outcome.COMMITTED:
                return  # the rollback took the rest of the chunk back, to keep the order

    def _deliver(self, delivery: spi.Delivery) -> Outcome:
        work = WorkUnit.opened_on(self._connection)
        try:
            with self._statistics.delivering():
                if self._handle(delivery, work) and not work.rollback_only:
                    work.commit()
                else:
                    work.rollback()
        finally:  # also when the commit failed, or its outcome is in doubt
            outcome = work.outcome or Outcome.LOST
            self._hooks.settled(self._name, outcome, 1)
        return outcome

    def _handle(self, delivery: spi.Delivery, work: WorkUnit) -> bool:
        try:
            message = work.take(delivery)
            with Session.joined_to(self._connection, work, self._limits, self._hooks) as session:
                result = self._hooks.deliver(self._name, message, lambda: self._handler(message, session))
                send_reply(session, message, result)
        except JMSError as error:
            logger.error("A message to %s was rolled back: %s", self._name, error)  # noqa: TRY400  # the text says it all
            return False
        except BaseException:  # also SystemExit: a handler ends its delivery, never the endpoint
            logger.exception("The handler of %s failed; its message was rolled back and comes again.", self._name)
            return False
        return True
