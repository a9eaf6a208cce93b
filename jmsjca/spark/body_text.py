"""The bodies of map, stream and object messages as JSON text."""

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from jmsjca.errors import MessageFormatError
from jmsjca.messages import MapMessage, ObjectMessage, StreamMessage
from jmsjca.messages.json_text import with_finite_numbers
from jmsjca.messages.object_message import plain_data_of

__all__ = ["json_of_body"]


def json_of_body(message: MapMessage | StreamMessage | ObjectMessage) -> str | None:
    """Return a body as JSON: an object of a map, an array of a stream.

    Bytes are written in base64; and NaN and infinity, which JSON lacks, as strings.

    Returns:
        None for an object that is pickled: to unpickle it could run any code.

    Raises:
        MessageFormatError: A value has no JSON form.
    """
    if isinstance(message, ObjectMessage):
        data = plain_data_of(message)
        return None if data is None else _encode(data.value)
    return _encode(dict(message.body) if isinstance(message, MapMessage) else message.body)


def _encode(value: Any) -> str:
    try:
        try:
            return _ENCODER.encode(value)
        except ValueError:  # NaN or infinity
            return _ENCODER.encode(with_finite_numbers(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageFormatError(f"The body has no JSON form: {error}.") from error


def _jsonable(value: Any) -> object:
    """Return a value that `json` knows for one that it does not know."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if issubclass(type(value), Mapping):
        return dict(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_jsonable)
