"""A unit of work over AMQP: records deliveries and sends, writes them at its end, and awaits the broker's answers."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn, TypeAlias

from jmsjca.config import Clock
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.amqp.codec.encoder import EncodeUsual, encode, template_for
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine.proton_ffi import accept, accept_in_transaction
from jmsjca.providers.amqp.links.delivery_states import ACCEPTED, FAILURE_OUTCOMES, transactional_accepted
from jmsjca.providers.amqp.links.link_pool import LinkPool, Outgoing
from jmsjca.providers.amqp.links.sender import SendBatch
from jmsjca.providers.common.unit import RequeuingUnit, size_limit_error, takes_deliveries_error
from jmsjca.spi import Delivery

__all__ = ["AMQPUnit", "UnitCommit", "acknowledge_confirmed", "acknowledge_nowait"]


class AMQPUnit(RequeuingUnit[AMQPConsumer, AMQPDelivery]):
    """Records deliveries and sends; `commit` writes them in one transaction if the broker has transactions.

    Without transactions the sends are confirmed first, then the deliveries are acknowledged.

    Args:
        links: The links of the connection.
        message_bytes: The maximum size of an encoded message.
        clock: The source of time.
        check_target: Raises an error for a temporary destination that does not exist any more.
        atomic: True if all sends and acknowledgements must succeed or fail together.
    """

    def __init__(
        self,
        links: LinkPool,
        message_bytes: int,
        clock: Clock,
        check_target: Callable[[Destination], None],
        *,
        atomic: bool,
    ) -> None:
        super().__init__()
        self._links = links
        self._task_queue = links.engine.task_queue
        self._message_bytes = message_bytes
        self._clock = clock
        self._check_target = check_target
        self._atomic = atomic
        self._outgoing: dict[Destination, list[bytes]] = {}
        self._untransacted: dict[Destination, list[bytes]] = {}  # sent before the transaction
        self._latest_destination: Destination | None = None
        self._encode_usual: EncodeUsual
        self._payloads: list[bytes]  # for the latest destination

    def send(self, message: Message, to: Destination) -> None:
        """Record a message to send. It is encoded now, so later changes have no effect.

        Raises:
            NotSupportedError: The message has a delivery time, and the broker does not support delayed delivery.
            InvalidDestinationError: The temporary destination does not exist any more.
            ResourceAllocationError: The message exceeds the size limit.
        """
        if self._finished or self._task_queue.error is not None:  # an unconditional call costs more
            self._check_open()
        if to is not self._latest_destination:
            self._select_destination(to)
        encoded, payloads = self._encode_usual(message), self._payloads
        if encoded is None:
            encoded, payloads = self._encode_unusual(message, to)
        if len(encoded) > self._message_bytes:
            raise size_limit_error("message", len(encoded), self._message_bytes, to)
        payloads.append(encoded)

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Send the messages and acknowledge the deliveries.

        Args:
            confirmed: Without transactions: True to wait until the broker has processed the acknowledgements.
            timeout: Seconds to wait for each response of the broker; None for the connection's reply timeout.

        Raises:
            TransactionRolledBackError: The unit was rolled back; the deliveries are requeued.
            TransactionInDoubtError: The unit may or may not have been committed.
        """
        seconds = self._links.reply_timeout if timeout is None else timeout
        self._run_final(partial(self._write, seconds, confirmed=confirmed))

    def start_commit(self) -> Callable[[], None]:
        """Send the messages without waiting. Messages to many destinations are committed before this returns.

        Returns:
            A function that waits until the broker has accepted the messages, and raises as `commit` does.

        Raises:
            IllegalStateError: The unit took deliveries.
            TransactionRolledBackError: The broker refuses a destination.
        """
        if self._taken:
            raise takes_deliveries_error()
        if self._untransacted or self._atomic or len(self._outgoing) > 1:
            self.commit()
            return _do_nothing
        self._finish()
        outgoing = _without_empty(self._outgoing)
        if not outgoing:
            return _do_nothing
        sends = UnitCommit(self._links, {}, self._links.reply_timeout)
        with self._links.commit_lock:
            return sends.start_untransacted(outgoing)

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Discard the sends and requeue the deliveries; all but the unused ones increment the delivery count.

        Raises:
            NotSupportedError: `delay` is not 0; brokers do not support it over AMQP.
        """
        self._links.broker.require("redelivery_delay", requested=bool(delay))
        self._run_final(lambda: self._requeue_taken(unused))

    def mark_lost(self) -> None:
        """Invalidate the unit, as its connection closes; its deliveries increment the delivery count."""
        self.lost = True
        if not self._finished:
            for consumer, deliveries in self._taken_by_consumer().items():
                consumer.reject_nowait(deliveries)

    def _select_destination(self, to: Destination) -> None:
        """Prepare sends to a destination. Most messages go to the same destination as the one before."""
        self._encode_usual = template_for(to, self._links.broker.naming)
        self._payloads = self._outgoing.setdefault(to, [])
        self._latest_destination = to

    def _encode_unusual(self, message: Message, to: Destination) -> tuple[bytes, list[bytes]]:
        """Return an encoded message that has rare features, and the list of payloads that it belongs to."""
        broker = self._links.broker
        if message.delivery_time is not None:
            broker.require("delivery_delay")
        if to.temporary:
            self._check_target(to)
        now = 0.0 if message.expiration is None else self._clock.now()
        encoded = encode(message, to, now, broker.naming)
        first = broker.duplicate_ids_before_transaction and DUPLICATE_ID in message.properties
        return encoded, self._untransacted.setdefault(to, []) if first else self._payloads

    def _write(self, seconds: float, *, confirmed: bool) -> None:
        first = self._untransacted and _without_empty(self._untransacted)
        outgoing = self._outgoing and _without_empty(self._outgoing)
        in_transaction = self._atomic or (confirmed and self._links.broker.capabilities.atomic)
        if not (first or self._taken or self._atomic) and _is_one_message(outgoing):
            self._send_alone(outgoing, seconds)
        elif first or outgoing or (self._taken and in_transaction):
            self._write_batch(first, outgoing, seconds, in_transaction=in_transaction)
        if not self._taken or in_transaction:
            return
        if confirmed:  # units of several threads can share one response of the broker
            acknowledge_confirmed(self._links, self._taken_by_consumer(), seconds)
        else:
            acknowledge_nowait(self._taken_by_consumer())

    def _send_alone(self, outgoing: Outgoing, seconds: float) -> None:
        """Send one message. Other threads of the connection write their commits while this one waits."""
        sends = UnitCommit(self._links, {}, seconds)
        with self._links.commit_lock:
            wait = sends.start_untransacted(outgoing)
        wait()

    def _write_batch(self, first: Outgoing, outgoing: Outgoing, seconds: float, *, in_transaction: bool) -> None:
        batch = UnitCommit(self._links, self._taken_by_consumer(), seconds)
        with self._links.commit_lock:  # commits never overlap on one connection
            if first:
                batch.send_untransacted(first)
            if outgoing and not self._atomic:
                batch.send_untransacted(outgoing)
                outgoing = {}
            if in_transaction and (self._taken or outgoing):
                batch.commit(outgoing)

    def _check_open(self) -> None:
        if self._finished or self.lost or self._links.is_closing or self._task_queue.error is not None:
            super()._check_open()
            self._links.engine.check_open()
            self.lost = True  # the connection is closing
            super()._check_open()


def _do_nothing() -> None:
    """Do nothing: the unit is committed already."""


def _without_empty(outgoing: Outgoing) -> Outgoing:
    """Return messages without destinations for which each message was refused when it was encoded."""
    return {to: payloads for to, payloads in outgoing.items() if payloads}


def _is_one_message(outgoing: Outgoing) -> bool:
    return len(outgoing) == 1 and all(len(payloads) == 1 for payloads in outgoing.values())


_TakenDeliveries: TypeAlias = Mapping[AMQPConsumer, Sequence[AMQPDelivery]]  #: by their consumers


class UnitCommit:
    """Writes a unit. Whatever the outcome, its deliveries are settled or requeued afterwards.

    Args:
        links: The links of the connection.
        taken: The deliveries by their consumers.
        timeout: Seconds to wait for each response of the broker.
    """

    def __init__(self, links: LinkPool, taken: _TakenDeliveries, timeout: float) -> None:
        self._links = links
        self._taken = taken
        self._timeout = timeout
        self._sent_untransacted = False
        # Acquired once, and never released, by the thread that decides whether the discharge is written: the engine
        # thread before it writes the discharge, or the committing thread when it gives up waiting.
        self._discharge_lock = threading.Lock()

    def send_untransacted(self, outgoing: Outgoing) -> None:
        """Send outside any transaction, and wait until the broker has accepted the messages.

        Raises:
            TransactionRolledBackError: The broker rejected all messages; the deliveries are requeued.
            TransactionInDoubtError: Some messages were sent, or may have been sent; the deliveries are requeued.
        """
        self._ensure_links(outgoing)
        with self._untransacted_outcome():
            self._links.send(outgoing, None, self._timeout)
        self._sent_untransacted = True

    def start_untransacted(self, outgoing: Outgoing) -> Callable[[], None]:
        """Send outside any transaction, without waiting.

        Returns:
            A function that waits until the broker has accepted the messages, and raises as `send_untransacted` does.
        """
        self._ensure_links(outgoing)
        with self._untransacted_outcome():
            batch = self._links.start_send(outgoing, self._timeout)
        return partial(self._await_untransacted, batch)

    def _await_untransacted(self, batch: SendBatch) -> None:
        with self._untransacted_outcome():
            self._links.await_sent(batch, self._timeout)

    def _ensure_links(self, outgoing: Outgoing) -> None:
        try:
            self._links.ensure_links(outgoing, self._timeout)
        except JMSError as error:
            raise self._roll_back(error) from error

    @contextmanager
    def _untransacted_outcome(self) -> Generator[None]:
        """Settle the deliveries if the messages cannot be sent, and raise the error of the unit."""
        try:
            yield
        except ConnectionLostError as error:
            _forget_deliveries(self._taken)
            raise TransactionInDoubtError(f"Some messages may have been sent: {error}") from error
        except TransactionInDoubtError:
            self._requeue_deliveries()
            raise
        except JMSError as error:
            raise self._roll_back(error) from error

    def commit(self, outgoing: Outgoing) -> None:
        """Send and acknowledge in one transaction of the broker.

        Raises:
            TransactionRolledBackError: The transaction was rolled back; the deliveries are requeued.
            TransactionInDoubtError: The transaction may or may not have been committed; or it was rolled back, but
                messages were sent before it.
        """
        try:
            if outgoing:
                self._links.ensure_links(outgoing, self._timeout)
            transaction = self._links.declare(self._timeout)
        except JMSError as error:
            raise self._roll_back(error) from error
        try:
            state, reason = self._write(transaction, outgoing)
        except JMSError as error:
            state, reason = None, self._prevent_discharge(error)
        if state is None:
            self._links.roll_back(transaction)
            raise self._roll_back(reason) from reason
        _forget_deliveries(self._taken)
        if state != ACCEPTED:
            self._raise_outcome(state, reason)

    def _write(self, transaction: bytes, outgoing: Outgoing) -> Any:
        """Send, settle and discharge; return the broker's response. This thread wakes up only once for all of it."""
        then = partial(self._schedule_discharge, transaction)
        if outgoing:
            return self._links.send(outgoing, transaction, self._timeout, then)
        reply: Future[Any] = Future()
        then(reply)
        return self._links.engine.wait(reply, self._timeout, "the end of a transaction")

    def _prevent_discharge(self, error: JMSError) -> JMSError:
        """Make sure that the discharge will not be written.

        Raises:
            TransactionInDoubtError: It has been written.
        """
        if self._discharge_lock.acquire(blocking=False):
            return error
        _forget_deliveries(self._taken)
        raise TransactionInDoubtError(
            f"The broker did not answer the commit, so it may or may not have happened: {error}"
        ) from error

    def _schedule_discharge(self, transaction: bytes, reply: "Future[Any]") -> None:
        """Submit the discharge to the engine, behind events that it has already read, such as the end of a link."""
        try:
            self._links.engine.submit_nowait(partial(self._discharge, transaction, reply), reply)
        except JMSError as error:
            reply.set_exception(error)

    def _discharge(self, transaction: bytes, reply: "Future[Any]") -> None:
        """Write the acknowledgements and the discharge together. On the engine thread."""
        try:
            self._links.engine.check_open()  # an aborted unit must not be committed
            if (error := self._links.coordinator_error) is not None:
                raise error
            for consumer in self._taken:  # before any settlement: one in a transaction cannot be undone by a release
                consumer.check_link()
            if not self._discharge_lock.acquire(blocking=False):
                return  # the committing thread has given up
            if self._taken:
                self._settle(transaction)
            self._links.discharge(transaction, reply)
        except JMSError as error:  # a link has ended, and the discharge is not written
            reply.set_result((None, error))

    def _settle(self, transaction: bytes) -> None:
        """Acknowledge in a transaction. On the engine thread."""
        accepted = accept_in_transaction(transactional_accepted(transaction))
        for consumer, deliveries in self._taken.items():
            consumer.settle(deliveries, accepted)

    def _raise_outcome(self, state: int, reason: object) -> NoReturn:
        """Raise the error for a discharge that the broker did not accept."""
        self._abort_connection()
        if state in FAILURE_OUTCOMES:
            raise self._rolled_back_error(f"The broker rolled the unit back: {reason}")
        raise TransactionInDoubtError("The broker told no outcome of the commit: it may or may not have happened.")

    def _abort_connection(self) -> None:
        """Abort the connection if the broker has requeued deliveries.

        Only a new connection receives them before the messages that are prefetched already.
        """
        if self._taken:
            error = ConnectionLostError("The broker rolled a unit back; its messages are redelivered.")
            self._links.engine.abort(error)

    def _roll_back(self, error: JMSError) -> JMSError:
        """Requeue the deliveries; return the error to raise."""
        self._requeue_deliveries()
        return self._rolled_back_error(f"The unit was rolled back: {error}")

    def _rolled_back_error(self, text: str) -> JMSError:
        """Return the error of a rollback; it is in doubt if messages were sent before the transaction."""
        if self._sent_untransacted:
            return TransactionInDoubtError(f"Some messages of the unit were sent before its transaction. {text}")
        return TransactionRolledBackError(text)

    def _requeue_deliveries(self) -> None:
        """Release the deliveries after a failure; on a lost connection the broker requeues them itself."""
        try:
            for consumer, deliveries in self._taken.items():
                consumer.requeue(deliveries, [])
        except ConnectionLostError:
            _forget_deliveries(self._taken)


