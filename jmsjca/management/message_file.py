"""Messages as JSON lines: written to be read by people and programs, and to be sent again exactly as they were."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from jmsjca.errors import InvalidArgumentError, MessageFormatError, excerpt
from jmsjca.management.presentation import message_row
from jmsjca.messages.message import DeliveryMode, Message
from jmsjca.messages.object_message import ObjectMessage, plain_data_of
from jmsjca.redelivery.moved_copy import plain_copy
from jmsjca.transactions.stored_message import decode_message, encode_message

__all__ = ["message_line", "read_lines"]

_STORED = "stored"


def message_line(message: Message) -> dict[str, object]:
    """Return a message for one line: its readable fields, and its exact content in the field ``stored``.

    The expiration is left out: the message would expire in the file. An object message with data of another client
    than Python has no ``stored``.
    """
    return {**message_row(message), _STORED: _stored(message)}


def read_lines(lines: Iterable[str]) -> Iterator[Message]:
    """Yield the messages of lines that `message_line` has made.

    Raises:
        InvalidArgumentError: A line holds no message.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _message(number, line)


def _stored(message: Message) -> dict[str, object] | None:
    if isinstance(message, ObjectMessage) and plain_data_of(message) is not None:
        return None
    headers, body = encode_message(plain_copy(message))
    return {
        "headers": headers,
        "body": None if body is None else b64encode(body).decode(),
        "priority": int(message.priority),
        "persistent": message.delivery_mode is DeliveryMode.PERSISTENT,
    }


def _message(number: int, line: str) -> Message:
    try:
        stored: dict[str, Any] = json.loads(line)[_STORED]
        body = None if stored["body"] is None else b64decode(stored["body"], validate=True)
        message = decode_message(stored["headers"], body)
        message.priority = int(stored["priority"])
        message.delivery_mode = DeliveryMode.PERSISTENT if stored["persistent"] else DeliveryMode.NON_PERSISTENT
    except (ValueError, TypeError, KeyError, RecursionError, MessageFormatError) as error:
        raise InvalidArgumentError(
            f"Line {number} holds no message of jmsjca dlq export ({excerpt(error, 100)}): correct or remove it. "
            "Nothing was sent."
        ) from error
    return message
