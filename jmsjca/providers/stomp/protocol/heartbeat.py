"""Heart-beats: negotiation, deadlines for writes and reads, and for frames that have begun."""

# stomp.py has no annotations.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from collections.abc import Mapping

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError
from jmsjca.providers.stomp.protocol.stomp_py import calculate_heartbeats

__all__ = ["FrameDeadline", "Heartbeat", "agreed_heartbeat", "heartbeat_of"]

_MIN_BYTES_PER_SECOND = 1000


class Heartbeat:
    """Times of the last write and the last read of a connection.

    Args:
        clock: Source of time.
        write: Seconds without a write after which the broker gives up; 0 for never.
        read: Seconds without a byte after which the broker is taken for dead; 0 for never.
    """

    def __init__(self, clock: Clock, write: float = 0.0, read: float = 0.0) -> None:
        self._clock = clock
        self._write = write
        self._read = read
        self._last_write = self._last_read = clock.monotonic()

    @property
    def poll_interval(self) -> float:
        """Seconds that may pass until `is_write_due` and `is_peer_silent` must be checked again."""
        intervals = [seconds for seconds in (self._write / 2, self._read / 4) if seconds]
        return min(intervals, default=60.0)

    def on_write(self) -> None:
        """Record a write."""
        self._last_write = self._clock.monotonic()

    def on_read(self) -> None:
        """Record a read."""
        self._last_read = self._clock.monotonic()

    @property
    def is_write_due(self) -> bool:
        """True if a heart-beat should be written now."""
        return bool(self._write) and self._clock.monotonic() - self._last_write >= self._write / 2

    @property
    def is_peer_silent(self) -> bool:
        """True if the broker has been silent for too long."""
        return bool(self._read) and self._clock.monotonic() - self._last_read > self._read


class FrameDeadline:
    """Deadline for the rest of a frame, for a peer that sends single bytes and never a whole frame.

    Args:
        clock: Source of time.
        seconds: Seconds that any frame may take; a longer one may take as many more as its bytes need at the lowest
            rate.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._started = clock.monotonic()

    def restart(self) -> None:
        """Restart the time: the next frame begins now at the earliest."""
        self._started = self._clock.monotonic()

    def check(self, unfinished: int) -> None:
        """Check the frame that has been received in part.

        Args:
            unfinished: Bytes of it that have been received.

        Raises:
            ConnectionLostError: The frame arrives too slowly.
        """
        waited = self._clock.monotonic() - self._started
        if waited > self._seconds + unfinished / _MIN_BYTES_PER_SECOND:
            raise ConnectionLostError(
                f"The broker sent {unfinished} bytes of a frame in {waited:.0f} seconds and not the rest; it is taken"
                " for dead."
            )


def heartbeat_of(answer: Mapping[str, str], offer: int) -> tuple[int, int]:
    """Return the heart-beats that the CONNECTED frame agrees to.

    Args:
        answer: The headers of CONNECTED.
        offer: Milliseconds that this side offered, for both directions.

    Returns:
        Milliseconds within which this side must write, and within which the broker will; 0 for never.

    Raises:
        ConnectionLostError: The header heart-beat is malformed.
    """
    try:
        return agreed_heartbeat(answer.get("heart-beat", "0,0"), offer)
    except ValueError as error:
        raise ConnectionLostError("The broker broke the STOMP protocol: its heart-beat header is none.") from error


def agreed_heartbeat(theirs: str, ours: int) -> tuple[int, int]:
    """Return the heart-beats that follow from the headers of both sides, by stomp.py's negotiation.

    stomp.py is given checked numbers only: it would take "00" for a heart-beat, and a sign or a fraction for a number.

    Args:
        theirs: The header of the CONNECTED frame.
        ours: Milliseconds that this side offered, for both directions.

    Returns:
        Milliseconds within which this side must write, and within which the broker will; 0 for never.

    Raises:
        ValueError: The header is malformed.
    """
    sends, expects = theirs.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() for part in (sends, expects)):
        raise ValueError(theirs)
    write, read = calculate_heartbeats((str(int(sends)), str(int(expects))), (ours, ours))
    return write, read
