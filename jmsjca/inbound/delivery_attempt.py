"""One delivery attempt: calls the handler, sends its reply, logs its failure, and settles the unit."""

import logging
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Self
from weakref import ref

from jmsjca import spi
from jmsjca.config.limits import AcknowledgeMode
from jmsjca.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
    Reject,
    Retry,
    TransactionRolledBackError,
)
from jmsjca.hooks import DeadLetter
from jmsjca.inbound.endpoint import (
    Endpoint,
    InFlightUnit,
    message_identity,
    readable_message_id,
    was_delivered_before,
)
from jmsjca.inbound.handler import failure_of, handler_traceback, is_current, send_replies
from jmsjca.inbound.handler_arguments import Invocation
from jmsjca.inbound.listener_log import Event, log_fields
from jmsjca.inbound.listener_unit import InboxUnit
from jmsjca.inbound.message_mover import MessageMover
from jmsjca.log_records import exc_info_of, get_logger
from jmsjca.messages.delivery import Outcome, Settlement, bind_delivery, forbid_waiting, original_message_id
from jmsjca.messages.message import Message, end_of_batch_message
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.delivery_sends import DeliverySends, current_delivery
from jmsjca.outbound.session import Session, session_for_delivery
from jmsjca.redelivery.encounter import Failure

if TYPE_CHECKING:
    from jmsjca.inbound.concurrency import InFlightLimit

__all__ = [
    "DeliveryAttempt",
    "EndpointDeliveryContext",
    "log_dropped_reply",
    "log_failure",
    "log_unread_inbox",
]

logger = get_logger("jmsjca.inbound")

_UNREAD_INBOX_DELAY = 1.0  # seconds until redelivery of a message for which the inbox could not be read


class EndpointDeliveryContext:
    """The endpoint's state of one message. The message refers to it through its only internal slot.

    Args:
        message: The message to deliver.
        attempt: The delivery attempt that the message belongs to.
        batch_index: The position of the message in the batch, from 0; None without batches.
        end_of_batch: True for the message that only marks the end of the batch.

    Attributes:
        batch_index: The position in the batch, as given.
        delivery_id: The id of the delivery under held acknowledgement; otherwise None.
        redelivery_count: Number of redeliveries seen until this delivery; 0 on the first delivery.
        failure: The handler's error on the previous delivery; None if there was no error.
    """

    __slots__ = (
        "_attempt",
        "_is_end_of_batch",
        "_message",
        "batch_index",
        "delivery_id",
        "failure",
        "redelivery_count",
    )

    def __init__(
        self, message: Message, attempt: "DeliveryAttempt", batch_index: int | None, *, end_of_batch: bool = False
    ) -> None:
        self._message = ref(message)  # a weak reference, because a cycle would delay the release of the body
        self._attempt = attempt
        self.batch_index = batch_index
        self.delivery_id: str | None = None
        self._is_end_of_batch = end_of_batch
        redelivery = attempt.endpoint.redelivery  # read now, because the next delivery changes the encounter
        encounter = redelivery.find_encounter(self._id) if redelivery.has_encounters else None
        self.redelivery_count = 0 if encounter is None else encounter.count
        self.failure: Failure | None = None if encounter is None else encounter.failure

    @property
    def endpoint(self) -> Self:
        """Return self, because a listener delivered the message."""
        return self

    @property
    def batch_size(self) -> int | None:
        """The maximum number of messages of a batch; None without batches."""
        return self._attempt.endpoint.settings.batch_size or None

    @property
    def rollback_only(self) -> bool:
        """True if the unit is marked for rollback."""
        return self._attempt.unit.rollback_only

    def acknowledge(self) -> Settlement:
        """Return the settlement without any other effect: the handler's return acknowledges."""
        return self._attempt.settlement

    def set_rollback_only(self) -> None:
        """Mark the unit for rollback."""
        self._attempt.unit.set_rollback_only()

    @property
    def redelivery_handling(self) -> str:
        """The redelivery handling of this message, as text."""
        return self._attempt.endpoint.redelivery.policy_of(self._id).text

    @redelivery_handling.setter
    def redelivery_handling(self, text: str) -> None:
        """Set the redelivery handling of this message."""
        redelivery = self._attempt.endpoint.redelivery
        redelivery.policy.with_text(text)  # raises an error if the target of a move cannot be looked up
        redelivery.set_handling(self._id, text)

    def user_rollback_data(self) -> MutableMapping[str, str]:
        """Return the data that the handler keeps for the next delivery of this message."""
        return _UserRollbackData(self._attempt, self._id)

    def stop_message_delivery(self, reason: str | None) -> None:
        """Stop the endpoint. This message is still settled as its handler decides."""
        self._attempt.endpoint.request_stop(reason)

    def stats(self) -> Mapping[str, object]:
        """Return the counters of the endpoint."""
        return self._attempt.endpoint.statistics.as_map()

    @property
    def destination_name(self) -> str:
        """The name of the destination that the endpoint consumes from."""
        return self._attempt.endpoint.settings.destination.name

    @property
    def mbean_name(self) -> str | None:
        """The name under which the endpoint is managed; None if it has none."""
        return self._attempt.endpoint.mbean_name

    @property
    def mbean(self) -> object:
        """The activation."""
        return self._attempt.endpoint.activation

    @property
    def _id(self) -> str | None:
        message = self._message()
        return None if message is None or self._is_end_of_batch else self._attempt.identity_of(message)


