"""The end of a unit: sends and acknowledgements are written, and the broker's answers are awaited."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.amqp.consumer import AMQPConsumer, SettlingConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.engine.proton_ffi import accept, accept_in_transaction
from jmsjca.providers.amqp.links.delivery_states import ACCEPTED, FAILURE_OUTCOMES, transactional_accepted
from jmsjca.providers.amqp.links.link_pool import Outgoing

if TYPE_CHECKING:
    from jmsjca.providers.amqp.links.link_pool import LinkPool

__all__ = ["Burst", "acknowledge", "acknowledge_soon", "let_go", "prove"]


class Burst:
    """Writes a unit. Whatever happens, its deliveries are nobody's afterwards.

    Args:
        wire: The connection's links.
        taken: The deliveries, by their consumers.
        seconds: How long to wait for each answer of the broker.
    """

    def __init__(self, wire: "LinkPool", taken: Mapping[AMQPConsumer, Sequence[AMQPDelivery]], seconds: float) -> None:
        self._wire = wire
        self._taken = taken
        self._seconds = seconds
        self._sent = False  # something, outside of any transaction
        self._ending = threading.Lock()  # who gets it, once, ends the transaction: the engine, or who waited for that

    def send_first(self, outgoing: Outgoing) -> None:
        """Send outside any transaction, and wait until the broker has taken it.

        Raises:
            TransactionRolledBackError: The broker refused all; the deliveries are given back.
            TransactionInDoubtError: Some were sent, and then the deliveries are given back, or may have been.
        """
        if not outgoing:
            return
        try:
            self._wire.ensure_links(outgoing, self._seconds)
        except JMSError as error:
            raise self._given_back(error) from error
        try:
            self._wire.send(outgoing, None, self._seconds)
        except ConnectionLostError as error:
            self._let_go()
            raise TransactionInDoubtError(f"Some messages may have been sent: {error}") from error
        except TransactionInDoubtError:
            self._give_back()
            raise
        except JMSError as error:
            raise self._given_back(error) from error
        self._sent = True

    def commit(self, outgoing: Outgoing) -> None:
        """Send and acknowledge in one transaction of the broker.

        Raises:
            TransactionRolledBackError: It did not happen; the deliveries are given back.
            TransactionInDoubtError: It may or may not have happened; or it did not, but something was sent before.
        """
        try:
            self._wire.ensure_links(outgoing, self._seconds)
            transaction = self._wire.declare(self._seconds)
        except JMSError as error:
            raise self._given_back(error) from error
        try:
            state, reason = self._write(transaction, outgoing)
        except JMSError as error:
            state, reason = None, self._not_discharged(error)
        if state is None:
            self._wire.roll_back(transaction)
            raise self._given_back(reason) from reason
        self._let_go()
        if state != ACCEPTED:
            self._judge(state, reason)

    def _write(self, transaction: bytes, outgoing: Outgoing) -> Any:
        """Send, settle and discharge, and wait for the answer to that: this thread is woken once for all."""
        then = partial(self._ask_for_end, transaction)
        if outgoing:
            return self._wire.send(outgoing, transaction, self._seconds, then)
        reply: Future[Any] = Future()
        then(reply)
        return self._wire.wait(reply, self._seconds, "the end of a transaction")

    def _not_discharged(self, error: JMSError) -> JMSError:
        """See to it that the discharge is not written any more.

        Raises:
            TransactionInDoubtError: It is written.
        """
        if self._ending.acquire(blocking=False):
            return error
        self._let_go()
        raise TransactionInDoubtError(
            f"The broker did not answer the commit, so it may or may not have happened: {error}"
        ) from error

    def _ask_for_end(self, transaction: bytes, reply: "Future[Any]") -> None:
        """Let the engine end the transaction, after all that it hears now: of a link that ends, for one."""
        try:
            self._wire.submit_nowait(partial(self._end, transaction, reply), reply)
        except JMSError as error:
            reply.set_exception(error)

    def _end(self, transaction: bytes, reply: "Future[Any]") -> None:
        """Write the acknowledgements and the discharge together. On the engine's thread."""
        try:
            self._wire.check_open()  # what was given up is not committed any more
            self._wire.check_coordinator()
            self._check()  # all of it or nothing: what is settled in a transaction that ends is not to be given back
            if not self._ending.acquire(blocking=False):
                return  # who waited has given it up
            if self._taken:
                self._settle(transaction)
            self._wire.discharge(transaction, reply)
        except JMSError as error:  # a link has ended, and the discharge is not written
            reply.set_result((None, error))

    def _settle(self, transaction: bytes) -> None:
        """Acknowledge in a transaction. On the engine's thread."""
        accepted = accept_in_transaction(transactional_accepted(transaction))
        for consumer, deliveries in self._taken.items():
            consumer.settle(deliveries, accepted)

    def _judge(self, state: int, reason: object) -> NoReturn:
        """Tell what it means that the broker did not accept the discharge."""
        self._start_anew()
        if state in FAILURE_OUTCOMES:
            raise self._rolled_back(f"The broker rolled the unit back: {reason}")
        raise TransactionInDoubtError("The broker told no outcome of the commit: it may or may not have happened.")

    def _start_anew(self) -> None:
        """The broker has taken back what the unit took; only a new connection gets that before what is here already."""
        if self._taken:
            self._wire.abort(ConnectionLostError("The broker rolled a unit back; what it took comes again."))

    def _check(self) -> None:
        """Raise why a link has ended, as far as that is known already."""
        for consumer in self._taken:
            consumer.check_link()

    def _given_back(self, error: JMSError) -> JMSError:
        self._give_back()
        return self._rolled_back(f"The unit was rolled back: {error}")

    def _rolled_back(self, what: str) -> JMSError:
        """Tell what did not happen; what was sent before the transaction did."""
        if self._sent:
            return TransactionInDoubtError(f"Some messages of the unit were sent before its transaction. {what}")
        return TransactionRolledBackError(what)

    def _give_back(self) -> None:
        """Give the deliveries back after a failure; on a lost connection the broker does it by itself."""
        try:
            for consumer, deliveries in self._taken.items():
                consumer.requeue(deliveries, [])
        except ConnectionLostError:
            self._let_go()

    def _let_go(self) -> None:
        let_go(self._taken)


