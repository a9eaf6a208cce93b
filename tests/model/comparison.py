"""The model and a real broker, given the same operations, compared at each result."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import note

from jmsjca import JMSError
from tests.model.model import Model
from tests.model.operations import Receipt, Source, key
from tests.model.real import Real

__all__ = ["Pair"]


class Pair:
    """Tells both.

    Args:
        model: What should be.
        real: What is.

    Attributes:
        done: How often each word was said, and how often it was refused.
    """

    def __init__(self, model: Model, real: Real) -> None:
        self.model = model
        self.real = real
        self.done: Counter[str] = Counter()

    def do(self, word: str, *arguments: object) -> Any:
        """Say one word to both; they must give the same answer, or refuse with the same error."""
        note(f"{word}{arguments}")
        expected = _outcome(getattr(self.model, word), arguments)
        found = _outcome(getattr(self.real, word), arguments)
        same = found in expected if isinstance(expected, range) else found == expected
        assert same, f"{word}{arguments}: {found!r}, not {expected!r}"
        self.done[f"{word} refused" if isinstance(expected, type) else word] += 1
        return expected

    def receive(self, name: str, limit: int) -> list[Receipt]:
        """Let a consumer of both receive; the model follows the broker in how many come."""
        note(f"receive{name, limit}")
        sizes = self.model.chunk_sizes(name, limit)
        found = self.real.receive(name, limit)
        expected = self.model.receive(name, limit, len(found) if len(found) in sizes else None)
        assert found == expected, f"receive{name, limit}: {found}, not {expected}"
        self.done["receive" if found else "receive nothing"] += 1
        return found

    def compare(self, source: Source, connection: str, *, ordered: bool = True) -> None:
        """Compare a queue or a named subscription as a connection sees it."""
        box = self.model.places.boxes.get(key(source))
        if box is not None:
            expected, found = box.view(self.model.now), self.real.view(connection, source)
            assert expected.allows(found, ordered=ordered), f"{source} is {found}, not {expected}"


def _outcome(method: Callable[..., object], arguments: tuple[object, ...]) -> object:
    try:
        return method(*arguments)
    except JMSError as error:
        return type(error)
