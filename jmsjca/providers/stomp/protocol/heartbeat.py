"""Heart-beats: negotiated, due and missed; and deadlines for frames that have begun."""

from collections.abc import Mapping

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError

__all__ = ["FrameDeadline", "Heartbeat", "agreed_heartbeat", "heartbeat_of"]

_SLOWEST = 1000  # bytes in a second


class Heartbeat:
    """Keeps the time of the last traffic both ways.

    Args:
        clock: Where time comes from.
        write: After how many seconds without a write a sign of life is due; 0 for never.
        read: After how many seconds without a byte the broker is dead; 0 for never.
    """

    def __init__(self, clock: Clock, write: float = 0.0, read: float = 0.0) -> None:
        self._clock = clock
        self._write = write
        self._read = read
        self._wrote = self._heard = clock.monotonic()

    @property
    def poll_interval(self) -> float:
        """How many seconds may pass until somebody must look again."""
        spans = [span for span in (self._write / 2, self._read / 4) if span]
        return min(spans, default=60.0)

    def on_write(self) -> None:
        """Note that something was written."""
        self._wrote = self._clock.monotonic()

    def on_read(self) -> None:
        """Note that something was read."""
        self._heard = self._clock.monotonic()

    @property
    def is_write_due(self) -> bool:
        """True if it is time for a sign of life."""
        return bool(self._write) and self._clock.monotonic() - self._wrote >= self._write / 2

    @property
    def is_peer_silent(self) -> bool:
        """True if the broker was silent for too long."""
        return bool(self._read) and self._clock.monotonic() - self._heard > self._read


class FrameDeadline:
    """A frame that trickles in shows signs of life, and yet nothing comes: it is taken for dead, too.

    Args:
        clock: Where time comes from.
        patience: Seconds that any frame may take; a longer one may take as many more as its bytes need at the slowest.
    """

    def __init__(self, clock: Clock, patience: float) -> None:
        self._clock = clock
        self._patience = patience
        self._began = clock.monotonic()

    def restart(self) -> None:
        """Note that the next frame begins now, at the earliest."""
        self._began = self._clock.monotonic()

    def check(self, unfinished: int) -> None:
        """Look at the frame that has come in part.

        Args:
            unfinished: How many bytes of it have come.

        Raises:
            ConnectionLostError: It comes too slowly.
        """
        waited = self._clock.monotonic() - self._began
        if waited > self._patience + unfinished / _SLOWEST:
            raise ConnectionLostError(
                f"The broker sent {unfinished} bytes of a frame in {waited:.0f} seconds and not the rest; it is taken"
                " for dead."
            )


def heartbeat_of(answer: Mapping[str, str], offer: int) -> tuple[int, int]:
    """After how many milliseconds this side must write, and within how many the other one will; 0 for never.

    Args:
        answer: The headers of CONNECTED.
        offer: The milliseconds that this side offered, both ways.

    Raises:
        ConnectionLostError: What the broker says of it cannot be read.
    """
    try:
        return agreed_heartbeat(answer.get("heart-beat", "0,0"), offer)
    except ValueError as error:
        raise ConnectionLostError("The broker broke the STOMP protocol: its heart-beat header is none.") from error


def agreed_heartbeat(theirs: str, ours: int) -> tuple[int, int]:
    """Work out the heart-beats from the header of both sides.

    Args:
        theirs: The header of the CONNECTED frame.
        ours: The milliseconds that this side offered, both ways.

    Returns:
        After how many milliseconds this side must write, and within how many the other one will; 0 for never.

    Raises:
        ValueError: The header is none.
    """
    sends, expects = theirs.replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() for part in (sends, expects)):
        raise ValueError(theirs)
    write, read = (max(ours, int(other)) if ours and int(other) else 0 for other in (expects, sends))
    return write, read
