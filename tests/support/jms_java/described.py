"""Messages as Java describes them: plain data, so that what was sent and what was received can be compared."""

import base64
import math
import uuid

from jmsjca.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    type_name,
    typed_entry,
)

KINDS = {
    TextMessage: "text",
    BytesMessage: "bytes",
    MapMessage: "map",
    StreamMessage: "stream",
    ObjectMessage: "object",
}


def describe(message):
    """Describe a message of ours in the words of Java's side."""
    return {
        "kind": KINDS.get(type(message), "plain"),
        "body": _body(message),
        "message_id": message.message_id,
        "correlation_id": message.correlation_id,
        "type": message.type,
        "destination": told_destination(message.destination),
        "reply_to": told_destination(message.reply_to),
        "persistent": message.delivery_mode is DeliveryMode.PERSISTENT,
        "priority": message.priority,
        "timestamp": told_moment(message.timestamp),
        "expiration": told_moment(message.expiration),
        "delivery_time": told_moment(message.delivery_time or message.timestamp),  # Java has no word for at once
        "redelivered": message.redelivered,
        "properties": {name: told_value(value) for name, value in message.properties.items()},
        "delivery_count": message.delivery_count,
    }


def told_destination(destination):
    """Tell a destination as its kind and its name; what is told already stays."""
    if destination is None or isinstance(destination, list):
        return destination
    return [f"{'temporary ' * destination.temporary}{destination.kind}", destination.name]


def told_moment(moment):
    """Tell a point in time in milliseconds since 1970; 0 is none, as in JMS."""
    return 0 if moment is None else round(moment.timestamp() * 1000)


def told_value(value):
    """Tell a value as the name of its type and a text that is exact."""
    if value is None:
        return None
    kind = type_name(typed_entry(value))
    if isinstance(value, bytes):
        return [kind, base64.b64encode(value).decode()]
    if isinstance(value, float):
        return [kind, _told_float(value)]
    return [kind, str(value).lower() if isinstance(value, bool) else str(value)]


def told_data(value):
    """Tell the plain data of an object message: what is nested, too. Its bytes are no array to Java, but ``Binary``."""
    if isinstance(value, list):
        return ["list", [told_data(part) for part in value]]
    if isinstance(value, dict):
        return ["map", [[told_data(name), told_data(part)] for name, part in value.items()]]
    if isinstance(value, uuid.UUID):
        return ["uuid", str(value)]
    return ["binary", told_value(value)[1]] if isinstance(value, bytes) else told_value(value)


def _told_float(value):
    """As Java's ``toHexString`` does."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(float(value))]
    digits, exponent = float(value).hex().split("p")
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}p{int(exponent)}"


def _body(message):
    if isinstance(message, MapMessage):
        return {name: told_value(value) for name, value in message.body.items()}
    if isinstance(message, StreamMessage):
        return [told_value(value) for value in message.body]
    if isinstance(message, ObjectMessage):
        return told_data(message.body)
    return told_value(message.body)
