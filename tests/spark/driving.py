"""Calls the reader of a stream as Spark's engine does."""

from jmsjca.spark.reader import JmsStreamReader

__all__ = ["Driver"]


class Driver:
    """A run of a query.

    Args:
        broker: The broker.
        changes: Options.
    """

    def __init__(self, broker, **changes) -> None:
        self.reader = JmsStreamReader(broker.options(**changes))
        self.offset = self.reader.initialOffset()

    def next(self) -> dict[str, object]:
        return self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())

    def batch(self) -> list[str] | None:
        """Read one micro-batch; None if there is nothing to read."""
        end = self.next()
        if end == self.offset:
            return None
        planned = self.reader.partitions(self.offset, end)
        self.offset = end
        return [text for part in planned for batch in self.reader.read(part) for text in batch["text"].to_pylist()]

    def available_now(self) -> list[str]:
        self.reader.prepareForTriggerAvailableNow()
        texts: list[str] = []
        while (batch := self.batch()) is not None:
            texts += batch
        return texts
