"""stomp.py's connection, made safe: verified sockets, exact frames, finite memory, no secrets in logs."""

import threading
from collections.abc import Callable, Sequence

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError, JMSError
from jmsjca.providers.network import broken
from jmsjca.providers.stomp.channel import Channel
from jmsjca.providers.stomp.frames import Frame
from jmsjca.providers.stomp.heartbeat import Heartbeat
from jmsjca.providers.stomp.library import Lifecycle
from jmsjca.providers.stomp.parser import FrameParser
from jmsjca.providers.stomp.progress import Progress

__all__ = ["Transport"]

_HANDLED = b"\n"  # looks like a heart-beat to stomp.py: nothing is left for its own parser


class Transport(Lifecycle):
    """Keeps stomp.py's receiver thread and its life cycle, and replaces what it reads and writes with.

    Its own parser knows no limits and guesses, its writer escapes no header names and logs passwords, and its TLS falls
    back to clear text when a host name is spelled differently; so `receive` hands whole frames on by itself, and only
    `write` writes.

    Args:
        channel: The connected socket.
        parser: What reads frames.
        clock: Where time comes from.
        patience: Seconds that any frame may take from its first byte to its last.
        received: Told of every chunk of frames, on the receiver thread.
        ended: Told once why the connection ended, on the receiver thread.
    """

    def __init__(
        self,
        channel: Channel,
        parser: FrameParser,
        clock: Clock,
        *,
        patience: float,
        received: Callable[[Sequence[Frame]], None],
        ended: Callable[[JMSError], None],
    ) -> None:
        super().__init__(auto_decode=False)
        self._channel = channel
        self._parser = parser
        self._received = received
        self._ended = ended
        self._reason: JMSError | None = None
        self._clock = clock
        self._heartbeat = Heartbeat(clock)
        self._progress = Progress(clock, patience)
        self.override_threading(_start_thread)
        self.set_listener("jmsjca", self)

    def beat(self, write: float, read: float) -> None:
        """Turn heart-beats on: seconds until this side must write, and in which the broker will; 0 for never."""
        self._heartbeat = Heartbeat(self._clock, write, 2 * read)

    def write(self, data: bytes) -> None:
        """Write whole frames at once.

        Raises:
            WriteError: The connection broke.
        """
        self._channel.write(data)
        self._heartbeat.wrote()

    def end(self, reason: JMSError) -> None:
        """End the connection for a reason; the first one counts."""
        self._reason = self._reason or reason
        self.running = False
        self._channel.shut()
        if self.io_thread is None:  # nobody reads who would release the socket
            self._channel.close()

    def attempt_connection(self) -> None:
        """Nothing to do for stomp.py: the socket is connected and verified."""

    def receive(self) -> bytes:
        """Read and hand on what came, for stomp.py's receiver loop; nothing once the connection ended."""
        try:
            return self._receive()
        except JMSError as error:
            self._reason = self._reason or error
        except OSError as error:
            self._reason = self._reason or broken("The connection to the broker broke", error)
        except Exception as error:  # noqa: BLE001  # stomp.py would swallow it
            self._reason = self._reason or ConnectionLostError("A frame could not be handled.")
            self._reason.__cause__ = error
        return b""

    def cleanup(self) -> None:
        """Close the socket: stomp.py's receiver loop is over."""
        self._channel.close()

    def on_disconnected(self) -> None:
        """Tell why it ended; called once by stomp.py."""
        self._ended(self._reason or ConnectionLostError("The broker closed the connection."))

    def _receive(self) -> bytes:
        data = self._channel.read(self._heartbeat.pause)
        if self._heartbeat.due:
            self._channel.write_if_idle(b"\n")
            self._heartbeat.wrote()
        if data is None:
            self._check_silence()
        else:
            self._heartbeat.heard()
            self._hand_on(data)
        if self._parser.unfinished:
            self._progress.check(self._parser.unfinished)
        return b"" if data == b"" else _HANDLED

    def _hand_on(self, data: bytes) -> None:
        """Let everything be handled that is whole, also before what breaks the protocol."""
        if not self._parser.unfinished:
            self._progress.began()
        frames = self._parser.feed(data)
        while frames:
            self._progress.began()
            self._received(frames)
            frames = self._parser.feed(b"")

    def _check_silence(self) -> None:
        if self._heartbeat.dead:
            raise ConnectionLostError("The broker was silent for longer than it promised; it is taken for dead.")


def _start_thread(loop: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=loop, name="jmsjca-stomp", daemon=True)
    thread.start()
    return thread
