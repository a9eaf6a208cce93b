"""Sender links: to one destination or to all, and the aggregated outcome of messages sent together."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from jmsjca.destinations import Destination
from jmsjca.errors import InvalidDestinationError, JMSError
from jmsjca.providers.amqp.codec.addresses import Address
from jmsjca.providers.amqp.engine.engine import Engine
from jmsjca.providers.amqp.engine.proton_ffi import (
    TERMINUS_UNSPECIFIED,
    DeliveryTags,
    Pointer,
    decode_state,
    is_settled,
    pointer_to,
    remote_data,
    remote_state,
    remote_state_matcher,
    send,
    settle,
    wrap_delivery,
)
from jmsjca.providers.amqp.errors import is_message_refusal, link_error
from jmsjca.providers.amqp.links.delivery_states import (
    ACCEPTED,
    RELEASED,
    TRANSACTIONAL,
    outcome_of,
    transactional_accepted_wide,
    transactional_outcome,
    transactional_state,
)
from jmsjca.providers.amqp.links.link import Link

__all__ = ["AnonymousRelayLink", "SendBatch", "SenderLink", "Then"]

Then = Callable[["Future[Any]"], None]  #: runs next, and completes the future


class BatchSender(Protocol):
    """A link on which messages of a batch may wait for credit."""

    def discard(self, batch: "SendBatch") -> int:
        """Send no more messages of a batch. Return the number of those not sent."""
        ...


class SendBatch:
    """A batch of outgoing transfers and its aggregated outcome. After an error no more of them are sent.

    Args:
        count: Number of messages.
        transaction: The transaction's id; None outside a transaction.
        now: The monotonic clock.
        presettle: True to let the broker report the outcome of only some messages, in a transaction.
        then: Runs on the engine thread once the broker has accepted all messages, and completes `done`.

    Attributes:
        presettled: True if most messages are sent settled.
        state: The fields of the transactional state; None outside a transaction.
        outstanding: Number of messages that wait for their outcome or for credit.
        latest: When the latest outcome arrived; 0 before the first.
        error: The error of the first message that was not accepted.
        any_accepted: True once the broker has accepted a message.
        in_doubt: True if the broker may have accepted a message without reporting it.
        accepted_state: The encoded fields of the broker's state for an accepted message.
        done: Done when all outcomes are known, and `then` has completed it.
    """

    def __init__(
        self,
        count: int,
        transaction: bytes | None,
        now: Callable[[], float],
        *,
        presettle: bool = False,
        then: "Then | None" = None,
    ) -> None:
        self.presettled = presettle and transaction is not None
        self.outstanding = count
        self._now = now
        self._then = then
        self.latest = 0.0
        self._links: list[BatchSender] = []
        self.state = None if transaction is None else decode_state(transactional_state(transaction))
        self.error: JMSError | None = None
        self.any_accepted = False
        self.in_doubt = False
        # Until the broker encodes it in another way.
        self.accepted_state = b"" if transaction is None else transactional_accepted_wide(transaction)
        self.done: Future[Any] = Future()
        self._complete_if_done()

    def add_link(self, link: BatchSender) -> None:
        """Add a link on which messages of the batch may wait for credit."""
        self._links.append(link)

    @property
    def begun(self) -> bool:
        """True once the engine thread has begun to send the messages."""
        return bool(self._links)

    def on_presettled(self, count: int) -> None:
        """Count messages that were sent settled. The broker reports the outcome of a message behind them."""
        self.outstanding -= count

    def on_accepted(self, count: int) -> None:
        """Count messages that the broker accepted."""
        if count:
            self.any_accepted = True
            self._on_outcomes(count)

    def on_rejected(self, count: int, error: JMSError) -> None:
        """Count messages that were rejected or not even sent. Those that wait for credit are not sent any more.

        The outcomes of all messages that were sent are awaited nevertheless: a transfer that is written later could
        become part of the next transaction.
        """
        if self.error is None:
            self.error = error
            count += sum(link.discard(self) for link in self._links)
        self._on_outcomes(count)

    def _on_outcomes(self, count: int) -> None:
        self.latest = self._now()
        self.outstanding -= count
        self._complete_if_done()

    def _complete_if_done(self) -> None:
        if self.outstanding or self.done.done():
            return
        if self.error is not None:
            self.done.set_exception(self.error)
        elif self._then is not None:
            self._then(self.done)
        else:
            self.done.set_result(None)


_RUN_MESSAGES, _RUN_BYTES = 100, 1024 * 1024  # of presettled messages, one in each run gets an outcome
_CHUNK_BYTES = 60 * 1024  # bytes written at a time; proton's buffer holds 64 KiB


class SenderLink(Link):
    """A link to one destination.

    Args:
        engine: The connection's engine.
        address: The target's address.
        reply_timeout: Seconds to wait for the broker's replies.
        returns_unroutable: True if the broker releases a message that no queue takes.
    """

    def __init__(
        self, engine: Engine, address: Address, reply_timeout: float, *, returns_unroutable: bool = False
    ) -> None:
        address.check()
        super().__init__(engine, f"the sender to {address.name}", reply_timeout)
        self._address = address
        self._returns_unroutable = returns_unroutable
        self._queued: deque[tuple[deque[bytes], SendBatch, Destination]] = deque()
        self._unsettled: dict[Pointer, tuple[SendBatch, Destination]] = {}
        self._send_order: deque[Pointer] = deque()  # a dictionary takes long to find its first key after many removals
        self._pointer: Pointer = None
        self._tags = DeliveryTags()

    def send(self, payloads: Sequence[bytes], batch: SendBatch, to: Destination) -> None:
        """Send encoded messages as credit allows. Engine thread only."""
        error = self.error if batch.error is None else batch.error
        if error is not None:
            batch.on_rejected(len(payloads), error)
            return
        batch.add_link(self)
        self._queued.append((deque(payloads), batch, to))
        self.on_flow()

    def discard(self, batch: SendBatch) -> int:
        """Send no more messages of a batch. Return the number of those not sent."""
        dropped = sum(len(payloads) for payloads, whose, _ in self._queued if whose is batch)
        self._queued = deque(entry for entry in self._queued if entry[1] is not batch)
        return dropped

    def detach_if_idle(self) -> bool:
        """Detach the link unless messages wait for credit or their outcome. Engine thread only.

        Returns:
            True if it was detached.
        """
        if self._queued or self._unsettled:
            return False
        self.detach()
        return True

    def on_connection_lost(self, error: JMSError) -> None:
        """The connection is lost. The broker may have accepted what was sent."""
        self._fail_all(error, in_doubt=True)
        super().on_connection_lost(error)

    def on_closed(self, condition: Any) -> None:
        """The link has ended. With a matching condition that is the outcome of one message, but not of several."""
        super().on_closed(condition)
        if self.error is not None:
            self._fail_all(self.error, in_doubt=len(self._unsettled) > 1 or not is_message_refusal(condition))

    def on_flow(self) -> None:
        """Send as credit allows."""
        credit = self._link.credit if self._queued else 0
        while credit > 0 and self._queued:
            payloads, batch, to = self._queued[0]
            if len(payloads) <= credit:
                part = list(payloads)
                self._queued.popleft()
            else:
                part = [payloads.popleft() for _ in range(credit)]
            transport = self._engine.socket_transport
            write = transport.flush if len(part) > 1 else transport.ensure_encoded  # one alone is written with others
            for chunk, is_last in _runs_and_chunks(part):
                write()  # so that the broker can start processing
                self._send(chunk, batch, to, settled=len(chunk) - is_last if batch.presettled else 0)
            credit -= len(part)

    def _send(self, payloads: Sequence[bytes], batch: SendBatch, to: Destination, *, settled: int) -> None:
        sent = send(self._pointer, self._tags, payloads, batch.state, settled)
        batch.on_presettled(settled)
        self._unsettled.update(dict.fromkeys(sent, (batch, to)))
        self._send_order.extend(sent)

    def on_delivery(self, delivery: Pointer) -> bool:
        """The broker reported an outcome: most often it accepted this message and all before it."""
        entry = self._unsettled.get(delivery)
        if entry is not None:
            self._settle_accepted(entry[0])
            if delivery in self._unsettled:
                self._on_outcome(delivery, *entry)
        return not self._unsettled

    def _settle_accepted(self, batch: SendBatch) -> None:
        """Settle accepted messages, in order, up to one with another outcome. Begin with this batch."""
        is_accepted = remote_state_matcher(batch.accepted_state, self._engine.buffer)
        order, unsettled, count = self._send_order, self._unsettled, 0
        while order:
            delivery = order[0]
            entry = unsettled.get(delivery)
            if entry is not None:  # otherwise its outcome was processed out of order
                state = remote_state(delivery)
                if entry[0] is not batch:
                    batch.on_accepted(count)
                    batch, count = entry[0], 0
                    is_accepted = remote_state_matcher(batch.accepted_state, self._engine.buffer)
                if state != ACCEPTED and not (state == TRANSACTIONAL and is_accepted(delivery)):
                    break
                settle(delivery)
                del unsettled[delivery]
                count += 1
            order.popleft()
        batch.on_accepted(count)

    def _on_outcome(self, delivery: Pointer, batch: SendBatch, to: Destination) -> None:
        state = remote_state(delivery)
        if state == ACCEPTED:  # before a message that was sent earlier
            self._complete(delivery, batch, None)
            return
        if state == TRANSACTIONAL:
            fields = remote_data(delivery, self._engine.buffer)
            outcome, condition = transactional_outcome(fields)
        else:
            fields = b""
            outcome, condition = outcome_of(wrap_delivery(delivery))
        if outcome is None and not is_settled(delivery):
            return
        if outcome == ACCEPTED:
            batch.accepted_state = fields
            self._complete(delivery, batch, None)
        elif outcome == RELEASED and self._returns_unroutable:
            self._complete(delivery, batch, _unroutable_error(to))
        elif outcome is None:
            batch.in_doubt = True
            self._complete(delivery, batch, JMSError(f"The broker reported no outcome of a message to {to}."))
        else:
            self._complete(delivery, batch, link_error(condition, f"{to} did not accept a message"))

    def _complete(self, delivery: Pointer, batch: SendBatch, error: JMSError | None) -> None:
        del self._unsettled[delivery]
        settle(delivery)
        if error is None:
            batch.on_accepted(1)
        else:
            batch.on_rejected(1, error)

    def _create(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        self._pointer = pointer_to(link)
        self._set_target(link.target)
        # No outcomes: with these Broker-J ends the link for every message that it does not accept.
        link.source.address = name
        return link

    def _set_target(self, target: Any) -> None:
        self._address.apply(target)

    def _is_refused(self) -> bool:
        return self._link.remote_target.address is None

    def _refusal_error(self, condition: Any) -> JMSError:
        error = super()._refusal_error(condition)
        unspecific = type(error) is JMSError and not self._attached.done()
        return InvalidDestinationError(str(error)) if unspecific else error

    def _fail_all(self, error: JMSError, *, in_doubt: bool) -> None:
        """Fail all messages, sent or not; those that were sent may be in doubt."""
        sent, self._unsettled, self._send_order = self._unsettled, {}, deque()
        waiting, self._queued = self._queued, deque()
        for batch, _ in sent.values():
            batch.in_doubt |= in_doubt
            batch.on_rejected(1, error)
        for payloads, batch, _ in waiting:
            batch.on_rejected(len(payloads), error)


def _unroutable_error(to: Destination) -> JMSError | None:
    """Return the error for a message that no queue took; None for one to a topic without subscribers."""
    if to.kind == "topic" and not to.temporary:
        return None
    return InvalidDestinationError(f"{to} does not exist: the broker returned a message.")


def _runs_and_chunks(payloads: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], bool]]:
    """Split messages into chunks; also yield whether a chunk is the last of its run.

    A broker accepts messages in order, or ends the link and reports no more outcomes. If messages are presettled, it
    reports the outcome of the last one of each run. Runs are short, since the reply timeout applies to each outcome.
    """
    largest = max(map(len, payloads))
    run, length = (max(1, min(_RUN_MESSAGES, size // largest)) for size in (_RUN_BYTES, _CHUNK_BYTES))
    for begin in range(0, len(payloads), run):
        end = min(begin + run, len(payloads))
        for at in range(begin, end, length):
            yield payloads[at : min(at + length, end)], at + length >= end


class AnonymousRelayLink(SenderLink):
    """A link to all destinations, which each message names (AMQP Anonymous Terminus for Message Routing 1.0).

    Args:
        engine: The connection's engine.
        reply_timeout: Seconds to wait for the broker's replies.
        returns_unroutable: True if the broker releases a message that no queue takes.
    """

    def __init__(self, engine: Engine, reply_timeout: float, *, returns_unroutable: bool = False) -> None:
        address = Address("any destination", None)
        super().__init__(engine, address, reply_timeout, returns_unroutable=returns_unroutable)

    def _set_target(self, target: Any) -> None:
        """Set no address: the target is the relay."""

    def _is_refused(self) -> bool:
        return bool(self._link.remote_target.type == TERMINUS_UNSPECIFIED)
