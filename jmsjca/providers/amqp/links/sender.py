"""Sending links: to one destination or to all, and the outcomes of messages sent together."""

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
    TRANSACTIONAL,
    outcome_of,
    transactional_accepted_wide,
    transactional_outcome,
    transactional_state,
)
from jmsjca.providers.amqp.links.link import Link

__all__ = ["AnonymousRelayLink", "SendBatch", "SenderLink", "Then"]

Then = Callable[["Future[Any]"], None]  #: goes on, and has the future done with the answer to that


class BatchSender(Protocol):
    """Who has messages that wait for credit."""

    def discard(self, sending: "SendBatch") -> int:
        """Send nothing more of these; tells how many that were."""
        ...


class SendBatch:
    """Done when the broker has said something to each message that it answers; after an error no more are sent.

    Args:
        count: How many messages.
        transaction: In which; None outside any.
        now: The monotonic clock.
        settled: True if in a transaction the broker need not answer each message.
        then: What follows on the engine's thread once the broker has taken all: it sees to it that `done` is.

    Attributes:
        settled: True if the broker need not answer each of these.
        state: The fields of the state that tells their transaction; None outside any transaction.
        missing: How many messages wait for their answer, or for credit.
        latest: When the last answer came; 0 if none did.
        error: What happened first to one that was not taken.
        some: True once the broker has taken a message.
        in_doubt: True if the broker may have taken a message, and did not tell.
        taken: The fields of the broker's state that tell that it took a message, encoded as it does.
        done: When all is answered, and what follows, too.
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
        self.accepted_state = (
            b"" if transaction is None else transactional_accepted_wide(transaction)
        )  # until it tells it in another way
        self.done: Future[Any] = Future()
        self._complete_if_done()

    def add_link(self, link: BatchSender) -> None:
        """Some of it may wait there."""
        self._links.append(link)

    def on_presettled(self, count: int) -> None:
        """Note that so many are sent of which the broker will say nothing; it answers one behind them."""
        self.outstanding -= count

    def on_accepted(self, count: int) -> None:
        """Note that the broker took so many messages."""
        if count:
            self.any_accepted = True
            self._on_outcomes(count)

    def on_rejected(self, count: int, error: JMSError) -> None:
        """Note that so many were not taken, or not even sent; what still waits for credit is not sent any more.

        All that is sent is waited for all the same: what is written later might come into the next transaction.
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


_RUN_MESSAGES, _RUN_BYTES = 100, 1024 * 1024  # messages of which the broker answers one, if it need not answer all
_CHUNK_BYTES = 60 * 1024  # what is written at one time: proton has room for 64 KiB


