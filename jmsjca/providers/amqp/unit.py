"""A unit over AMQP: a note until its end, then one burst."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    JMSError,
    ResourceAllocationError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.states import ACCEPTED, accept, accept_in
from jmsjca.providers.note import Note
from jmsjca.spi import Delivery

if TYPE_CHECKING:
    from jmsjca.providers.amqp.wire import Wire

__all__ = ["AMQPUnit"]


class AMQPUnit(Note[AMQPConsumer, AMQPDelivery]):
    """Notes deliveries and sends; `commit` writes them in one transaction of the broker, if it has any.

    Without transactions the sends are confirmed first, then the deliveries are acknowledged.

    Args:
        wire: The connection's links.
        atomic: True if it must all happen together or not at all.
    """

    def __init__(self, wire: "Wire", *, atomic: bool) -> None:
        super().__init__()
        self._wire = wire
        self._atomic = atomic
        self._outgoing: dict[Destination, list[bytes]] = {}
        self._first: dict[Destination, list[bytes]] = {}  # sent before the transaction

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send. It is encoded now: changing it later changes nothing.

        Raises:
            NotSupportedError: It has a delivery time, and the broker holds no message back.
            ResourceAllocationError: It is too large.
        """
        self._check_open()
        self._wire.broker.data.require("delivery_delay", asked=message.delivery_time is not None)
        encoded = self._wire.encode(message, to)
        if len(encoded) > self._wire.message_bytes:
            raise ResourceAllocationError(
                f"A message of {len(encoded)} bytes for {to} is over the limit of {self._wire.message_bytes} bytes."
            )
        first = self._wire.broker.ids_first and DUPLICATE_ID in message.properties
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
        seconds = self._wire.reply_timeout if timeout is None else timeout
        with self._ending():
            if self._taken or self._outgoing or self._first:
                self._write(seconds, confirmed=confirmed)

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; give the deliveries back, counted but for the unused ones.

        Raises:
            NotSupportedError: A delay was asked for; brokers have none over AMQP.
        """
        self._wire.broker.data.require("redelivery_delay", asked=bool(delay))
        with self._ending():
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

    def _write(self, seconds: float, *, confirmed: bool) -> None:
        with self._wire.committing:  # units never overlap on one connection
            self._send_first(self._first, seconds)
            if not self._atomic:
                self._send_first(self._outgoing, seconds)
            if self._atomic or (confirmed and self._wire.broker.data.capabilities.atomic):
                self._commit_in_transaction(seconds)
            else:
                self._acknowledge(seconds, confirmed=confirmed)

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
        if state != ACCEPTED:
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

    def _let_go(self) -> None:
        for consumer, deliveries in self._by_consumer().items():
            consumer.let_go(deliveries)
            consumer.end_if_done()

    def _check_open(self) -> None:
        super()._check_open()
        self._wire.check()
