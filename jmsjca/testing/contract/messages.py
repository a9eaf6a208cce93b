"""Cases for messages of all types: they arrive as they were sent. Also for messages that cannot be decoded.

A message that cannot be decoded affects only its receiver. These cases need the fixture ``jms_poison``: a function that
puts such a message into a queue without jmsjca. A provider's test module imports them by name, in addition to
`jmsjca.testing.contract`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NotSupportedError,
)
from jmsjca.messages import (
    Byte,
    BytesMessage,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    type_name,
)
from jmsjca.spi import Delivery
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment, prepare

__all__ = ["TestBodies", "TestHeaders", "TestMaps", "TestObjects", "TestPoison", "TestProperties", "TestStreams"]


class TestBodies(Contract):
    """Bodies arrive with their type (JMS 3.1, section 3.11)."""

    @pytest.mark.parametrize(
        "message",
        [
            TextMessage("text"),
            TextMessage(""),
            TextMessage(None),
            TextMessage("ünïcödé \U0001f600 \x00 \r\n"),
            TextMessage("x" * 1_000_000),
            BytesMessage(b"bytes"),
            BytesMessage(b""),
            BytesMessage(bytes(range(256))),
            Message(),
        ],
        ids=lambda message: f"{type(message).__name__}={message.body!r:.20}",
    )
    def test_body_and_type_arrive(self, harness: Harness, message: Message) -> None:
        """Text, bytes, and messages without a body; empty is not absent."""
        received = harness.round_trip(message)
        assert (type(received), received.body) == (type(message), message.body)

    def test_bytes_that_were_never_set_arrive_as_no_bytes(self, harness: Harness) -> None:
        """Bytes messages are streams (JMS 3.1, section 3.11), so an absent body may arrive as an empty one."""
        received = harness.round_trip(BytesMessage(None))
        assert type(received) is BytesMessage
        assert not received.body

    def test_received_body_is_read_only(self, harness: Harness) -> None:
        """Changing it needs `clear_body` first (JMS 3.1, section 3.11.2)."""
        message = harness.round_trip(TextMessage("received"))
        with pytest.raises(MessageNotWriteableError):
            message.body = "changed"
        message.clear_body()
        message.body = "changed"
        assert message.body == "changed"

    def test_received_message_can_be_sent_on(self, harness: Harness) -> None:
        """Forwarding needs no copy."""
        queue = harness.queue()
        received = harness.round_trip(TextMessage("a", properties={"p": Short(1)}))
        harness.send_messages(queue, received)
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.message.body, type_name(delivery.message.properties["p"])) == ("a", "short")

    def test_text_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is not Unicode text: `MessageFormatError` at the send, and the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        for message in (TextMessage("\ud800"), Message(properties={"p": "\ud800"}), Message(type="\ud800")):
            with pytest.raises(MessageFormatError):
                unit.send(message, queue)
        harness.record(unit, queue, "good")
        unit.commit()
        harness.expect(queue, "good")

    def test_clearing_the_body_leaves_the_rest(self, harness: Harness) -> None:
        """The body is as in a new message. Properties stay, and stay read-only (JMS 3.1, section 3.11.1)."""
        message = harness.round_trip(TextMessage("a", correlation_id="c", properties={"p": 1}))
        message.clear_body()
        assert (message.body, message.correlation_id, dict(message.properties)) == (None, "c", {"p": 1})
        with pytest.raises(MessageNotWriteableError):
            message.properties["p"] = 2

    def test_cleared_body_is_back_when_the_message_comes_again(self, harness: Harness) -> None:
        """A consumer changes only its own copy (JMS 3.1, section 3.10)."""
        queue = harness.queue()
        harness.send(queue, "sent")
        consumer = harness.connection.consumer(queue)
        [delivery] = harness.gather(consumer, 1)
        delivery.message.clear_body()
        delivery.message.body = "changed"
        harness.holding([delivery]).rollback()
        [delivery] = harness.gather(consumer, 1)
        assert delivery.message.body == "sent"

    def test_subscribers_have_copies_of_their_own(self, harness: Harness) -> None:
        """A change by one subscriber does not reach the other (JMS 3.1, sections 3.10 and 4.2)."""
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        harness.send(topic, "sent")
        [first], [second] = [harness.gather(consumer, 1) for consumer in consumers]
        first.message.clear_body()
        assert second.message.body == "sent"

    def test_received_bytes_are_read_from_their_beginning(self, harness: Harness) -> None:
        """A received message is ready to be read, not to be written (JMS 3.1, section 3.11)."""
        message = harness.round_trip(BytesMessage(b"\x00\x00\x00\x07\xff"))
        assert isinstance(message, BytesMessage)
        assert (message.read_int(), message.read_unsigned_byte()) == (7, 255)
        with pytest.raises(MessageEOFError):
            message.read_byte()
        with pytest.raises(MessageNotWriteableError):
            message.write_byte(1)

    def test_written_values_arrive_as_bytes(self, harness: Harness) -> None:
        """They are written big-endian, without their types (JMS 3.1, section 3.11.4)."""
        message = BytesMessage()
        message.write_short(1)
        message.write_utf("ß")
        message.write_double(-2.0)
        assert harness.round_trip(message).body == b"\x00\x01" + b"\x00\x02\xc3\x9f" + b"\xc0" + bytes(7)

    def test_missing_structured_bodies_are_refused(self, harness: Harness) -> None:
        """A broker that cannot carry such a body refuses the message; the unit stays usable."""
        harness.require_lack("structured")
        queue = harness.queue()
        unit = harness.unit()
        for message in (MapMessage({"a": 1}), StreamMessage([1]), ObjectMessage(1), ObjectMessage()):
            with pytest.raises(NotSupportedError):
                unit.send(prepare(message, queue), queue)
        harness.record(unit, queue, "good")
        unit.commit()
        harness.expect(queue, "good")

    def test_body_is_given_as_its_type_only(self, harness: Harness) -> None:
        """`get_body` refuses every type other than the type of the body (JMS 3.1, section 3.11)."""
        message = harness.round_trip(TextMessage("text"))
        assert message.get_body(str) == "text"
        assert not message.is_body_assignable_to(bytes)
        with pytest.raises(MessageFormatError):
            message.get_body(bytes)


class TestHeaders(Contract):
    """Headers arrive as the producer set them (JMS 3.1, section 3.4)."""

    def test_every_header_arrives(self, harness: Harness) -> None:
        """Each header has a value that differs from its default."""
        sent = {
            "correlation_id": "request 1",
            "reply_to": Topic("answers"),
            "type": "order",
            "delivery_mode": DeliveryMode.NON_PERSISTENT,
            "priority": 7,
            "timestamp": moment(-1),
            "expiration": moment(3600),
            "message_id": "ID:one",
        }
        queue = harness.queue()
        harness.send_messages(queue, Message(), **sent)
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert {name: getattr(delivery.message, name) for name in sent} == sent
        assert delivery.message.destination == queue

    def test_delivery_time_arrives(self, harness: Harness) -> None:
        """JMSDeliveryTime is the earliest time of delivery (JMS 3.1, section 3.4.13)."""
        harness.require("delivery_delay")
        queue, when = harness.queue(), moment(0.01)
        harness.send_messages(queue, Message(), delivery_time=when)
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert delivery.message.delivery_time == when

    def test_headers_that_were_not_set_are_absent(self, harness: Harness) -> None:
        """Absent is None, not a made-up value."""
        message = harness.round_trip(Message())
        absent = ("correlation_id", "reply_to", "type", "expiration")
        assert {name: getattr(message, name) for name in absent} == dict.fromkeys(absent)
        assert (message.priority, message.delivery_mode) == (4, DeliveryMode.PERSISTENT)

    def test_reply_to_a_queue_arrives(self, harness: Harness) -> None:
        """A reply goes to the kind of destination that was named."""
        queue = harness.queue()
        harness.send_messages(queue, Message(), reply_to=Queue("answers"))
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert delivery.message.reply_to == Queue("answers")

    def test_topic_is_the_destination_of_what_it_brings(self, harness: Harness) -> None:
        """A subscriber sees the topic that the message was sent to (JMS 3.1, section 3.4.1)."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic)
        harness.send(topic, "a")
        [delivery] = harness.gather(consumer, 1)
        assert delivery.message.destination == topic

    def test_headers_of_a_received_message_can_be_changed(self, harness: Harness) -> None:
        """Unlike properties and body (JMS 3.1, section 3.10); sent on, it arrives so."""
        message = harness.round_trip(TextMessage("a", correlation_id="old", type="old", reply_to=Queue("old")))
        message.correlation_id, message.type, message.reply_to = "new", None, Topic("new")
        got = harness.round_trip(message)
        assert (got.correlation_id, got.type, got.reply_to) == ("new", None, Topic("new"))

    def test_delivery_count_is_a_property(self, harness: Harness) -> None:
        """JMSXDeliveryCount is 1 at the first delivery, and more at each redelivery (JMS 3.1, section 3.5.11)."""
        harness.require("delivery_count")
        first, second = harness.redelivered(TextMessage("a"))
        assert first.get_int_property("JMSXDeliveryCount") == 1
        assert second.message.get_int_property("JMSXDeliveryCount") == second.count == 2
        assert "JMSXDeliveryCount" in second.message.get_property_names()
        assert dict(second.message.properties) == {}  # it was not sent


