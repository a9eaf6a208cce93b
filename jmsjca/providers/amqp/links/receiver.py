"""Receiver links: credit, complete transfers within limits, settlement."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from proton import Condition

from jmsjca.errors import ConnectionLostError, JMSError, ResourceAllocationError
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    ABORTED,
    RECEIVER_SETTLES_FIRST,
    SENDER_UNSETTLED,
    Buffer,
    Disposition,
    Pointer,
    advance,
    current,
    is_partial,
    pointer_to,
    receive_function,
    release,
    settle,
)
from jmsjca.providers.amqp.errors import condition_text
from jmsjca.providers.amqp.links.credit import CreditControl, DrainCredit, RabbitMQ3Credit, RabbitMQ4Credit
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.source import Source
from jmsjca.providers.brokers.profile import CreditStyle

__all__ = ["LimitExceededError", "ReadResult", "ReceiverLink", "ReceiverListener", "TransferReader"]

_TOO_LARGE = "amqp:link:message-size-exceeded"
_TOO_LARGE_REMEDY = "; raise Limits.message_bytes, or remove the message at the broker"

_DRAIN_RETRY_SECONDS = 0.25  # seconds until a drain without an answer is repeated

# Messages that may arrive beyond the credit: where a broker is known to miscount, and after the link has failed, which
# the broker does not know yet.
_MAX_UNREQUESTED = 1000


class LimitExceededError(Exception):
    """The broker sent more than a limit allows.

    Args:
        condition: The AMQP error condition.
        what: The noun for error messages.
        remedy: How to avoid it.
    """

    def __init__(self, condition: str, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.condition = condition
        self.what = what
        self.remedy = remedy


class ReadResult(NamedTuple):
    """The result of one read.

    Args:
        deliveries: The complete deliveries.
        messages: Their encoded messages.
        aborted: Number of transfers that the broker aborted.
    """

    deliveries: list[Pointer]
    messages: list[bytes]
    aborted: int


class TransferReader:
    """Reads complete transfers from a proton receiver and enforces the limit of the message size. Engine thread only.

    Args:
        link: Proton's receiver.
        buffer: Scratch memory.
        message_bytes: Size of the largest message accepted.
    """

    def __init__(self, link: Pointer, buffer: Buffer, message_bytes: int) -> None:
        self._link = link
        self._buffer = buffer
        self._receive = receive_function(link, buffer)
        self._message_bytes = message_bytes
        self._single_read_limit = min(buffer.size, message_bytes + 1)  # for a message that is read in one call
        self._partial_message = bytearray()

    def read(self, maximum: int) -> ReadResult:
        """Read the available messages.

        Args:
            maximum: Number of messages that may arrive.

        Raises:
            LimitExceededError: A message is too large, or there are too many.
        """
        link, receive, content, limit = self._link, self._receive, self._buffer.content, self._single_read_limit
        deliveries: list[Pointer] = []
        messages: list[bytes] = []
        aborted = 0
        while delivery := current(link):
            size = receive()
            if 0 <= size < limit and not self._partial_message and not is_partial(delivery):  # nearly all messages
                encoded: bytes | None = content[:size]  # a copy
            elif size == ABORTED:
                self._drop_aborted(delivery)
                aborted += 1
                continue
            else:
                encoded = self._read_remaining(delivery, size)
            if encoded is None:
                break
            if len(deliveries) >= maximum:
                raise LimitExceededError("amqp:link:transfer-limit-exceeded", "More messages than requested")
            advance(link)
            deliveries.append(delivery)
            messages.append(encoded)
        return ReadResult(deliveries, messages, aborted)

    def discard(self) -> int:
        """Release all deliveries, complete or not, because the link has failed. Return their number."""
        discarded = 0
        while delivery := current(self._link):
            while self._receive() > 0:
                pass
            release([delivery])
            discarded += 1
        return discarded

    def _drop_aborted(self, delivery: Pointer) -> None:
        self._partial_message.clear()
        settle(delivery)

    def _read_remaining(self, delivery: Pointer, size: int) -> bytes | None:
        """Read the rest of a message, of which `size` bytes are in the buffer; None while it is incomplete."""
        while size > 0:
            self._partial_message += self._buffer.view[:size]
            if len(self._partial_message) > self._message_bytes:
                what = f"A message of more than {self._message_bytes} bytes"
                raise LimitExceededError(_TOO_LARGE, what, _TOO_LARGE_REMEDY)
            size = self._receive()
        if is_partial(delivery):
            return None
        encoded = bytes(self._partial_message)
        self._partial_message.clear()
        return encoded


class ReceiverListener(Protocol):
    """Receives the messages and failures of a receiver link. Called on the engine thread."""

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Complete messages arrived.

        Args:
            first: Handle of the first message; the others have the numbers that follow.
            messages: The encoded messages.
        """
        ...

    def on_credit_changed(self, more: int) -> None:
        """The credit changed by `more`, for another reason than `ReceiverLink.grant` and arrived messages."""
        ...

    def on_credit_lost(self) -> None:
        """Credit was used up without a message; `on_credit_changed` has reported it."""
        ...

    def on_link_failed(self, error: JMSError) -> None:
        """The link has failed; no more messages will arrive."""
        ...


