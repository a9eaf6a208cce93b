"""The source of the staged messages of a generation."""

import json
from dataclasses import asdict, dataclass
from typing import Self

__all__ = ["Origin"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the staged messages of a generation.

    Attributes:
        source: The destination and the broker, without credentials.
        name: The name that the query has in a shared staging location; empty if it has none.
    """

    source: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the origin that `str` wrote.

        Raises:
            ValueError: The text is no such one.
        """
        found = json.loads(text)
        return cls(str(found["source"]), str(found["name"]))

    @property
    def described(self) -> str:
        """The source and the name, for messages."""
        return f"{self.source} (stagingName {self.name!r})" if self.name else self.source

    def __str__(self) -> str:
        return json.dumps(asdict(self))
