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
from jmsjca.providers.stomp.errors import RefusedError, reason_of
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser, connect_frame, encode_frame
from jmsjca.providers.stomp.protocol.heartbeat import heartbeat_of
from jmsjca.providers.stomp.protocol.receipts import Receipts
from jmsjca.providers.stomp.protocol.transport import Channel, Transport, WriteError

__all__ = ["Incoming", "Wire"]


class Wire:
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
        self, channel: Channel, clock: Clock, max_body: int, reply_timeout: float, ended: Callable[[JMSError], None]
    ) -> None:
        self._parser = FrameParser(max_body)
        self.incoming = Incoming(self._parser)
        self._transport = Transport(
            channel, self._parser, clock, patience=reply_timeout, received=self.incoming.receive, ended=self._end
        )
        self._ended = ended
        self._closing = False
        self._turns = threading.Lock()
        self.receipts = self.incoming.receipts
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
            RefusedError: The broker refuses.
            ConnectionLostError: It does not answer, or not as it should.
        """
        offer = round(heartbeat * 1000)
        frame = connect_frame({"accept-version": "1.1,1.2", "heart-beat": f"{offer},{offer}", **headers})
        self._transport.start()
        try:
            with suppress(WriteError):  # who reads learns why
                self.write(frame)
            answer = self.incoming.answer.result(timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError(f"The broker did not answer CONNECT within {timeout:g} seconds.") from error
        self._transport.beat(*(span / 1000 for span in heartbeat_of(answer, offer)))
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
            RefusedError: The broker refused it.
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

    def tell(self, command: str, headers: Mapping[str, str]) -> None:
        """Send a frame that nobody waits for."""
        try:
            self.write(self.encode(command, headers))
        except WriteError as error:
            raise ConnectionLostError(f"The connection broke at {command}: {error}") from error

    @contextmanager
    def turn(self, timeout: float) -> Generator[None, None, None]:
        """Have the only transaction of this connection; wait until no other one is open.

        Raises:
            TransactionRolledBackError: So many seconds passed; nothing was written.
        """
        if not self._turns.acquire(timeout=timeout):
            raise TransactionRolledBackError(f"Another commit of this connection took longer than {timeout:g} seconds.")
        try:
            yield
        finally:
            self._turns.release()

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
        if self.incoming.end(reason) and not self._closing:
            self._ended(reason)


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