class ReceiverLink(Link):
    """A link from a source. Everything but `attach` and `drain` belongs on the engine thread.

    Args:
        engine: The connection's engine.
        source: The source terminus.
        listener: Receives the messages.
        message_bytes: Size of the largest message accepted.
        reply_timeout: Seconds to wait for the broker's replies.
        credit: How the broker revokes credit.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        listener: ReceiverListener,
        message_bytes: int,
        reply_timeout: float,
        *,
        credit: CreditStyle = "drain",
    ) -> None:
        self._name = source.address.name
        super().__init__(engine, f"the receiver from {self._name}", reply_timeout)
        self._requested = 0
        self._credit: CreditControl | None = None  # created with the link
        self._credit_style = credit
        self._source = source
        self._listener = listener
        self._message_bytes = message_bytes
        self._reader: TransferReader
        self._unsettled: dict[int, Pointer] = {}
        self._received = 0
        self._discarded = 0
        # RabbitMQ 3 miscounts when credit and messages cross.
        self._unrequested_limit = _MAX_UNREQUESTED if credit == "rabbitmq3" else 0

    def grant(self, credit: int) -> None:
        """Grant credit for more messages."""
        if control := self._active_credit():
            self._requested += credit
            control.grant(credit)

    def drain(self) -> bool:
        """Drain the credit and wait until the messages in flight have arrived. Not on the engine thread.

        Returns:
            True if the broker certainly has no more messages.
        """
        answer = self._engine.call(lambda: credit.drain() if (credit := self._active_credit()) else _resolved())
        try:
            return self._await_drain(answer)
        except JMSError as error:
            if self.error is None or isinstance(error.__cause__, TimeoutError):  # which made the link fail
                raise
            return False  # the link failed during the drain; `ReceiverListener.on_link_failed` gets the reason

    def _await_drain(self, answer: "Future[bool]") -> bool:
        retries = max(int(self._reply_timeout / _DRAIN_RETRY_SECONDS) - 1, 0)
        for _ in range(retries):
            with suppress(TimeoutError):
                return answer.result(_DRAIN_RETRY_SECONDS)
            self._engine.call(lambda: credit.repeat_drain() if (credit := self._active_credit()) else None)
        what, waited = f"the drain of {self._name}", retries * _DRAIN_RETRY_SECONDS
        return self._engine.wait(answer, _DRAIN_RETRY_SECONDS, what, lambda: 0.0, waited)

    def round_trip(self) -> "Future[bool]":
        """Return a future that is done when the broker has processed all earlier output of this link's session."""
        credit = self._active_credit()
        if credit is None:
            closed = ConnectionLostError(f"The receiver from {self._name} was closed.")
            return _resolved(closed if self.error is None else self.error)
        return credit.round_trip()

    def revoke_credit(self) -> None:
        """Take back unused credit without waiting. Used while the connection closes."""
        if self._active_credit():
            # A negative credit would be 4 billion on the wire.
            self._link.flow(-max(self._link.credit - self._link.queued, 0))

    def settle(self, handles: Sequence[int], update: Disposition) -> None:
        """Settle deliveries with one outcome.

        Raises:
            JMSError: The link has failed; the broker has requeued the deliveries.
        """
        if self.error is not None:
            raise self.error
        self._settle(handles, update)

    def settle_each(self, states: Sequence[tuple[int, Disposition]]) -> None:
        """Settle deliveries with an outcome each; those that the broker has requeued already are skipped."""
        for handle, update in states:
            self._settle([handle], update)

    def _settle(self, handles: Sequence[int], update: Disposition) -> None:
        unsettled = self._unsettled
        update([unsettled.pop(handle) for handle in handles if handle in unsettled])

    def detach(self) -> None:
        """Close the link; only detach it from a durable subscription, which a close would remove."""
        if self._credit is not None:
            self._credit.on_link_ended(None)
        if self._source.is_durable and not self._locally_detached.done():
            self._locally_detached.set_result(None)
            self._link.detach()
        else:
            super().detach()

    def on_flow(self) -> None:
        """The broker reported its view of the credit."""
        if credit := self._active_credit():
            credit.on_flow()

    def on_delivery(self, delivery: Pointer) -> bool:
        """Transfers arrived, or parts of some. The broker changes no state of a complete one."""
        del delivery
        self._read_messages()
        return True

    def _active_credit(self) -> CreditControl | None:
        return self._credit if self.error is None and not self._locally_detached.done() else None

    def _read_messages(self) -> None:
        credit = self._active_credit()
        if credit is None:
            self._discard()
            return
        try:
            self._deliver(self._reader.read(self._max_transfers()), credit)
        except LimitExceededError as excess:
            self._on_limit_exceeded(excess)

    def _max_transfers(self) -> int:
        """Return the number of messages that may still arrive."""
        return self._requested + self._unrequested_limit - self._received

    def _deliver(self, result: ReadResult, credit: CreditControl) -> None:
        if result.messages:
            first = self._received + 1
            self._received += len(result.messages)
            self._unsettled.update(enumerate(result.deliveries, first))
            self._listener.on_messages(first, result.messages)
        credit.on_messages(len(result.messages) + result.aborted)
        if result.aborted:
            self._listener.on_credit_changed(-result.aborted)
            if not credit.draining:
                self._listener.on_credit_lost()

    def _on_limit_exceeded(self, excess: LimitExceededError) -> None:
        """Fail the link before the excess takes more memory."""
        text = f"{excess.what} came from {self._name}"
        self._discard()
        self._link.condition = Condition(excess.condition, text)
        self._fail(ResourceAllocationError(f"{text}{excess.remedy}."))
        self.detach()

    def _discard(self) -> None:
        """Release what still arrives on a failed link. A broker that does not stop sending loses the connection."""
        self._discarded += self._reader.discard()
        if self._discarded > self._requested - self._received + _MAX_UNREQUESTED:
            self._engine.abort(
                ConnectionLostError(f"The broker keeps sending from {self._name} after the end of the link.")
            )

    def _on_credit_changed(self, more: int) -> None:
        """Count the credit of probes as requested, since a message may use it.

        A revocation does not lower the count: messages for all of the revoked credit may be in flight.
        """
        self._requested += max(more, -1 if self._credit_style == "rabbitmq3" else 0)
        self._listener.on_credit_changed(more)

    def _create(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        link.rcv_settle_mode = RECEIVER_SETTLES_FIRST
        link.snd_settle_mode = SENDER_UNSETTLED
        link.max_message_size = self._message_bytes
        self._credit = self._credit_control(link)
        self._reader = TransferReader(pointer_to(link), self._engine.buffer, self._message_bytes)
        return link

    def _credit_control(self, link: Any) -> CreditControl:
        if self._credit_style == "drain":
            return DrainCredit(link, self._on_credit_changed)
        kind = RabbitMQ4Credit if self._credit_style == "rabbitmq4" else RabbitMQ3Credit
        return kind(link, self._on_credit_changed, self._engine.socket_transport.ensure_encoded, self._engine.submit)

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _attach_error(self) -> JMSError | None:
        return self._source.attach_error(self._link.remote_source)

    def _refusal_error(self, condition: Any) -> JMSError:
        if condition is not None and condition.name == _TOO_LARGE:  # some brokers do not send such a message at all
            return ResourceAllocationError(f"{condition_text(condition)}, of {self._name}{_TOO_LARGE_REMEDY}.")
        error = self._source.refusal_error(condition)
        return super()._refusal_error(condition) if error is None else error

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        self._unsettled.clear()
        if self._credit is not None:
            self._credit.on_link_ended(error)
        self._listener.on_link_failed(error)

    def _release(self) -> None:
        super()._release()
        self._credit = None
        self._unsettled.clear()


def _resolved(error: JMSError | None = None) -> "Future[bool]":
    """Return a future for a request that will not be answered."""
    future: Future[bool] = Future()
    if error is None:
        future.set_result(False)
    else:
        future.set_exception(error)
    return future
