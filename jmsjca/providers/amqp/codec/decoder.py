"""The headers of a received message, each decoded when it is asked for."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import DeliveryMode
from jmsjca.providers.amqp.encoding.reading import MALFORMED
from jmsjca.providers.amqp.header import header_of
from jmsjca.providers.amqp.mapping.destinations import REPLY_TO, TO, received_destination
from jmsjca.providers.amqp.mapping.ids import as_correlation_id, as_message_id
from jmsjca.providers.amqp.mapping.incoming import Incoming
from jmsjca.providers.amqp.mapping.properties import received_properties
from jmsjca.providers.amqp.sections import APPLICATION_PROPERTIES

__all__ = ["UNDECODABLE", "ReceivedHeaders", "undecodable"]

UNDECODABLE = (*MALFORMED, OSError)
"""What bytes may provoke: they may be anything, and tell of any time."""

_DUE = "x-opt-delivery-time"
_HIGHEST, _NORMAL = 9, 4


class ReceivedHeaders(Incoming, Mapping[str, Any]):
    """The headers by the names of the attributes of `Message`. Asking raises `MessageFormatError` if they are damaged.

    They are the message as it came: one object less for each.
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        try:
            return _DECODERS[name](self)
        except UNDECODABLE as error:
            raise undecodable(self.origin.source, error) from error

    def __iter__(self) -> Iterator[str]:
        return iter(_DECODERS)

    def __len__(self) -> int:
        return len(_DECODERS)

    def __call__(self) -> Mapping[str, Any]:
        """Give them, as `Message.received` asks for them."""
        return self


def undecodable(source: Destination | None, error: Exception) -> MessageFormatError:
    """The error of a message that cannot be decoded."""
    return MessageFormatError(f"A message from {source} cannot be decoded: {error}.")


def _destination(incoming: Incoming) -> Destination | None:
    to = received_destination(incoming.fields[2], incoming.annotations, TO, incoming.origin)
    return to or incoming.origin.source


def _reply_to(incoming: Incoming) -> Destination | None:
    return received_destination(incoming.fields[4], incoming.annotations, REPLY_TO, incoming.origin)


def _delivery_mode(incoming: Incoming) -> DeliveryMode:
    return DeliveryMode.PERSISTENT if incoming.header[0] else DeliveryMode.NON_PERSISTENT


def _priority(incoming: Incoming) -> int:
    priority = incoming.header[1]
    return _NORMAL if priority is None else min(int(priority), _HIGHEST)


def _expiration(incoming: Incoming) -> datetime | None:
    """As it is told; else the time to live counts from the arrival."""
    told, time_to_live = incoming.fields[8], incoming.header[2]
    if told or not time_to_live:
        return _moment(told)
    return _moment(round(incoming.arrived * 1000) + time_to_live)


def _properties(incoming: Incoming) -> Any:
    values = incoming.mapping(APPLICATION_PROPERTIES)
    return received_properties(values, incoming.fields, typed=incoming.typed)


def _delivery_count(incoming: Incoming) -> int:
    return header_of(incoming.raw).deliveries(incoming.failures, counts=incoming.origin.counts) or 0


def _redelivered(incoming: Incoming) -> bool:
    return header_of(incoming.raw).redelivered(incoming.failures, counts=incoming.origin.counts)


_DECODERS: dict[str, Callable[[Incoming], Any]] = {
    "message_id": lambda incoming: as_message_id(incoming.fields[0]),
    "correlation_id": lambda incoming: as_correlation_id(incoming.fields[5]),
    "destination": _destination,
    "reply_to": _reply_to,
    "type": lambda incoming: _text(incoming.fields[3]),
    "delivery_mode": _delivery_mode,
    "priority": _priority,
    "timestamp": lambda incoming: _moment(incoming.fields[9]),
    "expiration": _expiration,
    "delivery_time": lambda incoming: _moment(incoming.annotations.get(_DUE)),
    "properties": _properties,
    "delivery_count": _delivery_count,
    "redelivered": _redelivered,
}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
