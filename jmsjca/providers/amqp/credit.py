"""Credit on a link, and how to know that the broker has heard of its change."""

from collections import deque
from concurrent.futures import Future
from typing import Any, Protocol

from jmsjca.errors import JMSError

__all__ = ["AnsweredCredit", "Credit", "DrainedCredit"]


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

    def arrived(self) -> None:
        """A message used up one."""
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
    """

    def __init__(self, link: Any) -> None:
        self._link = link
        self._stopping: Future[bool] | None = None
        self._answer_owed = False
        self._granted = 0

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._granted += more
        self._link.flow(more)

    def stop(self) -> "Future[bool]":
        """Drain.

        When messages used up the credit of an earlier drain, its answer may still be under way, and be taken for that
        of this one: then the result is False.
        """
        if self._stopping is None:
            stopping: Future[bool] = Future()
            if self._link.credit == 0:
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
        """Not needed: brokers that drain have transactions."""
        raise NotImplementedError

    def arrived(self) -> None:
        """A message used up one; if that was the last, the drain is complete without an answer."""
        self._granted -= 1
        if self._stopping is not None and self._link.credit == 0:
            self._answer_owed = True
            self._complete(no_more=False)

    def answered(self) -> None:
        """The broker told its view of the credit."""
        taken = self._granted - self._link.credit
        if self._stopping is not None:
            if self._link.credit == 0:
                no_more, self._answer_owed = not self._answer_owed, False
                self._complete(no_more=no_more)
        elif taken > 0:  # the late answer to a drain that messages had completed took the next credit, too
            self._answer_owed = False
            self._link.flow(taken)

    def end(self, error: JMSError | None) -> None:
        """Nobody will answer; a connection that is gone has nothing on its way, either."""
        del error
        if self._stopping is not None:
            self._complete(no_more=False)

    def _complete(self, *, no_more: bool) -> None:
        stopping, self._stopping = self._stopping, None
        self._granted = 0
        self._link.drain_mode = False
        if stopping is not None:
            stopping.set_result(no_more)


class AnsweredCredit:
    """For RabbitMQ's plugin, which fails at drain but answers each change of the credit, in its turn.

    Args:
        link: Proton's receiver.
    """

    def __init__(self, link: Any) -> None:
        self._link = link
        self._asked: Future[bool] | None = None
        self._waiting: deque[tuple[int | None, Future[bool]]] = deque()

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._change(more)

    def stop(self) -> "Future[bool]":
        """Take back what is left. A message that was under way comes all the same."""
        return self._change(None)

    def remind(self) -> None:
        """Not needed: no answer is ever dropped."""

    def confirm(self) -> "Future[bool]":
        """Change the credit by one, and back: the answer comes after what was written before."""
        if self._link.credit == 0:
            return self._change(1)
        answer = self._change(-1)
        self._change(1)
        return answer

    def arrived(self) -> None:
        """Nothing to do: proton counts."""

    def answered(self) -> None:
        """The broker answered the change that was asked for; on with the next one."""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            asked.set_result(True)
            self._ask_next()

    def end(self, error: JMSError | None) -> None:
        """Nobody will answer."""
        asked = [self._asked] if self._asked is not None else []
        for future in [*asked, *(future for _, future in self._waiting)]:
            if error is None:
                future.set_result(False)
            else:
                future.set_exception(error)
        self._asked = None
        self._waiting.clear()

    def _change(self, by: int | None) -> "Future[bool]":
        """One at a time, for changes that are written together are one, with one answer."""
        future: Future[bool] = Future()
        self._waiting.append((by, future))
        if self._asked is None:
            self._ask_next()
        return future

    def _ask_next(self) -> None:
        while self._waiting and self._asked is None:
            by, future = self._waiting.popleft()
            change = -self._link.credit if by is None else by
            if change:
                self._asked = future
                self._link.flow(change)
            else:
                future.set_result(True)
