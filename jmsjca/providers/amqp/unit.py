"""A unit of work over AMQP: records deliveries and sends, and writes them at commit."""

from collections.abc import Callable, Sequence

from jmsjca.config import Clock
from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.amqp.codec.encoder import EncodeUsual, encode, template_for
from jmsjca.providers.amqp.commit import UnitCommit, acknowledge_confirmed, acknowledge_nowait
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.links.link_pool import LinkPool, Outgoing
from jmsjca.providers.common.unit import RequeuingUnit, size_limit_error
from jmsjca.spi import Delivery

__all__ = ["AMQPUnit"]


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
        self._run_final(lambda: self._write(seconds, confirmed=confirmed))

    def start_commit(self) -> Callable[[], None]:
        """Send the messages without waiting. Messages to many destinations are committed before this returns.

        Returns:
            A function that waits until the broker has accepted the messages, and raises as `commit` does.

        Raises:
            IllegalStateError: The unit took deliveries.
            TransactionRolledBackError: The broker refuses a destination.
        """
        self._check_sends_only()
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

    def _abort(self, reason: ConnectionLostError) -> None:
        self._links.engine.abort(reason)

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
            batch.send_untransacted(first)
            if not self._atomic:
                batch.send_untransacted(outgoing)
                outgoing = {}
            if in_transaction and (self._taken or outgoing):
                batch.commit(outgoing)

    def _check_open(self) -> None:
        if self._finished or self.lost or self._links.is_closing or self._task_queue.error is not None:
            super()._check_open()
            self._links.engine.check_open()
            self._raise_lost()


def _do_nothing() -> None:
    """Do nothing: the unit is committed already."""


def _without_empty(outgoing: Outgoing) -> Outgoing:
    """Return messages without destinations for which each message was refused when it was encoded."""
    return {to: payloads for to, payloads in outgoing.items() if payloads}


def _is_one_message(outgoing: Outgoing) -> bool:
    return len(outgoing) == 1 and all(len(payloads) == 1 for payloads in outgoing.values())
