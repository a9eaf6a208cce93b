"""A unit over STOMP: notes deliveries and sends, and writes all of it in one burst at its end."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jmsjca.destinations import Destination
from jmsjca.errors import ResourceAllocationError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.common.unit import BaseUnit
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.commit import Burst
from jmsjca.providers.stomp.consumer import STOMPConsumer
from jmsjca.providers.stomp.delivery import STOMPDelivery
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import Wire
from jmsjca.spi import Delivery

__all__ = ["STOMPUnit"]


class STOMPUnit(BaseUnit[STOMPConsumer, STOMPDelivery]):
    """Notes deliveries and sends; `commit` writes them in one burst.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        message_bytes: The largest body that may be sent.
        check_target: Raises an error for what is known to be gone.
    """

    def __init__(
        self, wire: Wire, dialect: Dialect, message_bytes: int, check_target: Callable[[Destination], None]
    ) -> None:
        super().__init__()
        self._check_target = check_target
        self._wire = wire
        self._dialect = dialect
        self._message_bytes = message_bytes
        self._first: list[bytes] = []  # sent before the transaction
        self._sends: list[bytes] = []
        self._receipt = wire.receipts.new_id()
        self._before = f"{self._receipt}b"

    def send(self, message: Message, to: Destination) -> None:
        """Note a message to send. It is encoded now: changing it later changes nothing.

        Raises:
            NotSupportedError: It has a delivery time, and the broker holds no message back.
            ResourceAllocationError: It is too large.
            InvalidDestinationError: It goes to a temporary destination that this connection has deleted.
        """
        self._check_open()
        self._check_target(to)
        self._dialect.broker.require("delivery_delay", requested=message.delivery_time is not None)
        outgoing = self._dialect.encode(message, to)
        if len(outgoing.body) > self._message_bytes:
            raise ResourceAllocationError(
                f"A body of {len(outgoing.body)} bytes for {to} is over the limit of {self._message_bytes} bytes."
            )
        first = self._dialect.sends_ids_first and DUPLICATE_ID in message.properties
        (self._first if first else self._sends).append(self._dialect.send_frame(outgoing))

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002  # always is
        """Settle and send.

        Raises:
            TransactionRolledBackError: It did not happen; the deliveries come again.
            TransactionInDoubtError: It may or may not have happened.
            IllegalStateError: It takes what came after something that is not settled, of a consumer that settles in
                the order of receipt. The unit stays open.
        """
        acknowledged = self._acknowledged()
        self._finish()
        try:
            self._execute(acknowledged, self._wire.reply_timeout if timeout is None else timeout)
        finally:  # also when it failed: then the connection is lost, and with it what was delivered
            self._let_go()
            self._taken = []

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing; let the deliveries come again from here, counted but for the unused ones.

        Args:
            delay: Seconds until they may be delivered again; no broker holds them over STOMP.
            unused: Those of the deliveries that nobody has looked at.

        Raises:
            NotSupportedError: A delay was asked for.
        """
        self._dialect.broker.require("redelivery_delay", requested=bool(delay))
        self._finish()
        try:
            self._requeue_taken(unused)
        finally:
            self._taken = []

    def _acknowledged(self) -> Sequence[Frame]:
        """What is acknowledged, in the order of receipt or of taking."""
        if self._finished or self.lost or self._wire.home.in_child:
            return []  # which is told where the unit ends
        return [f for consumer, group in self._taken_by_consumer().items() for f in consumer.acknowledged_by(group)]

    def _check_open(self) -> None:
        self._wire.home.check()
        super()._check_open()

    def _execute(self, acknowledged: Sequence[Frame], timeout: float) -> None:
        if not (self._taken or self._sends or self._first):
            return
        with self._wire.turn(timeout):
            for burst in self._bursts(acknowledged):
                burst.execute(timeout)

    def _bursts(self, acknowledged: Sequence[Frame]) -> Iterator[Burst]:
        acks = [self._dialect.acknowledgement(frame) for frame in acknowledged]
        make, later = partial(Burst, self._wire, self._dialect), bool(self._first)
        yield make(self._before, sends=self._first, transacted=False)
        if self._dialect.broker.capabilities.atomic or not (acks and self._sends):
            yield make(self._receipt, acks=acks, sends=self._sends, later=later)
        else:
            yield make(self._receipt, sends=self._sends, later=later)
            yield make(self._wire.receipts.new_id(), acks=acks, later=True)

    def _let_go(self) -> None:
        for consumer, deliveries in self._taken_by_consumer().items():
            consumer.settle(deliveries)
