"""Generations: one checkpoint's staged files, with a name and an origin.

The name of a generation has the guarantee, so that it never changes.

With ``guarantee=exactly-once`` the store decides which of several attempts at a partition is the first. Without such a
store, with ``guarantee=at-least-once``, this happens:

- Each attempt stages its messages in a file of its own, unless it finds one of another attempt. Files stay as they are.
- It settles the messages only if the epoch is not committed then. The driver records that an epoch is committed before
  it lists the files of the epoch. So either the driver sees the file, or the attempt settles nothing.
- If a partition has several files, the driver does not know which of them Spark has read. The next epoch has the rows
  of all of them: some a second time, none never.
- Messages are not recognised by their keys. A file that has a key may be one that is never read.
"""

import json
import uuid
from dataclasses import asdict, dataclass
from typing import Self

__all__ = ["Origin", "is_at_least_once", "new_generation"]

_AT_LEAST_ONCE = "atleastonce_"


def new_generation(*, at_least_once: bool = False) -> str:
    """Return a new name.

    Args:
        at_least_once: True for ``guarantee=at-least-once``.
    """
    return f"{_AT_LEAST_ONCE if at_least_once else ''}{uuid.uuid4().hex}"


def is_at_least_once(gen: str) -> bool:
    """Return True for a generation with ``guarantee=at-least-once``."""
    return gen.startswith(_AT_LEAST_ONCE)


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
