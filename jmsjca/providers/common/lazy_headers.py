"""Headers of received messages that are decoded on access, and times in milliseconds since the epoch."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Self

from jmsjca.errors import MessageFormatError

__all__ = ["UNDECODABLE", "LazyHeaders", "to_datetime", "to_milliseconds"]

UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""Errors that decoding a received message may raise: its text may hold any value, of any depth and size."""


class LazyHeaders(Mapping[str, Any]):
    """Headers by the names of the attributes of `Message`, decoded on access.

    Access to a damaged header raises `MessageFormatError`. A subclass sets `decoders`, and defines `decoding_error`.

    Attributes:
        decoders: The decoder of each header, which takes the mapping itself.
        undecodable: The errors that damaged data may raise in decoders.
    """

    __slots__ = ()

    decoders: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    undecodable: ClassVar[tuple[type[Exception], ...]] = UNDECODABLE

    def decoding_error(self, error: Exception) -> MessageFormatError:
        """Return the error for a header that cannot be decoded."""
        raise NotImplementedError from error

    def __getitem__(self, name: str) -> Any:
        try:
            return self.decoders[name](self)
        except self.undecodable as error:
            raise self.decoding_error(error) from error

    def select(self, names: Iterable[str]) -> list[Any]:
        """Return some headers, in the order of their names: cheaper than one access for each."""
        decoders = self.decoders
        try:
            return [decoders[name](self) for name in names]
        except self.undecodable as error:
            raise self.decoding_error(error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.decoders)

    def __len__(self) -> int:
        return len(self.decoders)

    def __call__(self) -> Self:
        """Return the headers themselves: `Message.received` takes a function that returns them."""
        return self


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(microsecond=999_000, tzinfo=UTC)
_EPOCH, _LONG_LIMIT = datetime(1970, 1, 1, tzinfo=UTC), 1 << 63
_EARLIEST, _LATEST = ((moment - _EPOCH) // timedelta(milliseconds=1) for moment in (_FIRST, _LAST))


def to_datetime(milliseconds: int | None) -> datetime | None:
    """Return the time of milliseconds since the epoch; None for None.

    Senders in other languages have times outside of the years 1 to 9999: these are the first and the last one here.

    Raises:
        ValueError: The number has more than 64 bits.
    """
    if milliseconds is None:
        return None
    if _EARLIEST <= milliseconds <= _LATEST:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    if -_LONG_LIMIT <= milliseconds < _LONG_LIMIT:
        return _FIRST if milliseconds < 0 else _LAST
    raise ValueError("a time is a number of milliseconds of 64 bits")


def to_milliseconds(moment: datetime | None) -> int | None:
    """Return the milliseconds since the epoch of a time; None for None."""
    return None if moment is None else round(moment.timestamp() * 1000)
