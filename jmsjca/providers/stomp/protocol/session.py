"""A conversation with a broker: the login, requests and their receipts, one transaction at a time."""

import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress

from jmsjca.config import Clock
from jmsjca.config.forks import Home
from jmsjca.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from jmsjca.providers.stomp.answers import heartbeat_of
from jmsjca.providers.stomp.channel import Channel, WriteError
from jmsjca.providers.stomp.frames import connect_frame, encode_frame
from jmsjca.providers.stomp.incoming import Incoming
from jmsjca.providers.stomp.parser import FrameParser
from jmsjca.providers.stomp.transport import Transport

__all__ = ["Wire"]


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
        self.home = Home()

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
