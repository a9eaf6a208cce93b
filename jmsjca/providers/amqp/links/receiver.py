"""Receiving links: credit, transfers read whole and within bounds, settlement."""

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
from jmsjca.providers.amqp.links.credit import CreditControl, DrainCredit, EchoCredit
from jmsjca.providers.amqp.links.link import Link
from jmsjca.providers.amqp.links.source import Source

__all__ = ["CreditedLink", "LimitExceeded", "ReadResult", "ReceiverLink", "ReceiverListener", "TransferReader"]

_DRAIN_RETRY_SECONDS = 0.25  # seconds until the broker is asked again for the answer to a drain

# So many messages may come unasked: where a broker is known to miscount, and where it has not heard of the link's end.
_MAX_UNREQUESTED = 1000


class CreditedLink(Link):
    """Everything but `attach` and `stop` belongs on the engine's thread.

    Args:
        engine: The connection.
        name: Where from.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, f"the receiver from {name}", reply_timeout)
        self._name = name
        self._requested: int = 0
        self._credit: CreditControl | None = None  # made with the link

    def grant(self, credit: int) -> None:
        """Ask for so many more messages."""
        if credit_of := self._active_credit():
            self._requested += credit
            credit_of.grant(credit)

    def drain(self) -> bool:
        """Ask for no more, and wait until what was on its way is here. Not on the engine's thread.

        Returns:
            True if the broker surely has no more.
        """
        answer = self._engine.call(lambda: credit.drain() if (credit := self._active_credit()) else _resolved())
        try:
            return self._await_drain(answer)
        except JMSError as error:
            if self.error is None or isinstance(error.__cause__, TimeoutError):  # which is why it has ended
                raise
            return False  # it has ended meanwhile, and why is told by `Arrivals.broken`

    def _await_drain(self, answer: "Future[bool]") -> bool:
        for _ in range(int(self._reply_timeout / _DRAIN_RETRY_SECONDS)):
            with suppress(TimeoutError):
                return answer.result(_DRAIN_RETRY_SECONDS)
            self._engine.call(lambda: credit.repeat_drain() if (credit := self._active_credit()) else None)
        return self._engine.wait(answer, _DRAIN_RETRY_SECONDS, f"the end of what was on its way from {self._name}")

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled all that was written before."""
        credit = self._active_credit()
        return credit.round_trip() if credit else _resolved(self.error)

    def revoke_credit(self) -> None:
        """Ask for no more, without waiting: the connection closes."""
        if self._active_credit():
            self._link.flow(-max(self._link.credit - self._link.queued, 0))  # below zero would be some four billions

    def on_flow(self) -> None:
        """The broker told its view of the credit."""
        if credit := self._active_credit():
            credit.on_flow()

    def _release(self) -> None:
        super()._release()
        self._credit = None

    def _active_credit(self) -> CreditControl | None:
        return self._credit if self.error is None and not self._locally_detached.done() else None


def _resolved(error: JMSError | None = None) -> "Future[bool]":
    """The answer where nobody answers."""
    future: Future[bool] = Future()
    if error is None:
        future.set_result(False)
    else:
        future.set_exception(error)
    return future


