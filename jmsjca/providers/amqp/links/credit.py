"""Credit on a link, and how to know that the broker has heard of its change."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from jmsjca.errors import JMSError

__all__ = ["Credit", "DrainedCredit"]

_PROOF = 2  # answers without a message before them


class Credit(Protocol):
    """Asks for messages, and stops asking. Everything happens on the engine's thread."""

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        ...

    def stop(self) -> "Future[bool]":
        """Ask for no more; done when the broker knows. The result tells whether it surely has no more."""
        ...

    def remind(self) -> None:
        """Ask again for the answer to a stop that is open."""
        ...

    def confirm(self) -> "Future[bool]":
        """Done when the broker has handled what was written on this session before."""
        ...

    @property
    def stopping(self) -> bool:
        """True while the end of what was on its way is awaited."""
        ...

    def arrived(self, count: int = 1) -> None:
        """Messages used up so much of it."""
        ...

    def answered(self) -> None:
        """The broker told its view of the credit."""
        ...

    def end(self, error: JMSError | None) -> None:
        """The link is closed, or failed with an error: nobody will answer."""
        ...


class DrainedCredit:
    """Stops by drain, as the AMQP specification means it (1.0, section 2.6.7).

    Args:
        link: Proton's receiver.
        changed: Is told by how much the credit changed otherwise than by a grant or a message.
    """

    def __init__(self, link: Any, changed: Callable[[int], None]) -> None:
        self._link = link
        self._changed = changed
        self._stopping: Future[bool] | None = None
        self._came = False  # a message since the last answer
        self._silent = 0  # answers without one
        self._granted = 0

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._granted += more
        self._link.flow(more + max(-self._link.credit, 0))  # below zero it would be four billions

    def stop(self) -> "Future[bool]":
        """Drain.

        When messages used up the credit of an earlier drain, its answer may still be under way, and be taken for that
        of this one; and Artemis answers, although messages wait, as long as the socket is full of what came before.
        Then the result is False. So it is for the first answer without a message, which Artemis gave, too, where some
        waited, on a busy machine and once in some two thousand queues; the second one in a row is believed.
        """
        if self._stopping is None:
            stopping: Future[bool] = Future()
            if self._link.credit <= 0:
                stopping.set_result(False)
                return stopping
            self._stopping = stopping
            self._link.drain(0)
        return self._stopping

    def remind(self) -> None:
        """Drain again: Artemis drops a drain that comes while it reports the one before."""
        if self._stopping is not None:
            self._link.drain(0)

    def confirm(self) -> "Future[bool]":
        """Done at once, without proof: brokers that drain give it by transactions, and some have none."""
        done: Future[bool] = Future()
        done.set_result(False)
        return done

    @property
    def stopping(self) -> bool:
        """True while a drain is open."""
        return self._stopping is not None

    def arrived(self, count: int = 1) -> None:
        """Messages used up so much of it; if that was all, the drain is complete without an answer."""
        self._granted -= count
        self._came = True
        if self._stopping is not None and self._link.credit <= 0:
            self._complete(no_more=False)

    def answered(self) -> None:
        """The broker told its view of the credit."""
        taken = self._granted - self._link.credit
        if self._stopping is not None:
            if self._link.credit <= 0:
                self._complete(no_more=self._believes_answer())
        elif taken > 0:  # the late answer to a drain that messages had completed took the next credit, too
            self._came = False
            self._link.flow(taken)

    def end(self, error: JMSError | None) -> None:
        """Nobody will answer; a connection that is gone has nothing on its way, either."""
        del error
        if self._stopping is not None:
            self._complete(no_more=False)

    def _believes_answer(self) -> bool:
        """Note an answer; True if it tells that there are no more."""
        self._silent = 0 if self._came else self._silent + 1
        self._came = False
        if self._silent < _PROOF:
            return False
        self._silent = 0
        return True

    def _complete(self, *, no_more: bool) -> None:
        stopping, self._stopping = self._stopping, None
        left, self._granted = self._granted, 0
        self._changed(-left)
        self._link.drain_mode = False
        if stopping is not None:
            stopping.set_result(no_more)
