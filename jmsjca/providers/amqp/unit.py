"""A unit over AMQP: a note until its end, then one burst."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    NotSupportedError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.states import accept, accept_in
from jmsjca.spi import Delivery

if TYPE_CHECKING:
    from jmsjca.providers.amqp.wire import Wire

__all__ = ["AMQPUnit"]


class AMQPUnit:
    """Notes deliveries and sends; `commit` writes them in one transaction of the broker, if it has any.

    Without transactions the sends are confirmed first, then the deliveries are acknowledged.

    Args:
        wire: The connection's links.
        atomic: True if it must all happen together or not at all.
    """

    def __init__(self, wire: "Wire", *, atomic: bool) -> None:
        self._wire = wire
        self._atomic = atomic
        self._taken: list[AMQPDelivery] = []
        self._outgoing: dict[Destination, list[bytes]] = {}
        self._first: dict[Destination, list[bytes]] = {}  # sent before the transaction
        self._finished = False
        self.lost = False  # set when the connection closes over it

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Note that these deliveries are settled with this unit."""
        self._check_open()
        for delivery in cast("Sequence[AMQPDelivery]", deliveries):
            delivery.consumer.own([delivery])
            if delivery.unit is not None:
                raise IllegalStateError("This delivery belongs to a unit already.")
            delivery.unit = self
            self._taken.append(delivery)

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send. It is encoded now: changing it later changes nothing."""
        self._check_open()
        encoded = self._wire.encode(message, to)
        if len(encoded) > self._wire.message_bytes:
            raise ResourceAllocationError(
                f"A message of {len(encoded)} bytes for {to} is over the limit of {self._wire.message_bytes} bytes."
            )
        first = self._wire.ids_first and DUPLICATE_ID in message.properties
        (self._first if first else self._outgoing).setdefault(to, []).append(encoded)

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Settle and send.

        Args:
            confirmed: True to wait, without transactions, until the broker has noted the acknowledgements.
            timeout: Seconds to wait for each answer of the broker; None for the connection's own.

        Raises:
            TransactionRolledBackError: It did not happen; the deliveries are given back.
            TransactionInDoubtError: It may or may not have happened.
        """
        self._finish()
        if not (self._taken or self._outgoing or self._first):
            return
        seconds = self._wire.reply_timeout if timeout is None else timeout
        with self._wire.committing:  # units never overlap on one connection
            self._send_first(self._first, seconds)
            if not (self._atomic and self._wire.transactional):
                self._send_first(self._outgoing, seconds)
            if self._wire.transactional and (self._atomic or confirmed):
                self._commit_in_transaction(seconds)
            else:
                self._acknowledge(seconds, confirmed=confirmed)

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; give the deliveries back, counted but for the unused ones.

        Raises:
            NotSupportedError: A delay was asked for; brokers have none over AMQP.
        """
        if delay:
            raise NotSupportedError("This broker cannot delay a redelivery; its capability redelivery_delay says so.")
        self._finish()
        spared = {id(d) for d in unused}
        for consumer, deliveries in self._by_consumer().items():
            consumer.take_back(
                [d for d in deliveries if id(d) not in spared], [d for d in deliveries if id(d) in spared]
            )

    def give_up(self) -> None:
        """Let everything go, counted: the connection closes over this unit."""
        self.lost = True
        if not self._finished:
            for consumer, deliveries in self._by_consumer().items():
                consumer.let_fail(deliveries)

    def _commit_in_transaction(self, timeout: float) -> None:
        if not (self._taken or self._outgoing):
            return
        try:
            transaction = self._begin(timeout)
        except JMSError as error:
            self._give_back()
            raise TransactionRolledBackError(f"The unit was rolled back: {error}") from error
        try:
            reply = self._wire.call(lambda: self._end(transaction))
        except JMSError as error:  # the transaction was not discharged
            self._wire.roll_back(transaction)
            self._let_go()
            raise TransactionRolledBackError(f"The unit was rolled back: {error}") from error
        try:
            state, reason = self._wire.wait(reply, timeout, "the end of a transaction")
        except JMSError as error:
            raise TransactionInDoubtError(
                f"The broker did not answer the commit, so it may or may not have happened: {error}"
            ) from error
        finally:
            self._let_go()
        if not self._wire.is_committed(state):
            self._start_anew()
            raise TransactionRolledBackError(f"The broker rolled the unit back: {reason}")

    def _start_anew(self) -> None:
        """The broker has taken back what the unit took; only a new connection gets that before what is here already."""
        if self._taken:
            self._wire.abort(ConnectionLostError("The broker rolled a unit back; what it took comes again."))

    def _begin(self, timeout: float) -> bytes:
        """Declare the transaction and send in it; what the broker refuses rolls it back."""
        self._wire.prepare(self._outgoing, timeout)
        transaction = self._wire.declare(timeout)
        if self._outgoing:
            try:
                self._send(self._outgoing, transaction, timeout)
            except JMSError:
                self._wire.roll_back(transaction)
                raise
        return transaction

    def _send(self, outgoing: dict[Destination, list[bytes]], transaction: bytes | None, timeout: float) -> None:
        sent = self._wire.call(lambda: self._wire.send(outgoing, transaction))
        self._wire.wait(sent, timeout, "the messages of a unit")

    def _end(self, transaction: bytes) -> "Future[Any]":
        """Write the acknowledgements and the discharge together. On the engine's thread."""
        update = accept_in(transaction)
        for consumer, deliveries in self._by_consumer().items():
            consumer.settle(deliveries, update)
        return self._wire.discharge(transaction)

    def _send_first(self, outgoing: dict[Destination, list[bytes]], timeout: float) -> None:
        """Send outside any transaction, and wait until the broker has taken it."""
        if not outgoing:
            return
        try:
            self._wire.prepare(outgoing, timeout)
        except JMSError as error:
            self._give_back()
            raise TransactionRolledBackError(f"The unit was rolled back: {error}") from error
        try:
            self._send(outgoing, None, timeout)
        except ConnectionLostError as error:
            self._let_go()
            raise TransactionInDoubtError(f"Some messages may have been sent: {error}") from error
        except JMSError as error:
            self._give_back()
            raise TransactionRolledBackError(f"The unit was rolled back: {error}") from error
        outgoing.clear()

    def _acknowledge(self, timeout: float, *, confirmed: bool) -> None:
        try:
            self._wire.call(self._settle_all)
            if confirmed:
                self._confirm_all(timeout)
        except JMSError as error:
            raise TransactionInDoubtError(f"The broker did not confirm the acknowledgements: {error}") from error
        finally:
            self._let_go()

    def _settle_all(self) -> None:
        for consumer, deliveries in self._by_consumer().items():
            consumer.settle(deliveries, accept)

    def _confirm_all(self, timeout: float) -> None:
        """Wait until the broker has handled the acknowledgements, which must be written before that is asked."""
        groups = self._by_consumer()
        for answer in self._wire.call(lambda: [consumer.round_trip() for consumer in groups]):
            self._wire.wait(answer, timeout, "the acknowledgement of messages")

    def _give_back(self) -> None:
        """After a failure; on a lost connection the broker does it by itself."""
        try:
            for consumer, deliveries in self._by_consumer().items():
                consumer.take_back(deliveries, [])
        except ConnectionLostError:
            self._let_go()

    def _by_consumer(self) -> dict[AMQPConsumer, list[AMQPDelivery]]:
        groups: dict[AMQPConsumer, list[AMQPDelivery]] = {}
        for delivery in self._taken:
            groups.setdefault(delivery.consumer, []).append(delivery)
        return groups

    def _let_go(self) -> None:
        for consumer, deliveries in self._by_consumer().items():
            consumer.let_go(deliveries)
            consumer.end_if_done()

    def _finish(self) -> None:
        self._check_open()
        self._finished = True

    def _check_open(self) -> None:
        if self.lost:
            raise ConnectionLostError(
                "The connection of this unit was closed; its deliveries come again, nothing was sent."
            )
        self._wire.check()
        if self._finished:
            raise IllegalStateError("This unit is finished: a unit commits or rolls back once.")
