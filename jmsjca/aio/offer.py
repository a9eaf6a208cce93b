"""A message on its way from a session's thread to whoever awaits it."""

import asyncio
from concurrent.futures import Future

from jmsjca.aio.worker import Worker
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Message
from jmsjca.outbound import MessageConsumer

__all__ = ["Offer"]


class Offer:
    """Shown by the thread, taken on the event loop: so no message is received that `take` does not return.

    The thread shows the message and waits for the answer. That is given between two awaits, where no cancellation can
    come: yes, and the message is returned and settled as the session's mode says; or no, and it is the next one again.

    Args:
        consumer: Whose message.
        worker: The session's thread.
        timeout: Seconds that the thread waits for one; None for ever.
    """

    def __init__(self, consumer: MessageConsumer, worker: Worker, timeout: float | None) -> None:
        self._consumer = consumer
        self._worker = worker
        self._timeout = timeout
        self._shown: Future[Message | None] = Future()
        self._answer: Future[bool] = Future()

    async def take(self) -> Message | None:
        """Let the thread receive, and take what it shows; None if there was nothing in time."""
        self._worker.post(self._receive)
        try:
            return await asyncio.wrap_future(self._shown)
        except (asyncio.CancelledError, GeneratorExit):
            self._answer.set_result(False)
            self._consumer.interrupt()
            raise
        finally:
            if not self._answer.done():
                self._answer.set_result(True)

    def _receive(self) -> None:
        try:
            self._worker.check()
            self._consumer.offer(self._show, self._answer.done, self._timeout)
        except BaseException as error:
            if self._shown.done():
                raise
            self._tell(error)
        if not self._shown.done():
            self._tell(None)

    def _show(self, message: Message | MessageFormatError) -> bool:
        self._tell(message)
        return self._answer.result()

    def _tell(self, outcome: Message | BaseException | None) -> None:
        if not self._shown.set_running_or_notify_cancel():
            return  # nobody waits any more
        if isinstance(outcome, BaseException):
            self._shown.set_exception(outcome)
        else:
            self._shown.set_result(outcome)
