"""The conformance cases about the fields of header and properties, both ways."""

from datetime import UTC, datetime

from proton import Message as WireMessage
from proton import timestamp, ubyte, uint, ulong

from jmsjca import Message
from tests.unit.providers.amqp.codec.proton_sections import (
    APPLICATION_PROPERTIES,
    HEADER,
    PROPERTIES,
    annotated,
    listed,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import NOW, received, sent

T = datetime.fromtimestamp(NOW + 5, UTC)
T_MS = round(NOW * 1000) + 5000
GROUPS = {
    "JMSXGroupID": "group_id",
    "JMSXGroupSeq": "group_sequence",
    "JMS_AMQP_REPLY_TO_GROUP_ID": "reply_to_group_id",
}

_LATER = datetime.fromtimestamp(NOW + 10, UTC)


def field(row):
    if "amqp" in row:
        for raw in _encoded(row["amqp"]):
            _check_headers(received(raw), row["expect"])
    else:
        _check_sections(row["jms"], row["expect"])


# From AMQP: the bytes of what a row tells, in every form that it allows.


def _encoded(told):
    [(where, value), *_] = told.items()
    section_name, _, name = where.partition(".")
    if section_name == "header":
        return _headers(name, value)
    if section_name == "x-opt-delivery-time":
        created = listed(PROPERTIES, creation_time=timestamp(T_MS))
        if value == "absent":
            return [created]
        return [annotated(x_opt_delivery_time=kind(T_MS)) for kind in (int, timestamp, ulong)]
    return [listed(PROPERTIES, **{name.replace("-", "_"): _field_value(name, value)})]


def _headers(name, value):
    if not name:
        absent = section(PROPERTIES, [])
        return [absent, section(HEADER, []) + absent] if "empty" in value else [absent]
    types = {"durable": bool, "priority": ubyte, "ttl": uint, "delivery-count": uint}
    given = None if value == "absent" else types[name](value)
    return [listed(HEADER, **{name.replace("-", "_"): given}) + section(PROPERTIES, [])]


def _field_value(name, value):
    if name == "absolute-expiry-time":
        return timestamp(T_MS)
    if name == "group-sequence":
        return uint(value)
    return value["binary_utf8"].encode() if name == "user-id" else value


HEADERS = {
    "JMSDeliveryMode": lambda message: message.delivery_mode.name,
    "JMSPriority": lambda message: message.priority,
    "JMSRedelivered": lambda message: message.redelivered,
    "JMSType": lambda message: message.type,
    "JMSXDeliveryCount": lambda message: message.get_int_property("JMSXDeliveryCount"),
    "JMSXGroupSeq": lambda message: message.get_int_property("JMSXGroupSeq"),
    "JMSXUserID": lambda message: message.get_string_property("JMSXUserID"),
    "JMSExpiration": lambda message: message.expiration,
    "JMSDeliveryTime": lambda message: message.delivery_time,
    "delivery-count": lambda message: message.delivery_count - 1,
    "redelivery count": lambda message: message.redelivery_count,
    "ttl": lambda message: message.expiration,
}
NAMED = {
    ("JMSExpiration", 0): None,
    ("JMSExpiration", "t"): T,
    ("JMSExpiration", "time of receipt + 123, same on every call"): datetime.fromtimestamp(NOW + 0.123, UTC),
    ("JMSDeliveryTime", "t"): T,
    ("JMSDeliveryTime", "properties.creation-time"): T,
    ("ttl", 0): None,
}


def _check_headers(message, expect):
    for name, told in expect.items():
        assert HEADERS[name](message) == NAMED.get((name, told), told), name


# From JMS: what the sections tell of a message.


def _check_sections(told, expect):
    if isinstance(told, str):
        _check_message(told, expect)
    elif "JMSXGroupID" in told:
        _check_groups(told)
    else:
        [(header, value)] = told.items()
        [(where, wanted)] = expect.items()
        found = _fields(_made(header, value), where)
        assert found == (T_MS if wanted == "t" else wanted)


def _fields(message, where):
    """A field, or what an absent section stands for."""
    sections = sent(message)
    section_name, _, name = where.partition(".")
    if not name:
        return sections.get({"properties": PROPERTIES}[section_name], "absent")
    return sections[{"header": HEADER, "properties": PROPERTIES}[section_name]].get(name)


def _made(header, value):
    message = Message()
    if header == "JMSPriority":
        message.priority = value
    elif header == "JMSType":
        message.type = value
    elif header == "JMSTimestamp":
        message.timestamp = T if value == "t" else None
    elif header == "JMSExpiration":
        message.expiration = T
    return message


def _check_message(told, expect):
    if told == "new message to send":
        assert sent(Message())[HEADER]["durable"] is expect["header.durable"]
        return
    message = received(bytes(WireMessage(ttl=5).encode()))
    message.expiration = _LATER
    assert sent(message)[HEADER]["ttl"] == 10_000
    message.expiration = None
    assert "ttl" not in sent(message)[HEADER]


def _check_groups(told):
    found = sent(Message(properties=told))
    fields = {name: found[PROPERTIES][field.replace("_", "-")] for name, field in GROUPS.items()}
    assert fields == told
    assert APPLICATION_PROPERTIES not in found
    wire = {field: uint(told[name]) if "sequence" in field else told[name] for name, field in GROUPS.items()}
    assert dict(received(listed(PROPERTIES, **wire)).properties) == told
