"""One delivery attempt: a unit from its first message to its settlement, with the calls of the handler."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING

from jmsjca import spi
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.errors import ConnectionLostError, MessageFormatError, Reject, Retry, TransactionRolledBackError
from jmsjca.hooks import DeadLetter
from jmsjca.inbound.delivery_context import EndpointDeliveryContext
from jmsjca.inbound.endpoint import message_identity, readable_message_id, was_delivered_before
from jmsjca.inbound.failure_log import log_dropped_reply, log_failure, log_unread_inbox
from jmsjca.inbound.handler import handler_traceback, is_current
from jmsjca.inbound.handler_arguments import Invocation
from jmsjca.inbound.inbox_unit import InboxUnit
from jmsjca.inbound.log_fields import Event, log_fields
from jmsjca.inbound.message_mover import MessageMover
from jmsjca.inbound.replies import send_replies
from jmsjca.log_records import get_logger
from jmsjca.messages.delivery import bind_delivery, original_message_id
from jmsjca.messages.end_of_batch import end_of_batch_message
from jmsjca.messages.message import Message
from jmsjca.messages.settlement import Outcome, Settlement, forbid_waiting
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.session import Session, session_for_delivery

if TYPE_CHECKING:
    from jmsjca.inbound.concurrency import InFlightLimit
    from jmsjca.inbound.endpoint import Endpoint

__all__ = ["DeliveryAttempt"]

logger = get_logger("jmsjca.inbound")

_UNREAD_INBOX_DELAY = 1.0  # seconds until a message is redelivered that the inbox could not be asked about


class DeliveryAttempt:
    """Delivers the messages of one unit to the handler, and settles them together. Runs on one thread.

    Args:
        endpoint: The endpoint to deliver for.
        connection: The provider connection that the messages came from.
        in_flight: The limit in which a slot is acquired for the unit; None if units are not counted.

    Attributes:
        endpoint: The endpoint, as given.
        connection: The provider connection, as given.
        unit: The unit of work.
        transaction: The transaction that the unit is a part of.
        deliveries: The messages passed to the handler so far.
        abandoned: True if the connection was closed while the handler is active.
        ended: True once the unit is settled.
    """

    def __init__(
        self, endpoint: "Endpoint", connection: spi.Connection, in_flight: "InFlightLimit | None" = None
    ) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self._in_flight = in_flight
        self.unit = endpoint.open_unit(connection)
        self.transaction = endpoint.begin_transaction(self.unit, connection)
        if isinstance(self.unit, InboxUnit) and endpoint.inbox is not None:
            self.unit.inbox = endpoint.inbox.open(self.transaction.manager)
        self.deliveries: list[spi.Delivery] = []
        self.abandoned = self.ended = False
        self._session: Session | None = None
        self._runner: object = None  # the identifier of the thread, or the task, that runs the handler
        self._settlement: Settlement | None = None
        self._handler_called = False  # True once the handler was called
        self._rejected: list[spi.Delivery] = []
        self._retry_delay = 0.0

    @property
    def rollback_only(self) -> bool:
        """True if no more messages are to be delivered: the unit is marked for rollback."""
        return self.unit.rollback_only

    @property
    def settlement(self) -> Settlement:
        """The settlement of the unit, the same object for all of its messages."""
        if self._settlement is None:
            settlement = self.unit.settlement
            forbid_waiting(settlement, self.is_called_by_handler)
            self._settlement = settlement
        return self._settlement

    def is_called_by_handler(self) -> bool:
        """Return True if the handler, before it has returned, is the caller."""
        runner = self._runner
        if runner is None or isinstance(runner, int):
            return runner == get_ident()
        return is_current(runner)

    def session(self) -> Session:
        """Return the handler's session, created on demand, as most handlers need none, and again after a close."""
        if self._session is None or self._session.closed:
            self._session = self._create_session()
        return self._session

    def identity_of(self, message: Message) -> str | None:
        """Return the identity of a message of this unit; None if it has no id and the unit is settled."""
        try:
            message_id = original_message_id(message)
        except MessageFormatError:
            message_id = None
        if message_id:
            return message_id
        return next((message_identity(delivery) for delivery in self.deliveries if _is_of(delivery, message)), None)

    def deliver(self, deliveries: Iterable[spi.Delivery]) -> None:
        """Call the handler with each message until one fails, or once with all of them; then `finish`.

        Raises:
            ConnectionLostError: The connection is lost; the messages are redelivered.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        try:
            if self.endpoint.handler.whole_batches:
                self.deliver_batch(list(deliveries))
            else:
                self._deliver_each(deliveries)
        finally:  # also if receiving the rest of the batch fails
            self.finish()

    def deliver_one(self, delivery: spi.Delivery) -> None:
        """Call the handler with one message. An exception of the handler marks the unit for rollback."""
        self._run_guarded([delivery], self._call_with_each)

    def deliver_batch(self, deliveries: Sequence[spi.Delivery]) -> None:
        """Call the handler once with all messages."""
        self._run_guarded(deliveries, self._call_with_all)

    def finish(self) -> None:
        """Deliver the end of the batch, and settle."""
        self.deliver_end_of_batch()
        self.settle()

    def deliver_end_of_batch(self) -> None:
        """Deliver the end-of-batch message if the handler was called in this batch, even if it failed."""
        if not (
            self.endpoint.settings.batch_size and self._handler_called and self.endpoint.handler.takes_end_of_batch
        ):
            return
        self._run_guarded((), self._call_with_end_of_batch)

    def settle(self) -> None:
        """Commit or roll back.

        Raises:
            ConnectionLostError: The connection is lost; the messages are redelivered.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        began = self.endpoint.activity.begin(self, "settlement")
        try:
            if self._session is not None:
                self._session.close()
            self.endpoint.hooks.settle(self.endpoint.name, self.deliveries, self._commit_or_roll_back)
        except ConnectionLostError:
            self.endpoint.mark_return_failed(self.unit.unused)
            if self.abandoned:
                fields = self._fields("unit_late", Outcome.LOST, began)
                logger.warning(
                    "A unit of %s ended too late; its messages are redelivered.", self.endpoint.name, extra=fields
                )
            raise
        except TransactionRolledBackError as error:
            if self._is_joined:
                self.endpoint.remember_failure(self.deliveries, error.__cause__ or error)
            self._log_rollback(error, began)
        finally:
            self.transaction.abandon()  # no effect if it has ended
            self.unit.mark_lost()  # no effect if the unit has ended, which is the normal case
            self.endpoint.activity.end(self)
            self.endpoint.record_settlement(self, self.unit.outcome or Outcome.LOST)
            if self._in_flight is not None:
                self._in_flight.release()
            self.deliveries = []  # messages refer to this object: avoids a reference cycle
            self._rejected = []
        if self.endpoint.inbox is not None:
            self.endpoint.inbox.prune_if_due()

    def _commit_or_roll_back(self) -> None:
        if self._rejected and not self.unit.rollback_only:
            self._commit_with_rejected()
        elif self.unit.rollback_only:
            self.transaction.rollback(delay=self._retry_delay)
        elif self.abandoned and self._is_joined:
            raise ConnectionLostError("The connection was lost before the commit, so that no database commits.")
        else:
            self.transaction.commit()

    @property
    def _is_joined(self) -> bool:
        return self.transaction.manager is not None

    def _commit_with_rejected(self) -> None:
        """Commit with the copies of rejected messages; roll back if one cannot be moved."""
        mover, began = MessageMover(self.endpoint, self.connection), self.endpoint.activity.now()
        letters: list[DeadLetter] = []
        for delivery in self._rejected:
            identity = message_identity(delivery)
            action = self.endpoint.redelivery.policy_of(identity).dead_letter_action
            letter = mover.add(self.unit.unit, action, delivery, self.endpoint.redelivery_count_of(identity))
            if letter is None:
                self.unit.rollback()
                return
            letters.append(letter)
        self.unit.commit()
        for letter in letters:
            mover.report(letter, began)

    def _create_session(self) -> Session:
        """Create the handler's session: it sends in the unit, or at once without transactions."""
        endpoint = self.endpoint
        context = ConnectionContext.for_listener(
            self.connection, endpoint.limits, endpoint.hooks, endpoint.settings.naming
        )
        if endpoint.settings.transacted:
            return session_for_delivery(context, self.unit)
        return Session(context, transacted=False, acknowledge_mode=AcknowledgeMode.AUTO)

    def _deliver_each(self, deliveries: Iterable[spi.Delivery]) -> None:
        for delivery in deliveries:
            self.deliver_one(delivery)
            if self.rollback_only:
                return
            if self.endpoint.settings.batch_size:
                self.endpoint.activity.end(self)  # the next message of the batch may have to be waited for

    def _run_guarded(self, deliveries: Sequence[spi.Delivery], call: Callable[[Sequence[spi.Delivery]], None]) -> None:
        """Call the handler. The caller ends the activity, or settles."""
        before, sends, failed = len(self.deliveries), self.unit.sends, False
        began = self.endpoint.activity.begin(self, "handler")
        self.endpoint.statistics.record_start(len(deliveries))
        try:
            call(deliveries)
        except BaseException as error:  # noqa: BLE001  # also SystemExit: a handler may end its delivery only
            begun, failed = len(self.deliveries) > before, True
            self.endpoint.mark_returned(() if begun else deliveries)
            self._record_failure(error, deliveries if begun else (), began, sent=self.unit.sends > sends)
        finally:
            seconds = self.endpoint.activity.now() - began
            self.endpoint.statistics.record_end(seconds)
            if self.endpoint.hooks.observe_calls:
                first = deliveries[0] if deliveries else None
                self.endpoint.hooks.handled(self.endpoint.name, first, seconds, failed=failed)

    def _take(self, deliveries: Sequence[spi.Delivery]) -> list[Message]:
        """Add messages to the unit, all before the first is decoded, so that they are also returned together."""
        self.unit.unit.take(deliveries)
        before = len(self.deliveries)
        self.endpoint.register(self, deliveries)
        return [self._bind(delivery.message, index) for index, delivery in enumerate(deliveries, before)]

    def _bind(self, message: Message, index: int) -> Message:
        bind_delivery(message, self._context(message, index))
        return message

    def _end_of_batch(self) -> Message:
        message = end_of_batch_message()
        bind_delivery(message, self._context(message, len(self.deliveries), end_of_batch=True))
        return message

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> EndpointDeliveryContext:
        return EndpointDeliveryContext(message, self, self._batch_index(index), end_of_batch=end_of_batch)

    def _batch_index(self, index: int) -> int | None:
        return index if self.endpoint.settings.batch_size else None

    def _call_with_each(self, deliveries: Sequence[spi.Delivery]) -> None:
        for message in self._admit(deliveries, self._take(deliveries)):
            self._call(message)

    def _call_with_all(self, deliveries: Sequence[spi.Delivery]) -> None:
        messages = self._admit(deliveries, self._take(deliveries))
        if messages:
            self._begin_shared_call()
            self._call(messages)

    def _call_with_end_of_batch(self, deliveries: Sequence[spi.Delivery]) -> None:
        del deliveries  # it is no message of the broker
        self._begin_shared_call()
        self._call(self._end_of_batch())

    def _begin_shared_call(self) -> None:
        if isinstance(self.unit, InboxUnit):
            self.unit.begin_shared_call()

    def _admit(self, deliveries: Sequence[spi.Delivery], messages: list[Message]) -> list[Message]:
        """Return the messages that the handler has to see. A duplicate sends again what its handler has sent."""
        unit = self.unit
        if not isinstance(unit, InboxUnit) or unit.inbox is None:
            return messages
        new: list[Message] = []
        for delivery, message in zip(deliveries, messages, strict=True):
            try:
                sends = unit.inbox.admit(
                    message, readable_message_id(delivery), redelivered=was_delivered_before(delivery)
                )
            except TransactionRolledBackError as error:
                self._return_untried(deliveries, messages)
                so_that = f"%s does not reach its handler, and is redelivered in {_UNREAD_INBOX_DELAY:g} s, uncounted"
                log_unread_inbox(self.endpoint, delivery, so_that, error)
                return []
            if sends is None:
                new.append(message)
                continue
            message.acknowledge()
            unit.send_again(sends)
            logger.info(
                "%s: the work of %s is committed already; it is settled, and %d messages are sent again.",
                *(self.endpoint.name, message_identity(delivery), len(sends)),
                extra=log_fields(
                    "committed_before",
                    self.endpoint.log_source,
                    message_id=message_identity(delivery),
                    outcome=Outcome.COMMITTED.value,
                ),
            )
        return new

    def _return_untried(self, deliveries: Sequence[spi.Delivery], messages: Sequence[Message]) -> None:
        """Mark the unit for a rollback that does not count the messages of a call that the handler did not get."""
        for message in messages:
            message.acknowledge()
        self.unit.set_rollback_only()
        self.unit.unused = deliveries
        self.endpoint.mark_untried(deliveries, uncounted=self.connection.capabilities.give_back == "uncounted")
        self._request_delay(_UNREAD_INBOX_DELAY, deliveries)

    def _log_rollback(self, error: TransactionRolledBackError, began: float) -> None:
        """Log that the unit was rolled back at its commit, unless too many were logged."""
        suppressed = self.endpoint.rollbacks.admit()
        if suppressed is None:
            return
        fields = self._fields("unit_rolled_back", Outcome.ROLLED_BACK, began, suppressed=suppressed)
        before = f" ({suppressed} rollbacks before were not logged)" if suppressed else ""
        told = (self.endpoint.name, before, error)
        logger.warning("A unit of %s was rolled back; its messages are redelivered%s: %s", *told, extra=fields)

    def _fields(self, event: Event, outcome: Outcome, began: float, **fields: object) -> dict[str, object]:
        """Return the fields of a log record about the settlement of the unit, which began at a time."""
        return log_fields(
            event,
            self.endpoint.log_source,
            message_id=message_identity(self.deliveries[0]) if self.deliveries else None,
            messages=len(self.deliveries),
            outcome=outcome.value,
            duration=self.endpoint.activity.now() - began,
            **fields,
        )

    def _call(self, content: Message | list[Message]) -> None:
        if self.transaction.manager is None:
            self._call_handler(content)
            return
        with self.transaction.current():
            self._call_handler(content)

    def _call_handler(self, content: Message | list[Message]) -> None:
        self._handler_called, self._runner = True, get_ident()
        transaction = self.transaction
        try:
            result = self.endpoint.call(Invocation(content, self.session, self._set_runner, transaction.manager))
        finally:
            self._runner = None
        if transaction.is_doomed:
            self.unit.set_rollback_only()
        if result is not None and not self.rollback_only:
            dropped = partial(log_dropped_reply, self.endpoint)
            send_replies(self.session, content, result, self.endpoint.handler.converters, dropped)

    def _set_runner(self, task: object) -> None:
        self._runner = task

    def _record_failure(
        self, error: BaseException, deliveries: Sequence[spi.Delivery], began: float, *, sent: bool
    ) -> None:
        """Record the error of a call of the handler.

        Args:
            error: The error.
            deliveries: The messages of the call.
            began: The time of the monotonic clock at which the call began.
            sent: True if the handler has sent something in this call, which only a rollback undoes.
        """
        error = error.with_traceback(handler_traceback(error.__traceback__))
        self.endpoint.remember_failure(deliveries, error)
        if isinstance(error, Reject) and deliveries:
            self._reject(error, deliveries, sent=sent)
            return
        if self.unit.outcome is None:
            self.unit.set_rollback_only()
        if isinstance(error, Retry) and error.delay is not None:
            self._request_delay(error.delay, deliveries)
        log_failure(self.endpoint, error, deliveries, self.endpoint.activity.now() - began)

    def _reject(self, error: Reject, deliveries: Sequence[spi.Delivery], *, sent: bool) -> None:
        """Dead-letter messages in this unit; or, if that has to be rolled back, when they are redelivered."""
        for delivery in deliveries:
            self.endpoint.redelivery.encounter(message_identity(delivery)).rejection = error.reason
        if not sent and not self._is_joined:  # the database work of the handler must not commit
            self._rejected += deliveries
        elif self.unit.outcome is None:
            self.unit.set_rollback_only()

    def _request_delay(self, seconds: float, deliveries: Sequence[spi.Delivery]) -> None:
        """Delay the redelivery of messages: at the broker if it can, and the whole unit has the same delay."""
        at_broker = (
            self.connection.capabilities.redelivery_delay
            and self.endpoint.settings.mode != "serial"  # where all later messages must wait, too
            and len(deliveries) == len(self.deliveries)
        )
        if at_broker:
            self._retry_delay = seconds
        for delivery in deliveries:
            encounter = self.endpoint.redelivery.encounter(message_identity(delivery))
            encounter.set_retry_delay(0.0 if at_broker else seconds)


def _is_of(delivery: spi.Delivery, message: Message) -> bool:
    try:
        return delivery.message is message
    except MessageFormatError:
        return False
