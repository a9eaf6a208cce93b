"""Consumers, deliveries and units of a client of Java: a unit is the transaction of one JMS session."""

import math
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from itertools import count
from typing import NoReturn, Protocol

from jmsjca.destinations import Destination
from jmsjca.errors import (
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    NotSupportedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsjca.log_records import get_logger
from jmsjca.messages import Message
from jmsjca.providers.common.consumer import BaseConsumer
from jmsjca.providers.common.unit import RequeuingUnit, size_limit_error, takes_deliveries_error
from jmsjca.providers.java import codec
from jmsjca.providers.java.bridge import BridgeReplyError, FrameReader
from jmsjca.providers.java.clients import Client
from jmsjca.spi import Delivery, Order, Unit, Xid

__all__ = ["JavaConsumer", "JavaDelivery", "JavaUnit", "Requests", "read_deliveries"]

logger = get_logger("jmsjca.java")

_RECEIVE, _WAKE, _CLOSE, _COMMIT, _PREPARE = 4, 5, 6, 7, 16
_ASK, _NAME = struct.Struct(">IIqI"), struct.Struct(">I")
_UNIT = struct.Struct(">qII")
_FOREVER = -1
_IN_DOUBT, _PARTIAL = 2, 3
_ROLLED_BACK = "The commit failed: nothing was sent, and the messages are redelivered"
_COUNT, _FLAGS, _REDELIVERED = slice(3, 7), 1, 2


class Requests(Protocol):
    """The requests of a connection, with their errors translated."""

    def ask(self, doing: str, operation: int, *body: bytes) -> FrameReader:
        """Send a request, and wait for its reply."""
        ...

    def start(self, operation: int, *body: bytes) -> "Future[FrameReader]":
        """Send a request."""
        ...

    def wait(self, doing: str, reply: "Future[FrameReader]") -> FrameReader:
        """Wait for a reply without a limit."""
        ...

    def end_prepared(self, xid: Xid, *, commits: bool, transaction: int) -> None:
        """Commit or roll back a prepared branch."""
        ...

    def roll_back(self, transactions: Sequence[int]) -> None:
        """Roll back transactions, which are in the order of receipt."""
        ...


class JavaConsumer(BaseConsumer["JavaDelivery"]):
    """A consumer. The bridge receives only what `receive` asks for, and rolls back what is returned.

    Args:
        requests: The requests of the connection.
        name: Its number.
        source: The destination that the messages come from.
        order: The order in which deliveries are settled.
        max_bytes: The largest size of one chunk, in bytes.
    """

    def __init__(self, requests: Requests, name: int, source: Destination, *, order: Order, max_bytes: int) -> None:
        super().__init__(order)
        self._requests = requests
        self._max_bytes = max_bytes
        self._sequence = count()
        self.name = name
        self.source = source

    def receive(self, limit: int, timeout: float | None) -> Sequence["JavaDelivery"]:
        """Return received messages up to a limit; wait for the first one.

        Args:
            limit: The largest number of messages.
            timeout: Seconds to wait; None waits forever, 0 does not wait.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                self._check_connected()
                if self._woken or self.closed:
                    self._woken = False
                    return []
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            received = self._ask(limit, left)
            if received or left == 0:
                return received

    def _ask(self, limit: int, timeout: float | None) -> Sequence["JavaDelivery"]:
        milliseconds = _FOREVER if timeout is None else math.ceil(timeout * 1000)
        reply = self._requests.start(_RECEIVE, _ASK.pack(self.name, limit, milliseconds, self._max_bytes))
        try:
            frame = self._requests.wait("receive", reply)
        except IllegalStateError as error:  # only a lost connection closes the session of an open consumer
            if self.closed:
                return []
            raise ConnectionLostError(f"The connection broke: {error}") from error
        received = read_deliveries(frame, self._sequence, self)
        with self._lock:
            self._check_connected()
            self._buffer.append(received)
            taken = self._buffer.take(len(received))
            if not self.closed:
                return taken
        self._return(taken)
        return []

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Roll back deliveries that no unit took; to keep the order, later ones are released with them."""
        with self._lock:
            owned = [d for d in self._owned(deliveries) if d.unit is None]
        self.requeue([], owned)

    def drain(self) -> Sequence["JavaDelivery"]:
        """Return nothing: only what `receive` asks for is on its way."""
        with self._lock:
            self._check_connected()
        return []

    def wake(self) -> None:
        """Make a waiting `receive` return."""
        if self.closed or self._error is not None:
            return
        self._woken = True
        with suppress(ConnectionLostError):  # then `receive` has ended, or fails
            self._requests.start(_WAKE, _NAME.pack(self.name))

    def close(self) -> None:
        """Roll back everything that no unit took."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            left = self._buffer.unassigned() if self._error is None else []
        if self._error is None:
            self._return(left)
            self._requests.ask("close a consumer", _CLOSE, _NAME.pack(self.name))

    def requeue(self, failed: Sequence["JavaDelivery"], unused: Sequence["JavaDelivery"]) -> None:
        """Return deliveries of a unit, and later ones with them where order must hold."""
        with self._lock:
            returned = self._buffer.with_later([*failed, *unused])
        self._return(returned)

    def _return(self, deliveries: Sequence["JavaDelivery"]) -> None:
        try:
            if deliveries:
                self._requests.roll_back(list(dict.fromkeys(d.transaction for d in deliveries)))
        finally:
            self.forget(deliveries)


class JavaDelivery:
    """A received message, decoded on first access.

    Args:
        data: The message in the form of the frames.
        transaction: The number of the JMS transaction that it belongs to; 0 for a browsed one.
        sequence: Its place in the order of receipt.
        consumer: The consumer that received it; None for a browsed one.

    Attributes:
        size: Its size in bytes.
        unit: The unit that took it; None until a unit takes it.
    """

    __slots__ = ("_message", "consumer", "data", "sequence", "size", "transaction", "unit")

    def __init__(self, data: bytes, transaction: int, sequence: int, consumer: JavaConsumer | None) -> None:
        self.data = data
        self.transaction = transaction
        self.sequence = sequence
        self.consumer = consumer
        self.size = len(data)
        self.unit: Unit | None = None
        self._message: Message | None = None

    @property
    def message(self) -> Message:
        """The message, decoded on first access; a body that cannot be decoded raises `MessageFormatError` here."""
        if self._message is None:
            source = self.consumer.source if self.consumer else None
            self._message = codec.decode(self.data, source, count=self.count or 0, redelivered=self.redelivered)
        return self._message

    @property
    def raw(self) -> bytes:
        """The body as bytes."""
        return codec.body_of(self.data)

    @property
    def digest(self) -> str:
        """A digest of what is the same for each delivery."""
        from hashlib import sha256  # loads OpenSSL, for few messages

        head = bytes([self.data[0], self.data[_FLAGS] & ~_REDELIVERED, self.data[2]])
        return sha256(head + self.data[_COUNT.stop :]).hexdigest()

    @property
    def count(self) -> int | None:
        """The delivery count of the broker; None if the client does not report it."""
        return int.from_bytes(self.data[_COUNT], "big") or None

    @property
    def redelivered(self) -> bool:
        """True if it was delivered before."""
        return bool(self.data[_FLAGS] & _REDELIVERED)

    def drop_content(self) -> None:
        """Free the memory of the message and its bytes."""
        self.data = b""
        self._message = None

    def for_redelivery(self, *, counted: bool) -> "JavaDelivery":
        """Return itself: the broker redelivers it, this process never does."""
        del counted
        return self


class JavaUnit(RequeuingUnit[JavaConsumer, JavaDelivery]):
    """Records deliveries and sends; `commit` writes them in one request.

    Args:
        requests: The requests of the connection.
        client: The client.
        message_bytes: The largest message that may be sent, in bytes.
        timeout: Seconds to wait for a commit by default.
        end: Ends the connection.
        check_target: Raises an error for a destination that cannot be sent to.
        qualifier: The qualifier of its branch of XA; None without XA.
    """

    def __init__(
        self,
        requests: Requests,
        client: Client,
        message_bytes: int,
        timeout: float,
        *,
        end: Callable[[JMSError], None],
        check_target: Callable[[Destination], None],
        qualifier: bytes | None = None,
    ) -> None:
        super().__init__()
        self._requests = requests
        self._client = client
        self._message_bytes = message_bytes
        self._timeout = timeout
        self._end_connection = end
        self._check_target = check_target
        self._qualifier = qualifier
        self._sends: list[bytes] = []
        self._is_prepared = False
        self._xid: Xid | None = None  # of the prepared branch

    def send(self, message: Message, to: Destination) -> None:
        """Record a message to send. It is encoded now: later changes of it have no effect.

        Raises:
            NotSupportedError: It has a delivery time, and the client cannot delay messages.
            ResourceAllocationError: It is larger than the limit.
            InvalidDestinationError: The destination cannot be used.
        """
        self._check_open()
        self._check_target(to)
        self._client.profile.require("delivery_delay", requested=message.delivery_time is not None)
        encoded = codec.encode(message, to, self._client.vendor)
        if len(encoded) > self._message_bytes:
            raise size_limit_error("message", len(encoded), self._message_bytes, to)
        self._sends.append(encoded)

    def commit(self, *, confirmed: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002  # always is
        """Acknowledge the deliveries and send the messages.

        Raises:
            TransactionRolledBackError: Nothing was committed; the deliveries are redelivered.
            TransactionInDoubtError: The unit may or may not be committed.
            NotSupportedError: The deliveries are not all those, or not only those, that one JMS session has received.
                Nothing was committed; they are redelivered.
        """
        if self._is_prepared:
            self._end_prepared(commits=True)
        else:
            self._run_final(lambda: self._commit(self._timeout if timeout is None else timeout))

    def prepare(self) -> Xid | None:
        """Prepare the unit: after that only `commit` or `rollback` may follow.

        Returns:
            The name of its branch; None if it has nothing to commit.

        Raises:
            TransactionRolledBackError: It cannot be committed. The deliveries are redelivered.
            NotSupportedError: As `commit`.
        """
        self._finish()
        is_done = False
        try:
            self._is_prepared = True
            number = self._settle(_PREPARE, self._timeout)
            self._xid = Xid(number, self._qualifier or b"") if number else None
            is_done = True
        except TransactionInDoubtError as error:
            raise TransactionRolledBackError(f"{_ROLLED_BACK}, by recovery at the latest: {error}") from error
        finally:
            if not (is_done and self._xid):
                self._forget_taken()
        return self._xid

    def abandon(self) -> None:
        """Leave the prepared unit to recovery, and end the connection: ActiveMQ's client keeps its deliveries."""
        self._xid = None
        self._forget_taken()
        self._end_connection(ConnectionLostError("The database that decides a prepared unit does not answer."))

    def start_commit(self) -> Callable[[], None]:
        """Send the messages, and do not wait. Return a function that waits, and raises as `commit` does.

        Raises:
            IllegalStateError: The unit took deliveries.
            ConnectionLostError: The connection is lost: nothing was sent.
        """
        if self._taken:
            raise takes_deliveries_error()
        self._finish()
        if not self._sends:
            return lambda: None
        reply = self._start()

        def wait() -> None:
            """Wait for the reply."""
            self._wait(reply, self._timeout)

        return wait

    def rollback(self, *, delay: float = 0.0, unused: Sequence[Delivery] = ()) -> None:
        """Send nothing, and roll back the deliveries, all of which the broker counts.

        Raises:
            NotSupportedError: The delay is not 0: no client can delay a redelivery.
        """
        self._client.profile.require("redelivery_delay", requested=bool(delay))
        if not self._is_prepared:
            self._run_final(lambda: self._requeue_taken(unused))
        elif self._taken:
            self._requeue_taken(unused)
            self._taken = []
        else:
            self._end_prepared(commits=False)

    def _commit(self, timeout: float) -> None:
        try:
            self._settle(_COMMIT, timeout)
        finally:
            self._forget_taken()

    def _settle(self, operation: int, timeout: float) -> bytes | None:
        if len({d.transaction for d in self._taken}) > 1:
            raise self._refuse("they were received in several calls of receive()")
        if not (self._taken or self._sends):
            return None
        frame = self._wait(self._start(operation), timeout)
        return frame.bytes() if operation == _PREPARE else None

    def _end_prepared(self, *, commits: bool) -> None:
        """Carry out a decision. If the connection is lost, recovery does it."""
        xid, self._xid = self._xid, None
        try:
            if xid is not None:
                self._requests.end_prepared(xid, commits=commits, transaction=self._transaction)
        except (TransactionRolledBackError, TransactionInDoubtError):
            raise
        except JMSError as error:
            if not commits:
                raise
            logger.warning("The prepared unit %s is committed later, by recovery: %s", xid, error)
        finally:
            self._forget_taken()

    def _forget_taken(self) -> None:
        for consumer, deliveries in self._taken_by_consumer().items():
            consumer.forget(deliveries)
        self._taken = []

    @property
    def _transaction(self) -> int:
        return self._taken[0].transaction if self._taken else 0

    def _start(self, operation: int = _COMMIT) -> "Future[FrameReader]":
        head = _UNIT.pack(self._transaction, len(self._taken), len(self._sends))
        return self._requests.start(operation, head, *self._sends)

    def _wait(self, reply: "Future[FrameReader]", timeout: float) -> FrameReader:
        try:
            return reply.result(timeout)
        except BridgeReplyError as error:
            if error.stage == _IN_DOUBT:
                self._doubt(error.text, error)
            if error.stage == _PARTIAL:
                raise self._refuse("others that were received with them are not settled") from error
            raise TransactionRolledBackError(f"{_ROLLED_BACK}: {error.text}") from error
        except FutureTimeoutError as error:
            self._doubt(f"the broker has not answered within {timeout:g} seconds", error)
        except ConnectionLostError as error:
            self._doubt(str(error), error)

    def _refuse(self, reason: str) -> NotSupportedError:
        """Roll the deliveries back, and return the error: a JMS session commits all that it has received."""
        self._requeue_taken(())
        return NotSupportedError(
            f"A JMS session commits what it has received together, and the messages of this unit cannot be committed "
            f"alone: {reason}. Nothing was committed, and they are redelivered. Commit all that was received in order, "
            "or give consumer() the number of messages that end together."
        )

    def _doubt(self, text: str, error: Exception) -> NoReturn:
        self._end_connection(ConnectionLostError(f"A commit is in doubt: {text}"))
        raise TransactionInDoubtError(f"It is unknown whether the unit was committed: {text}") from error


def read_deliveries(frame: FrameReader, sequence: "count[int]", consumer: JavaConsumer | None) -> list[JavaDelivery]:
    """Return the deliveries of a frame."""
    found: list[JavaDelivery] = []
    for _ in range(frame.count()):
        transaction, data = frame.i64(), frame.bytes()
        found.append(JavaDelivery(data or b"", transaction, next(sequence), consumer))
    return found
