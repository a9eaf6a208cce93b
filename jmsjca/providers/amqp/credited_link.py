"""A link over which messages come as credit allows."""

from concurrent.futures import Future
from contextlib import suppress

from jmsjca.errors import JMSError
from jmsjca.providers.amqp.credit import Credit
from jmsjca.providers.amqp.engine import Engine
from jmsjca.providers.amqp.link import LinkEnd

__all__ = ["CreditedLink"]

_REMINDER = 0.25  # seconds until the broker is asked again for the answer to a drain


class CreditedLink(LinkEnd):
    """Everything but `attach` and `stop` belongs on the engine's thread.

    Args:
        engine: The connection.
        name: Where from.
        reply_timeout: Seconds to wait for the broker's answers.
    """

    def __init__(self, engine: Engine, name: str, reply_timeout: float) -> None:
        super().__init__(engine, f"the receiver from {name}", reply_timeout)
        self._name = name
        self._asked_for: int = 0
        self._credit: Credit | None = None  # made with the link

    def grant(self, credit: int) -> None:
        """Ask for so many more messages."""
        if credit_of := self._usable():
            self._asked_for += credit
            credit_of.grant(credit)

    def stop(self) -> bool:
        """Ask for no more, and wait until what was on its way is here. Not on the engine's thread.

        Returns:
            True if the broker surely has no more.
        """
        answer = self._engine.call(lambda: credit.stop() if (credit := self._usable()) else _ended())
        try:
            return self._await_stop(answer)
        except JMSError as error:
            if self.error is None or isinstance(error.__cause__, TimeoutError):  # which is why it has ended
                raise
            return False  # it has ended meanwhile, and why is told by `Arrivals.broken`

    def _await_stop(self, answer: "Future[bool]") -> bool:
        for _ in range(int(self._reply_timeout / _REMINDER)):
            with suppress(TimeoutError):
                return answer.result(_REMINDER)
            self._engine.call(lambda: credit.remind() if (credit := self._usable()) else None)
        return self._engine.wait(answer, _REMINDER, f"the end of what was on its way from {self._name}")

    def round_trip(self) -> "Future[bool]":
        """Done when the broker has handled all that was written before."""
        credit = self._usable()
        return credit.confirm() if credit else _ended(self.error)

    def revoke(self) -> None:
        """Ask for no more, without waiting: the connection closes."""
        if self._usable():
            self._link.flow(-max(self._link.credit - self._link.queued, 0))  # below zero would be some four billions

    def on_flow(self) -> None:
        """The broker told its view of the credit."""
        if credit := self._usable():
            credit.answered()

    def _forget(self) -> None:
        super()._forget()
        self._credit = None

    def _usable(self) -> Credit | None:
        return self._credit if self.error is None and not self._ended.done() else None


def _ended(error: JMSError | None = None) -> "Future[bool]":
    """The answer where nobody answers."""
    future: Future[bool] = Future()
    if error is None:
        future.set_result(False)
    else:
        future.set_exception(error)
    return future