def acknowledge_confirmed(links: LinkPool, taken: _TakenDeliveries, timeout: float) -> None:
    """Acknowledge outside any transaction, and wait until the broker has processed it.

    Args:
        links: The links of the connection.
        taken: The deliveries by their consumers.
        timeout: Seconds to wait for each response of the broker.

    Raises:
        TransactionInDoubtError: The broker did not confirm the acknowledgements.
    """
    confirmations: list[Future[None]] = [Future() for _ in taken]
    try:
        links.engine.submit_nowait(partial(_accept_and_confirm, taken, confirmations), confirmations[0])
        for each in confirmations:
            links.engine.wait(each, timeout, "the acknowledgement of messages")
    except JMSError as error:
        raise _in_doubt_error(error) from error
    finally:
        _forget_deliveries(taken)


def acknowledge_nowait(taken: _TakenDeliveries) -> None:
    """Acknowledge outside any transaction without waiting; the acknowledgements may get lost.

    Raises:
        TransactionInDoubtError: A link or the connection is known to have failed.
    """
    try:
        for consumer, deliveries in taken.items():
            consumer.accept_nowait(deliveries)
        for consumer in taken:
            consumer.check_link()
    except JMSError as error:
        raise _in_doubt_error(error) from error
    finally:
        _forget_deliveries(taken)