class SenderLink(Link):
    """A link to one destination.

    Args:
        engine: The connection.
        address: Where to.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, address: Address, reply_timeout: float) -> None:
        address.check()
        super().__init__(engine, f"the sender to {address.name}", reply_timeout)
        self._address = address
        self._queued: deque[tuple[deque[bytes], SendBatch, Destination]] = deque()
        self._unsettled: dict[Pointer, tuple[SendBatch, Destination]] = {}
        self._send_order: deque[Pointer] = deque()  # in which they were sent: to find its first, a dictionary goes far
        self._pointer: Pointer = None
        self._tags = DeliveryTags()

    def send(self, payloads: Sequence[bytes], sending: SendBatch, to: Destination) -> None:
        """Send encoded messages as credit allows. On the engine's thread."""
        error = sending.error or self.error
        if error is not None:
            sending.on_rejected(len(payloads), error)
            return
        sending.add_link(self)
        self._queued.append((deque(payloads), sending, to))
        self.on_flow()

    def discard(self, sending: SendBatch) -> int:
        """Send nothing more of these; tells how many that were."""
        dropped = sum(len(payloads) for payloads, whose, _ in self._queued if whose is sending)
        self._queued = deque(entry for entry in self._queued if entry[1] is not sending)
        return dropped

    def on_connection_lost(self, error: JMSError) -> None:
        """The connection is gone, for whatever reason: what was sent may have been taken."""
        self._fail_all(error, in_doubt=True)
        super().on_connection_lost(error)

    def on_closed(self, condition: Any) -> None:
        """The link has ended. That may be the answer to one message, if it says so, but not to several."""
        super().on_closed(condition)
        if self.error is not None:
            self._fail_all(self.error, in_doubt=len(self._unsettled) > 1 or not is_message_refusal(condition))

    def on_flow(self) -> None:
        """Send what credit allows."""
        credit = self._link.credit if self._queued else 0
        while credit > 0 and self._queued:
            payloads, sending, to = self._queued[0]
            if len(payloads) <= credit:
                part = list(payloads)
                self._queued.popleft()
            else:
                part = [payloads.popleft() for _ in range(credit)]
            for piece, is_last in _runs_and_chunks(part):
                self._engine.socket_transport.flush()  # so that the broker has something to do meanwhile
                self._send(piece, sending, to, settled=len(piece) - is_last if sending.presettled else 0)
            credit -= len(part)

    def _send(self, payloads: Sequence[bytes], sending: SendBatch, to: Destination, *, settled: int) -> None:
        sent = send(self._pointer, self._tags, payloads, sending.state, settled)
        sending.on_presettled(settled)
        self._unsettled.update(dict.fromkeys(sent, (sending, to)))
        self._send_order.extend(sent)

    def on_delivery(self, delivery: Pointer) -> bool:
        """The broker answered a message: mostly it took that and all that were sent before it."""
        told_of = self._unsettled.get(delivery)
        if told_of is not None:
            self._settle_accepted(told_of[0])
            if delivery in self._unsettled:
                self._on_outcome(delivery, *told_of)
        return not self._unsettled

    def _settle_accepted(self, sending: SendBatch) -> None:
        """Settle what the broker took, up to a message to which it said something else; no two units send at a time."""
        is_taken, order, sent, count = (
            remote_state_matcher(sending.accepted_state, self._engine.buffer),
            self._send_order,
            self._unsettled,
            0,
        )
        while order:
            delivery = order[0]
            if delivery in sent:  # or it was answered before its turn
                state = remote_state(delivery)
                if state != ACCEPTED and not (state == TRANSACTIONAL and is_taken(delivery)):
                    break
                settle(delivery)
                del sent[delivery]
                count += 1
            order.popleft()
        sending.on_accepted(count)

    def _on_outcome(self, delivery: Pointer, sending: SendBatch, to: Destination) -> None:
        state = remote_state(delivery)
        if state == ACCEPTED:  # before one that was sent earlier
            self._complete(delivery, sending, None)
            return
        told = remote_data(delivery, self._engine.buffer) if state == TRANSACTIONAL else b""
        outcome, condition = (
            transactional_outcome(told) if state == TRANSACTIONAL else outcome_of(wrap_delivery(delivery))
        )
        if outcome is None and not is_settled(delivery):
            return
        if outcome == ACCEPTED:
            sending.accepted_state = told
            self._complete(delivery, sending, None)
        elif outcome is None:
            sending.in_doubt = True
            self._complete(delivery, sending, JMSError(f"The broker told no outcome of a message to {to}."))
        else:
            self._complete(delivery, sending, link_error(condition, f"{to} did not take a message"))

    def _complete(self, delivery: Pointer, sending: SendBatch, error: JMSError | None) -> None:
        del self._unsettled[delivery]
        settle(delivery)
        if error is None:
            sending.on_accepted(1)
        else:
            sending.on_rejected(1, error)

    def _create(self, session: Any, name: str) -> Any:
        link = session.sender(name)
        self._pointer = pointer_to(link)
        self._set_target(link.target)
        link.source.address = name  # and no outcomes: then Broker-J ends the link over all that it does not take
        return link

    def _set_target(self, target: Any) -> None:
        self._address.apply(target)

    def _is_refused(self) -> bool:
        return self._link.remote_target.address is None

    def _refusal_error(self, condition: Any) -> JMSError:
        error = super()._refusal_error(condition)
        untold = type(error) is JMSError and not self._attached.done()
        return InvalidDestinationError(str(error)) if untold else error

    def _fail_all(self, error: JMSError, *, in_doubt: bool) -> None:
        """Nothing more is sent or answered here; what was sent may be in doubt."""
        sent, self._unsettled, self._send_order = self._unsettled, {}, deque()
        waiting, self._queued = self._queued, deque()
        for sending, _ in sent.values():
            sending.in_doubt |= in_doubt
            sending.on_rejected(1, error)
        for payloads, sending, _ in waiting:
            sending.on_rejected(len(payloads), error)


def _runs_and_chunks(payloads: Sequence[bytes]) -> Iterator[tuple[Sequence[bytes], bool]]:
    """The same in pieces, and whether each is the last of a run.

    The broker takes messages in order, or ends the link, and answers no more: if it need not answer all, it answers the
    last of each run. Runs are short, as it has its time for each answer.
    """
    largest = max(map(len, payloads))
    run, length = (max(1, min(_RUN_MESSAGES, size // largest)) for size in (_RUN_BYTES, _CHUNK_BYTES))
    for begin in range(0, len(payloads), run):
        end = min(begin + run, len(payloads))
        for at in range(begin, end, length):
            yield payloads[at : min(at + length, end)], at + length >= end


class AnonymousRelayLink(SenderLink):
    """A link to all destinations: each message tells where it goes (AMQP, Anonymous Terminus for Message Routing).

    Args:
        engine: The connection.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, reply_timeout: float) -> None:
        super().__init__(engine, Address("any destination", None), reply_timeout)

    def _set_target(self, target: Any) -> None:
        """At no address."""

    def _is_refused(self) -> bool:
        return bool(self._link.remote_target.type == TERMINUS_UNSPECIFIED)
