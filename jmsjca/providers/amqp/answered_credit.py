"""Credit on a link of RabbitMQ, which knows no drain and answers each change."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from jmsjca.errors import JMSError

__all__ = ["AnsweredCredit"]


class _Change(NamedTuple):
    """A change of the credit, which waits for its turn."""

    of: Callable[[int], int]  #: by how much, when there is so much credit
    granted: int  #: how much of it was granted
    answer: "Future[bool]"


class AnsweredCredit:
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
        changed: Callable[[int], None],
        encode: Callable[[], bool],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self._link = link
        self._changed = changed
        self._encode = encode
        self._later = later
        self._asked: Future[bool] | None = None
        self._waiting: deque[_Change] = deque()

    def grant(self, more: int) -> None:
        """Ask for so many more messages."""
        self._change(lambda credit: max(more, -credit), granted=more)

    def stop(self) -> "Future[bool]":
        """Take back what is left. A message that was under way comes all the same."""
        return self._change(lambda credit: -credit)

    def remind(self) -> None:
        """Not needed: no answer is ever dropped."""

    def confirm(self) -> "Future[bool]":
        """Change the credit by one: the answer comes after what was written before. Who waits for that shares it."""
        shared = (change.answer for change in self._waiting if change.of == self._change_by_one)
        return next(shared, None) or self._change(self._change_by_one)

    @property
    def stopping(self) -> bool:
        """Never: the answer does not wait for messages."""
        return False

    def arrived(self, count: int = 1) -> None:
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
        for future in [*asked, *(change.answer for change in self._waiting)]:
            if error is None:
                future.set_result(False)
            else:
                future.set_exception(error)
        self._asked = None
        self._waiting.clear()

    def _change_by_one(self, credit: int) -> int:
        """One less, for who receives knows that, and asks again when much is missing; the last one it gets back.

        Where there is none, it is one more, and that is not taken back: a message may have used it.
        """
        if credit == 1:
            self._waiting.appendleft(_Change(_one_more, 0, Future()))
        return -1 if credit > 0 else 1 - credit

    def _change(self, of: Callable[[int], int], granted: int = 0) -> "Future[bool]":
        """One at a time, for changes that are written together are one, with one answer."""
        change = _Change(of, granted, Future())
        self._waiting.append(change)
        if self._asked is None:
            self._ask_next()
        return change.answer

    def _ask_next(self) -> None:
        while self._waiting and self._asked is None:
            if self._waiting[0].of == self._change_by_one and not self._encode():
                self._later(self._ask_next)  # of what is written together proton puts credit first
                return
            change = self._waiting.popleft()
            by = change.of(self._link.credit - self._link.queued)  # as it is on the wire, which knows what has come
            self._changed(by - change.granted)
            if by:
                self._asked = change.answer
                self._link.flow(by)
            else:
                change.answer.set_result(True)


def _one_more(credit: int) -> int:
    """And where more came than was asked for, so many that the credit is not below zero."""
    return max(1, -credit)
