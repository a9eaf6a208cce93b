"""The end of a unit: writes sends and acknowledgements, and awaits the broker's responses."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn, TypeAlias

from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine.proton_ffi import accept, accept_in_transaction
from jmsjca.providers.amqp.links.delivery_states import ACCEPTED, FAILURE_OUTCOMES, transactional_accepted
from jmsjca.providers.amqp.links.link_pool import LinkPool, Outgoing
from jmsjca.providers.amqp.links.sender import SendBatch

__all__ = ["UnitCommit", "acknowledge_confirmed", "acknowledge_nowait"]

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
        if not outgoing:
            return
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
            self._forget_deliveries()
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
        self._forget_deliveries()
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
        self._forget_deliveries()
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
            self._links.check_coordinator()
            self._check_links()  # before any settlement: a delivery settled in a transaction cannot be released
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

    def _check_links(self) -> None:
        """Raise the error of a link that is known to have ended."""
        for consumer in self._taken:
            consumer.check_link()

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
            self._forget_deliveries()

    def _forget_deliveries(self) -> None:
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
