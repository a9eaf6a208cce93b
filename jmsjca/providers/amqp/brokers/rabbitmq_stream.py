"""Streams of RabbitMQ 4: where a consumer begins, and which messages it selects."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from proton import timestamp

from jmsjca.errors import InvalidOptionError
from jmsjca.providers.amqp.codec.addresses import ReceiveContext
from jmsjca.providers.amqp.codec.decoder import UNDECODABLE
from jmsjca.providers.amqp.codec.sections import EncodedMessage
from jmsjca.providers.amqp.codec.stream_annotations import FILTER_ANNOTATION

__all__ = ["StreamOptions"]

_OFFSET, _FILTER = "rabbitmq:stream-offset-spec", "rabbitmq:stream-filter"
_MATCH_UNFILTERED = "rabbitmq:stream-match-unfiltered"
_WORDS = ("first", "last", "next")
_INTERVAL = re.compile(r"[0-9]{1,9}[YMDhms]")  # as the broker reads them: a time ago
_NUMBER = re.compile(r"[0-9]{1,18}")
_ANY = ReceiveContext(None)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options for the consumers of streams.

    Args:
        offset: Where a consumer begins: "first", "last", "next", an offset, an interval before now such as "1h", or a
            time in ISO 8601 with its zone. None is the broker's default, the next message.
        values: The filter values of the messages to receive, separated by commas; None for all messages.
        match_unfiltered: True to receive messages without a filter value, too.

    Raises:
        InvalidOptionError: A value is not valid.
    """

    offset: str | None = None
    values: str | None = None
    match_unfiltered: bool = False

    def __post_init__(self) -> None:
        """Check the offset and the values."""
        if self.offset is not None:
            _offset_value(self.offset)
        if self.values is not None and not all(self._wanted):
            raise InvalidOptionError(f"Option stream_filter is filter values with commas, not {self.values[:50]!r}.")
        if self.match_unfiltered and self.values is None:
            raise InvalidOptionError("Option stream_match_unfiltered needs the option stream_filter.")

    def __bool__(self) -> bool:
        """Return True if an option is set."""
        return self.offset is not None or self.values is not None

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters of the source: values by the symbols that describe them."""
        filters: dict[str, Any] = {}
        if self.offset is not None:
            filters[_OFFSET] = _offset_value(self.offset)
        if self.values is not None:
            filters[_FILTER] = self._wanted
        if self.match_unfiltered:
            filters[_MATCH_UNFILTERED] = True
        return filters

    def selects(self, encoded: bytes) -> bool:
        """Return True if a consumer wants a message: the broker selects chunks of messages, not each of them.

        Args:
            encoded: The message. One that cannot be decoded is wanted, so that its consumer learns of it.
        """
        if self.values is None:
            return True
        with suppress(*UNDECODABLE):
            value = EncodedMessage(encoded, _ANY).annotations.get(FILTER_ANNOTATION)
            return self.match_unfiltered if value is None else value in self._wanted
        return True

    @property
    def _wanted(self) -> list[str]:
        return (self.values or "").split(",")


def _offset_value(text: str) -> Any:
    """Return an offset as the broker takes it.

    Raises:
        InvalidOptionError: The text is not an offset.
    """
    if text in _WORDS or _INTERVAL.fullmatch(text):
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return timestamp(max(round(moment.timestamp() * 1000), 0))
    raise InvalidOptionError(
        "Option stream_offset is first, last, next, a number, an interval such as 1h, or a time with its zone such as"
        f" 2026-01-31T12:00:00Z, not {text[:50]!r}."
    )
