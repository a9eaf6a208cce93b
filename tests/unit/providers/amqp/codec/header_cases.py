"""The conformance cases about headers, properties, ids and destinations."""

import uuid
from datetime import UTC, datetime

import pytest
from proton import byte, float32, int32, short, ulong

from jmsjca import Message, Queue, TemporaryQueue, TemporaryTopic, TextMessage, Topic
from jmsjca.destinations import Destination
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Double, Float, Int, Long, Short
from jmsjca.providers.amqp.codec.addresses import address_of
from jmsjca.providers.amqp.codec.jms_mapping import MESSAGE_CLASSES, to_jms_message_id
from tests.unit.providers.amqp.codec.proton_sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    PROPERTIES,
    annotated,
    listed,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import NOW, received, sent

DESTINATIONS = {
    "queue": Queue,
    "topic": Topic,
    "temporary queue": TemporaryQueue,
    "temporary topic": TemporaryTopic,
}
T = datetime.fromtimestamp(NOW + 5, UTC)
T_MS = round(NOW * 1000) + 5000


class Elsewhere(Destination):
    """A destination of no kind that anybody knows."""

    kind = "elsewhere"


def constant(row):
    expect = row["expect"]
    if "message_type_annotation" in expect:
        numbers = expect["message_type_values (byte)"]
        assert {kind.__name__: number for number, kind in MESSAGE_CLASSES.items()} == numbers
        message = TextMessage()
        message.delivery_time = T
        names = {expect["message_type_annotation"], expect["delivery_time_annotation"], "x-opt-jms-dest"}
        assert set(sent(message)[ANNOTATIONS]) == names
        return
    for name, number in expect["values (byte)"].items():
        found = sent(Message(reply_to=DESTINATIONS[name]("r")), DESTINATIONS[name]("d"))[ANNOTATIONS]
        assert found[expect["to_annotation"]] == found[expect["reply_to_annotation"]] == byte(number)
    asked = [address_of(kind("n"), "capability").capability for kind in DESTINATIONS.values()]
    assert asked == expect["link capabilities"]


def destination(row):
    name = "to" if row["field"] == "to" else "reply_to"
    annotation, legacy = {"to": ("dest", "to"), "reply_to": ("reply_to", "reply")}[name]
    annotations = {}
    if row["annotation"] is not None:
        annotations[f"x_opt_jms_{annotation}"] = byte(row["annotation"])
    if row["legacy_annotation"] is not None:
        annotations[f"x_opt_{legacy}_type"] = row["legacy_annotation"]
    raw = annotated(x_opt_jms_msg_type=byte(0), **annotations) + listed(PROPERTIES, **{name: row["address"]})
    for source in _sources(row["consumer_destination"]):
        message = received(raw, source)
        found = message.destination if name == "to" else message.reply_to
        assert found == _told(row["expect"], source)


def _sources(kind):
    if kind is None:
        return [None]
    return [DESTINATIONS.get(one, Elsewhere)("source") for one in kind.split(" or ")]


def _told(expect, source):
    if isinstance(expect, dict):
        return DESTINATIONS[expect["type"]](expect["name"])
    return source if expect else None


def destination_send(row):
    for what, annotation in (("jms_destination", "x-opt-jms-dest"), ("jms_reply_to", "x-opt-jms-reply-to")):
        if what not in row:
            continue
        assert row[what] is not None, "a message is always sent to a destination"
        place = DESTINATIONS[row[what]]("a name")
        found = sent(Message(reply_to=place), place)
        assert found[ANNOTATIONS][annotation] == byte(row["expect"][f"{annotation} (byte)"])
        field = "to" if annotation == "x-opt-jms-dest" else "reply-to"
        assert found[PROPERTIES][field] == "a name"


def legacy_attributes(row):
    assert row["expect"] == ["queue", "temporary"]
    raw = annotated(x_opt_reply_type=row["input"]) + listed(PROPERTIES, reply_to="r")
    assert received(raw, Topic("t")).reply_to == TemporaryQueue("r")


IDS = {"string": str, "uuid": uuid.UUID, "ulong": ulong, "binary_hex": bytes.fromhex}


def _wire_id(told):
    if told is None:
        return None
    [(kind, text)] = told.items()
    return IDS[kind](text)


def id_(row):
    name = row["field"].replace("-", "_")
    message = received(listed(PROPERTIES, **{name: _wire_id(row["amqp"])}))
    assert getattr(message, name) == row["expect"]["jms"]


def id_to_amqp(row):
    message = Message(correlation_id=row["jms"])
    message.message_id = row["jms"]
    if row["expect"].get("error"):
        with pytest.raises(MessageFormatError):
            sent(message)
        return
    found, wanted = sent(message)[PROPERTIES], _wire_id(row["expect"]["amqp"])
    for name in ("message-id", "correlation-id"):
        told = found.get(name)
        told = bytes(told) if isinstance(told, memoryview) else told
        assert (type(told), told) == (type(wanted), wanted)


def id_prefix(row):
    told = to_jms_message_id(row["input"])
    assert (told is not None and told == row["input"]) is row["expect"]


def application_property(row):
    if "amqp_name" in row:
        got = received(section(APPLICATION_PROPERTIES, {row["amqp_name"]: "valueA"}))
        assert got.property_exists(row["amqp_name"]) is row["expect"]["propertyExists"]
        assert got.get_string_property(row["amqp_name"]) == row["expect"]["get"]
        return
    value, shown = PROPERTIES_BY_TYPE[row["jms_type"]]
    found = sent(Message(properties={"p": value}))[APPLICATION_PROPERTIES]["p"]
    assert (type(found), found) == (type(shown), shown)
    back = received(section(APPLICATION_PROPERTIES, {"p": shown})).properties["p"]
    assert (type(back), back) == (type(value), value)


PROPERTIES_BY_TYPE = {
    "String": ("s", "s"),
    "boolean": (False, False),
    "byte": (Byte(-5), byte(-5)),
    "short": (Short(7), short(7)),
    "int": (Int(7), int32(7)),
    "long": (Long(7), 7),
    "float": (Float(0.5), float32(0.5)),
    "double": (Double(0.1), 0.1),
    "null (String)": (None, None),
}
