"""Typed columns out of the bodies of messages: whole chunks at a time, in Arrow.

A chunk with a body that does not fit is divided until that body is alone. So each body is converted by the same rules,
whatever is beside it, and one that does not fit costs the others little.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from jmsjca.spark.schema import pa

__all__ = ["Body", "BodyColumns", "MisfitError", "PreparedRow"]

Body: TypeAlias = str | bytes | None
PreparedRow: TypeAlias = Any
"""A body that is ready for its conversion together with others."""

_MAX_REASON = 300  # characters


class MisfitError(ValueError):
    """A body does not fit the columns; the text gives the reason."""


class BodyColumns(ABC):
    """Converts bodies to columns.

    Args:
        types: The Arrow types of the columns by name, in order.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = dict(types)

    def read(self, bodies: Sequence[Body]) -> tuple[dict[str, Any], dict[int, str]]:
        """Return an array for each column, and the reason by position for each body that does not fit.

        Args:
            bodies: The bodies. None, for a message without one, does not fit.
        """
        rows, misfits = self._prepared(bodies)
        parts = [*self._parts(rows, misfits)]
        arrays = {
            name: pa.concat_arrays([part[n] for part in parts]) if parts else pa.array([], kind)
            for n, (name, kind) in enumerate(self.types.items())
        }
        return arrays, misfits

    @abstractmethod
    def prepare(self, body: str) -> PreparedRow:
        """Return what is needed of a body to convert it together with others.

        Raises:
            MisfitError: It does not fit.
        """

    @abstractmethod
    def convert(self, rows: Sequence[PreparedRow]) -> Sequence[Any]:
        """Return the arrays of all columns for some bodies.

        Raises:
            ValueError: One of them does not fit.
        """

    @abstractmethod
    def reason(self, row: PreparedRow, error: Exception) -> str:
        """Return the reason why a body does not fit, for which `convert` raised an error."""

    def _prepared(self, bodies: Sequence[Body]) -> tuple[list[PreparedRow], dict[int, str]]:
        rows: list[PreparedRow] = []
        misfits: dict[int, str] = {}
        for n, body in enumerate(bodies):
            try:
                rows.append(self.prepare(_text_of(body)))
            except ValueError as error:
                misfits[n] = _shown(str(error))
                rows.append(None)
        return rows, misfits

    def _parts(self, rows: Sequence[PreparedRow], misfits: dict[int, str]) -> Iterator[Sequence[Any]]:
        """Yield the arrays of the runs of bodies that fit, and nulls for the others, in order."""
        begin = 0
        for n in (*sorted(misfits), len(rows)):
            yield from self._halves(rows, begin, n, misfits)
            if n < len(rows):
                yield self._nulls()
            begin = n + 1

    def _halves(
        self, rows: Sequence[PreparedRow], begin: int, end: int, misfits: dict[int, str]
    ) -> Iterator[Sequence[Any]]:
        if begin == end:
            return
        try:
            yield self.convert(rows[begin:end])
        except (ValueError, TypeError, NotImplementedError) as error:  # Arrow's errors are among them
            if end - begin == 1:
                misfits[begin] = _shown(self.reason(rows[begin], error))
                yield self._nulls()
            else:
                middle = (begin + end) // 2
                yield from self._halves(rows, begin, middle, misfits)
                yield from self._halves(rows, middle, end, misfits)

    def _nulls(self) -> Sequence[Any]:
        return [pa.nulls(1, kind) for kind in self.types.values()]


def _text_of(body: Body) -> str:
    if body is None:
        raise MisfitError("the message has no body")
    if isinstance(body, str):
        return body
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise MisfitError(f"it is not in UTF-8, at byte {error.start}") from error


def _shown(reason: str) -> str:
    return f"The body does not fit the columns: {reason}"[:_MAX_REASON]
