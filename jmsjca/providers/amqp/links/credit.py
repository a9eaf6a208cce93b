"""Link credit: by drain, or in the ways of RabbitMQ 3 and 4; the prefetch window, and its limit in bytes."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from jmsjca.errors import JMSError

__all__ = ["ByteBudget", "CreditControl", "DrainCredit", "PrefetchWindow", "RabbitMQ3Credit", "RabbitMQ4Credit"]

_EMPTY_DRAINS_REQUIRED = 2  # consecutive answers to drains, without a message before them
_PLAIN_REPEATS = 1  # of a drain, before the next ones grant credit

_DECAY = 8  # with each arrival the estimate decreases by this fraction


class DrainCredit:
    """Revokes credit by drain (AMQP 1.0 section 2.6.7).

    Artemis (2.56) miscounts if it answers a drain while it sends messages: it subtracts some of the messages a second
    time, from the credit of the next grant. It then uses less credit than it was granted, and does not answer a drain
    once its credit is used up. Repeated drains therefore grant more credit, 1, 2, 4 and so on, up to the number of
    messages that crossed the earlier drain. A broker without messages then answers; a broker with messages sends some.
    If there is still no answer, the remaining credit is lost: the broker does not know of it.

    Args:
        link: Proton's receiver.
        on_changed: Called with each change of the credit that is neither a grant nor an arrived message.
    """

    def __init__(self, link: Any, on_changed: Callable[[int], None]) -> None:
        self._link = link
        self._on_changed = on_changed
        self._drain_reply: Future[bool] | None = None
        self._message_since_answer = False  # since the latest answer to a drain
        self._empty_drains = 0  # consecutive answers without a message before them
        self._granted = 0
        self._lost = 0  # credit of the link that the broker does not know of
        self._crossed = 0  # messages that arrived during the latest completed drain
        self._crossing = 0  # messages that arrived during the pending drain
        self._repeats = 0  # of the pending drain
        self._probed = 0  # credit granted by these
        self._probe_used = False  # whether a message came after that
        self._message_since_repeat = False

    def grant(self, more: int) -> None:
        """Grant credit for more messages."""
        self._granted += more
        self._link.flow(more + max(-self._link.credit, 0))  # a negative credit would be 4 billion on the wire

    def drain(self) -> "Future[bool]":
        """Drain the credit.

        The result is True only for the second answer in a row without a message before it. If messages used up the
        credit of an earlier drain, its answer may still be in flight and be taken for the answer to this one.
        Artemis answers, although messages are queued, as long as the socket is full of earlier output. Artemis also
        gave a first answer without a message while messages were queued: on a busy machine, for about one in 2,000
        queues.
        """
        if self._drain_reply is None:
            reply: Future[bool] = Future()
            if self._link.credit <= self._lost:
                reply.set_result(False)
                return reply
            self._drain_reply = reply
            self._crossing = self._repeats = self._probed = 0
            self._probe_used = False
            self._link.drain(0)
        return self._drain_reply

    def repeat_drain(self) -> None:
        """Drain again: Artemis drops a drain that arrives while it answers the one before.

        Repetitions grant credit if the broker may have miscounted. After messages that used it, and no answer, the
        remaining credit is lost.
        """
        if self._drain_reply is None:
            return
        self._repeats += 1
        if self._probe_used and not self._message_since_repeat:
            self._lost = max(self._link.credit, 0)
            self._complete(is_empty=False)
            return
        self._message_since_repeat = False
        self._link.drain(self._probe())

    def _probe(self) -> int:
        """Return the credit that a repetition grants, and count it as granted."""
        credit: int = self._link.credit - self._lost
        unknown = self._crossed - credit + 1  # with as many more, the broker certainly has credit
        if self._repeats <= _PLAIN_REPEATS or self._probe_used or unknown <= 0:
            return 0
        probe = min(self._probed + 1, unknown)
        self._probed += probe
        self._granted += probe
        self._on_changed(probe)
        return probe

    def round_trip(self) -> "Future[bool]":
        """Return a completed future, which proves nothing.

        On brokers that support drain, transactions confirm settlement; some of these brokers have none.
        """
        done: Future[bool] = Future()
        done.set_result(False)
        return done

    @property
    def draining(self) -> bool:
        """Whether a drain is pending."""
        return self._drain_reply is not None

    def on_messages(self, count: int = 1) -> None:
        """Messages used up some of the credit. If none is left, the drain is complete without an answer."""
        self._granted -= count
        self._message_since_answer = self._message_since_repeat = True
        self._crossing += count
        self._probe_used = self._probed > 0
        if self._drain_reply is not None and self._link.credit <= self._lost:
            self._complete(is_empty=False)

    def on_flow(self) -> None:
        """The broker reported its view of the credit."""
        if self._link.credit <= 0:  # the broker revoked the lost credit, too
            self._lost = 0
        taken = self._granted - (self._link.credit - self._lost)
        if self._drain_reply is not None:
            if self._link.credit <= 0:
                self._complete(is_empty=self._confirms_empty())
        elif taken > 0:  # the late answer to a drain that messages had completed revoked the next credit, too
            self._message_since_answer = False
            self._link.flow(taken)

    def on_link_ended(self, error: JMSError | None) -> None:
        """End a pending drain. A lost connection has nothing in flight, either."""
        del error
        if self._drain_reply is not None:
            self._complete(is_empty=False)

    def _confirms_empty(self) -> bool:
        """Count an answer. Return True if it confirms that the broker has no more messages."""
        self._empty_drains = 0 if self._message_since_answer else self._empty_drains + 1
        self._message_since_answer = False
        if self._empty_drains < _EMPTY_DRAINS_REQUIRED:
            return False
        self._empty_drains = 0
        return True

    def _complete(self, *, is_empty: bool) -> None:
        stopping, self._drain_reply = self._drain_reply, None
        left, self._granted = self._granted, 0
        self._crossed = self._crossing
        self._on_changed(-left)
        self._link.drain_mode = False
        if stopping is not None:
            stopping.set_result(is_empty)


class _CreditChange(NamedTuple):
    """A change of the credit that waits for its turn."""

    delta_for: Callable[[int], int]  #: returns the change, for the current credit
    granted: int  #: the part of it that a consumer granted
    reply: "Future[bool]"


class RabbitMQ3Credit:
    """Credit for RabbitMQ's plugin, which fails at drain but answers each change of the credit, in order.

    When a change and messages cross, the broker sends more messages than requested. They are deducted from the next
    grant. A negative credit, which would be 4 billion on the wire, is never requested.

    Args:
        link: Proton's receiver.
        on_changed: Called with each change of the credit that is neither a grant nor an arrived message.
        ensure_encoded: Encodes all pending output; False if some may be left.
        call_soon: Runs a function on the engine thread after more output is written.
    """

    def __init__(
        self,
        link: Any,
        on_changed: Callable[[int], None],
        ensure_encoded: Callable[[], bool],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._link = link
        self._on_changed = on_changed
        self._ensure_encoded = ensure_encoded
        self._call_soon = call_soon
        self._pending_reply: Future[bool] | None = None
        self._queued: deque[_CreditChange] = deque()
        self._arriving: list[Future[bool]] = []  # requests that changed nothing while a message was arriving

    def grant(self, more: int) -> None:
        """Grant credit for more messages."""
        self._enqueue(lambda credit: max(more, -credit), granted=more)

    def drain(self) -> "Future[bool]":
        """Revoke unused credit. Messages in flight arrive all the same."""
        return self._enqueue(lambda credit: -credit)

    def repeat_drain(self) -> None:
        """Do nothing: the broker answers each change."""

    def round_trip(self) -> "Future[bool]":
        """Change the credit by one: the answer arrives after everything written before.

        Queued round trips share one change.
        """
        shared = (change.reply for change in self._queued if change.delta_for == self._probe)
        return next(shared, None) or self._enqueue(self._probe)

    @property
    def draining(self) -> bool:
        """Always False: an answer does not wait for messages."""
        return False

    def on_messages(self, count: int = 1) -> None:
        """Complete the requests that waited for the rest of a message. Proton counts the credit."""
        del count
        if self._arriving and not self._link.queued:
            arrived, self._arriving = self._arriving, []
            for reply in arrived:
                reply.set_result(True)

    def on_flow(self) -> None:
        """The broker answered the pending change; apply the next one."""
        if self._pending_reply is not None:
            reply, self._pending_reply = self._pending_reply, None
            reply.set_result(True)
            self._apply_next()

    def on_link_ended(self, error: JMSError | None) -> None:
        """Complete all pending changes, which will not be answered."""
        pending = [self._pending_reply] if self._pending_reply is not None else []
        for future in [*pending, *self._arriving, *(change.reply for change in self._queued)]:
            if error is None:
                future.set_result(False)
            else:
                future.set_exception(error)
        self._pending_reply = None
        self._arriving.clear()
        self._queued.clear()

    def _probe(self, credit: int) -> int:
        """Return the change of a round trip.

        One less: the consumer learns of it, and grants credit again when much is missing. The last credit is granted
        again at once. Without credit, one more, which is not revoked: a message may have used it.
        """
        if credit == 1:
            self._queued.appendleft(_CreditChange(_one_more, 0, Future()))
        return -1 if credit > 0 else 1 - credit

    def _enqueue(self, delta_for: Callable[[int], int], granted: int = 0) -> "Future[bool]":
        """Queue a change. They are applied one at a time, since changes that are written together get one answer."""
        change = _CreditChange(delta_for, granted, Future())
        self._queued.append(change)
        if self._pending_reply is None:
            self._apply_next()
        return change.reply

    def _apply_next(self) -> None:
        while self._queued and self._pending_reply is None:
            if self._queued[0].delta_for == self._probe and not self._ensure_encoded():
                self._call_soon(self._apply_next)  # proton writes credit before dispositions
                return
            change = self._queued.popleft()
            # The credit as it is on the wire, where messages that wait in proton have used it already.
            by = change.delta_for(self._link.credit - self._link.queued)
            self._on_changed(by - change.granted)
            if by:
                self._pending_reply = change.reply
                self._link.flow(by)
            elif self._link.queued:  # a part of a message that uses the last credit: its queue is not empty
                self._arriving.append(change.reply)
            else:
                change.reply.set_result(True)


def _one_more(credit: int) -> int:
    """Return one more, or as many as it takes to end a negative credit."""
    return max(1, -credit)


class PrefetchWindow:
    """Computes link credit from the prefetch window and a byte budget. Its consumer guards it by a lock.

    Args:
        window: Number of messages to prefetch; 0 for none.
        max_bytes: Bytes of prefetched messages.

    Attributes:
        window: The same.
        limit: Number of messages to request when none are prefetched.
        credit: Number of messages requested and not received.
    """

    def __init__(self, window: int, max_bytes: int) -> None:
        self._budget = ByteBudget(max_bytes)
        self.window = window
        self.limit = 0
        self.credit = 0

    def on_messages(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes arrived together."""
        self.credit -= len(sizes)
        self._budget.on_messages(sizes)

    def credit_to_grant(self, ready: int, size: int) -> int:
        """Return the number of messages to grant credit for, and count it as granted.

        Args:
            ready: Number of buffered messages.
            size: Their bytes.
        """
        ahead = self.window or self.limit
        if (ahead - self.credit - ready) * 2 < ahead or not ahead:  # the usual case
            return 0
        missing = self._shortfall(min(ahead, ready + self._budget.messages_that_fit(size)), ready)
        self.credit += missing
        return missing

    def _shortfall(self, ahead: int, ready: int) -> int:
        """Return the missing credit once it is half of `ahead`, else 0. Messages beyond the credit increase it."""
        missing = ahead - self.credit - ready
        return missing if missing > 0 and missing * 2 >= ahead else 0


