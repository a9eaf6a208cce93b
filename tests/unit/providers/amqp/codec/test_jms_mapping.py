"""The sections of a message: groups, times, objects, destinations, and the bare message."""

import uuid
from datetime import UTC, datetime

import pytest
from proton import byte, int32, symbol, timestamp, ubyte, uint, ulong, ushort

from jmsjca import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    Queue,
    StreamMessage,
    TemporaryQueue,
    TemporaryTopic,
    TextMessage,
    Topic,
)
from jmsjca.errors import MessageFormatError
from jmsjca.messages import Byte, Char, Double, Float, Int, Long, Short, type_name
from jmsjca.providers.amqp.codec.addresses import ReceiveContext, address_of
from jmsjca.providers.amqp.codec.decoder import decode
from jmsjca.providers.amqp.codec.encoder import encode
from jmsjca.providers.amqp.codec.sections import bare_message
from jmsjca.providers.common.amqp_types import Described, RawDecimal, Symbol, UInt, write
from tests.unit.providers.amqp.codec.proton_sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    annotated,
    listed,
    read,
    section,
)
from tests.unit.providers.amqp.codec.round_trip import NOW, QUEUE, received, sent
from tests.unit.providers.amqp.wire.cut_account import encoded

ENTRIES = [
    True,
    Byte(1),
    Short(1),
    Char("1"),
    Int(1),
    Long(1),
    Float(0.1),
    Double(0.1),
    "1",
    b"1",
    None,
    Char("\u00df"),
]


def through(message):
    return decode(encode(message, QUEUE, NOW), ReceiveContext(QUEUE), NOW)


def kinds(values):
    return [(value, value if value is None else type_name(value)) for value in values]


def test_entries_of_maps_and_streams_keep_their_types():
    got = through(MapMessage({str(place): value for place, value in enumerate(ENTRIES)}))
    assert (type(got), kinds(got.body.values())) == (MapMessage, kinds(ENTRIES))
    stream = through(StreamMessage(ENTRIES))
    assert (type(stream), kinds(stream.body)) == (StreamMessage, kinds(ENTRIES))


def test_objects_are_bytes_that_nobody_looks_into():
    for pickled in (b"\xac\xed\x00\x05 as Java begins", b"cos\nsystem\n"):
        got = through(ObjectMessage.from_pickled(pickled))
        assert (type(got), got.pickled) == (ObjectMessage, pickled)
        assert through(got).pickled == pickled
        with pytest.raises(MessageFormatError):
            _ = got.body
    assert through(ObjectMessage()).pickled is None


DATA_OF_AMQP = {"list": [1, [2.5, None]], "map": {"b": b"b"}, "uuid": uuid.UUID(int=5), "text": "t"}


def test_objects_of_plain_data_need_no_pickle():
    message = ObjectMessage.from_data(DATA_OF_AMQP)
    assert sent(message)[VALUE]["uuid"] == uuid.UUID(int=5)
    got = through(message)
    assert got.body == got.get_body(dict) == got.get_object(frozenset()) == DATA_OF_AMQP
    assert through(got).body == DATA_OF_AMQP
    assert got.get_boolean_property("JMS_AMQP_TYPED_ENCODING")
    got.body["list"].append("changed")
    assert got.body == DATA_OF_AMQP


def test_data_of_types_that_others_have_is_sent_on_as_it_came():
    value = {"s": symbol("s"), "u": [ubyte(1), ushort(1), uint(1), ulong(1)], "t": timestamp(1), "i": int32(1)}
    raw = section(VALUE, value)
    again = sent(received(raw))[VALUE]
    assert again == value
    assert [type(number) for number in again["u"]] == [ubyte, ushort, uint, ulong]
    assert (type(again["s"]), type(again["t"]), type(again["i"])) == (symbol, timestamp, int32)


def test_a_pickle_is_never_sent_as_data():
    with pytest.raises(MessageFormatError, match="from_data"):
        sent(ObjectMessage(["data"], properties={"JMS_AMQP_TYPED_ENCODING": True}))


