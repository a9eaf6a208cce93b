"""Where a query with the trigger AvailableNow ends."""

from datetime import UTC, datetime

from jmsjca.spark.staging import Part, Staging

__all__ = ["Goal"]


class Goal:
    """What the queue held when the query began; what comes later waits for the next one.

    Where the broker does not tell how much that was, the query ends with the first epoch that came back empty or took
    a message that was sent after the query began.

    Args:
        depth: How many messages the queue held; None if nobody knows.
    """

    def __init__(self, depth: int | None) -> None:
        self._left = depth
        self._begin = datetime.now(UTC)
        self.reached = depth == 0

    def left(self, limit: int) -> int:
        """How many messages the next epoch may take."""
        return limit if self._left is None else min(limit, max(self._left, 1))

    def note(self, staging: Staging, epoch: int) -> None:
        """Learn what an epoch took."""
        taken = staging.count(epoch)
        if self._left is None:
            self.reached = not taken or self._is_late(staging, epoch)
        else:
            self._left -= taken
            self.reached = not taken or self._left <= 0

    def _is_late(self, staging: Staging, epoch: int) -> bool:
        return any(self._holds_late(staging, part) for part in staging.parts() if part.epoch == epoch)

    def _holds_late(self, staging: Staging, part: Part) -> bool:
        sent = staging.rows(part).column("timestamp").to_pylist()
        return any(time is not None and time >= self._begin for time in sent)
