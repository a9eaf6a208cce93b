"""A session with a broker: login, requests and receipts, one transaction at a time, frame dispatch."""

# stomp.py has no annotations.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from itertools import count
from threading import Lock

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from jmsjca.forking import ForkGuard
from jmsjca.providers.common.network import await_answer
from jmsjca.providers.stomp.errors import BrokerRefusedError, error_text
from jmsjca.providers.stomp.protocol.frames import Frame, FrameParser, check_headers, connect_frame, encode_frame
from jmsjca.providers.stomp.protocol.stomp_py import ConnectionListener, Protocol11, Protocol12
from jmsjca.providers.stomp.protocol.transport import SocketChannel, STOMPTransport, WriteError, heartbeat_of

__all__ = ["FrameDispatcher", "ReceiptWait", "Receipts", "STOMPSession"]

_PROTOCOLS = {"1.1": Protocol11, "1.2": Protocol12}


class STOMPSession:
    """Everything that is sent and received over one connection. It ends once, and never starts again.

    Frames that are sent one at a time are written by stomp.py's protocol class of the version that was agreed on. The
    frames of a batch are encoded by `encode` and written together.

    Args:
        channel: The connected socket.
        clock: Source of time.
        max_body: The largest body that is accepted, in bytes.
        reply_timeout: Seconds to wait for a receipt, and for the rest of a frame that has begun.
        on_lost: Called once if the connection ends before it is closed.

    Attributes:
        dispatcher: Hands received frames to their listeners.
        receipts: The receipts that are awaited.
        home: The process that opened the connection.
    """

    def __init__(
        self,
        channel: SocketChannel,
        clock: Clock,
        max_body: int,
        reply_timeout: float,
        on_lost: Callable[[JMSError], None],
    ) -> None:
        self._parser = FrameParser(max_body)
        self.dispatcher = FrameDispatcher(self._parser, self._on_disconnected)
        self._transport = STOMPTransport(
            channel, self._parser, clock, frame_timeout=reply_timeout, on_messages=self.dispatcher.on_messages
        )
        self._transport.set_listener("jmsjca", self.dispatcher)
        self._protocol: Protocol11 | None = None  # until the version is known
        self._on_lost = on_lost
        self._closing = False
        self._transaction_lock = threading.Lock()
        self._in_transaction = False
        self.receipts = self.dispatcher.receipts
        self.reply_timeout = reply_timeout
        self.home = ForkGuard()

    @property
    def version(self) -> str:
        """The version of STOMP that was agreed on."""
        return self._parser.version

    @property
    def beginning(self) -> bytes:
        """The first bytes of a frame that is not complete, or that broke the protocol."""
        return self._parser.beginning

    def connect(
        self,
        headers: Mapping[str, str],
        heartbeat: float,
        timeout: float,
        peer: str = "its address",
        *,
        on_silence: Callable[[], None] = lambda: None,
    ) -> Mapping[str, str]:
        """Log in.

        Args:
            headers: The headers of CONNECT but for version and heart-beat.
            heartbeat: Seconds between heart-beats that this side offers, for both directions; 0 for none.
            timeout: Seconds to wait for the answer.
            peer: Host and port of the broker, for error messages.
            on_silence: Called if the broker has sent nothing for some seconds; may raise an error.

        Returns:
            The headers of CONNECTED.

        Raises:
            BrokerRefusedError: The broker refuses.
            ConnectionLostError: The broker does not answer, or breaks the protocol.
        """
        offer = round(heartbeat * 1000)
        frame = connect_frame({"accept-version": "1.1,1.2", "heart-beat": f"{offer},{offer}", **headers})
        self._transport.start()
        try:
            with suppress(WriteError):  # the receiver thread learns the reason
                self.write(frame)
            connected = self.dispatcher.connected
            left = await_answer(connected, timeout, lambda: bool(self.beginning), on_silence)
            answer = connected.result(left)
        except FutureTimeoutError as error:
            raise ConnectionLostError(
                f"The broker at {peer} did not answer CONNECT within {timeout:g} seconds."
            ) from error
        self._transport.start_heartbeat(*(milliseconds / 1000 for milliseconds in heartbeat_of(answer, offer)))
        self._protocol = _PROTOCOLS[self.version](self._transport)
        return answer

    def encode(self, command: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
        """Encode a frame of a batch in the version of this connection."""
        return encode_frame(command, headers, body, version=self.version)

    def request(
        self,
        command: str,
        headers: Mapping[str, str],
        timeout: float | None = None,
        *,
        head: bytes = b"",
        text: str = "",
    ) -> None:
        """Send a frame and wait for its receipt.

        Args:
            command: The command.
            headers: Its headers.
            timeout: Seconds to wait; None for the usual time.
            head: Encoded frames that are written in front of it, in the same write.
            text: The body. It is sent without a length, which makes it a text, and must not contain NUL.

        Raises:
            MessageFormatError: A header holds a character that this version of STOMP cannot carry.
            BrokerRefusedError: The broker refused the frame.
            ConnectionLostError: The connection broke, or the answer did not arrive in time. Then the caller ends the
                connection if it matters whether the broker has carried the frame out.
        """
        receipt = self.receipts.new_id()
        confirmed = {**headers, "receipt": receipt}
        check_headers(confirmed, self.version)
        wait = self.receipts.expect(receipt)
        try:
            if head or text:
                self._write(command, head + self.encode(command, confirmed)[:-1] + text.encode() + b"\0")
            else:
                self._send(command, confirmed)
            wait.result(self.reply_timeout if timeout is None else timeout)
        finally:
            self.receipts.forget(wait)

    def send(self, command: str, headers: Mapping[str, str]) -> None:
        """Send a frame without waiting for an answer.

        Raises:
            MessageFormatError: A header holds a character that this version of STOMP cannot carry.
            ConnectionLostError: The connection broke.
        """
        check_headers(headers, self.version)
        self._send(command, headers)

    @contextmanager
    def exclusive_transaction(self, timeout: float) -> Generator[None, None, None]:
        """Hold the only transaction of this connection; wait while another one is open.

        Raises:
            TransactionRolledBackError: The wait took longer than `timeout` seconds; nothing was written.
        """
        if not self._transaction_lock.acquire(timeout=timeout):
            raise TransactionRolledBackError(f"Another commit of this connection took longer than {timeout:g} seconds.")
        try:
            if self._in_transaction:  # an interrupted call has left it, and its connection is aborted
                raise ConnectionLostError("A transaction of this connection was interrupted: nothing can follow it.")
            self._in_transaction = True
            yield
            self._in_transaction = False
        except JMSError:
            self._in_transaction = False
            raise
        finally:
            self._transaction_lock.release()

    def write(self, data: bytes) -> None:
        """Write whole frames at once.

        Raises:
            WriteError: The connection broke before all of it was written.
        """
        self._transport.send(data)

    def end(self, reason: JMSError) -> None:
        """End the connection for a reason, and report it as lost."""
        self._transport.end(reason)

    def abort(self) -> None:
        """End the connection without a word to the broker, and without reporting it as lost."""
        self._closing = True
        self._transport.end(ConnectionLostError("This connection was aborted."))

    def close(self, timeout: float) -> None:
        """Disconnect, wait for the receipt, and end the connection without reporting it as lost."""
        self._closing = True
        self._transport.limit_writes(timeout)
        try:
            self.request("DISCONNECT", {}, timeout)
        except JMSError:
            pass  # it ends anyway
        finally:
            self._transport.end(ConnectionLostError("This connection was closed."))

    def _send(self, command: str, headers: Mapping[str, str]) -> None:
        if self._protocol is None:
            raise ConnectionLostError(f"There is no login before {command}.")
        with _lost_at(command):
            self._protocol.send_frame(command, dict(headers))

    def _write(self, command: str, data: bytes) -> None:
        with _lost_at(command):
            self.write(data)

    def _closed_text(self) -> str:
        closed = "The broker closed the connection"
        if self.dispatcher.connected.done():
            return f"{closed}."
        return f"{closed} and did not answer CONNECT: if it does so each time, correct the port, or use TLS."

    def _on_disconnected(self) -> None:
        reason = self._transport.reason
        if reason is None:
            reason = ConnectionLostError(self._closed_text())
        if self.dispatcher.end(reason) and not self._closing:
            self._on_lost(reason)


@contextmanager
def _lost_at(command: str) -> Generator[None, None, None]:
    try:
        yield
    except WriteError as error:
        raise ConnectionLostError(f"The connection broke at {command}: {error}") from error


class FrameDispatcher(ConnectionListener):
    """Hands received frames on, on the receiver thread: stomp.py's listener of the connection.

    Messages come in runs (`on_messages`), not one by one (`on_message`): that is measured in docs/how-to/providers.md.

    Args:
        parser: The reader of frames; its version is set at login.
        on_end: Called when the connection has ended.

    Attributes:
        connected: The headers of CONNECTED.
        receipts: The receipts that are awaited.
        receipt_confirmed_by: Returns the receipt that an ERROR stands for, where an ERROR means no more than that.
    """

    def __init__(self, parser: FrameParser, on_end: Callable[[], None]) -> None:
        self._parser = parser
        self._on_end = on_end
        self._listeners: dict[str, Callable[[Sequence[Frame]], None]] = {}
        self._lock = Lock()
        self._deferring = False
        self._deferred_error: BrokerRefusedError | None = None
        self.connected: Future[Mapping[str, str]] = Future()
        self.receipts = Receipts()
        self.receipt_confirmed_by: Callable[[Frame], str | None] = _no_receipt

    def add_listener(self, subscription: str, listener: Callable[[Sequence[Frame]], None]) -> None:
        """Hand the messages of a subscription to a listener, in runs."""
        self._listeners[subscription] = listener

    def remove_listener(self, subscription: str) -> None:
        """Discard further messages of a subscription."""
        self._listeners.pop(subscription, None)

    @contextmanager
    def deferring_errors(self) -> Generator[None, None, None]:
        """Defer an ERROR that names no frame until the receipt that is awaited here has come.

        The broker may report one failure twice, and only one of the two reports says what became of a request.

        Raises:
            BrokerRefusedError: There was such an ERROR, and yet the broker confirmed the request.
        """
        self._deferring = True
        try:
            yield
        finally:
            with self._lock:  # from here on an ERROR ends the connection
                self._deferring = False
        if self._deferred_error is not None:
            raise self._deferred_error

    def end(self, reason: JMSError) -> bool:
        """Fail everything that waits for a frame. Return True if the login had succeeded."""
        self.receipts.fail(reason)
        if self.connected.done():
            return True
        self.connected.set_exception(reason)
        return False

    def on_messages(self, subscription: str, frames: Sequence[Frame]) -> None:
        """Handle a run of MESSAGE frames of one subscription."""
        listener = self._listeners.get(subscription)
        if listener is not None:  # else it was unsubscribed while they were on their way
            listener(frames)

    def on_connected(self, frame: Frame) -> None:
        """Handle CONNECTED.

        Raises:
            ConnectionLostError: It is the second one, or the version was not offered.
        """
        if self.connected.done():
            raise ConnectionLostError("The broker broke the STOMP protocol: it sent CONNECTED twice.")
        version = frame.headers["version"]
        if version not in _PROTOCOLS:
            raise ConnectionLostError(f"The broker chose STOMP {version[:20]!r}, which was not offered.")
        self._parser.version = version
        self._parser.text_may_hold_nul = self._parser.connected_ends_line
        self.connected.set_result(frame.headers)

    def on_receipt(self, frame: Frame) -> None:
        """Handle RECEIPT."""
        self.receipts.on_receipt(frame.headers["receipt-id"])

    def on_error(self, frame: Frame) -> None:
        """Handle ERROR.

        Raises:
            BrokerRefusedError: It refuses something, and is not deferred.
        """
        receipt = self.receipt_confirmed_by(frame)
        if receipt is not None:
            self.receipts.on_receipt(receipt)
            return
        text, refused = error_text(frame.headers, frame.body), frame.headers.get("receipt-id")
        error = BrokerRefusedError(text, refused, only_request=self.receipts.unanswered == 1)
        with self._lock:
            if not self._deferring or error.receipt is not None:
                raise error
            self._deferred_error = error

    def on_disconnected(self) -> None:
        """Handle the end of the connection."""
        self._on_end()


def _no_receipt(_: Frame) -> None:
    """Return the receipt that an ERROR confirms: none, as long as the broker is not known."""


class ReceiptWait:
    """Wait for several receipts. It ends when all have arrived, or with the connection.

    Args:
        receipts: The ids; an id may be listed several times.
    """

    def __init__(self, receipts: Sequence[str]) -> None:
        self.outstanding = len(receipts)
        self.receipts = frozenset(receipts)
        self._result: Future[None] = Future()

    def result(self, timeout: float) -> None:
        """Wait until all receipts have arrived.

        Raises:
            ConnectionLostError: The connection was lost, or `timeout` seconds passed.
        """
        try:
            self._result.result(timeout)
        except FutureTimeoutError as error:
            raise ConnectionLostError(f"The broker did not answer within {timeout:g} seconds.") from error

    def on_receipt(self) -> None:
        """Count one receipt."""
        self.outstanding -= 1
        if not self.outstanding:
            self._result.set_result(None)

    def fail(self, error: JMSError) -> None:
        """End the wait with an error."""
        if not self._result.done():
            self._result.set_exception(error)


class Receipts:
    """The receipts that are awaited on one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[str, ReceiptWait] = {}
        self._unanswered = 0
        self._lost: JMSError | None = None
        self._numbers = count(1)

    @property
    def unanswered(self) -> int:
        """Number of waits that no receipt has ended. Forgotten ones count: their receipts may still arrive."""
        with self._lock:
            return self._unanswered

    def new_id(self) -> str:
        """Return a new receipt id."""
        return str(next(self._numbers))

    def expect(self, *receipts: str) -> ReceiptWait:
        """Register a wait for receipts, before they are requested.

        Raises:
            ConnectionLostError: The connection has ended.
        """
        wait = ReceiptWait(receipts)
        with self._lock:
            if self._lost is not None:
                raise ConnectionLostError(str(self._lost)) from self._lost
            self._waits.update(dict.fromkeys(receipts, wait))
            self._unanswered += 1
        return wait

    def forget(self, wait: ReceiptWait) -> None:
        """Discard the receipts of a wait."""
        with self._lock:
            for receipt in wait.receipts:
                self._waits.pop(receipt, None)

    def on_receipt(self, receipt: str) -> None:
        """Handle a receipt. One that is not awaited is ignored."""
        with self._lock:
            wait = self._waits.get(receipt)
            if wait is not None:
                wait.on_receipt()
                if not wait.outstanding:
                    self._unanswered -= 1

    def fail(self, error: JMSError) -> None:
        """Fail all present and future waits: the connection has ended."""
        with self._lock:
            self._lost = error
            for wait in set(self._waits.values()):
                wait.fail(error)
            self._waits.clear()
