"""The offset of a stream: which epoch was opened last, and how it is split."""

import uuid
from dataclasses import asdict, dataclass
from typing import Any, Self

__all__ = ["Offset"]


@dataclass(frozen=True, slots=True)
class Offset:
    """Frozen in Spark's offset log, so that a replay plans the same partitions whatever the options say by then.

    Attributes:
        epoch: The number of the epoch that ends here; 0 before the first.
        gen: The generation: one checkpoint's name for its staged files; None before the first epoch.
        parts: Over how many partitions the epoch is spread.
        rows: How many messages it takes at most.
    """

    epoch: int = 0
    gen: str | None = None
    parts: int = 0
    rows: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(value["epoch"], value.get("gen"), value.get("parts", 0), value.get("rows", 0))

    def to_json(self) -> dict[str, Any]:
        """The form that Spark keeps. It holds no secret: the log is plain text."""
        return {"v": 1, **{name: value for name, value in asdict(self).items() if value or name == "epoch"}}

    def next(self, parts: int, rows: int) -> "Offset":
        """The end of the next epoch; the first one begins a generation."""
        return Offset(self.epoch + 1, self.gen or uuid.uuid4().hex, parts, rows)

    def quota(self, partition: int) -> int:
        """How many messages a partition may take."""
        share, rest = divmod(self.rows, self.parts)
        return share + (partition < rest)
