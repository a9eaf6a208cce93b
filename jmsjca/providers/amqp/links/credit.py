"""Link credit: granted and drained, RabbitMQ's echoed credit, the prefetch window and its limit in bytes."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from jmsjca.errors import JMSError

__all__ = ["ByteBudget", "CreditControl", "DrainCredit", "EchoCredit", "PrefetchWindow"]

_EMPTY_DRAINS_REQUIRED = 2  # answers without a message before them

_DECAY = 8  # what was large is forgotten by so much of it with each arrival


class CreditControl(Protocol):
    """Asks for messages, and stops asking. Everything happens on the engine's thread."""

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        ...

    def drain(self) -> "Future[bool]":
        """Ask for no more; done when the broker knows. The result tells whether it surely has no more."""
        ...

    def repeat_drain(self) -> None:
        """Ask again for the answer to a stop that is open."""
        ...

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled what was written on this session before."""
        ...

    @property
    def draining(self) -> bool:
        """True while the end of what was on its way is awaited."""
        ...

    def on_messages(self, count: int = 1) -> None:
        """Messages used up so much of it."""
        ...

    def on_flow(self) -> None:
        """The broker told its view of the credit."""
        ...

    def on_link_ended(self, error: JMSError | None) -> None:
        """The link is closed, or failed with an error: nobody will answer."""
        ...


class DrainCredit:
    """Stops by drain, as the AMQP specification means it (1.0, section 2.6.7).

    Args:
        link: Proton's receiver.
        changed: Is told by how much the credit changed otherwise than by a grant or a message.
    """

    def __init__(self, link: Any, on_changed: Callable[[int], None]) -> None:
        self._link = link
        self._on_changed = on_changed
        self._drain_reply: Future[bool] | None = None
        self._message_since_answer = False  # a message since the last answer
        self._empty_drains = 0  # answers without one
        self._granted = 0

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._granted += more
        self._link.flow(more + max(-self._link.credit, 0))  # below zero it would be four billions

    def drain(self) -> "Future[bool]":
        """Drain.

        When messages used up the credit of an earlier drain, its answer may still be under way, and be taken for that
        of this one; and Artemis answers, although messages wait, as long as the socket is full of what came before.
        Then the result is False. So it is for the first answer without a message, which Artemis gave, too, where some
        waited, on a busy machine and once in some two thousand queues; the second one in a row is believed.
        """
        if self._drain_reply is None:
            stopping: Future[bool] = Future()
            if self._link.credit <= 0:
                stopping.set_result(False)
                return stopping
            self._drain_reply = stopping
            self._link.drain(0)
        return self._drain_reply

    def repeat_drain(self) -> None:
        """Drain again: Artemis drops a drain that comes while it reports the one before."""
        if self._drain_reply is not None:
            self._link.drain(0)

    def round_trip(self) -> "Future[bool]":
        """Done at once, without proof: brokers that drain give it by transactions, and some have none."""
        done: Future[bool] = Future()
        done.set_result(False)
        return done

    @property
    def draining(self) -> bool:
        """True while a drain is open."""
        return self._drain_reply is not None

    def on_messages(self, count: int = 1) -> None:
        """Messages used up so much of it; if that was all, the drain is complete without an answer."""
        self._granted -= count
        self._message_since_answer = True
        if self._drain_reply is not None and self._link.credit <= 0:
            self._complete(no_more=False)

    def on_flow(self) -> None:
        """The broker told its view of the credit."""
        taken = self._granted - self._link.credit
        if self._drain_reply is not None:
            if self._link.credit <= 0:
                self._complete(no_more=self._confirms_empty())
        elif taken > 0:  # the late answer to a drain that messages had completed took the next credit, too
            self._message_since_answer = False
            self._link.flow(taken)

    def on_link_ended(self, error: JMSError | None) -> None:
        """Nobody will answer; a connection that is gone has nothing on its way, either."""
        del error
        if self._drain_reply is not None:
            self._complete(no_more=False)

    def _confirms_empty(self) -> bool:
        """Note an answer; True if it tells that there are no more."""
        self._empty_drains = 0 if self._message_since_answer else self._empty_drains + 1
        self._message_since_answer = False
        if self._empty_drains < _EMPTY_DRAINS_REQUIRED:
            return False
        self._empty_drains = 0
        return True

    def _complete(self, *, no_more: bool) -> None:
        stopping, self._drain_reply = self._drain_reply, None
        left, self._granted = self._granted, 0
        self._on_changed(-left)
        self._link.drain_mode = False
        if stopping is not None:
            stopping.set_result(no_more)


class _CreditChange(NamedTuple):
    """A change of the credit, which waits for its turn."""

    delta_for: Callable[[int], int]  #: by how much, when there is so much credit
    granted: int  #: how much of it was granted
    reply: "Future[bool]"


class EchoCredit:
    """For RabbitMQ's plugin, which fails at drain but answers each change of the credit, in its turn.

    When a change and messages cross, it sends more than was asked for. Those count against what is asked for next; but
    credit below zero, which would be some four billions on the wire, is never asked for.

    Args:
        link: Proton's receiver.
        changed: Is told by how much the credit changed otherwise than by a grant or a message.
        encode: Lets what there is be written first, and is true if that is sure.
        later: Runs a function when more of it is written.
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

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._enqueue(lambda credit: max(more, -credit), granted=more)

    def drain(self) -> "Future[bool]":
        """Take back what is left. A message that was under way comes all the same."""
        return self._enqueue(lambda credit: -credit)

    def repeat_drain(self) -> None:
        """Not needed: no answer is ever dropped."""

    def round_trip(self) -> "Future[bool]":
        """Change the credit by one: the answer comes after what was written before. Who waits for that shares it."""
        shared = (change.reply for change in self._queued if change.delta_for == self._probe)
        return next(shared, None) or self._enqueue(self._probe)

    @property
    def draining(self) -> bool:
        """Never: the answer does not wait for messages."""
        return False

    def on_messages(self, count: int = 1) -> None:
        """Nothing to do: proton counts."""

    def on_flow(self) -> None:
        """The broker answered the change that was asked for; on with the next one."""
        if self._pending_reply is not None:
            asked, self._pending_reply = self._pending_reply, None
            asked.set_result(True)
            self._apply_next()

    def on_link_ended(self, error: JMSError | None) -> None:
        """Nobody will answer."""
        asked = [self._pending_reply] if self._pending_reply is not None else []
        for future in [*asked, *(change.reply for change in self._queued)]:
            if error is None:
                future.set_result(False)
            else:
                future.set_exception(error)
        self._pending_reply = None
        self._queued.clear()

    def _probe(self, credit: int) -> int:
        """One less, for who receives knows that, and asks again when much is missing; the last one it gets back.

        Where there is none, it is one more, and that is not taken back: a message may have used it.
        """
        if credit == 1:
            self._queued.appendleft(_CreditChange(_one_more, 0, Future()))
        return -1 if credit > 0 else 1 - credit

    def _enqueue(self, of: Callable[[int], int], granted: int = 0) -> "Future[bool]":
        """One at a time, for changes that are written together are one, with one answer."""
        change = _CreditChange(of, granted, Future())
        self._queued.append(change)
        if self._pending_reply is None:
            self._apply_next()
        return change.reply

    def _apply_next(self) -> None:
        while self._queued and self._pending_reply is None:
            if self._queued[0].delta_for == self._probe and not self._ensure_encoded():
                self._call_soon(self._apply_next)  # of what is written together proton puts credit first
                return
            change = self._queued.popleft()
            by = change.delta_for(
                self._link.credit - self._link.queued
            )  # as it is on the wire, which knows what has come
            self._on_changed(by - change.granted)
            if by:
                self._pending_reply = change.reply
                self._link.flow(by)
            else:
                change.reply.set_result(True)