@pytest.mark.parametrize("value", [object(), [object()], 1 << 64, {"a": {1}}])
def test_data_that_amqp_has_no_type_for_is_refused(value):
    with pytest.raises(MessageFormatError):
        sent(ObjectMessage.from_data(value))


@pytest.mark.parametrize("value", [uuid.UUID(int=1), symbol("s"), timestamp(5), ubyte(5), uint(5)])
def test_entries_of_types_that_jms_has_not_become_the_next_best(value):
    raw = annotated(x_opt_jms_msg_type=byte(2)) + section(VALUE, {"a": value})
    assert str(received(raw).body["a"]) == (str(value) if isinstance(value, uuid.UUID | str) else "5")
    assert type_name(received(raw).body["a"]) in {"string", "short", "long"}


@pytest.mark.parametrize(("number", "body"), [(2, {"a": [1]}), (2, {"a": {}}), (4, [[1]]), (2, {1: 1}), (2, {None: 1})])
def test_entries_that_jms_cannot_hold_are_refused(number, body):
    with pytest.raises(MessageFormatError):
        received(annotated(x_opt_jms_msg_type=byte(number)) + section(VALUE, body))


def test_groups_are_fields_and_not_properties():
    message = Message(properties={"JMSXGroupID": "g", "other": 1})
    assert sent(message)[PROPERTIES]["group-id"] == "g"
    assert sent(message)[APPLICATION_PROPERTIES] == {"other": int32(1)}
    assert dict(through(message).properties) == {"other": 1, "JMSXGroupID": "g"}
    for sequence in (0, 7, -1, -(1 << 31), (1 << 31) - 1):
        message.properties["JMSXGroupSeq"] = sequence
        assert sent(message)[PROPERTIES]["group-sequence"] == sequence % (1 << 32)
        assert through(message).properties["JMSXGroupSeq"] == sequence


def test_who_sent_it_is_for_the_broker_to_say():
    got = received(listed(PROPERTIES, user_id=b"me"))
    assert got.get_string_property("JMSXUserID") == "me"
    assert received(listed(PROPERTIES, user_id="me")).get_string_property("JMSXUserID") == "me"
    assert "user-id" not in sent(got)[PROPERTIES]
    assert APPLICATION_PROPERTIES not in sent(got)


def test_own_time_to_live_is_that_of_the_header():
    message = Message(properties={"JMS_AMQP_TTL": 7000})
    message.expiration = datetime.fromtimestamp(NOW + 1, UTC)
    assert sent(message)[HEADER]["ttl"] == 7000
    assert APPLICATION_PROPERTIES not in sent(message)
    message.properties["JMS_AMQP_TTL"] = 0
    assert "ttl" not in sent(message)[HEADER]
    for wrong in (-1, 1 << 32, "soon", 1.5, True):
        message.properties["JMS_AMQP_TTL"] = wrong
        with pytest.raises(MessageFormatError):
            sent(message)


@pytest.mark.parametrize("text", ["UUID:x", "ULONG:-1", f"ULONG:{1 << 64}", "ULONG:", "BINARY:0 0"])
def test_ids_that_are_not_what_they_say_are_refused(text):
    with pytest.raises(MessageFormatError):
        sent(Message(correlation_id=f"ID:AMQP_{text}"))


def test_an_id_of_ours_comes_back_as_it_is():
    for kind in ("", "AMQP_ULONG:7", f"AMQP_UUID:{uuid.UUID(int=7)}", "AMQP_BINARY:00FF", "AMQP_OTHER:7"):
        text = f"ID:{kind}"
        message = Message(correlation_id=text)
        message.message_id = text
        assert (through(message).message_id, through(message).correlation_id) == (text, text)


