"""The rest between epochs that come back empty."""

__all__ = ["Rest"]

_LONGEST = 31


class Rest:
    """Counts the looks at the queue to leave out: 1, 3, 7, 15 and then 31 after each further empty epoch.

    An epoch comes back empty where the driver cannot look into the queue, or saw messages that others took or hold.
    """

    def __init__(self) -> None:
        self._length = 0
        self._left = 0

    def note(self, taken: int) -> None:
        """Learn how many messages an epoch took."""
        self._length = 0 if taken else min(2 * self._length + 1, _LONGEST)
        self._left = self._length

    def is_due(self) -> bool:
        """Tell whether this look is to be left out."""
        if not self._left:
            return False
        self._left -= 1
        return True