def _one_more(credit: int) -> int:
    """And where more came than was asked for, so many that the credit is not below zero."""
    return max(1, -credit)


class PrefetchWindow:
    """Its consumer guards it with a lock.

    Args:
        window: How many messages are taken ahead; 0 for none.
        most_bytes: How many bytes of them.

    Attributes:
        window: The same.
        limit: How many are wanted where none are taken ahead.
        credit: How many are asked for and not here.
    """

    def __init__(self, window: int, max_bytes: int) -> None:
        self._budget = ByteBudget(max_bytes)
        self.window = window
        self.limit = 0
        self.credit = 0

    def on_messages(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes came together."""
        self.credit -= len(sizes)
        self._budget.on_messages(sizes)

    def credit_to_grant(self, ready: int, size: int) -> int:
        """How many more are to be asked for now.

        Args:
            ready: How many messages wait here.
            size: How many bytes those are.
        """
        ahead = self.window or self.limit
        if not self._shortfall(ahead, ready):
            return 0
        missing = self._shortfall(min(ahead, ready + self._budget.messages_that_fit(size)), ready)
        self.credit += missing
        return missing

    def _shortfall(self, ahead: int, ready: int) -> int:
        """What is missing, once that is half of what may be ahead; what came unasked makes that more."""
        missing = ahead - self.credit - ready
        return missing if missing > 0 and missing * 2 >= ahead else 0


class ByteBudget:
    """Reckons with the largest message that came lately: credit counts messages, and nobody tells their sizes before.

    As long as nothing came nothing is known, and one is asked for.

    Args:
        most: How many bytes may be ahead.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._estimated_size = 0

    def on_messages(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes came together."""
        self._estimated_size = max([self._estimated_size - self._estimated_size // _DECAY, *sizes])

    def messages_that_fit(self, ready: int) -> int:
        """How many messages may come while so many bytes are here; if nothing is, one always may."""
        if not self._estimated_size:
            return 1
        return max((self._max_bytes - ready) // self._estimated_size, 0 if ready else 1)
