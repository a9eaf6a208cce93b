"""A unit over AMQP: notes deliveries and sends until its end, then writes all of it in one burst."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jmsjca.destinations import Destination
from jmsjca.errors import JMSError, ResourceAllocationError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.amqp.codec.encoder import EncodeUsual, template_for
from jmsjca.providers.amqp.commit import Burst, acknowledge, acknowledge_soon
from jmsjca.providers.amqp.consumer import AMQPConsumer
from jmsjca.providers.amqp.delivery import AMQPDelivery
from jmsjca.providers.amqp.links.link_pool import Outgoing
from jmsjca.providers.common.unit import BaseUnit
from jmsjca.spi import Delivery

if TYPE_CHECKING:
    from jmsjca.providers.amqp.links.link_pool import LinkPool

__all__ = ["AMQPUnit"]


class AMQPUnit(BaseUnit[AMQPConsumer, AMQPDelivery]):
    """Notes deliveries and sends; `commit` writes them in one transaction of the broker, if it has any.

    Without transactions the sends are confirmed first, then the deliveries are acknowledged.

    Args:
        wire: The connection's links.
        atomic: True if it must all happen together or not at all.
    """

    def __init__(self, wire: "LinkPool", *, atomic: bool) -> None:
        super().__init__()
        self._wire = wire
        self._atomic = atomic
        self._outgoing: dict[Destination, list[bytes]] = {}
        self._first: dict[Destination, list[bytes]] = {}  # sent before the transaction
        self._latest: Destination | None = None
        self._cast: EncodeUsual
        self._payloads: list[bytes]  # for the latest destination

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send. It is encoded now: changing it later changes nothing.

        Raises:
            NotSupportedError: It has a delivery time, and the broker holds no message back.
            ResourceAllocationError: It is too large.
        """
        if self._finished or self._wire.task_queue.error is not None:  # a call for each would cost more
            self._check_open()
        if to is not self._latest:
            self._turn_to(to)
        encoded, payloads = self._cast(message), self._payloads
        if encoded is None:
            encoded, payloads = self._encoded(message, to)
        if len(encoded) > self._wire.message_bytes:
            raise ResourceAllocationError(
                f"A message of {len(encoded)} bytes for {to} is over the limit of {self._wire.message_bytes} bytes."
            )
        payloads.append(encoded)

    def _turn_to(self, to: Destination) -> None:
        """Have ready what the next message needs if it goes to the same destination, as most do."""
        self._cast, self._payloads = template_for(to, self._wire.broker.naming), self._outgoing.setdefault(to, [])
        self._latest = to

    def _encoded(self, message: Message, to: Destination) -> tuple[bytes, list[bytes]]:
        """A message that has something rare, and what it goes to the broker with."""
        wire = self._wire
        if message.delivery_time is not None:
            wire.broker.data.require("delivery_delay")
        first = wire.broker.duplicate_ids_before_transaction and DUPLICATE_ID in message.properties
        return wire.encode(message, to), self._first.setdefault(to, []) if first else self._payloads

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
        self._end(lambda: self._write(seconds, confirmed=confirmed))

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; give the deliveries back, counted but for the unused ones.

        Raises:
            NotSupportedError: A delay was asked for; brokers have none over AMQP.
        """
        self._wire.broker.data.require("redelivery_delay", requested=bool(delay))
        self._end(lambda: self._requeue_taken(unused))

    def give_up(self) -> None:
        """Let everything go, counted: the connection closes over this unit."""
        self.lost = True
        if not self._finished:
            for consumer, deliveries in self._taken_by_consumer().items():
                consumer.let_fail(deliveries)

    def _end(self, write: Callable[[], None]) -> None:
        self._finish()
        try:
            write()
        except JMSError:
            raise
        except BaseException:  # of a signal handler, say
            self._wire.abort_interrupted()
            raise
        finally:
            self._taken = []

    def _write(self, seconds: float, *, confirmed: bool) -> None:
        first, outgoing = self._first and _filled(self._first), self._outgoing and _filled(self._outgoing)
        in_transaction = self._atomic or (confirmed and self._wire.broker.data.capabilities.atomic)
        if first or outgoing or (self._taken and in_transaction):
            self._burst(first, outgoing, seconds, in_transaction=in_transaction)
        if not self._taken or in_transaction:
            return
        if confirmed:  # many at one time: they share the broker's answer
            acknowledge(self._wire, self._taken_by_consumer(), seconds)
        else:
            acknowledge_soon(self._taken_by_consumer())

    def _burst(self, first: Outgoing, outgoing: Outgoing, seconds: float, *, in_transaction: bool) -> None:
        burst = Burst(self._wire, self._taken_by_consumer(), seconds)
        with self._wire.commit_lock:  # units never overlap on one connection
            burst.send_first(first)
            if not self._atomic:
                burst.send_first(outgoing)
                outgoing = {}
            if in_transaction and (self._taken or outgoing):
                burst.commit(outgoing)

    def _check_open(self) -> None:
        if self._finished or self.lost or self._wire.is_closing or self._wire.task_queue.error is not None:
            super()._check_open()
            self._wire.check_open()
            self._raise_lost()


def _filled(outgoing: Outgoing) -> Outgoing:
    """Without destinations of which every message was refused."""
    return {to: payloads for to, payloads in outgoing.items() if payloads}