@pytest.mark.parametrize("order", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_the_order_of_bytes_is_as_marked_or_high_first(order):
    marked = "\ufeff" if order.endswith("e") and order != "utf-16-be" else ""
    told = listed(PROPERTIES, content_type=symbol(f"text/plain; charset={order[:6]}"))
    got = received(told + section(DATA, (marked + "tëxt").encode(order)))
    assert (type(got), got.body) == (TextMessage, "tëxt")


def test_a_type_of_a_program_is_sent_as_what_it_is():
    class Order(TextMessage):
        __slots__ = ()

    assert sent(Order("x"))[ANNOTATIONS]["x-opt-jms-msg-type"] == byte(5)


def test_a_stream_may_come_in_several_sections():
    raw = annotated(x_opt_jms_msg_type=byte(4)) + section(SEQUENCE, [True]) + section(SEQUENCE, ["x"])
    assert received(raw).body == (True, "x")


def test_each_header_is_damaged_alone():
    raw = listed(PROPERTIES, message_id=[7], reply_to="r") + section(DATA, b"x")
    message = decode(raw, ReceiveContext(QUEUE), NOW)
    assert (type(message), message.body, message.reply_to.name) == (BytesMessage, b"x", "r")
    with pytest.raises(MessageFormatError, match="queue:q"):
        _ = message.message_id


def test_a_message_without_sections_has_neither_id_nor_body():
    message = received(b"")
    assert (type(message), message.body, message.message_id, dict(message.properties)) == (BytesMessage, None, None, {})


@pytest.mark.parametrize(
    ("value", "text"), [(7, "ID:AMQP_ULONG:7"), (-7, "ID:AMQP_NO_PREFIX:-7"), (0.5, "ID:AMQP_NO_PREFIX:0.5")]
)
def test_a_number_that_is_no_id_of_amqp_is_one_here(value, text):
    message = received(listed(PROPERTIES, message_id=value, correlation_id=value) + section(DATA, b"x"))
    assert (message.message_id, message.correlation_id) == (text, text.replace("ID:AMQP_NO_PREFIX:", ""))


@pytest.mark.parametrize("milliseconds", [253_402_300_800_000, (1 << 63) - 1])
def test_a_time_after_the_year_9999_is_the_last_one_of_it(milliseconds):
    raw = listed(PROPERTIES, absolute_expiry_time=timestamp(milliseconds), creation_time=timestamp(milliseconds))
    message = received(raw + section(DATA, b"x"))
    assert message.expiration == message.timestamp == datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)


def test_bytes_in_a_property_stay_bytes():
    assert received(section(APPLICATION_PROPERTIES, {"key": b"\xff"})).properties["key"] == b"\xff"


def test_fields_that_are_not_set_take_no_room():
    assert encode(Message(), QUEUE, NOW).endswith(b"\x00\x53\x73\xc0\x06\x03\x40\x40\xa1\x01q")


def test_numbers_that_no_long_holds_become_text():
    raw = section(APPLICATION_PROPERTIES, {"a": ulong((1 << 64) - 1), "b": ulong((1 << 63) - 1)})
    assert dict(received(raw).properties) == {"a": str((1 << 64) - 1), "b": (1 << 63) - 1}


NAMINGS = ["capability", "exchange", "path", "scheme"]


def replies(raw, naming, source=QUEUE):
    return decode(raw, ReceiveContext(source, naming), NOW).reply_to


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("place", [Queue("a"), Topic("a"), Queue("queue://"), Queue("/queue/"), Topic("amq.topic/")])
def test_an_address_of_the_broker_is_the_destination_that_we_would_name_so(naming, place):
    """What a program without JMS writes, and what Java's clients write: an answer to it arrives."""
    annotation = annotated(x_opt_jms_reply_to=byte(place.kind == "topic"))
    address = listed(PROPERTIES, reply_to=address_of(place, naming).name)
    assert replies(annotation + address, naming) == place
    if naming in {"path", "scheme"}:
        assert replies(address, naming) == place