class ByteBudget:
    """Estimates how many messages fit into a number of bytes, since credit counts messages and their sizes are unknown.

    The estimate is the size of the largest recent message. Before the first message, one is requested.

    Args:
        max_bytes: Bytes of prefetched messages.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._estimated_size = 0

    def on_messages(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes arrived together."""
        self._estimated_size = max([self._estimated_size - self._estimated_size // _DECAY, *sizes])

    def messages_that_fit(self, ready: int) -> int:
        """Return how many messages may arrive besides `ready` buffered bytes; at least one if these are 0."""
        if not self._estimated_size:
            return 1
        return max((self._max_bytes - ready) // self._estimated_size, 0 if ready else 1)


class _Request(NamedTuple):
    """A request that the next answer to a drain completes."""

    reply: "Future[bool]"
    revokes: bool  #: False if the credit is granted again


class RabbitMQ4Credit:
    """Credit for RabbitMQ 4: its queues answer each drain after the earlier settlements, even without any credit.

    Only one drain is in flight at a time. Requests that arrive before its answer share the next drain. Credit is
    granted after the answer.

    Args:
        link: Proton's receiver.
        on_changed: Called with each change of the credit that is neither a grant nor an arrived message.
        ensure_encoded: Encodes all pending output; False if some may be left.
        call_soon: Runs a function on the engine thread after more output is written.
    """

    def __init__(
        self,
        link: Any,
        on_changed: Callable[[int], None],
        ensure_encoded: Callable[[], bool],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._link = link
        self._on_changed = on_changed
        self._ensure_encoded = ensure_encoded
        self._call_soon = call_soon
        self._current: list[_Request] = []  # which the drain on its way completes
        self._queued: list[_Request] = []
        self._drained = 0  # credit that the drain on its way can revoke
        self._deferred = 0  # credit to grant after the answer

    def grant(self, more: int) -> None:
        """Grant credit for more messages."""
        if self.draining:
            self._deferred += more
        else:
            self._link.flow(more + max(-self._link.credit, 0))  # a negative credit would be 4 billion on the wire

    def drain(self) -> "Future[bool]":
        """Drain the credit. The result is True if the queue had no more messages than those that arrived."""
        if self._link.credit <= 0 and not self.draining:
            reply: Future[bool] = Future()
            reply.set_result(False)
            return reply
        return self._request(revokes=True)

    def repeat_drain(self) -> None:
        """Do nothing: the broker answers each drain."""

    def round_trip(self) -> "Future[bool]":
        """Drain, and grant the credit again: the answer arrives after everything written before is processed."""
        return self._request(revokes=False)

    @property
    def draining(self) -> bool:
        """Whether a drain is on its way."""
        return bool(self._current)

    def on_messages(self, count: int = 1) -> None:
        """Messages used up some of the credit."""
        self._drained = max(self._drained - count, 0)

    def on_flow(self) -> None:
        """The broker answered the drain."""
        if self.draining and self._link.credit <= 0:
            self._complete()
            self._start()

    def on_link_ended(self, error: JMSError | None) -> None:
        """Complete all requests, which will not be answered."""
        requests = [*self._current, *self._queued]
        self._current, self._queued = [], []
        for request in requests:
            if error is None:
                request.reply.set_result(False)
            else:
                request.reply.set_exception(error)

    def _request(self, *, revokes: bool) -> "Future[bool]":
        reply: Future[bool] = Future()
        self._queued.append(_Request(reply, revokes))
        self._start()
        return reply

    def _start(self) -> None:
        if self._current or not self._queued:
            return
        if not self._ensure_encoded():  # proton writes credit before dispositions
            self._call_soon(self._start)
            return
        self._current, self._queued = self._queued, []
        self._drained = max(self._link.credit - self._link.queued, 0)
        self._link.drain(0)

    def _complete(self) -> None:
        answered, self._current = self._current, []
        left, more = self._drained, self._deferred
        self._drained = self._deferred = 0
        self._link.drain_mode = False
        if any(request.revokes for request in answered):
            self._on_changed(-left)
        else:
            more += left
        if more:
            self.grant(more)
        for request in answered:
            request.reply.set_result(left > 0)


CreditControl = DrainCredit | RabbitMQ3Credit | RabbitMQ4Credit
"""Grants and revokes the credit of a receiver link. Engine thread only.

`drain` returns a future that is done when the broker has stopped sending; True if it certainly has no more messages.
"""