def _forget_deliveries(taken: _TakenDeliveries) -> None:
    """Forget deliveries and close the links of closed consumers. Errors of the latter do not concern the unit."""
    for consumer, deliveries in taken.items():
        consumer.forget(deliveries)
        if consumer.closed:
            with suppress(JMSError):
                consumer.close_if_finished()


def _accept_and_confirm(taken: _TakenDeliveries, confirmations: "Sequence[Future[None]]") -> None:
    """Acknowledge on all links that are still attached, then request confirmations. On the engine thread."""
    for consumer, deliveries in taken.items():
        with suppress(JMSError):  # the confirmation of this consumer reports the error
            consumer.settle(deliveries, accept)
    for consumer, each in zip(taken, confirmations, strict=True):
        _confirm_settled(consumer, each)


def _confirm_settled(consumer: AMQPConsumer, confirmation: "Future[None]") -> None:
    """Complete a future once the broker has processed all earlier settlements of a consumer. On the engine thread."""
    consumer.round_trip().add_done_callback(lambda answer: _copy_result(answer, confirmation))


def _copy_result(answer: "Future[bool]", confirmation: "Future[None]") -> None:
    error = answer.exception()
    if error is None:
        confirmation.set_result(None)
    else:
        confirmation.set_exception(error)


def _in_doubt_error(error: JMSError) -> TransactionInDoubtError:
    return TransactionInDoubtError(f"The broker did not confirm the acknowledgements: {error}")