@pytest.mark.parametrize("place", [Queue("a"), Topic("a"), Queue("/queue/a")])
def test_a_reply_destination_of_stomp_on_rabbitmq_3_is_no_name_of_a_queue(place):
    told = listed(PROPERTIES, reply_to=f"/queue//{place.kind}/{place.name}")
    assert replies(told, "path") == place
    assert replies(annotated(x_opt_jms_reply_to=byte(0)) + told, "path") == Queue(f"/{place.kind}/{place.name}")


@pytest.mark.parametrize("naming", NAMINGS)
def test_a_name_without_anything_before_it_is_one(naming):
    assert replies(listed(PROPERTIES, reply_to="a.b"), naming, Topic("t")) == Topic("a.b")


@pytest.mark.parametrize(("number", "kind"), [*enumerate([Queue, Topic, TemporaryQueue, TemporaryTopic])])
def test_every_kind_comes_back(number, kind):
    place = kind("temp-queue://ID:1")
    raw = encode(Message(reply_to=place), kind("to"), NOW)
    assert read(raw)[0x72]["x-opt-jms-dest"] == read(raw)[0x72]["x-opt-jms-reply-to"] == byte(number)
    got = decode(raw, ReceiveContext(QUEUE, "scheme"), NOW)
    assert (got.reply_to, got.destination) == (place, kind("to"))


def test_an_address_that_is_no_text_is_refused():
    with pytest.raises(MessageFormatError):
        replies(listed(PROPERTIES, reply_to=7), "path")


HEADERS = {
    "a small number": b"\x53\x70",
    "a long number": b"\x80\0\0\0\0\0\0\0\x70",
    "a name": b"\xa3\x10amqp:header:list",
}
NO_FIELDS = b"\x45"


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_is_left_out(kind):
    rest = encoded("x")
    assert bare_message(b"\0" + HEADERS[kind] + NO_FIELDS + rest) == bare_message(rest)


def test_a_header_is_left_out_before_what_is_no_section():
    assert bare_message(b"\0" + HEADERS["a small number"] + NO_FIELDS + b"\xff") == b"\xff"


def test_a_message_that_is_only_a_header_has_no_bare_message():
    assert bare_message(b"\0" + HEADERS["a name"] + NO_FIELDS) == b""


DECIMALS = [  # by the tables of IEEE 754-2008, and the corpus of BSON for 128 bits
    (0x74, "3200000f", "1.5"),
    (0x74, "b200000f", "-1.5"),
    (0x74, "32800000", "0"),
    (0x74, "00000001", "1E-101"),
    (0x74, "77f8967f", "9.999999E+96"),
    (0x74, "6cb89680", "0"),  # a coefficient that is too large stands for 0
    (0x84, "31c000000000000f", "15"),
    (0x84, "77fb86f26fc0ffff", "9.999999999999999E+384"),
    (0x94, "303e000000000000000000000000000f", "1.5"),
    (0x94, "b0400000000000000000000000000000", "-0"),
    (0x94, "30400000000000000000000000003039", "12345"),
    (0x94, "5fffed09bead87c0378d8e63ffffffff", "9.999999999999999999999999999999999E+6144"),
    *((code, f"78{'00' * size}", "Infinity") for code, size in ((0x74, 3), (0x84, 7), (0x94, 15))),
    *((code, f"f8{'00' * size}", "-Infinity") for code, size in ((0x74, 3), (0x84, 7), (0x94, 15))),
    *((code, f"7c{'00' * size}", "NaN") for code, size in ((0x74, 3), (0x84, 7), (0x94, 15))),
]


@pytest.mark.parametrize(("code", "encoded", "text"), DECIMALS)
def test_a_decimal_property_is_the_number_as_text(code, encoded, text):
    properties = {"n": RawDecimal(code, bytes.fromhex(encoded)), "d": Described(Symbol("x"), UInt(7))}
    message = received(b"\x00\x53\x74" + write(properties) + section(DATA, b"x"))
    assert dict(message.properties) == {"n": text, "d": 7}
    assert message.get_string_property("n") == text