class LimitExceeded(Exception):  # noqa: N818  # it is no failure of ours
    """More came than may.

    Args:
        condition: What AMQP calls it.
        what: What came.
        remedy: What to do about it.
    """

    def __init__(self, condition: str, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.condition = condition
        self.what = what
        self.remedy = remedy


class ReadResult(NamedTuple):
    """What was there.

    Args:
        deliveries: Those that are complete.
        messages: The encoded messages of these.
        aborted: How many the broker gave up in the middle.
    """

    deliveries: list[Pointer]
    messages: list[bytes]
    aborted: int


class TransferReader:
    """Belongs on the engine's thread.

    Args:
        link: Proton's receiver.
        buffer: For bytes on their way.
        message_bytes: The largest message that is taken.
    """

    def __init__(self, link: Pointer, buffer: Buffer, message_bytes: int) -> None:
        self._link = link
        self._buffer = buffer
        self._receive = receive_function(link, buffer)
        self._message_bytes = message_bytes
        self._single_read_limit = min(buffer.size, message_bytes + 1)  # for what is taken at once
        self._partial_message = bytearray()

    def read(self, most: int) -> ReadResult:
        """Take what is there.

        Args:
            most: How many messages may come.

        Raises:
            Excess: A message is too large, or there are too many.
        """
        link, receive, content, too_long = self._link, self._receive, self._buffer.content, self._single_read_limit
        deliveries: list[Pointer] = []
        messages: list[bytes] = []
        aborted = 0
        while delivery := current(link):
            size = receive()
            if 0 <= size < too_long and not self._partial_message and not is_partial(delivery):  # as nearly all come
                encoded: bytes | None = content[:size]  # a copy
            elif size == ABORTED:
                self._drop_aborted(delivery)
                aborted += 1
                continue
            else:
                encoded = self._read_remaining(delivery, size)
            if encoded is None:
                break
            if len(deliveries) >= most:
                raise LimitExceeded("amqp:link:transfer-limit-exceeded", "More than was asked for")
            advance(link)
            deliveries.append(delivery)
            messages.append(encoded)
        return ReadResult(deliveries, messages, aborted)

    def discard(self) -> int:
        """Let go what comes, by name, be it complete or not: the link is at its end. Tells how much that was."""
        declined = 0
        while delivery := current(self._link):
            while self._receive() > 0:
                pass
            release([delivery])
            declined += 1
        return declined

    def _drop_aborted(self, delivery: Pointer) -> None:
        self._partial_message.clear()
        settle(delivery)

    def _read_remaining(self, delivery: Pointer, size: int) -> bytes | None:
        """The message, of which so many bytes are in the buffer; None as long as it is not complete."""
        while size > 0:
            self._partial_message += self._buffer.view[:size]
            self._check_size(len(self._partial_message))
            size = self._receive()
        if is_partial(delivery):
            return None
        encoded = bytes(self._partial_message)
        self._partial_message.clear()
        return encoded

    def _check_size(self, size: int) -> None:
        if size > self._message_bytes:
            what = f"A message of more than {self._message_bytes} bytes"
            remedy = "; raise Limits.message_bytes, or remove it at the broker"
            raise LimitExceeded("amqp:link:message-size-exceeded", what, remedy)


class ReceiverListener(Protocol):
    """Who is given what arrives. Called on the engine's thread."""

    def on_messages(self, first: int, messages: Sequence[bytes]) -> None:
        """Messages are complete: the handle of the first, those behind it follow; and the encoded messages."""
        ...

    def on_credit_changed(self, more: int) -> None:
        """The credit changed by so much, otherwise than by `ReceivingLink.grant` and what arrived."""
        ...

    def on_credit_lost(self) -> None:
        """Less comes than was asked for; that was told by `credited`."""
        ...

    def on_link_failed(self, error: JMSError) -> None:
        """Nothing more will come."""
        ...


class ReceiverLink(CreditedLink):
    """A link from one source. Everything but `attach` and `stop` belongs on the engine's thread.

    Args:
        engine: The connection.
        source: Where from.
        arrivals: Who is given what arrives.
        message_bytes: The largest message that is taken.
        reply_timeout: Seconds to wait for the broker's answers.
        drains: True if the broker understands drain.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        listener: ReceiverListener,
        message_bytes: int,
        reply_timeout: float,
        *,
        supports_drain: bool,
    ) -> None:
        source.check()
        super().__init__(engine, source.address.name, reply_timeout)
        self._supports_drain = supports_drain
        self._source = source
        self._listener = listener
        self._message_bytes = message_bytes
        self._reader: TransferReader
        self._unsettled: dict[int, Pointer] = {}
        self._received = 0
        self._discarded = 0
        self._unrequested_limit = (
            0 if supports_drain else _MAX_UNREQUESTED
        )  # RabbitMQ miscounts when credit and messages cross

    def settle(self, handles: Sequence[int], update: Disposition) -> None:
        """Give deliveries one state, and settle them.

        Raises:
            JMSError: The link has ended, and the broker has taken the deliveries back.
        """
        if self.error is not None:
            raise self.error
        self._settle(handles, update)

    def settle_each(self, states: Sequence[tuple[int, Disposition]]) -> None:
        """Give deliveries a state each, and settle them; those that the broker has taken back need none."""
        for handle, update in states:
            self._settle([handle], update)

    def _settle(self, handles: Sequence[int], update: Disposition) -> None:
        unsettled = self._unsettled
        update([unsettled.pop(handle) for handle in handles if handle in unsettled])

    def detach(self) -> None:
        """Close our end; only detach from a durable subscription, so that the broker keeps it."""
        if self._credit is not None:
            self._credit.on_link_ended(None)
        if self._source.is_durable and not self._locally_detached.done():
            self._locally_detached.set_result(None)
            self._link.detach()
        else:
            super().detach()

    def on_delivery(self, delivery: Pointer) -> bool:
        """Messages, or parts of them. Of those that are complete the broker has nothing to say."""
        del delivery
        self._read_messages()
        return True

    def _read_messages(self) -> None:
        credit = self._active_credit()
        if credit is None:
            self._discard()
            return
        try:
            self._deliver(self._reader.read(self._max_transfers()), credit)
        except LimitExceeded as excess:
            self._on_limit_exceeded(excess)

    def _max_transfers(self) -> int:
        """How many messages may still come."""
        return self._requested + self._unrequested_limit - self._received

    def _deliver(self, taken: ReadResult, credit: CreditControl) -> None:
        if taken.messages:
            first = self._received + 1
            self._received += len(taken.messages)
            self._unsettled.update(enumerate(taken.deliveries, first))
            self._listener.on_messages(first, taken.messages)
        credit.on_messages(len(taken.messages) + taken.aborted)
        if taken.aborted:
            self._listener.on_credit_changed(-taken.aborted)
            if not credit.draining:
                self._listener.on_credit_lost()

    def _on_limit_exceeded(self, excess: LimitExceeded) -> None:
        """Stop what would take too much memory, while it arrives."""
        text = f"{excess.what} came from {self._name}"
        self._discard()
        self._link.condition = Condition(excess.condition, text)
        self._fail(ResourceAllocationError(f"{text}{excess.remedy}."))
        self.detach()

    def _discard(self) -> None:
        """Let go what still comes on a link that has failed; a broker that goes on and on is left."""
        self._discarded += self._reader.discard()
        if self._discarded > self._requested - self._received + _MAX_UNREQUESTED:
            self._engine.abort(
                ConnectionLostError(f"The broker goes on sending from {self._name} after the end of the link.")
            )

    def _on_credit_changed(self, more: int) -> None:
        """What is asked for only to be answered may come, too; of what a stop takes back all may be on its way."""
        if not self._supports_drain:
            self._requested += max(more, -1)
        self._listener.on_credit_changed(more)

    def _create(self, session: Any, name: str) -> Any:
        link = session.receiver(self._source.subscription.name if self._source.subscription else name)
        self._source.apply(link.source)
        link.target.address = name
        link.rcv_settle_mode = RECEIVER_SETTLES_FIRST
        link.snd_settle_mode = SENDER_UNSETTLED
        link.max_message_size = self._message_bytes
        if self._supports_drain:
            self._credit = DrainCredit(link, self._on_credit_changed)
        else:
            self._credit = EchoCredit(
                link, self._on_credit_changed, self._engine.socket_transport.ensure_encoded, self._engine.submit
            )
        self._reader = TransferReader(pointer_to(link), self._engine.buffer, self._message_bytes)
        return link

    def _is_refused(self) -> bool:
        return self._link.remote_source.address is None

    def _attach_error(self) -> JMSError | None:
        return self._source.attach_error(self._link.remote_source)

    def _refusal_error(self, condition: Any) -> JMSError:
        return self._source.refusal_error(condition) or super()._refusal_error(condition)

    def _fail(self, error: JMSError) -> None:
        super()._fail(error)
        self._unsettled.clear()
        if self._credit is not None:
            self._credit.on_link_ended(error)
        self._listener.on_link_failed(error)

    def _release(self) -> None:
        super()._release()
        self._unsettled.clear()