class _UserRollbackData(MutableMapping[str, str]):
    """A live view of the user rollback data of one message."""

    def __init__(self, attempt: "DeliveryAttempt", message_id: str | None) -> None:
        self._redelivery = attempt.endpoint.redelivery
        self._message_id = message_id

    def _data(self) -> Mapping[str, str]:
        known = self._redelivery.find_encounter(self._message_id)
        return known.rollback_data if known is not None else {}

    def __getitem__(self, key: str) -> str:
        return self._data()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._redelivery.encounter(self._message_id).set_rollback_data(key, value)

    def __delitem__(self, key: str) -> None:
        del dict(self._data())[key]  # for the KeyError
        self._redelivery.encounter(self._message_id).set_rollback_data(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data())

    def __len__(self) -> int:
        return len(self._data())

    def __repr__(self) -> str:
        return f"<user rollback data of {len(self)} names>"


class DeliveryAttempt(InFlightUnit):
    """Delivers the messages of one unit to the handler, and settles them together. Runs on one thread.

    Args:
        endpoint: The endpoint to deliver for.
        connection: The provider connection that the messages came from.
        consumer: The consumer that received them.
        in_flight: The limit that counts the unit; None if units are not counted.

    Attributes:
        endpoint: The endpoint, as given.
        connection: The provider connection, as given.
        unit: The unit of work.
        transaction: The container-managed transaction of the unit; None if the unit ends on its own.
    """

    _session: Session | None = None
    _joining: Session | None = None  # the session for sends through the adapter
    _runner: object = None  # the identifier of the thread, or the task, that runs the handler
    _settlement: Settlement | None = None
    _active_calls = 0
    _handler_called = False  # True once the handler was called
    _may_commit = True  # False from the beginning of a call until the handler has returned, or rejected its messages
    _rejected: Sequence[spi.Delivery] = ()
    _retry_delay = 0.0

    def __init__(
        self,
        endpoint: "Endpoint",
        connection: spi.Connection,
        consumer: spi.Consumer,
        in_flight: "InFlightLimit | None" = None,
    ) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self._consumer = consumer
        self._in_flight = in_flight
        self.deliveries = []
        self.unit = endpoint.open_unit(connection)
        begin = endpoint.begin_transaction
        self.transaction = None if begin is None else begin(self.unit, connection)
        if endpoint.inbox is not None and isinstance(self.unit, InboxUnit):
            self.unit.inbox = endpoint.inbox.open(None if self.transaction is None else self.transaction.manager)

    @property
    def rollback_only(self) -> bool:
        """True if no more messages are delivered in this unit: a call failed, or the unit is marked for rollback."""
        return self.unit.rollback_only or not self._may_commit

    @property
    def settlement(self) -> Settlement:
        """The settlement of the unit: the same object for all its messages."""
        if self._settlement is None:
            settlement = self.unit.settlement
            forbid_waiting(settlement, self.is_called_by_handler)
            self._settlement = settlement
        return self._settlement

    def is_called_by_handler(self) -> bool:
        """Return True if the caller is the handler, before it has returned."""
        runner = self._runner
        if runner is None or isinstance(runner, int):
            return runner == get_ident()
        return is_current(runner)

    def session(self) -> Session:
        """Return the handler's session. It is created on demand, because most handlers need none."""
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
        """Call the handler with each message until one call fails, or once with all of them; then `finish`.

        Raises:
            ConnectionLostError: The connection is lost; the messages are redelivered.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        is_finished = False
        try:
            try:
                if self.endpoint.handler.whole_batches:
                    self._run_guarded(list(deliveries), self._call_with_all)
                else:
                    self._deliver_each(deliveries)
            finally:  # also if receiving the other messages of the batch fails
                self.finish()
            is_finished = True
        finally:
            if not is_finished:
                self.end()  # again, in case lack of memory interrupted the first call

    def deliver_one(self, delivery: spi.Delivery) -> None:
        """Call the handler with one message. An exception of the handler marks the unit for rollback."""
        self._run_guarded([delivery], self._call_with_each)

    def finish(self) -> None:
        """Deliver the end of the batch, and settle."""
        try:
            if self.endpoint.settings.batch_size:
                self.deliver_end_of_batch()
        finally:
            self.settle()

    def deliver_end_of_batch(self) -> None:
        """Deliver the end of the batch if the handler saw a message of the batch, even if it failed."""
        if self._handler_called and self.endpoint.handler.takes_end_of_batch:
            self._run_guarded((), self._call_with_end_of_batch)

    def settle(self) -> None:
        """Commit if every call returned or rejected its messages; roll back otherwise.

        Raises:
            ConnectionLostError: The connection is lost; the messages are redelivered.
            TransactionInDoubtError: The commit may or may not have happened.
        """
        began = self.endpoint.activity.begin(self, "settlement")
        try:
            if self._session is not None:
                self._session.close()
            if self.transaction is None and not self.endpoint.hooks.wrap_settlements:
                self._commit_or_roll_back()
            else:
                self._settle_with_user_code(began)
        except ConnectionLostError:
            self.endpoint.mark_return_failed(self.unit.unused)
            if self.abandoned:
                fields = self._fields("unit_late", Outcome.LOST, began)
                logger.warning(
                    "A unit of %s ended too late; its messages are redelivered.", self.endpoint.name, extra=fields
                )
            raise
        except TransactionRolledBackError as error:
            if self.transaction is not None:
                self.endpoint.remember_failure(self.deliveries, error if error.__cause__ is None else error.__cause__)
            self._log_rollback(error, began)
        finally:
            self.end()
        if self.endpoint.inbox is not None:
            self.endpoint.inbox.prune_if_due()

    def end(self) -> None:
        """End everything that the unit began. Parts that have ended, which is the normal case, are skipped."""
        endpoint, unit = self.endpoint, self.unit
        if self.transaction is not None:
            self.transaction.abandon()
        if unit.outcome is None:
            unit.mark_lost()
        while self._active_calls:
            self._record_end(0.0)
        endpoint.activity.end(self)
        outcome = unit.outcome or Outcome.LOST
        if outcome is not Outcome.COMMITTED:
            endpoint.record_hand_overs(self)
        if not self.ended:
            endpoint.record_settlement(self, outcome)
        in_flight, self._in_flight = self._in_flight, None
        if in_flight is not None:
            in_flight.release()
        self.deliveries = []  # messages refer to this object: avoids a reference cycle
        self._rejected = ()

    def _settle_with_user_code(self, began: float) -> None:
        """Settle inside the hooks, or with the data managers of the transaction. An exit there only fails this unit."""
        hooks, name = self.endpoint.hooks, self.endpoint.name
        error = failure_of(lambda: hooks.settle(name, self.deliveries, self._commit_or_roll_back))
        try:
            if isinstance(error, Exception):
                raise error
            if error is not None:
                self._fail_settlement(error, began)
        finally:
            del error  # its traceback refers to this frame: avoids a reference cycle

    def _commit_or_roll_back(self) -> None:
        if self.rollback_only:
            self._roll_back(self._retry_delay)
        elif self._rejected:
            self._commit_with_rejected()
        elif self.transaction is None:
            self.unit.commit(confirmed=self.endpoint.settings.confirm_commits)
        elif self.abandoned:
            raise ConnectionLostError("The connection was lost before the commit, so that no database commits.")
        else:
            self.transaction.commit()

    def _roll_back(self, delay: float = 0.0) -> None:
        if self.unit.outcome is None:
            self.endpoint.record_hand_overs(self)  # first, because another thread may receive the messages afterwards
            if self.transaction is not None:
                self.transaction.rollback(delay=delay)
        if self.unit.outcome is None:  # a failure within the transaction prevented the end of the unit
            self.unit.rollback(delay=delay)

    def _fail_settlement(self, error: BaseException, began: float) -> None:
        """Roll back a unit, unless it has ended, after an exit such as `SystemExit` interrupted its settlement."""
        self._roll_back()
        outcome = self.unit.outcome or Outcome.LOST
        logger.error(
            "%s: a hook or a data manager raised %s during a settlement, which has ended as %s.",
            *(self.endpoint.name, type(error).__name__, outcome.value),
            exc_info=exc_info_of(error),
            extra=self._fields("settlement_failed", outcome, began),
        )

    def _commit_with_rejected(self) -> None:
        """Commit with the copies of rejected messages. Roll back if a message cannot be moved."""
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

    def _joining_session(self) -> Session:
        """Return the session for joining sends. It differs from the handler's session, which is for one thread."""
        if self._joining is None:
            self._joining = self._create_session(atomic=False)
        return self._joining

    def _create_session(self, *, atomic: bool = True) -> Session:
        """Create a session for the handler. It sends in the unit, or immediately if there are no transactions."""
        endpoint = self.endpoint
        context = ConnectionContext.for_listener(
            self.connection, endpoint.limits, endpoint.hooks, endpoint.settings.naming
        )
        if endpoint.settings.transacted:
            return session_for_delivery(context, self.unit, atomic=atomic)
        return Session(context, transacted=False, acknowledge_mode=AcknowledgeMode.AUTO)

    def _deliver_each(self, deliveries: Iterable[spi.Delivery]) -> None:
        for delivery in deliveries:
            self.deliver_one(delivery)
            if self.rollback_only:
                return
            if self.endpoint.settings.batch_size:
                self.endpoint.activity.end(self)  # the unit may now wait for the next message of the batch

    def _run_guarded(self, deliveries: Sequence[spi.Delivery], call: Callable[[Sequence[spi.Delivery]], None]) -> None:
        """Call the handler. The unit may be committed only if this returns with every call complete or rejected.

        The caller ends the activity, or settles.
        """
        may_commit, self._may_commit = self._may_commit, False
        endpoint, unit = self.endpoint, self.unit
        before, sends, failed = len(self.deliveries), unit.sends, False
        began = endpoint.activity.begin(self, "handler")
        endpoint.statistics.record_start(len(deliveries))
        self._active_calls += 1
        try:
            call(deliveries)
        except BaseException as error:  # noqa: BLE001  # also SystemExit: a handler may only end its own delivery
            begun, failed = len(self.deliveries) > before, True
            endpoint.mark_returned(() if begun else deliveries)
            rejected = self._recorded(error, deliveries if begun else (), began, sent=unit.sends > sends)
            may_commit = may_commit and rejected
            unit.rollback_only |= not may_commit  # read when the end of the batch is delivered
        finally:
            seconds = endpoint.clock.monotonic() - began
            self._record_end(seconds)
        if endpoint.hooks.observe_calls:
            may_commit = self._notify_of_call(deliveries, began, seconds, failed=failed) and may_commit
        self._may_commit = may_commit

    def _notify_of_call(
        self, deliveries: Sequence[spi.Delivery], began: float, seconds: float, *, failed: bool
    ) -> bool:
        """Notify the hooks of a call. Return False after an exit of a hook, such as `SystemExit`: it fails the unit."""
        hooks, first = self.endpoint.hooks, deliveries[0] if deliveries else None
        error = failure_of(lambda: hooks.handled(self.endpoint.name, first, seconds, failed=failed))
        if error is None:
            return True
        if isinstance(error, Exception):
            raise error
        self.unit.rollback_only = True
        self._recorded(error, deliveries, began, sent=True)
        return False

    def _record_end(self, seconds: float) -> None:
        self.endpoint.statistics.record_end(seconds)
        self._active_calls -= 1

    def _end_of_batch(self) -> Message:
        message = end_of_batch_message()
        bind_delivery(message, self._context(message, len(self.deliveries), end_of_batch=True))
        return message

    def _context(self, message: Message, index: int, *, end_of_batch: bool = False) -> EndpointDeliveryContext:
        batch_index = index if self.endpoint.settings.batch_size else None
        return EndpointDeliveryContext(message, self, batch_index, end_of_batch=end_of_batch)

    def _call_with_each(self, deliveries: Sequence[spi.Delivery]) -> None:
        for message in self._hand_over(deliveries):
            self._call(message)

    def _call_with_all(self, deliveries: Sequence[spi.Delivery]) -> None:
        messages = self._hand_over(deliveries)
        if messages:
            self._begin_shared_call()
            self._call(messages)

    def _hand_over(self, deliveries: Sequence[spi.Delivery]) -> list[Message]:
        """Take messages into the unit. Return the messages to hand to the handler now, and record the hand-over."""
        self.unit.unit.take(deliveries)  # all before the first is decoded, so that all are returned together
        index = len(self.deliveries)
        self.endpoint.register(self, deliveries)
        messages: list[Message] = []
        for delivery in deliveries:
            message = delivery.message
            bind_delivery(message, self._context(message, index))
            messages.append(message)
            index += 1
        if self.endpoint.inbox is not None:
            messages = self._admit(deliveries, messages)
        if messages:
            self._consumer.hand_over(deliveries)
        return messages

    def _call_with_end_of_batch(self, deliveries: Sequence[spi.Delivery]) -> None:
        del deliveries  # the broker did not send the end of the batch
        self._begin_shared_call()
        self._call(self._end_of_batch())

    def _begin_shared_call(self) -> None:
        if isinstance(self.unit, InboxUnit):
            self.unit.begin_shared_call()

    def _admit(self, deliveries: Sequence[spi.Delivery], messages: list[Message]) -> list[Message]:
        """Return the messages that the handler has to process. Repeat what the handler sent for duplicates."""
        self.unit.unused = deliveries  # the connection may be lost while the inbox is asked
        new = messages
        try:
            new = self._new_messages(deliveries, messages)
        finally:
            if new:
                self.unit.unused = ()
        return new

    def _new_messages(self, deliveries: Sequence[spi.Delivery], messages: list[Message]) -> list[Message]:
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
        """Mark the unit for a rollback that does not count messages which the handler did not see."""
        for message in messages:
            message.acknowledge()
        self.unit.set_rollback_only()
        self.endpoint.mark_untried(deliveries, uncounted=self.connection.capabilities.give_back == "uncounted")
        self._request_delay(_UNREAD_INBOX_DELAY, deliveries)

    def _log_rollback(self, error: TransactionRolledBackError, began: float) -> None:
        """Log that the unit was rolled back at its commit. Repeated records are limited."""
        suppressed = self.endpoint.rollbacks.admit()
        if suppressed is None:
            return
        fields = self._fields("unit_rolled_back", Outcome.ROLLED_BACK, began, suppressed=suppressed)
        before = f" ({suppressed} rollbacks before were not logged)" if suppressed else ""
        told = (self.endpoint.name, before, error)
        logger.warning("A unit of %s was rolled back; its messages will be redelivered%s: %s", *told, extra=fields)

    def _fields(self, event: Event, outcome: Outcome, began: float, **fields: object) -> dict[str, object]:
        """Return the fields of a log record about the unit's settlement, and the time that it took."""
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
        if self.transaction is None:
            self._call_handler(content)
            return
        with self.transaction.current():
            self._call_handler(content)

    def _call_handler(self, content: Message | list[Message]) -> None:
        self._handler_called, self._runner = True, get_ident()
        endpoint, transaction = self.endpoint, self.transaction
        manager = None if transaction is None else transaction.manager
        # Until the handler returns, its sends through the adapter join the unit.
        sends = DeliverySends(endpoint.scope, self._joining_session, self.unit.set_rollback_only)
        token = current_delivery.set(sends)
        try:
            result = endpoint.call(Invocation(content, self.session, self._set_runner, manager))
        finally:
            current_delivery.reset(token)
            sends.end()
            self._runner = None
        if transaction is not None and transaction.is_doomed:
            self.unit.set_rollback_only()
        if result is not None and not self.unit.rollback_only:
            dropped = partial(log_dropped_reply, self.endpoint)
            send_replies(self.session, content, result, self.endpoint.handler.converters, dropped)

    def _set_runner(self, task: object) -> None:
        self._runner = task

    def _recorded(self, error: BaseException, deliveries: Sequence[spi.Delivery], began: float, *, sent: bool) -> bool:
        """Record the error of a handler's call. An error of this method is logged: the unit is rolled back anyway.

        Args:
            error: The error.
            deliveries: The messages of the call.
            began: The time of the monotonic clock at which the call began.
            sent: True if the handler sent something in this call. Only a rollback undoes that.

        Returns:
            True if the messages are rejected, so that the unit may be committed without them.
        """
        before = self._rejected
        # The class of the error may be the application's, so any of its methods may fail.
        failed = failure_of(lambda: self._record_failure(error, deliveries, began, sent=sent))
        if failed is None:
            return self._rejected is not before
        told = "%s: a failure of the handler cannot be recorded (%s); its messages will be redelivered."
        fields = log_fields("handler_failed", self.endpoint.log_source, outcome=Outcome.ROLLED_BACK.value)
        logger.error(told, self.endpoint.name, type(failed).__name__, extra=fields)
        return False

    def _record_failure(
        self, error: BaseException, deliveries: Sequence[spi.Delivery], began: float, *, sent: bool
    ) -> None:
        error = error.with_traceback(handler_traceback(error.__traceback__))
        self.endpoint.remember_failure(deliveries, error)
        if isinstance(error, Reject) and deliveries:
            self._reject(error, deliveries, sent=sent)
            return
        if isinstance(error, Retry) and error.delay is not None:
            self._request_delay(error.delay, deliveries)
        log_failure(self.endpoint, error, deliveries, self.endpoint.activity.now() - began)

    def _reject(self, error: Reject, deliveries: Sequence[spi.Delivery], *, sent: bool) -> None:
        """Dead-letter messages in this unit. If the unit has to be rolled back, do it when they are redelivered."""
        for delivery in deliveries:
            self.endpoint.redelivery.encounter(message_identity(delivery)).rejection = error.reason
        if not sent and self.transaction is None:  # otherwise the handler's work must not be committed
            self._rejected = (*self._rejected, *deliveries)

    def _request_delay(self, seconds: float, deliveries: Sequence[spi.Delivery]) -> None:
        """Delay the redelivery of messages, at the broker if it can. Then the whole unit has the same delay."""
        at_broker = (
            self.connection.capabilities.redelivery_delay
            and self.endpoint.settings.mode != "serial"  # there all later messages must also wait
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


def log_failure(endpoint: Endpoint, error: BaseException, deliveries: Sequence[spi.Delivery], duration: float) -> None:
    """Log an error of the handler. Repeated records are limited: a later record has the number of suppressed ones.

    The record has attributes for formatters and filters, see `log_fields`. The text of an error of jmsjca explains it;
    for other errors the record has the traceback.

    Args:
        endpoint: The endpoint.
        error: The error.
        deliveries: The messages that the handler was called with; empty for the end of a batch.
        duration: Seconds that the call of the handler took.
    """
    if not logger.isEnabledFor(logging.INFO if isinstance(error, Retry) else logging.ERROR):
        return
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    fields = _fields(endpoint, deliveries, suppressed, duration)
    text = f"The handler {fields['handler']} of {endpoint.name} failed on {_subject(fields, len(deliveries))}"
    if suppressed:
        text = f"{text} ({suppressed} failures before were not logged)"
    if isinstance(error, Retry):
        logger.info("%s, which will be redelivered: %s", text, error, extra=fields)
    elif isinstance(error, JMSError):
        logger.error("%s, which will be rolled back and redelivered: %s", text, error, extra=fields)
    else:
        told = "%s, which will be rolled back and redelivered."
        logger.error(told, text, exc_info=exc_info_of(error), extra=fields)


def log_dropped_reply(endpoint: Endpoint, request: Message, error: InvalidDestinationError) -> None:
    """Log that a reply was dropped, because its requester no longer waits. Repeated records are limited.

    Args:
        endpoint: The endpoint.
        request: The request.
        error: The error of the send.
    """
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    fields = log_fields(
        "reply_dropped",
        endpoint.log_source,
        handler=endpoint.handler.name,
        message_id=request.message_id,
        target=str(request.reply_to),
        suppressed=suppressed,
    )
    text = "%s: the reply to %s is dropped, as its temporary destination does not exist any more%s: %s"
    before = f" ({suppressed} failures before were not logged)" if suppressed else ""
    logger.warning(text, endpoint.name, request.message_id, before, error, extra=fields)


def log_unread_inbox(endpoint: Endpoint, delivery: spi.Delivery, so_that: str, error: Exception) -> None:
    """Log that the inbox cannot be read. Repeated records are limited.

    Args:
        endpoint: The endpoint.
        delivery: The message.
        so_that: The consequence, with ``%s`` for the id of the message.
        error: The error of the database.
    """
    suppressed = endpoint.failures.admit()
    if suppressed is None:
        return
    identity = message_identity(delivery)
    fields = log_fields(
        "inbox_failed",
        endpoint.log_source,
        message_id=identity,
        delivery_count=delivery.count or 1 + delivery.redelivered,
        suppressed=suppressed,
    )
    before = f" ({suppressed} failures before were not logged)" if suppressed else ""
    text = f"%s: the inbox cannot be read, so that {so_that}%s: %s"
    logger.warning(text, endpoint.name, identity, before, error, extra=fields)


def _fields(
    endpoint: Endpoint, deliveries: Sequence[spi.Delivery], suppressed: int, duration: float
) -> dict[str, object]:
    first = deliveries[0] if deliveries else None
    return log_fields(
        "handler_failed",
        endpoint.log_source,
        handler=endpoint.handler.name,
        messages=len(deliveries),
        outcome=Outcome.ROLLED_BACK.value,
        suppressed=suppressed,
        duration=duration,
        message_id=first and message_identity(first),
        delivery_count=first and (first.count or 1 + first.redelivered),
    )


def _subject(fields: dict[str, object], messages: int) -> str:
    """Return the messages as text, with the fields of the first one."""
    if not messages:
        return f"the end of a batch from {fields['destination']}"
    others = f" and {messages - 1} more" if messages > 1 else ""
    return f"{fields['message_id']}{others} from {fields['destination']} (delivery {fields['delivery_count']})"
