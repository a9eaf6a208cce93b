"""Recognises what was sent again: the idempotent receiver."""

__all__ = ["Repeats"]


class Repeats:
    """Remembers ids with what came under them.

    A micro-batch that Spark repeats sends its results again, under the same ids. A broker with duplicate detection
    drops the second ones; elsewhere whoever consumes them does, with this.

    Attributes:
        recognised: How many repeats were recognised.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self.recognised = 0

    def is_repeat(self, id_: str | None, content: str) -> bool:
        """Tell whether the same content came under this id before.

        What has no id is never a repeat; nor is other content under a known id, which is a fault that must show.
        """
        if id_ is None:
            return False
        if id_ not in self._seen:
            self._seen[id_] = content
            return False
        repeat = self._seen[id_] == content
        self.recognised += repeat
        return repeat
