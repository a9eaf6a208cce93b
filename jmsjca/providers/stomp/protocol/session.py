"""A session with a broker: login, requests and receipts, one transaction at a time, frame dispatch."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import Lock

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from jmsjca.forking import ForkGuard
from jmsjca.providers.stomp.errors import BrokerRefusedError, error_text
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser, connect_frame, encode_frame
from jmsjca.providers.stomp.protocol.heartbeat import heartbeat_of
from jmsjca.providers.stomp.protocol.receipts import Receipts
from jmsjca.providers.stomp.protocol.transport import ReceiverThread, SocketChannel, WriteError

__all__ = ["FrameDispatcher", "STOMPSession"]


class STOMPSession:
    """Everything that goes over one connection. It ends once, and never begins again.

    Args:
        channel: The connected socket.
        clock: Where time comes from.
        max_body: The largest body that is taken.
        reply_timeout: Seconds to wait for a receipt, and for the rest of a frame that has begun.
        ended: Told once when the connection ends by itself.

    Attributes:
        incoming: Who waits for what comes.
        receipts: Who waits for which of them.
        home: The process whose connection it is.
    """

    def __init__(
        self,
        channel: SocketChannel,
        clock: Clock,
        max_body: int,
        reply_timeout: float,
        ended: Callable[[JMSError], None],
    ) -> None:
        self._parser = FrameParser(max_body)
        self.dispatcher = FrameDispatcher(self._parser)
        self._transport = ReceiverThread(
            channel, self._parser, clock, patience=reply_timeout, received=self.dispatcher.on_frames, ended=self._end
        )
        self._ended = ended
        self._closing = False
        self._transaction_lock = threading.Lock()
        self.receipts = self.dispatcher.receipts
        self.reply_timeout = reply_timeout
        self.home = ForkGuard()

    @property
    def version(self) -> str:
        """The version of STOMP that was agreed on."""
        return self._parser.version

    def connect(self, headers: Mapping[str, str], heartbeat: float, timeout: float) -> Mapping[str, str]:
        """Log in.

        Returns:
            The headers of CONNECTED.

        Raises:
            BrokerRefusedError: The broker refuses.
            ConnectionLostError: It does not answer, or not as it should.
        """
        offer = round(heartbeat * 1000)
        frame = connect_frame({"accept-version": "1.1,1.2", "heart-beat": f"{offer},{offer}", **headers})
        self._transport.start()
        try:
            with suppress(WriteError):  # who reads learns why
                self.write(frame)
            answer = self.dispatcher.connected.result(timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError(f"The broker did not answer CONNECT within {timeout:g} seconds.") from error
        self._transport.start_heartbeat(*(span / 1000 for span in heartbeat_of(answer, offer)))
        return answer

    def encode(self, command: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
        """Write a frame in the version of this connection."""
        return encode_frame(command, headers, body, version=self.version)

    def request(
        self, command: str, headers: Mapping[str, str], timeout: float | None = None, *, head: bytes = b""
    ) -> None:
        """Send a frame and wait for its receipt.

        Args:
            command: The command.
            headers: Its headers.
            timeout: Seconds to wait; None for the usual time.
            head: Frames that are written in front of it, all of it at once.

        Raises:
            BrokerRefusedError: The broker refused it.
            ConnectionLostError: The connection broke.
        """
        receipt = self.receipts.new_id()
        frame = head + self.encode(command, {**headers, "receipt": receipt})
        wait = self.receipts.expect(receipt)
        try:
            self.write(frame)
            wait.result(self.reply_timeout if timeout is None else timeout)
        except WriteError as error:
            raise ConnectionLostError(f"The connection broke at {command}: {error}") from error
        finally:
            self.receipts.forget(wait)

    def send(self, command: str, headers: Mapping[str, str]) -> None:
        """Send a frame that nobody waits for."""
        try:
            self.write(self.encode(command, headers))
        except WriteError as error:
            raise ConnectionLostError(f"The connection broke at {command}: {error}") from error

    @contextmanager
    def exclusive_transaction(self, timeout: float) -> Generator[None, None, None]:
        """Have the only transaction of this connection; wait until no other one is open.

        Raises:
            TransactionRolledBackError: So many seconds passed; nothing was written.
        """
        if not self._transaction_lock.acquire(timeout=timeout):
            raise TransactionRolledBackError(f"Another commit of this connection took longer than {timeout:g} seconds.")
        try:
            yield
        finally:
            self._transaction_lock.release()

    def write(self, data: bytes) -> None:
        """Write whole frames at once.

        Raises:
            WriteError: The connection broke on the way.
        """
        self._transport.write(data)

    def end(self, reason: JMSError) -> None:
        """End the connection for a reason."""
        self._transport.end(reason)

    def close(self, timeout: float) -> None:
        """Say goodbye, wait for the answer, end the connection. Nobody is told that it was lost."""
        self._closing = True
        try:
            self.request("DISCONNECT", {}, timeout)
        except JMSError:
            pass  # it ends anyway
        finally:
            self._transport.end(ConnectionLostError("This connection was closed."))

    def _end(self, reason: JMSError) -> None:
        if self.dispatcher.end(reason) and not self._closing:
            self._ended(reason)


class FrameDispatcher:
    """Hands frames on, on the receiver thread.

    Args:
        parser: What reads them; it is told which version was agreed on.

    Attributes:
        answer: The headers of CONNECTED.
        receipts: Who waits for which.
        receipt_confirmed_by: Tells which receipt an ERROR stands for, if that is all that it means.
    """

    def __init__(self, parser: FrameParser) -> None:
        self._parser = parser
        self._listeners: dict[str, Callable[[Sequence[Frame]], None]] = {}
        self._lock = Lock()
        self._deferring = False
        self._deferred_error: BrokerRefusedError | None = None
        self.connected: Future[Mapping[str, str]] = Future()
        self.receipts = Receipts()
        self.receipt_confirmed_by: Callable[[Frame], str | None] = _no_receipt

    def add_listener(self, subscription: str, listener: Callable[[Sequence[Frame]], None]) -> None:
        """Hand the messages of a subscription to somebody, in chunks."""
        self._listeners[subscription] = listener

    def remove_listener(self, subscription: str) -> None:
        """Drop what else comes for a subscription."""
        self._listeners.pop(subscription, None)

    @contextmanager
    def deferring_errors(self) -> Generator[None, None, None]:
        """Let an ERROR that names no frame not end the connection before the answer has come that is waited for here.

        The broker may tell of the same thing twice, and only one of the two says what has become of a request.

        Raises:
            BrokerRefusedError: There was such an ERROR, and yet the broker confirmed what was waited for.
        """
        self._deferring = True
        try:
            yield
        finally:
            with self._lock:  # from here on an ERROR ends the connection
                self._deferring = False
        if self._deferred_error is not None:
            raise self._deferred_error

    def on_frames(self, frames: Sequence[Frame]) -> None:
        """Take a chunk of frames.

        Raises:
            BrokerRefusedError: One is an ERROR.
            ConnectionLostError: One breaks the protocol.
        """
        for subscription, group in groupby(frames, _subscription_of):
            if subscription is not None:
                self._deliver(subscription, list(group))
            else:
                for frame in group:
                    self._on_frame(frame)

    def end(self, reason: JMSError) -> bool:
        """Let everybody know that nothing more comes; true if the broker had let this client in."""
        self.receipts.fail(reason)
        if self.connected.done():
            return True
        self.connected.set_exception(reason)
        return False

    def _deliver(self, subscription: str, frames: list[Frame]) -> None:
        listener = self._listeners.get(subscription)
        if listener is not None:  # else it was unsubscribed while they were on their way
            listener(frames)

    def _on_frame(self, frame: Frame) -> None:
        if frame.command == "RECEIPT":
            self.receipts.on_receipt(frame.headers["receipt-id"])
        elif frame.command == "ERROR" and (receipt := self.receipt_confirmed_by(frame)) is not None:
            self.receipts.on_receipt(receipt)
        elif frame.command == "ERROR":
            text, receipt = error_text(frame.headers, frame.body), frame.headers.get("receipt-id")
            only_request = self.receipts.unanswered == 1
            self._on_refusal(BrokerRefusedError(text, receipt, only_request=only_request))
        elif self.connected.done():
            raise ConnectionLostError("The broker broke the STOMP protocol: it sent CONNECTED twice.")
        else:
            self._on_connected(frame)

    def _on_refusal(self, error: BrokerRefusedError) -> None:
        with self._lock:
            if not self._deferring or error.receipt is not None:
                raise error
            self._deferred_error = error

    def _on_connected(self, frame: Frame) -> None:
        version = frame.headers["version"]
        if version not in {"1.1", "1.2"}:
            raise ConnectionLostError(f"The broker chose STOMP {version[:20]!r}, which was not offered.")
        self._parser.version = version
        self.connected.set_result(frame.headers)


def _no_receipt(_: Frame) -> None:
    """What an ERROR means as long as nobody knows the broker."""


def _subscription_of(frame: Frame) -> str | None:
    return frame.headers["subscription"] if frame.command == "MESSAGE" else None
