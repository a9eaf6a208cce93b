"""A message as it came: its sections, each decoded when it is needed first."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DeliveryMode
from jmsjca.providers.amqp.encoding.reading import MALFORMED, read
from jmsjca.providers.amqp.mapping.destinations import REPLY_TO, TO, received_destination
from jmsjca.providers.amqp.mapping.ids import as_correlation_id, as_message_id
from jmsjca.providers.amqp.mapping.properties import received_properties
from jmsjca.providers.amqp.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    HEADER,
    PROPERTIES,
    Sections,
    expected,
    fields_of,
    split,
)

__all__ = ["UNDECODABLE", "Incoming", "undecodable"]

UNDECODABLE = (*MALFORMED, OSError)
"""What bytes may provoke: they may be anything, and tell of any time."""

_FIELDS = {HEADER: 5, PROPERTIES: 13}
_DUE = "x-opt-delivery-time"
_HIGHEST, _NORMAL = 9, 4


class Incoming:
    """The encoded message, and what is known of it.

    Args:
        raw: Its bytes.
        source: What it was received from.
        arrived: When, in seconds since the epoch.

    Raises:
        MessageFormatError: The bytes are no sections.
        UNDECODABLE: The same.
    """

    __slots__ = ("_arrived", "_fields", "_source", "raw", "sections", "typed")

    def __init__(self, raw: bytes, source: Destination | None, arrived: float) -> None:
        self.raw = raw
        self.sections: Sections = split(raw)
        self.typed = False  #: True if the body is an object of AMQP's own types
        self._source = source
        self._arrived = arrived
        self._fields: list[Any] | None = None

    def values(self, code: int) -> list[Any]:
        """The values of the sections with that code; of most there is one or none."""
        return [read(self.raw, at)[0] for at in self.sections.get(code, ())]

    def mapping(self, code: int) -> Mapping[Any, Any]:
        """The value of a section that is a map; an empty one if there is none."""
        [value] = self.values(code) or [{}]
        found: dict[Any, Any] = expected(value, dict)
        return found

    @property
    def annotations(self) -> Mapping[Any, Any]:
        """What brokers and clients say about the message."""
        return self.mapping(ANNOTATIONS)

    @property
    def fields(self) -> list[Any]:
        """The section of properties, whole; None where nothing is."""
        if self._fields is None:
            self._fields = self._list(PROPERTIES)
        return self._fields

    @property
    def content_type(self) -> str | None:
        """What the body is said to be; None if nothing is said."""
        told = self.fields[6]
        return str(told) if told else None

    def headers(self) -> Mapping[str, Any]:
        """Decode every header, and the properties, by the name of its attribute.

        Raises:
            MessageFormatError: They cannot be decoded.
        """
        try:
            return self._headers()
        except UNDECODABLE as error:
            raise undecodable(self._source, error) from error

    def _headers(self) -> Mapping[str, Any]:
        durable, priority, time_to_live, _, before = self._list(HEADER)
        fields, annotations = self.fields, self.annotations
        due = annotations.get(_DUE)
        to = received_destination(fields[2], annotations, TO, self._source)
        return {
            "message_id": as_message_id(fields[0]),
            "destination": to or self._source,
            "type": _text(fields[3]),
            "reply_to": received_destination(fields[4], annotations, REPLY_TO, self._source),
            "correlation_id": as_correlation_id(fields[5]),
            "delivery_mode": DeliveryMode.PERSISTENT if durable else DeliveryMode.NON_PERSISTENT,
            "priority": _NORMAL if priority is None else min(int(priority), _HIGHEST),
            "expiration": self._expiration(fields[8], time_to_live),
            "timestamp": _moment(fields[9]),
            "delivery_time": _moment(due),
            "properties": received_properties(self.mapping(APPLICATION_PROPERTIES), fields, typed=self.typed),
            "delivery_count": (before or 0) + 1,
            "redelivered": bool(before),
        }

    def _expiration(self, told: int | None, time_to_live: int | None) -> datetime | None:
        if told or not time_to_live:
            return _moment(told)
        return _moment(round(self._arrived * 1000) + time_to_live)

    def _list(self, code: int) -> list[Any]:
        [value] = self.values(code) or [[]]
        return fields_of(value, _FIELDS[code])


def undecodable(source: Destination | None, error: Exception) -> MessageFormatError:
    """The error of a message that cannot be decoded."""
    return MessageFormatError(f"A message from {source} cannot be decoded: {error}.")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
