"""Ids: AMQP has them as text, bytes, numbers and UUIDs, JMS as text alone, in which a prefix tells the others."""

import binascii
import uuid
from collections.abc import Callable
from typing import Any

from jmsjca.errors import MessageFormatError
from jmsjca.providers.amqp.encoding.marks import ULong

__all__ = ["ENCODED", "as_correlation_id", "as_id", "as_message_id"]

_ID = "ID:"
ENCODED = "ID:AMQP_"
"""Begins the texts that stand for ids of other types."""

_STRING, _NO_PREFIX = "ID:AMQP_STRING:", "ID:AMQP_NO_PREFIX:"
_UUID, _ULONG, _BINARY = "ID:AMQP_UUID:", "ID:AMQP_ULONG:", "ID:AMQP_BINARY:"
_PREFIXES = (_STRING, _NO_PREFIX, _UUID, _ULONG, _BINARY)


def as_message_id(value: Any) -> str | None:
    """The id of a message as JMS has it: it begins with ID:, even if the sender's did not.

    Raises:
        MessageFormatError: AMQP has no ids of that type.
    """
    text = as_correlation_id(value)
    return text if text is None or text.startswith(_ID) else _NO_PREFIX + text


def as_correlation_id(value: Any) -> str | None:
    """A correlation id as JMS has it; applications may have set any text.

    Raises:
        MessageFormatError: AMQP has no ids of that type.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _STRING + value if value.startswith(_PREFIXES) else value
    if isinstance(value, uuid.UUID):
        return f"{_UUID}{value}"
    if isinstance(value, ULong):
        return f"{_ULONG}{int(value)}"
    if isinstance(value, bytes):
        return _BINARY + value.hex().upper()
    raise MessageFormatError(f"an id is a text, a UUID, a ulong or bytes, not {type(value).__name__}")


def as_id(text: str) -> Any:
    """An id of JMS as AMQP has it: what the prefix names.

    Raises:
        MessageFormatError: It is not what its prefix says.
    """
    if not text.startswith(ENCODED):
        return text
    prefix = next((prefix for prefix in _PREFIXES if text.startswith(prefix)), None)
    try:
        return text if prefix is None else _MAKERS[prefix](text.removeprefix(prefix))
    except ValueError as error:
        raise MessageFormatError(f"the id {text!r:.100} is not what it says that it is") from error


def _ulong(digits: str) -> ULong:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and int(digits) < 1 << 64):
        raise ValueError(digits)
    return ULong(digits)


_DIGITS = 20
_MAKERS: dict[str, Callable[[str], Any]] = {
    _STRING: str,
    _NO_PREFIX: str,
    _UUID: uuid.UUID,
    _ULONG: _ulong,
    _BINARY: binascii.unhexlify,
}