_VALUES = [
    pytest.param(value, id=f"{type(value).__name__}={value!r:.20}")
    for value in (
        *(True, False, None, "", "text", "ünïcödé \U0001f600", 'quotes " and \\ and \n lines', "x" * 70_000),
        *(Byte(-128), Byte(127), Short(-(1 << 15)), Short((1 << 15) - 1), Int(-(1 << 31)), Int((1 << 31) - 1)),
        *(Long(-(1 << 63)), Long((1 << 63) - 1), Long(5), 5, 1 << 40),
        *(Float(1.5), Float(3.4e38), Float(1e-45), Double(5), Double(1.7e308), Double(5e-324), -0.0, 0.1),
        *(Float(math.inf), Double(-math.inf)),
    )
]


class TestProperties(Contract):
    """Properties keep their values and their types (JMS 3.1, section 3.5)."""

    @pytest.mark.parametrize("value", _VALUES)
    def test_value_and_type_arrive(self, harness: Harness, value: Any) -> None:
        """Every type with its bounds; a null property is one that exists without a value."""
        got = harness.round_trip(Message(properties={"p": value})).properties
        assert dict(got) == {"p": value}
        assert value is None or type_name(got["p"]) == type_name(value)
        assert repr(got["p"]) == repr(value)  # distinguishes -0.0 from 0.0

    def test_not_a_number_arrives(self, harness: Harness) -> None:
        """NaN of both precisions arrives."""
        got = harness.round_trip(Message(properties={"f": Float(math.nan), "d": math.nan})).properties
        assert {name: (type_name(v), math.isnan(float(v or 0))) for name, v in got.items()} == {
            "f": ("float", True),
            "d": ("double", True),
        }

    def test_names_of_every_kind_arrive(self, harness: Harness) -> None:
        """Identifiers with the signs that the selector syntax allows, vendor and JMSX names, dots."""
        names = ["a", "_a", "$a", "a1", "größe", "JMSXGroupID", "JMS_vendor_x", "JMSJCA.name"]
        sent: dict[str, object] = dict.fromkeys(names, "1")
        assert dict(harness.round_trip(Message(properties=sent)).properties) == sent

    def test_received_properties_are_read_only(self, harness: Harness) -> None:
        """Setting one needs `clear_properties` first (JMS 3.1, section 3.10)."""
        message = harness.round_trip(TextMessage("body", properties={"a": 1}))
        with pytest.raises(MessageNotWriteableError):
            message.properties["a"] = 2
        message.clear_properties()
        message.properties["a"] = 2
        assert (dict(message.properties), message.body) == ({"a": 2}, "body")

    def test_names_differ_by_case(self, harness: Harness) -> None:
        """Identifiers are case-sensitive (JMS 3.1, section 3.8.1.1)."""
        assert dict(harness.round_trip(Message(properties={"a": 1, "A": 2})).properties) == {"a": 1, "A": 2}

    def test_many_properties_arrive(self, harness: Harness) -> None:
        """JMS sets no bound to their number (JMS 3.1, section 3.5)."""
        sent: dict[str, object] = {f"p{number}": number for number in range(300)}
        assert dict(harness.round_trip(Message(properties=sent)).properties) == sent

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """A short property can be read as a wider type, not as a narrower one (JMS 3.1, section 3.5.4)."""
        message = harness.round_trip(Message(properties={"s": Short(7), "t": "7", "b": True}))
        assert (message.get_long_property("s"), message.get_string_property("s")) == (7, "7")
        assert (message.get_byte_property("t"), message.get_string_property("b")) == (7, "true")
        for read in (message.get_byte_property, message.get_double_property, message.get_boolean_property):
            with pytest.raises(MessageFormatError):
                read("s")

    def test_null_reads_as_what_is_not_set(self, harness: Harness) -> None:
        """Both convert alike, but only one of them exists (JMS 3.1, sections 3.5.4 and 3.5.8)."""
        message = harness.round_trip(Message(properties={"empty": None}))
        assert (message.property_exists("empty"), message.property_exists("missing")) == (True, False)
        for name in ("empty", "missing"):
            assert message.get_object_property(name) is None
            assert message.get_string_property(name) is None
            assert message.get_boolean_property(name) is False
            with pytest.raises(MessageFormatError):
                message.get_int_property(name)

    def test_cleared_properties_are_back_when_the_message_comes_again(self, harness: Harness) -> None:
        """A consumer changes only its own copy (JMS 3.1, section 3.10)."""
        queue = harness.queue()
        harness.send_messages(queue, Message(properties={"a": 1}))
        consumer = harness.connection.consumer(queue)
        [delivery] = harness.gather(consumer, 1)
        delivery.message.clear_properties()
        delivery.message.properties["b"] = 2
        harness.holding([delivery]).rollback()
        [delivery] = harness.gather(consumer, 1)
        assert dict(delivery.message.properties) == {"a": 1}


