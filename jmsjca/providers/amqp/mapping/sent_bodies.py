"""The bodies of messages that are sent."""

from collections.abc import Callable
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage, MapMessage, ObjectMessage, StreamMessage, TextMessage
from jmsjca.providers.amqp.encoding.writing import (
    NULL,
    data_section,
    list_of,
    map_of,
    symbol,
    text,
    text_section,
    write,
)
from jmsjca.providers.amqp.mapping.content_types import OBJECT, OCTETS
from jmsjca.providers.amqp.mapping.kinds import JAVA_NULL
from jmsjca.providers.amqp.mapping.properties import TYPED

__all__ = ["BODIES"]

_SEQUENCE, _VALUE = b"\x00\x53\x76", b"\x00\x53\x77"
_OCTETS, _OBJECT = symbol(OCTETS), symbol(OBJECT)


def _plain(message: Any) -> tuple[bytes, bytes]:  # noqa: ARG001
    return b"", NULL


def _text(message: TextMessage) -> tuple[bytes, bytes]:
    return _VALUE + NULL if message.body is None else text_section(message.body), NULL


def _bytes(message: BytesMessage) -> tuple[bytes, bytes]:
    return data_section(message.body or b""), _OCTETS


def _map(message: MapMessage) -> tuple[bytes, bytes]:
    parts: list[bytes] = []
    for name, value in message.body.items():
        parts += (text(name), write(value))
    return _VALUE + map_of(parts), NULL


def _stream(message: StreamMessage) -> tuple[bytes, bytes]:
    return _SEQUENCE + list_of([write(value) for value in message.body]), NULL


def _object(message: ObjectMessage) -> tuple[bytes, bytes]:
    """As the bytes that they are; as a value of AMQP if it holds one, or is to hold none and be one."""
    plain, typed = message.plain_data, message.properties.get(TYPED) is True
    if plain is not None:
        return _VALUE + write(plain.value), NULL
    if not typed:
        return data_section(JAVA_NULL if message.pickled is None else message.pickled), _OBJECT
    if message.pickled is not None:
        raise MessageFormatError(f"{TYPED} is set, but a pickle is no data of AMQP: use ObjectMessage.from_data(…)")
    return _VALUE + NULL, NULL


BODIES: dict[int, Callable[[Any], tuple[bytes, bytes]]] = {
    0: _plain,
    1: _object,
    2: _map,
    3: _bytes,
    4: _stream,
    5: _text,
}
"""By the number of a message's type what encodes its body, and its content type; `MessageFormatError` if it cannot."""
