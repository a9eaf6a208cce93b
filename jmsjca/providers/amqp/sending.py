"""Messages on their way to the broker, together."""

from concurrent.futures import Future

from jmsjca.errors import JMSError

__all__ = ["Sending"]


class Sending:
    """Done when the broker has said something to each message.

    Args:
        count: How many messages.
        state: The fields of the state that tells their transaction, encoded; None outside any transaction.

    Attributes:
        some: True once the broker has taken a message.
        taken: Fields of the broker's state that tell that it took a message, encoded.
        done: When all is answered.
    """

    def __init__(self, count: int, state: bytes | None) -> None:
        self._missing = count
        self._error: JMSError | None = None
        self.state = state
        self.some = False
        self.taken = b""
        self.done: Future[None] = Future()
        if not count:
            self._end()

    def answered(self, error: JMSError | None) -> None:
        """Note what the broker said to one message: an error, or that it took it."""
        self._missing -= 1
        if error is None:
            self.some = True
        else:
            self._error = self._error or error
        if not self._missing:
            self._end()

    def fail(self, error: JMSError) -> None:
        """Note that no more answers come."""
        if not self.done.done():
            self.done.set_exception(error)

    def _end(self) -> None:
        if self.done.done():
            return
        if self._error is not None:
            self.done.set_exception(self._error)
        else:
            self.done.set_result(None)