_DECIMAL = frozenset({("decimal", "Decimal")})


class TestObjects(Contract):
    """A pickled object, as it was when it was given (JMS 3.1, section 3.11)."""

    needs = ("structured",)

    def test_object_arrives_for_who_names_its_classes(self, harness: Harness) -> None:
        """Opt-in, by exact names (JMS 3.1, section 3.11)."""
        sent = {"price": Decimal("1.50"), "parts": [1, "two", (3.0, b"four", None)]}
        assert _received(harness, ObjectMessage(sent)).get_object(_DECIMAL) == sent

    def test_object_of_another_class_is_refused(self, harness: Harness) -> None:
        """A list of names allows what it names; the empty one nothing at all (JMS 3.1, section 3.11)."""
        message = _received(harness, ObjectMessage(Path("a")))
        for allowed in (_DECIMAL, frozenset({("pathlib", "*")})):
            with pytest.raises(MessageFormatError):
                message.get_object(allowed)
        with pytest.raises(MessageFormatError):
            _received(harness, ObjectMessage(["data"])).get_object(frozenset())

    def test_body_is_refused(self, harness: Harness) -> None:
        """Without names nothing is unpickled, not even harmless data (JMS 3.1, section 3.11)."""
        message = _received(harness, ObjectMessage(["data"]))
        for read in (lambda: message.body, lambda: message.get_body(object)):
            with pytest.raises(MessageFormatError, match="get_object"):
                read()
        assert not message.is_body_assignable_to(object)

    def test_hostile_pickle_passes_through_unharmed(self, harness: Harness, tmp_path: Path) -> None:
        """Received, printed, browsed, rolled back and forwarded, it is never executed (JMS 3.1, section 3.11)."""
        canary = tmp_path / "canary"
        hostile = f"cos\nmkdir\n(V{canary}\ntR.".encode("raw-unicode-escape")  # leaves a trace when it is loaded
        queue = harness.queue()
        harness.send_messages(queue, ObjectMessage.from_pickled(hostile))
        if harness.connection.capabilities.browse:
            shown = list(chain.from_iterable(harness.connection.browse(queue)))
            assert [_pickled(delivery.message) for delivery in shown] == [hostile]
        consumer = harness.connection.consumer(queue)
        harness.holding(harness.gather(consumer, 1)).rollback()
        [delivery] = harness.gather(consumer, 1)
        assert "ObjectMessage" in repr(delivery.message)
        assert _pickled(harness.round_trip(delivery.message)) == hostile
        assert not canary.exists()

    def test_bytes_that_are_no_pickle_arrive_unchanged(self, harness: Harness) -> None:
        """They may be another language's objects (JMS 3.1, section 3.11.4)."""
        foreign = b"\xac\xed\x00\x05 as Java begins" + bytes(range(256))
        message = _received(harness, ObjectMessage.from_pickled(foreign))
        assert message.pickled == foreign
        with pytest.raises(MessageFormatError):
            message.get_object(_DECIMAL)

    def test_no_object_arrives_as_none(self, harness: Harness) -> None:
        """The default is null (JMS 3.1, section 3.11.1)."""
        message = _received(harness, ObjectMessage())
        assert (message.body, message.pickled, message.get_object(_DECIMAL)) == (None, None, None)

    def test_object_is_sent_as_it_was_when_it_was_given(self, harness: Harness) -> None:
        """A message holds a snapshot (JMS 3.1, sections 3.9 and 3.11)."""
        parts = [1]
        message = ObjectMessage(parts)
        parts.append(2)
        assert _received(harness, message).get_object(_DECIMAL) == [1]

    def test_received_object_is_read_only(self, harness: Harness) -> None:
        """Until the body is cleared (JMS 3.1, sections 3.11.1 and 3.11.2)."""
        message = _received(harness, ObjectMessage([1], properties={"p": 1}))
        with pytest.raises(MessageNotWriteableError):
            message.body = [2]
        message.clear_body()
        message.body = [3]
        got = _received(harness, message)
        assert (got.get_object(_DECIMAL), dict(got.properties)) == ([3], {"p": 1})

    def test_raw_body_is_the_pickle(self, harness: Harness) -> None:
        """For poison and for staging, whatever is in it."""
        queue = harness.queue()
        harness.send_messages(queue, ObjectMessage.from_pickled(b"cos\nsystem\n"))
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert delivery.raw == b"cos\nsystem\n"


