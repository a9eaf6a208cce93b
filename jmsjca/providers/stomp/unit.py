"""A unit of work over STOMP: records deliveries and sends, and writes them in one batch at commit."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.common.unit import RequeuingUnit, size_limit_error
from jmsjca.providers.stomp.brokers.dialect import Dialect
from jmsjca.providers.stomp.commit import UnitCommit
from jmsjca.providers.stomp.consumer import STOMPConsumer
from jmsjca.providers.stomp.delivery import STOMPDelivery
from jmsjca.providers.stomp.protocol.frames import Frame
from jmsjca.providers.stomp.protocol.session import STOMPSession
from jmsjca.spi import Delivery

__all__ = ["STOMPUnit"]


class STOMPUnit(RequeuingUnit[STOMPConsumer, STOMPDelivery]):
    """Records deliveries and sends; `commit` writes them in one batch.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        message_bytes: The largest body that may be sent, in bytes.
        check_target: Raises an error for a temporary destination that was deleted.
    """

    def __init__(
        self, session: STOMPSession, dialect: Dialect, message_bytes: int, check_target: Callable[[Destination], None]
    ) -> None:
        super().__init__()
        self._check_target = check_target
        self._session = session
        self._dialect = dialect
        self._message_bytes = message_bytes
        self._untransacted_sends: list[bytes] = []  # sent before the transaction, for duplicate detection
        self._sends: list[bytes] = []
        self._receipt = session.receipts.new_id()
        self._untransacted_receipt = f"{self._receipt}b"

    def send(self, message: Message, to: Destination) -> None:
        """Record a message to send. It is encoded now: later changes of it have no effect.

        Raises:
            NotSupportedError: It has a delivery time, and the broker cannot delay messages.
            ResourceAllocationError: Its body is larger than the limit.
            InvalidDestinationError: The target is a temporary destination that this connection has deleted.
        """
        self._check_open()
        self._check_target(to)
        self._dialect.broker.require("delivery_delay", requested=message.delivery_time is not None)
        outgoing = self._dialect.encode(message, to)
        if len(outgoing.body) > self._message_bytes:
            raise size_limit_error("body", len(outgoing.body), self._message_bytes, to)
        first = self._dialect.duplicate_ids_before_transaction and DUPLICATE_ID in message.properties
        (self._untransacted_sends if first else self._sends).append(self._dialect.send_frame(outgoing))

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002  # always is
        """Acknowledge the deliveries and send the messages.

        Raises:
            TransactionRolledBackError: Nothing was committed; the deliveries are redelivered.
            TransactionInDoubtError: The unit may or may not be committed.
            IllegalStateError: It took a message that was received after an unsettled one, of a consumer that settles
                in the order of receipt. The unit stays open.
        """
        acknowledged = self._acknowledged()
        seconds = self._session.reply_timeout if timeout is None else timeout
        self._run_final(lambda: self._settle_and_send(acknowledged, seconds))

    def start_commit(self) -> Callable[[], None]:
        """Send the messages without a transaction, and do not wait for their receipts.

        Returns:
            A function that waits for the receipts, and raises as `commit` does.

        Raises:
            IllegalStateError: The unit took deliveries.
            TransactionRolledBackError: The connection broke before anything was written.
        """
        self._check_sends_only()
        self._finish()
        sends = [*self._untransacted_sends, *self._sends]
        return UnitCommit(self._session, self._dialect, self._receipt, sends=sends, transacted=False).start(
            self._session.reply_timeout
        )

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing, and requeue the deliveries in this client; the unused ones are not counted.

        Args:
            delay: Seconds until redelivery; over STOMP no broker can delay it, so it must be 0.
            unused: The deliveries that were not processed.

        Raises:
            NotSupportedError: The delay is not 0.
        """
        self._dialect.broker.require("redelivery_delay", requested=bool(delay))
        self._run_final(lambda: self._requeue_taken(unused))

    def _acknowledged(self) -> Sequence[Frame]:
        """Return the frames to acknowledge, in the order of receipt or of taking."""
        if self._finished or self.lost or self._session.home.in_child:
            return []  # `_finish` raises the error
        return [
            f for consumer, group in self._taken_by_consumer().items() for f in consumer.frames_to_acknowledge(group)
        ]

    def _check_open(self) -> None:
        self._session.home.check()
        super()._check_open()

    def _abort(self, reason: ConnectionLostError) -> None:
        self._session.end(reason)

    def _settle_and_send(self, acknowledged: Sequence[Frame], timeout: float) -> None:
        try:
            self._execute(acknowledged, timeout)
        finally:  # after a failure too: the connection is lost then, and its deliveries with it
            self._forget_deliveries()

    def _execute(self, acknowledged: Sequence[Frame], timeout: float) -> None:
        if not (self._taken or self._sends or self._untransacted_sends):
            return
        began = False
        try:
            with self._session.exclusive_transaction(timeout):
                began = True
                for burst in self._batches(acknowledged):
                    burst.execute(timeout)
        except JMSError as error:
            if began:  # the connection ends; its own thread marks the consumers as lost, but perhaps too late
                self._lose_consumers(error)
            else:
                self._requeue_taken(())
                self._taken = []
            raise

    def _batches(self, acknowledged: Sequence[Frame]) -> Iterator[UnitCommit]:
        acks = [self._dialect.acknowledgement(frame) for frame in acknowledged]
        make, later = partial(UnitCommit, self._session, self._dialect), bool(self._untransacted_sends)
        yield make(self._untransacted_receipt, sends=self._untransacted_sends, transacted=False)
        if self._dialect.broker.capabilities.atomic or not (acks and self._sends):
            yield make(self._receipt, acks=acks, sends=self._sends, after_earlier_batch=later)
        else:
            yield make(self._receipt, sends=self._sends, after_earlier_batch=later)
            yield make(self._session.receipts.new_id(), acks=acks, after_earlier_batch=True)

    def _lose_consumers(self, error: JMSError) -> None:
        for consumer in self._taken_by_consumer():
            consumer.on_connection_lost(ConnectionLostError(f"The connection was ended: {error}"))

    def _forget_deliveries(self) -> None:
        for consumer, deliveries in self._taken_by_consumer().items():
            consumer.settle(deliveries)
