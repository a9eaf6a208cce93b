"""The headers of a stored message, each decoded when it is asked for."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from jmsjca.destinations import Destination, destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DeliveryMode, Properties, typed
from jmsjca.providers.values import as_text, from_json

__all__ = ["UNDECODABLE", "StoredHeaders", "undecodable"]

UNDECODABLE = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""What the stored text of a message may provoke: it may be anything, and as deep or as large as it likes."""

# What nearly every text begins with, found without reading the rest.
_OPENING = re.compile(rb'\{"kind":"([^"\\]*)","id":(?:null|"([^"\\]*)"),')
_NO_PROPERTIES = Properties.received({})  # which cannot be changed, so one is enough for all messages
_MODES = {int(mode): mode for mode in DeliveryMode}  # to look one up costs less than to ask the class


class StoredHeaders(Mapping[str, Any]):
    """The headers by the names of the attributes of `Message`. Asking raises `MessageFormatError` if they are damaged.

    Args:
        text: What is stored.
        deliveries: How often the message was delivered, this time included.
        expires: When it expires, in milliseconds since the epoch; None for never.

    Attributes:
        opening: The kind and the id, as they stand at the beginning; None if they do not, or not as plainly.
    """

    __slots__ = ("_fields", "_text", "deliveries", "expires", "opening")

    def __init__(self, text: bytes, deliveries: int, expires: int | None) -> None:
        self._text = text
        self.opening = _OPENING.match(text)
        self._fields: dict[str, Any] | None = None
        self.deliveries = deliveries
        self.expires = expires

    @property
    def fields(self) -> dict[str, Any]:
        """What is stored, as JSON has it."""
        known = self._fields
        if known is not None:
            return known
        fields: dict[str, Any] = from_json(self._text.decode())
        self._fields = fields
        return fields

    def __getitem__(self, name: str) -> Any:
        try:
            return _DECODERS[name](self)
        except UNDECODABLE as error:
            raise undecodable(error) from error

    def mentions(self, name: str) -> bool:
        """False if no property has this name, an ASCII one: found without decoding."""
        return name.encode() in self._text

    def __iter__(self) -> Iterator[str]:
        return iter(_DECODERS)

    def __len__(self) -> int:
        return len(_DECODERS)

    def __call__(self) -> Mapping[str, Any]:
        """Give them, as `Message.received` asks for them."""
        return self


def undecodable(error: Exception) -> MessageFormatError:
    """The error of a message that cannot be decoded."""
    return MessageFormatError(f"The stored message cannot be decoded: {error}.")


def _message_id(headers: StoredHeaders) -> str | None:
    opening = headers.opening
    if opening is None:
        return as_text(headers.fields.get("id"))
    message_id: bytes | None = opening[2]
    return None if message_id is None else message_id.decode()


def _properties(headers: StoredHeaders) -> Properties:
    fields = headers.fields
    if "p" not in fields and "t" not in fields:
        return _NO_PROPERTIES
    types = fields.get("t", {})
    values = {name: typed(value, types.get(name)) for name, value in fields["p"].items()}
    if types:
        values.update({name: typed(math.nan, mark) for name, mark in types.items() if values[name] is None})
    return Properties.received(values)


def _delivery_mode(headers: StoredHeaders) -> DeliveryMode:
    mode = headers.fields["mode"]
    return _MODES.get(mode) or DeliveryMode(mode)


def _destination(address: list[str | bool]) -> Destination:
    kind, name, *temporary = address
    return destination(str(name), str(kind), temporary=bool(temporary))


def _reply_to(headers: StoredHeaders) -> Destination | None:
    address = headers.fields.get("reply")
    return _destination(address) if address else None


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


_DECODERS: dict[str, Callable[[StoredHeaders], Any]] = {
    "properties": _properties,
    "message_id": _message_id,
    "destination": lambda headers: _destination(headers.fields["to"]),
    "correlation_id": lambda headers: as_text(headers.fields.get("correlation")),
    "reply_to": _reply_to,
    "type": lambda headers: as_text(headers.fields.get("type")),
    "delivery_mode": _delivery_mode,
    "priority": lambda headers: headers.fields["priority"],
    "timestamp": lambda headers: _moment(headers.fields.get("time")),
    "expiration": lambda headers: _moment(headers.expires),
    "delivery_time": lambda headers: _moment(headers.fields.get("due")),
    "delivery_count": lambda headers: headers.deliveries,
    "redelivered": lambda headers: headers.deliveries > 1,
}
