"""What comes from the broker, and who waits for it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import groupby
from threading import Lock

from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.stomp.answers import reason_of
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.parser import FrameParser
from jmsjca.providers.stomp.receipts import Receipts, RefusedError

__all__ = ["Incoming"]


class Incoming:
    """Hands frames on, on the receiver thread.

    Args:
        parser: What reads them; it is told which version was agreed on.

    Attributes:
        answer: The headers of CONNECTED.
        receipts: Who waits for which.
        confirmed_by: Tells which receipt an ERROR stands for, if that is all that it means.
    """

    def __init__(self, parser: FrameParser) -> None:
        self._parser = parser
        self._listeners: dict[str, Callable[[Sequence[Frame]], None]] = {}
        self._lock = Lock()
        self._hearing_out = False
        self._overheard: RefusedError | None = None
        self.answer: Future[Mapping[str, str]] = Future()
        self.receipts = Receipts()
        self.confirmed_by: Callable[[Frame], str | None] = _refuses

    def listen(self, subscription: str, listener: Callable[[Sequence[Frame]], None]) -> None:
        """Hand the messages of a subscription to somebody, in chunks."""
        self._listeners[subscription] = listener

    def unlisten(self, subscription: str) -> None:
        """Drop what else comes for a subscription."""
        self._listeners.pop(subscription, None)

    @contextmanager
    def hearing_out(self) -> Generator[None, None, None]:
        """Let an ERROR that names no frame not end the connection before the answer has come that is waited for here.

        The broker may tell of the same thing twice, and only one of the two says what has become of a request.

        Raises:
            RefusedError: There was such an ERROR, and yet the broker confirmed what was waited for.
        """
        self._hearing_out = True
        try:
            yield
        finally:
            with self._lock:  # from here on an ERROR ends the connection
                self._hearing_out = False
        if self._overheard is not None:
            raise self._overheard

    def receive(self, frames: Sequence[Frame]) -> None:
        """Take a chunk of frames.

        Raises:
            RefusedError: One is an ERROR.
            ConnectionLostError: One breaks the protocol.
        """
        for subscription, group in groupby(frames, _subscription_of):
            if subscription is not None:
                self._deliver(subscription, list(group))
            else:
                for frame in group:
                    self._handle(frame)

    def end(self, reason: JMSError) -> bool:
        """Let everybody know that nothing more comes; true if the broker had let this client in."""
        self.receipts.fail(reason)
        if self.answer.done():
            return True
        self.answer.set_exception(reason)
        return False

    def _deliver(self, subscription: str, frames: list[Frame]) -> None:
        listener = self._listeners.get(subscription)
        if listener is not None:  # else it was unsubscribed while they were on their way
            listener(frames)

    def _handle(self, frame: Frame) -> None:
        if frame.command == "RECEIPT":
            self.receipts.arrived(frame.headers["receipt-id"])
        elif frame.command == "ERROR" and (receipt := self.confirmed_by(frame)) is not None:
            self.receipts.arrived(receipt)
        elif frame.command == "ERROR":
            alone = self.receipts.unanswered == 1
            self._refused(RefusedError(reason_of(frame), frame.headers.get("receipt-id"), alone=alone))
        elif self.answer.done():
            raise ConnectionLostError("The broker broke the STOMP protocol: it sent CONNECTED twice.")
        else:
            self._agree(frame)

    def _refused(self, error: RefusedError) -> None:
        with self._lock:
            if not self._hearing_out or error.receipt is not None:
                raise error
            self._overheard = error

    def _agree(self, frame: Frame) -> None:
        version = frame.headers["version"]
        if version not in {"1.1", "1.2"}:
            raise ConnectionLostError(f"The broker chose STOMP {version[:20]!r}, which was not offered.")
        self._parser.version = version
        self.answer.set_result(frame.headers)


def _refuses(_: Frame) -> None:
    """What an ERROR means as long as nobody knows the broker."""


def _subscription_of(frame: Frame) -> str | None:
    return frame.headers["subscription"] if frame.command == "MESSAGE" else None
