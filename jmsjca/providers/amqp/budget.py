"""How many messages may be ahead: not only their count is bounded, their bytes are, too."""

from collections.abc import Sequence

__all__ = ["Budget"]

_FORGETTING = 8  # what was large is forgotten by so much of it with each arrival


class Budget:
    """Reckons with the largest message that came lately: credit counts messages, and nobody tells their sizes before.

    As long as nothing came nothing is known, and one is asked for.

    Args:
        most: How many bytes may be ahead.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0

    def arrived(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes came together."""
        self._size = max([self._size - self._size // _FORGETTING, *sizes])

    def room(self, ready: int) -> int:
        """How many messages may come while so many bytes are here; if nothing is, one always may."""
        if not self._size:
            return 1
        return max((self._most - ready) // self._size, 0 if ready else 1)
