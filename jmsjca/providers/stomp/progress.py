"""That a frame which has begun also ends."""

from jmsjca.config import Clock
from jmsjca.errors import ConnectionLostError

__all__ = ["Progress"]

_SLOWEST = 1000  # bytes in a second


class Progress:
    """A frame that trickles in shows signs of life, and yet nothing comes: it is taken for dead, too.

    Args:
        clock: Where time comes from.
        patience: Seconds that any frame may take; a longer one may take as many more as its bytes need at the slowest.
    """

    def __init__(self, clock: Clock, patience: float) -> None:
        self._clock = clock
        self._patience = patience
        self._began = clock.monotonic()

    def began(self) -> None:
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