Taken: TypeAlias = Mapping[AMQPConsumer, Sequence[AMQPDelivery]]  #: by their consumers


def acknowledge(wire: "LinkPool", taken: Taken, seconds: float) -> None:
    """Acknowledge, and wait until the broker has noted it. The deliveries are nobody's afterwards.

    Args:
        wire: The connection's links.
        taken: The deliveries.
        seconds: How long to wait for each answer of the broker.

    Raises:
        TransactionInDoubtError: It may not have happened.
    """
    proofs: list[Future[None]] = [Future() for _ in taken]
    try:
        wire.submit_nowait(partial(_accept_and_ask, taken, proofs), proofs[0])
        for each in proofs:
            wire.wait(each, seconds, "the acknowledgement of messages")
    except JMSError as error:
        raise _in_doubt(error) from error
    finally:
        let_go(taken)


def acknowledge_soon(taken: Taken) -> None:
    """Acknowledge without waiting; that may get lost. The deliveries are nobody's afterwards.

    Raises:
        TransactionInDoubtError: That it did get lost is known already.
    """
    try:
        for consumer, deliveries in taken.items():
            consumer.accept_soon(deliveries)
        for consumer in taken:
            consumer.check_link()
    except JMSError as error:
        raise _in_doubt(error) from error
    finally:
        let_go(taken)


def let_go(taken: Taken) -> None:
    """Nothing more is to be done; whether the links of closed consumers end well changes nothing for their unit."""
    for consumer, deliveries in taken.items():
        consumer.forget(deliveries)
        if consumer.closed:
            with suppress(JMSError):
                consumer.end_if_done()


def _accept_and_ask(taken: Taken, proofs: "Sequence[Future[None]]") -> None:
    """Acknowledge what can be: a link that has ended holds up no other, and tells why. On the engine's thread."""
    for consumer, deliveries in taken.items():
        with suppress(JMSError):
            consumer.settle(deliveries, accept)
    for consumer, each in zip(taken, proofs, strict=True):
        prove(consumer, each)


def _in_doubt(error: JMSError) -> TransactionInDoubtError:
    return TransactionInDoubtError(f"The broker did not confirm the acknowledgements: {error}")


def prove(consumer: SettlingConsumer, proof: "Future[None]") -> None:
    """Ask for it. On the engine's thread.

    Args:
        consumer: Who received what was acknowledged.
        proof: Done when the broker has handled all that was acknowledged for this consumer before.
    """
    consumer.round_trip().add_done_callback(lambda answer: _pass_on(answer, proof))


def _pass_on(answer: "Future[bool]", proof: "Future[None]") -> None:
    error = answer.exception()
    if error is None:
        proof.set_result(None)
    else:
        proof.set_exception(error)