def _received(harness: Harness, message: ObjectMessage) -> ObjectMessage:
    received = harness.round_trip(message)
    assert isinstance(received, ObjectMessage)
    return received


def _pickled(message: Message) -> bytes | None:
    assert isinstance(message, ObjectMessage)
    return message.pickled


class TestMaps(Contract):
    """Names and typed values (JMS 3.1, section 3.11)."""

    needs = ("structured",)

    def test_every_type_arrives(self, harness: Harness) -> None:
        """Ten types, each kept apart from the others (JMS 3.1, section 3.11.3)."""
        values = (True, Byte(1), Short(1), Char("1"), Int(1), Long(1), Float(1), Double(1), "1", b"1")
        sent: dict[str, object] = {type_name(value): value for value in values}
        body = _map_round_trip(harness, sent).body
        assert body == sent
        assert {name: type_name(value) for name, value in body.items()} == {name: name for name in sent}

    def test_bounds_of_numbers_arrive(self, harness: Harness) -> None:
        """The least and the greatest of each type."""
        sent: dict[str, object] = {}
        for mark, bits in ((Byte, 8), (Short, 16), (Int, 32), (Long, 64)):
            sent |= {f"{mark.__name__} from": mark(-(1 << bits - 1)), f"{mark.__name__} to": mark((1 << bits - 1) - 1)}
        sent |= {"float": Float(1e-45), "Float": Float(3.4e38), "double": 5e-324, "Double": 1.7e308, "zero": -0.0}
        body = _map_round_trip(harness, sent).body
        assert {name: repr(value) for name, value in body.items()} == {name: repr(v) for name, v in sent.items()}

    def test_infinite_numbers_arrive(self, harness: Harness) -> None:
        """Infinity and not-a-number are values of both precisions."""
        sent: dict[str, object] = {
            f"{mark.__name__} {value}": mark(value)
            for mark in (Float, Double)
            for value in (math.inf, -math.inf, math.nan)
        }
        body = _map_round_trip(harness, sent).body
        assert {name: (type_name(value), repr(value)) for name, value in body.items()} == {
            name: (type_name(value), repr(value)) for name, value in sent.items()
        }

    def test_texts_and_bytes_arrive_whole(self, harness: Harness) -> None:
        """Empty ones, large ones, and every sign."""
        sent: dict[str, object] = {
            "empty": "",
            "signs": "ünïcödé \U0001f600 \x00 \r\n \" ' \\ \u2028",
            "large": "x" * 100_000,
            "no bytes": b"",
            "all bytes": bytes(range(256)),
            "many bytes": bytes(100_000),
            "first char": Char("\0"),
            "last char": Char("\uffff"),
        }
        assert _map_round_trip(harness, sent).body == sent

    def test_any_text_names_an_entry(self, harness: Harness) -> None:
        """Names of entries need not be identifiers (JMS 3.1, section 3.11)."""
        names = ["1", " ", "a.b", "a b", "NULL", "JMSX", "größe", "\U0001f600", '"', "\n", "\0", "x" * 10_000]
        sent: dict[str, object] = {name: number for number, name in enumerate(names)}
        assert _map_round_trip(harness, sent).body == sent

    def test_null_exists(self, harness: Harness) -> None:
        """An entry without a value reads as one that is not set, but is there (JMS 3.1, section 3.11.3)."""
        message = _map_round_trip(harness, {"null": None})
        assert (message.item_exists("null"), message.item_exists("missing")) == (True, False)
        for name in ("null", "missing"):
            assert (message.get_object(name), message.get_string(name), message.get_bytes(name)) == (None, None, None)
            assert message.get_boolean(name) is False
            for read in (message.get_int, message.get_double, message.get_char):
                with pytest.raises(MessageFormatError):
                    read(name)

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """The table holds for what arrives as for what is set (JMS 3.1, section 3.11.3)."""
        message = _map_round_trip(harness, {"s": Short(7), "c": Char("c"), "t": "7.5", "b": b"7"})
        assert (message.get_int("s"), message.get_string("s"), message.get_string("c")) == (7, "7", "c")
        assert message.get_double("t") == 7.5
        for name, read in (("s", message.get_byte), ("c", message.get_int), ("t", message.get_char)):
            with pytest.raises(MessageFormatError):
                read(name)
        with pytest.raises(MessageFormatError):
            message.get_string("b")

    def test_empty_map_arrives(self, harness: Harness) -> None:
        """A map without entries is still a map message (JMS 3.1, section 3.11.4)."""
        message = _map_round_trip(harness, {})
        assert (message.body, message.get_map_names()) == ({}, [])

    def test_received_map_is_read_only(self, harness: Harness) -> None:
        """By method and by mapping, until the body is cleared (JMS 3.1, section 3.11.2)."""
        message = _map_round_trip(harness, {"a": 1})
        with pytest.raises(MessageNotWriteableError):
            message.set_int("a", 2)
        with pytest.raises(MessageNotWriteableError):
            message.body["a"] = 2
        with pytest.raises(MessageNotWriteableError):
            del message.body["a"]
        with pytest.raises(MessageNotWriteableError):
            message.body = {"a": 2}
        assert message.body == {"a": 1}

    def test_cleared_map_is_empty_and_can_be_sent(self, harness: Harness) -> None:
        """Properties and headers stay (JMS 3.1, section 3.11.1)."""
        message = _map_round_trip(harness, {"a": 1}, correlation_id="c", properties={"p": 1})
        message.clear_body()
        assert message.body == {}
        message.set_int("b", 2)
        got = harness.round_trip(message)
        assert (got.body, got.correlation_id, dict(got.properties)) == ({"b": 2}, "c", {"p": 1})

    def test_map_changed_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """The sender keeps its message, to change it and to send it again (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = MapMessage({"a": 1})
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.body["a"] = 2
        unit.send(prepare(message, queue), queue)
        message.body.clear()
        unit.commit()
        deliveries = harness.gather(harness.connection.consumer(queue), 2)
        assert [delivery.message.body for delivery in deliveries] == [{"a": 1}, {"a": 2}]

    def test_received_map_can_be_sent_on(self, harness: Harness) -> None:
        """Forwarding needs no copy, and changes no type."""
        sent: dict[str, object] = {"s": Short(1), "c": Char("c"), "b": b"b", "n": None}
        body = harness.round_trip(_map_round_trip(harness, sent)).body
        assert [(value, type(value)) for value in body.values()] == [(value, type(value)) for value in sent.values()]

    def test_map_is_given_as_a_dictionary(self, harness: Harness) -> None:
        """Changing what `get_body` gave changes nothing in the message (JMS 3.1, sections 3.11 and 3.12)."""
        message = _map_round_trip(harness, {"a": 1})
        message.get_body(dict)["a"] = 2
        assert message.get_body(dict) == {"a": 1}

    def test_map_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is not Unicode text, as name, as text and as char; the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        for body in ({"\ud800": 1}, {"a": "\ud800"}, {"a": Char("\ud800")}):
            with pytest.raises(MessageFormatError):
                unit.send(prepare(MapMessage(body), queue), queue)
        unit.send(prepare(TextMessage("good"), queue), queue)
        unit.commit()
        harness.expect(queue, "good")


def _map_round_trip(
    harness: Harness,
    body: Mapping[str, object],
    *,
    correlation_id: str | None = None,
    properties: Mapping[str, object] | None = None,
) -> MapMessage:
    message = harness.round_trip(MapMessage(body, correlation_id=correlation_id, properties=properties))
    assert isinstance(message, MapMessage)
    return message


class TestStreams(Contract):
    """Typed values in a row (JMS 3.1, section 3.11)."""

    needs = ("structured",)

    def test_every_type_arrives_in_its_place(self, harness: Harness) -> None:
        """Ten types and null, each kept apart from the others (JMS 3.1, section 3.11.3)."""
        sent = (True, Byte(1), None, Short(1), Char("1"), Int(1), Long(1), Float(1), Double(1), "1", b"1", False)
        body = _stream_round_trip(harness, *sent).body
        assert body == sent
        assert [type(value) for value in body] == [type(value) for value in sent]

    def test_written_values_are_read_in_their_order(self, harness: Harness) -> None:
        """Each method of writing has its method of reading (JMS 3.1, section 3.11)."""
        message = StreamMessage()
        message.write_int(1)
        message.write_string("two")
        message.write_bytes(b"three")
        message.write_double(4.5)
        got = _received_stream(harness, message)
        assert (got.read_int(), got.read_string(), got.read_bytes(), got.read_double()) == (1, "two", b"three", 4.5)

    def test_there_is_an_end(self, harness: Harness) -> None:
        """`MessageEOFError` behind the last value, also of a stream without any (JMS 3.1, section 3.11)."""
        message = _stream_round_trip(harness, 1)
        message.read_int()
        for ended in (message, _stream_round_trip(harness)):
            with pytest.raises(MessageEOFError):
                ended.read_object()

    def test_reset_begins_again(self, harness: Harness) -> None:
        """After a reset the values can be read once more (JMS 3.1, section 3.11)."""
        message = _stream_round_trip(harness, 1, 2)
        assert (message.read_int(), message.read_int()) == (1, 2)
        message.reset()
        assert message.read_int() == 1

    def test_a_failed_read_takes_nothing(self, harness: Harness) -> None:
        """The value can be read as another type (JMS 3.1, section 3.11.3)."""
        message = _stream_round_trip(harness, "x", None, 7)
        for read in (message.read_int, message.read_double, message.read_char):
            with pytest.raises(MessageFormatError):
                read()
        assert message.read_string() == "x"
        with pytest.raises(MessageFormatError):
            message.read_long()
        assert message.read_object() is None
        assert message.read_int() == 7

    def test_received_values_convert_by_their_type(self, harness: Harness) -> None:
        """The table holds for what arrives as for what is written (JMS 3.1, section 3.11.3)."""
        message = _stream_round_trip(harness, Short(7), Char("c"), "7", Float(0.5), None)
        with pytest.raises(MessageFormatError):
            message.read_byte()
        assert (message.read_long(), message.read_string(), message.read_short()) == (7, "c", 7)
        assert (message.read_double(), message.read_boolean()) == (0.5, False)

    def test_bytes_are_read_in_pieces(self, harness: Harness) -> None:
        """Nothing else is read before the last piece (JMS 3.1, section 3.11)."""
        message = _stream_round_trip(harness, b"abcde", b"", None, b"fg", "next")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"abc", b"de")
        assert (message.read_bytes(3), message.read_bytes(3)) == (b"", None)
        assert message.read_bytes(2) == b"fg"
        with pytest.raises(MessageFormatError):
            message.read_string()
        assert message.read_bytes(2) is None
        assert message.read_string() == "next"

    def test_neighbouring_bytes_stay_apart(self, harness: Harness) -> None:
        """Each is a separate value (JMS 3.1, section 3.11)."""
        assert _stream_round_trip(harness, b"a", b"b", b"").body == (b"a", b"b", b"")

    def test_received_stream_is_read_only(self, harness: Harness) -> None:
        """Until its body is cleared (JMS 3.1, section 3.11.2)."""
        message = _stream_round_trip(harness, 1)
        with pytest.raises(MessageNotWriteableError):
            message.write_int(2)
        with pytest.raises(MessageNotWriteableError):
            message.body = [2]
        assert message.body == (1,)

    def test_cleared_stream_is_written(self, harness: Harness) -> None:
        """It is empty and cannot be read before `reset`; properties stay (JMS 3.1, section 3.11.1)."""
        message = _received_stream(harness, StreamMessage([1], properties={"p": 1}))
        message.clear_body()
        with pytest.raises(MessageNotReadableError):
            message.read_int()
        message.write_string("new")
        got = harness.round_trip(message)
        assert (got.body, dict(got.properties)) == (("new",), {"p": 1})

    def test_half_read_stream_is_sent_on_whole(self, harness: Harness) -> None:
        """Reading does not change a message."""
        message = _stream_round_trip(harness, 1, b"bytes", Short(3))
        message.read_int()
        message.read_bytes(2)
        got = harness.round_trip(message)
        assert (got.body, type_name(got.body[2])) == ((1, b"bytes", 3), "short")

    def test_stream_that_comes_again_begins_again(self, harness: Harness) -> None:
        """Also where it had been read before the rollback (JMS 3.1, section 3.10)."""
        first, second = harness.redelivered(StreamMessage([1, 2]))
        for message in (first, second.message):
            assert isinstance(message, StreamMessage)
            assert message.read_int() == 1

    def test_stream_written_after_send_is_sent_as_it_was(self, harness: Harness) -> None:
        """The sender may write on, and send it again (JMS 3.1, section 3.9)."""
        queue = harness.queue()
        message = StreamMessage([1])
        unit = harness.unit()
        unit.send(prepare(message, queue), queue)
        message.write_int(2)
        unit.send(prepare(message, queue), queue)
        unit.commit()
        deliveries = harness.gather(harness.connection.consumer(queue), 2)
        assert [delivery.message.body for delivery in deliveries] == [(1,), (1, 2)]

    def test_long_stream_arrives(self, harness: Harness) -> None:
        """Only the size of the message is limited."""
        assert _stream_round_trip(harness, *range(10_000)).get_body(list) == list(range(10_000))

    def test_stream_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is not Unicode text; the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        with pytest.raises(MessageFormatError):
            unit.send(prepare(StreamMessage(["\ud800"]), queue), queue)
        unit.send(prepare(TextMessage("good"), queue), queue)
        unit.commit()
        harness.expect(queue, "good")


def _stream_round_trip(harness: Harness, *values: object) -> StreamMessage:
    return _received_stream(harness, StreamMessage(values))


def _received_stream(harness: Harness, message: StreamMessage) -> StreamMessage:
    received = harness.round_trip(message)
    assert isinstance(received, StreamMessage)
    return received


class TestPoison(Contract):
    """Poison: `MessageFormatError` from `Delivery.message`, never from `Consumer.receive`."""

    @pytest.fixture
    def poisoned(self, harness: Harness, jms_poison: Callable[[Queue], None]) -> Queue:
        """Provide a queue of three messages, the second of which cannot be decoded."""
        queue = harness.queue()
        harness.send(queue, "a")
        jms_poison(queue)
        harness.send(queue, "b")
        return queue

    def test_poison_is_received_between_its_neighbours(self, harness: Harness, poisoned: Queue) -> None:
        """It fails when it is looked at, again and again; the body as it came can be read."""
        first, poison, last = harness.gather(harness.connection.consumer(poisoned), 3)
        assert bodies([first, last]) == ["a", "b"]
        for _ in range(2):
            with pytest.raises(MessageFormatError):
                _ = poison.message
        assert isinstance(poison.raw, bytes)
        assert (poison.redelivered, poison.count) in {(False, 1), (False, None)}

    def test_poison_can_be_settled(self, harness: Harness, poisoned: Queue) -> None:
        """It goes like any other message."""
        harness.settle(harness.gather(harness.connection.consumer(poisoned), 2))
        harness.connection.close()
        harness.expect(poisoned, "b")

    def test_poison_can_be_rolled_back(self, harness: Harness, poisoned: Queue) -> None:
        """It is redelivered and marked as such, in order with its neighbours."""
        consumer = harness.connection.consumer(poisoned)
        harness.holding(harness.gather(consumer, 2)).rollback()
        first, poison, last = harness.gather(consumer, 3)
        assert bodies([first, last]) == ["a", "b"]
        assert poison.redelivered

    def test_poison_can_be_moved(self, harness: Harness, poisoned: Queue) -> None:
        """Its bytes go to another queue in the unit that takes it (capability atomic)."""
        harness.require("atomic")
        target = harness.queue()
        first, poison = harness.gather(harness.connection.consumer(poisoned), 2)
        unit = harness.holding([first, poison])
        unit.send(prepare(BytesMessage(poison.raw), target), target)
        unit.commit()
        harness.connection.close()
        harness.expect(poisoned, "b")
        [moved] = harness.gather(harness.connect().consumer(target), 1)
        assert moved.message.body == poison.raw

    def test_poison_hides_nothing_from_a_browser(self, harness: Harness, poisoned: Queue) -> None:
        """The messages behind it are shown (capability browse)."""
        harness.require("browse")
        seen = list(chain.from_iterable(harness.connection.browse(poisoned)))
        assert [_readable(delivery) for delivery in seen] == ["a", None, "b"]


def _readable(delivery: Delivery) -> object:
    try:
        return delivery.message.body
    except MessageFormatError:
        return None
