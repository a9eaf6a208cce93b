"""What a consumer asks for: so many messages ahead of their use, as far as their bytes fit."""

from collections.abc import Sequence

from jmsjca.providers.amqp.budget import Budget

__all__ = ["Appetite"]


class Appetite:
    """Its consumer guards it with a lock.

    Args:
        window: How many messages are taken ahead; 0 for none.
        most_bytes: How many bytes of them.

    Attributes:
        window: The same.
        limit: How many are wanted where none are taken ahead.
        credit: How many are asked for and not here.
    """

    def __init__(self, window: int, most_bytes: int) -> None:
        self._budget = Budget(most_bytes)
        self.window = window
        self.limit = 0
        self.credit = 0

    def arrived(self, sizes: Sequence[int]) -> None:
        """Messages of these sizes came together."""
        self.credit -= len(sizes)
        self._budget.arrived(sizes)

    def ask(self, ready: int, size: int) -> int:
        """How many more are to be asked for now.

        Args:
            ready: How many messages wait here.
            size: How many bytes those are.
        """
        ahead = self.window or self.limit
        if not self._missing(ahead, ready):
            return 0
        missing = self._missing(min(ahead, ready + self._budget.room(size)), ready)
        self.credit += missing
        return missing

    def _missing(self, ahead: int, ready: int) -> int:
        """What is missing, once that is half of what may be ahead; what came unasked makes that more."""
        missing = ahead - self.credit - ready
        return missing if missing > 0 and missing * 2 >= ahead else 0
