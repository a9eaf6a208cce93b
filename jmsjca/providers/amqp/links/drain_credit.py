"""Link credit for a broker that answers each drain, so that an answer also confirms earlier acknowledgements."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from jmsjca.errors import JMSError

__all__ = ["AnsweredDrainCredit"]


class _Request(NamedTuple):
    """A request that the next answer to a drain completes."""

    reply: "Future[bool]"
    revokes: bool  #: False if the credit is granted again


class AnsweredDrainCredit:
    """Credit for RabbitMQ 4: its queues answer each drain behind what was settled before, also without any credit.

    One drain is on its way at a time. Requests that are made meanwhile share the next one, and credit is granted after
    the answer.

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
