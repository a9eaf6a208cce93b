"""A conversation with a broker: requests and their receipts, and messages on their way to consumers."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from itertools import groupby

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from jmsjca.providers.stomp.answers import heartbeat_of, reason_of
from jmsjca.providers.stomp.channel import Channel, WriteError
from jmsjca.providers.stomp.frames import Frame, connect_frame, encode_frame
from jmsjca.providers.stomp.parser import FrameParser
from jmsjca.providers.stomp.receipts import Receipts, RefusedError
from jmsjca.providers.stomp.transport import Transport

__all__ = ["Wire"]


class Wire:
    """Everything that goes over one connection. It ends once, and never begins again.

    Args:
        channel: The connected socket.
        clock: Where time comes from.
        max_body: The largest body that is taken.
        reply_timeout: Seconds to wait for a receipt.
        ended: Told once when the connection ends by itself.

    Attributes:
        receipts: Who waits for which.
        version: The version of STOMP that was agreed on.
    """

    def __init__(
        self, channel: Channel, clock: Clock, max_body: int, reply_timeout: float, ended: Callable[[JMSError], None]
    ) -> None:
        self._parser = FrameParser(max_body)
        self._transport = Transport(channel, self._parser, clock, self._receive, self._end)
        self._ended = ended
        self._connected: Future[Mapping[str, str]] = Future()
        self._listeners: dict[str, Callable[[Sequence[Frame]], None]] = {}
        self._closing = False
        self._hearing_out = False
        self._overheard: RefusedError | None = None
        self._turns = threading.Lock()
        self.receipts = Receipts()
        self.reply_timeout = reply_timeout
        self.version = "1.2"

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
            self.write(frame)
            answer = self._connected.result(timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError(f"The broker did not answer CONNECT within {timeout:g} seconds.") from error
        except WriteError as error:
            raise ConnectionLostError("The broker broke the connection at the login.") from error
        self._transport.beat(*(span / 1000 for span in heartbeat_of(answer, offer)))
        return answer

    def listen(self, subscription: str, listener: Callable[[Sequence[Frame]], None]) -> None:
        """Hand the messages of a subscription to somebody, on the receiver thread, in chunks."""
        self._listeners[subscription] = listener

    def unlisten(self, subscription: str) -> None:
        """Drop what else comes for a subscription."""
        self._listeners.pop(subscription, None)

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
            self._hearing_out = False
        if self._overheard is not None:
            raise self._overheard

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

    def _receive(self, frames: Sequence[Frame]) -> None:
        for command, group in groupby(frames, _kind):
            if command is not None:
                self._deliver(command, list(group))
            else:
                for frame in group:
                    self._handle(frame)

    def _deliver(self, subscription: str, frames: list[Frame]) -> None:
        listener = self._listeners.get(subscription)
        if listener is not None:  # else it was unsubscribed while they were on their way
            listener(frames)

    def _handle(self, frame: Frame) -> None:
        if frame.command == "RECEIPT":
            self.receipts.arrived(frame.headers["receipt-id"])
        elif frame.command == "ERROR":
            self._refused(RefusedError(reason_of(frame), frame.headers.get("receipt-id")))
        elif self._connected.done():
            raise ConnectionLostError("The broker broke the STOMP protocol: it sent CONNECTED twice.")
        else:
            self._agree(frame)

    def _refused(self, error: RefusedError) -> None:
        if not self._hearing_out or error.receipt is not None:
            raise error
        self._overheard = error

    def _agree(self, frame: Frame) -> None:
        version = frame.headers["version"]
        if version not in {"1.1", "1.2"}:
            raise ConnectionLostError(f"The broker chose STOMP {version[:20]!r}, which was not offered.")
        self.version = self._parser.version = version
        self._connected.set_result(frame.headers)

    def _end(self, reason: JMSError) -> None:
        self.receipts.fail(reason)
        if not self._connected.done():
            self._connected.set_exception(reason)
        elif not self._closing:
            self._ended(reason)


def _kind(frame: Frame) -> str | None:
    return frame.headers["subscription"] if frame.command == "MESSAGE" else None
