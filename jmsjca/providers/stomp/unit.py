"""A unit of work over STOMP: records deliveries and sends, and writes them in one batch at commit."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from jmsjca.destinations import Destination
from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.providers.common.unit import RequeuingUnit, size_limit_error, takes_deliveries_error
from jmsjca.providers.stomp.consumer import STOMPConsumer, STOMPDelivery
from jmsjca.providers.stomp.dialect import TRANSACTION, Dialect
from jmsjca.providers.stomp.errors import BrokerRefusedError
from jmsjca.providers.stomp.protocol.frames import Frame, with_headers
from jmsjca.providers.stomp.protocol.session import ReceiptWait, STOMPSession
from jmsjca.providers.stomp.protocol.transport import WriteError
from jmsjca.spi import Delivery

__all__ = ["STOMPUnit", "UnitCommit"]


class UnitCommit:
    """One batch of a unit: BEGIN, ACKs, SENDs and COMMIT, or SENDs and ACKs alone.

    The caller holds the only transaction of the connection.

    A broker that refuses a SEND may still commit the rest, so COMMIT is written when the SENDs are confirmed, or at
    once without SENDs. Where brokers work in order, the receipt of the last SEND confirms all of them: each receipt
    costs ActiveMQ as much as a message. All transactions have the same name: Artemis keeps a session for each name it
    has seen. A single SEND needs no transaction: its receipt, or an ERROR that can only concern it, gives its outcome.

    Args:
        session: The session.
        dialect: The dialect of the broker.
        receipt: The receipt that SENDs request.
        acks: The headers of the acknowledgements.
        sends: The encoded SEND frames, without a transaction.
        transacted: False to write without a transaction.
        after_earlier_batch: True if an earlier batch of the same unit has succeeded and cannot be rolled back.
    """

    def __init__(
        self,
        session: STOMPSession,
        dialect: Dialect,
        receipt: str,
        *,
        acks: Sequence[Mapping[str, str]] = (),
        sends: Sequence[bytes] = (),
        transacted: bool = True,
        after_earlier_batch: bool = False,
    ) -> None:
        self._session = session
        self._dialect = dialect
        self._acks = [dict(ack) for ack in acks]
        self._transacted = transacted and self._needs_transaction(len(sends))
        self._after_earlier_batch = after_earlier_batch
        alone = max(len(sends) - 1, 0) if self._transacted and dialect.confirms_in_order else 0
        frames = [with_headers(frame, TRANSACTION) for frame in sends] if self._transacted else sends
        self._sends = [*frames[:alone], *(with_headers(frame, {"receipt": receipt}) for frame in frames[alone:])]
        self._receipts = [receipt] * (len(sends) - alone)
        self._last = f"{receipt}c"

    def execute(self, timeout: float) -> None:
        """Write the batch, and wait until the broker has confirmed all of it.

        Raises:
            TransactionRolledBackError: Nothing of it was committed.
            TransactionInDoubtError: It may or may not be committed.
            ConnectionLostError: The connection was lost before anything was written.
        """
        if not (self._acks or self._sends):
            return
        if not self._transacted:
            self._write_and_await(b"", *self._untransacted_frames(), timeout)
        elif self._sends and self._dialect.confirms_before_commit:
            self._prepare(timeout)
            self._write_and_await(b"", self._commit_frames(), [self._last], timeout)
        else:
            self._write_and_await(
                self._transaction_frames(), self._commit_frames(), [*self._receipts, self._last], timeout
            )

    def start(self, timeout: float) -> Callable[[], None]:
        """Write a batch of untransacted SENDs without waiting.

        Args:
            timeout: Seconds that the returned function waits.

        Returns:
            A function that waits until the broker has confirmed all of it, and raises as `execute` does.
        """
        frames, receipts = self._untransacted_frames()
        if not receipts:
            return _do_nothing
        with self._untransacted_outcome():
            wait = self._expect(receipts)
            self._session.write(frames)
        return partial(self._await, wait, timeout)

    def _await(self, wait: ReceiptWait, timeout: float) -> None:
        with self._untransacted_outcome():
            try:
                wait.result(timeout)
            finally:
                self._session.receipts.forget(wait)

    @contextmanager
    def _untransacted_outcome(self) -> Generator[None]:
        """End the connection and raise the error of the unit if its frames are not confirmed."""
        try:
            yield
        except (WriteError, JMSError) as error:
            raise self._failure(error, 0) from error

    def _needs_transaction(self, sends: int) -> bool:
        if self._acks and self._dialect.acknowledges_in_transaction:
            return True
        return sends > 1 or (sends == 1 and not self._dialect.names_refused)

    def _prepare(self, timeout: float) -> None:
        """Write everything but COMMIT, and wait for its receipts. Nothing has happened yet."""
        try:
            self._exchange(self._transaction_frames(), self._receipts, timeout)
        except (WriteError, JMSError) as error:
            self._session.end(ConnectionLostError(f"A unit could not be committed: {error}"))
            raise self._outcome(error, happened=self._after_earlier_batch) from error

    def _write_and_await(self, head: bytes, decision: bytes, receipts: Sequence[str], timeout: float) -> None:
        """Write the frame that decides the outcome, after others that do not, and wait for the outcome."""
        try:
            with (
                self._session.dispatcher.deferring_errors()
                if self._dialect.refuses_commit_after_failed_send
                else nullcontext()
            ):
                self._exchange(head + decision, receipts, timeout)
        except (WriteError, JMSError) as error:
            raise self._failure(error, len(head)) from error

    def _failure(self, error: Exception, undecided: int) -> JMSError:
        """End the connection, and return the error of the unit; the first bytes that were written decide nothing."""
        self._session.end(ConnectionLostError(f"The outcome of a commit is not known: {error}"))
        return self._outcome(error, happened=not self._nothing_happened(error, undecided))

    def _outcome(self, error: Exception, *, happened: bool) -> JMSError:
        """Return the error of a failed unit: in doubt if anything of it may have happened, else rolled back."""
        if happened:
            return TransactionInDoubtError(f"The unit may or may not be committed: {error}")
        return TransactionRolledBackError(f"The unit was not committed: {error}")

    def _nothing_happened(self, error: Exception, undecided: int) -> bool:
        if self._after_earlier_batch:
            return False
        if isinstance(error, WriteError):
            return error.written <= undecided
        return isinstance(error, BrokerRefusedError) and self._is_refusal_of_all(error)

    def _is_refusal_of_all(self, error: BrokerRefusedError) -> bool:
        if not self._transacted:
            return not self._acks and ([error.receipt] == self._receipts or self._error_concerns_all(error))
        if self._dialect.broker.capabilities.transacted_send:
            return error.receipt == self._last
        return self._error_concerns_all(error)

    def _error_concerns_all(self, error: BrokerRefusedError) -> bool:
        """Return True if the ERROR says that all was refused, and cannot concern a request of another thread.

        Of several SENDs, those before the refused one have happened.
        """
        refusal = self._dialect.refusal_of_send
        about_this = error.receipt is None and error.only_request
        return about_this and refusal is not None and len(self._sends) == 1 and refusal in error.text

    def _exchange(self, frames: bytes, receipts: Sequence[str], timeout: float) -> None:
        wait = self._expect(receipts)
        try:
            self._session.write(frames)
            wait.result(timeout)
        finally:
            self._session.receipts.forget(wait)

    def _expect(self, receipts: Sequence[str]) -> ReceiptWait:
        try:
            return self._session.receipts.expect(*receipts)
        except ConnectionLostError as error:  # the connection ended since the last exchange
            raise WriteError(0, str(error)) from error

    def _transaction_frames(self) -> bytes:
        acks = (self._session.encode("ACK", {**ack, **TRANSACTION}) for ack in self._acks)
        return b"".join((self._session.encode("BEGIN", TRANSACTION), *acks, *self._sends))

    def _commit_frames(self) -> bytes:
        """Return COMMIT; for ActiveMQ with an empty ABORT, without which it searches all earlier ACKs each time."""
        encode = self._session.encode
        commit = encode("COMMIT", {**TRANSACTION, "receipt": self._last})
        if not (self._acks and self._dialect.needs_abort_after_commit):
            return commit
        return commit + encode("BEGIN", TRANSACTION) + encode("ABORT", TRANSACTION)

    def _untransacted_frames(self) -> tuple[bytes, list[str]]:
        """Return the frames that the broker handles one by one, so that the first one decides, and their receipts."""
        if self._acks:
            self._acks[-1].setdefault("receipt", self._last)
        receipts = [ack["receipt"] for ack in self._acks if "receipt" in ack]
        acks = (self._session.encode("ACK", ack) for ack in self._acks)
        return b"".join((*self._sends, *acks)), [*self._receipts, *receipts]


def _do_nothing() -> None:
    """Do nothing: there is nothing to wait for."""


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

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:
        """Acknowledge the deliveries and send the messages.

        Raises:
            TransactionRolledBackError: Nothing was committed; the deliveries are redelivered.
            TransactionInDoubtError: The unit may or may not be committed.
            IllegalStateError: It took a message that was received after an unsettled one, of a consumer that settles
                in the order of receipt. The unit stays open.
        """
        del confirmed  # over STOMP it always is
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
        if self._taken:
            raise takes_deliveries_error()
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
        if self._finished or self.lost:
            return []  # `_finish` raises the error
        return [
            f for consumer, group in self._taken_by_consumer().items() for f in consumer.frames_to_acknowledge(group)
        ]

    def _settle_and_send(self, acknowledged: Sequence[Frame], timeout: float) -> None:
        try:
            self._execute(acknowledged, timeout)
        finally:  # also after a failure, which loses the connection and its deliveries
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
