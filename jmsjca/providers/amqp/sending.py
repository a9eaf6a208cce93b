"""Messages on their way to the broker, together."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from jmsjca.errors import JMSError
from jmsjca.providers.amqp.proton_deliveries import fields_of
from jmsjca.providers.amqp.states import sent_in, taken_in

__all__ = ["Sending", "Then"]

Then = Callable[["Future[Any]"], None]  #: goes on, and has the future done with the answer to that


class Unsent(Protocol):
    """Who has messages that wait for credit."""

    def drop(self, sending: "Sending") -> int:
        """Send nothing more of these; tells how many that were."""
        ...


class Sending:
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
        settled: bool = False,
        then: "Then | None" = None,
    ) -> None:
        self.settled = settled and transaction is not None
        self.missing = count
        self._now = now
        self._then = then
        self.latest = 0.0
        self._over: list[Unsent] = []
        self.state = None if transaction is None else fields_of(sent_in(transaction))
        self.error: JMSError | None = None
        self.some = False
        self.in_doubt = False
        self.taken = b"" if transaction is None else taken_in(transaction)  # until it tells it in another way
        self.done: Future[Any] = Future()
        self._end_if_done()

    def goes_over(self, link: Unsent) -> None:
        """Some of it may wait there."""
        self._over.append(link)

    def unanswered(self, count: int) -> None:
        """Note that so many are sent of which the broker will say nothing; it answers one behind them."""
        self.missing -= count

    def took(self, count: int) -> None:
        """Note that the broker took so many messages."""
        if count:
            self.some = True
            self._answered(count)

    def refused(self, count: int, error: JMSError) -> None:
        """Note that so many were not taken, or not even sent; what still waits for credit is not sent any more.

        All that is sent is waited for all the same: what is written later might come into the next transaction.
        """
        if self.error is None:
            self.error = error
            count += sum(link.drop(self) for link in self._over)
        self._answered(count)

    def _answered(self, count: int) -> None:
        self.latest = self._now()
        self.missing -= count
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self.missing or self.done.done():
            return
        if self.error is not None:
            self.done.set_exception(self.error)
        elif self._then is not None:
            self._then(self.done)
        else:
            self.done.set_result(None)
