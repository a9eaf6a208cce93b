"""A unit from its first message to its settlement: what a handler is at work on."""

import logging
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from jmsjca.inbound.delivered import Delivered
from jmsjca.inbound.parameters import Given
from jmsjca.inbound.replies import send_replies
from jmsjca.messages import Message, Outcome
from jmsjca.messages.end_of_batch import end_of_batch_message
from jmsjca.outbound import Session

if TYPE_CHECKING:
    from jmsjca.inbound.endpoint import Endpoint
    from jmsjca.inbound.outstanding import Outstanding

__all__ = ["InHand"]

logger = logging.getLogger("jmsjca.inbound")


class InHand:
    """Hands messages to the handler, and settles them together when it is done with them. For one thread.

    Args:
        endpoint: Whose messages.
        link: Where they came from.
        outstanding: Where a place is reserved for it, if places are counted.

    Attributes:
        work: The unit.
        deliveries: What the handler was called with, or was to be.
        abandoned: True if the connection is given up while the handler is at work.
        ended: True once it is settled.
    """

    def __init__(self, endpoint: "Endpoint", link: spi.Connection, outstanding: "Outstanding | None" = None) -> None:
        self.endpoint = endpoint
        self.link = link
        self._outstanding = outstanding
        self.work = endpoint.open_unit(link)
        self.deliveries: list[spi.Delivery] = []
        self.abandoned = self.ended = False
        self._session: Session | None = None
        self._runner: object = None  # the thread, by its number, or the task that is in the handler
        self._seen = False  # if the handler saw anything

    @property
    def rolls_back(self) -> bool:
        """True if no more messages are to be handed over: the unit is going to roll back."""
        return self.work.rollback_only

    def is_asked_by_handler(self) -> bool:
        """Tell whether who asks is the handler, before it has returned."""
        runner = self._runner
        if runner is None or isinstance(runner, int):
            return runner == get_ident()
        from jmsjca.inbound.coroutines import is_current  # noqa: PLC0415  # only async handlers need asyncio

        return is_current(runner)

    def session(self) -> Session:
        """Give the session of the handler; made when asked for, as most handlers never do, and when it closed one."""
        if self._session is None or self._session.closed:
            self._session = self.endpoint.session_of(self)
        return self._session

    def deliver(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Call the handler with each message until one fails, or with all of them; then `finish`.

        Raises:
            ConnectionLostError: The connection is gone; the messages come again.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            if self.endpoint.handler.whole_batches:
                self.hand_over_all(list(deliveries))
            else:
                self._hand_over_each(deliveries)
        finally:  # also when no more can be received
            self.finish()

    def hand_over(self, delivery: spi.Delivery) -> None:
        """Call the handler with a message. What it raises rolls the unit back."""
        self._guarded([delivery], lambda: self._call(*self._take([delivery])))

    def hand_over_all(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Call the handler once with all messages."""
        self._guarded(deliveries, lambda: self._call(self._take(deliveries)))

    def finish(self) -> None:
        """Tell the handler that the batch is over, and settle."""
        self.end_batch()
        self.settle()

    def end_batch(self) -> None:
        """Deliver the message that says so, if the handler saw any of the batch, whatever came of them."""
        if not (self.endpoint.terms.batch_size and self._seen and self.endpoint.handler.takes_end_of_batch):
            return
        self._guarded((), lambda: self._call(self._end_of_batch()))

    def settle(self) -> None:
        """Commit or roll back.

        Raises:
            ConnectionLostError: The connection is gone; the messages come again.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            if self._session is not None:
                self._session.close()
            if self.work.rollback_only:
                self.work.rollback()
            else:
                self.work.commit(confirmed=self.endpoint.terms.confirmed)
        except ConnectionLostError:
            if self.abandoned:
                logger.warning("A unit of %s ended too late; its messages come again.", self.endpoint.name)
            raise
        except TransactionRolledBackError as error:
            logger.warning("A unit of %s was rolled back; its messages come again: %s", self.endpoint.name, error)
        finally:
            self.work.lose()  # unless it has ended, as it should have
            self.endpoint.settled(self, self.work.outcome or Outcome.LOST)
            if self._outstanding is not None:
                self._outstanding.release()
            self.deliveries = []  # which have their messages, and these have this: no circle stays behind

    def _hand_over_each(self, deliveries: Iterable[spi.Delivery]) -> None:
        for delivery in deliveries:
            self.hand_over(delivery)
            if self.rolls_back:
                return

    def _guarded(self, deliveries: Sequence[spi.Delivery], act: Callable[[], None]) -> None:
        before = len(self.deliveries)
        with self.endpoint.statistics.delivering(len(deliveries) or 1):
            try:
                act()
            except BaseException as error:  # noqa: BLE001  # also SystemExit: a handler ends its delivery, no more
                begun = len(self.deliveries) > before
                self.endpoint.put_off(() if begun else deliveries)
                self._failed(error, deliveries if begun else ())

    def _take(self, deliveries: Sequence[spi.Delivery]) -> list[Message]:
        """Make deliveries part of the unit, all of them before one is looked at: what goes back goes back together."""
        self.work.unit.take(deliveries)
        before = len(self.deliveries)
        self.endpoint.begin(self, deliveries)
        return [self._bound(delivery.message, index) for index, delivery in enumerate(deliveries, before)]

    def _bound(self, message: Message, index: int) -> Message:
        message.bind(self._context(message, index))
        return message

    def _end_of_batch(self) -> Message:
        message = end_of_batch_message()
        message.bind(self._context(message, len(self.deliveries), end_of_batch=True))
        return message

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> Delivered:
        return Delivered(message, self, self._batch_index(index), end_of_batch=end_of_batch)

    def _batch_index(self, index: int) -> int | None:
        return index if self.endpoint.terms.batch_size else None

    def _call(self, content: Message | list[Message]) -> None:
        self._seen, self._runner = True, get_ident()
        try:
            result = self.endpoint.call(Given(content, self.session, self._run_by))
        finally:
            self._runner = None
        if result is not None and not self.rolls_back:
            send_replies(self.session, content, result)

    def _run_by(self, task: object) -> None:
        self._runner = task

    def _failed(self, error: BaseException, deliveries: Sequence[spi.Delivery]) -> None:
        if self.work.outcome is None:
            self.work.set_rollback_only()
        if isinstance(error, JMSError):
            logger.error("A message to %s was rolled back: %s", self.endpoint.name, error)
        else:
            logger.error(
                "The handler of %s failed; its message is rolled back and comes again.",
                self.endpoint.name,
                exc_info=error,
            )
        self.endpoint.remember_failure(deliveries, error)
