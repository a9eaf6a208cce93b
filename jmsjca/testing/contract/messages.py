"""Messages arrive as they were sent: headers, typed properties, bodies."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import MessageFormatError, MessageNotWriteableError
from jmsjca.messages import (
    Byte,
    BytesMessage,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    Message,
    Short,
    TextMessage,
    type_name,
)
from jmsjca.testing.contract.harness import Contract, Harness, moment

__all__ = ["TestBodies", "TestHeaders", "TestProperties"]

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
        got = _through(harness, Message(properties={"p": value})).properties
        assert dict(got) == {"p": value}
        assert value is None or type_name(got["p"]) == type_name(value)
        assert repr(got["p"]) == repr(value)  # tells -0.0 from 0.0

    def test_not_a_number_arrives(self, harness: Harness) -> None:
        """NaN is a value too, of either precision."""
        got = _through(harness, Message(properties={"f": Float(math.nan), "d": math.nan})).properties
        assert {name: (type_name(v), math.isnan(float(v or 0))) for name, v in got.items()} == {
            "f": ("float", True),
            "d": ("double", True),
        }

    def test_names_of_every_kind_arrive(self, harness: Harness) -> None:
        """Identifiers with the signs that the selector syntax allows, vendor and JMSX names, dots."""
        names = ["a", "_a", "$a", "a1", "größe", "JMSXGroupID", "JMS_vendor_x", "JMSJCA.name"]
        sent: dict[str, object] = dict.fromkeys(names, "1")
        assert dict(_through(harness, Message(properties=sent)).properties) == sent

    def test_received_properties_are_read_only(self, harness: Harness) -> None:
        """Setting one needs `clear_properties` first (JMS 3.1, section 3.10)."""
        message = _through(harness, TextMessage("body", properties={"a": 1}))
        with pytest.raises(MessageNotWriteableError):
            message.properties["a"] = 2
        message.clear_properties()
        message.properties["a"] = 2
        assert (dict(message.properties), message.body) == ({"a": 2}, "body")


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
        """JMSDeliveryTime tells the receiver from when on the message could come (JMS 3.1, section 3.4.13)."""
        harness.require("delivery_delay")
        queue, when = harness.queue(), moment(0.01)
        harness.send_messages(queue, Message(), delivery_time=when)
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert delivery.message.delivery_time == when

    def test_headers_that_were_not_set_are_absent(self, harness: Harness) -> None:
        """Absent is None, not a made-up value."""
        message = _through(harness, Message())
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
        received = _through(harness, message)
        assert (type(received), received.body) == (type(message), message.body)

    def test_bytes_that_were_never_set_arrive_as_no_bytes(self, harness: Harness) -> None:
        """A message of bytes is a stream (JMS 3.1, section 3.11): one that holds nothing may arrive as an empty one."""
        received = _through(harness, BytesMessage(None))
        assert type(received) is BytesMessage
        assert not received.body

    def test_received_body_is_read_only(self, harness: Harness) -> None:
        """Changing it needs `clear_body` first (JMS 3.1, section 3.11.2)."""
        message = _through(harness, TextMessage("received"))
        with pytest.raises(MessageNotWriteableError):
            message.body = "changed"
        message.clear_body()
        message.body = "changed"
        assert message.body == "changed"

    def test_received_message_can_be_sent_on(self, harness: Harness) -> None:
        """Forwarding needs no copy."""
        queue = harness.queue()
        received = _through(harness, TextMessage("a", properties={"p": Short(1)}))
        harness.send_messages(queue, received)
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.message.body, type_name(delivery.message.properties["p"])) == ("a", "short")

    def test_text_that_no_broker_can_carry_is_refused(self, harness: Harness) -> None:
        """A lone surrogate is no Unicode text: `MessageFormatError` at the send, and the unit stays usable."""
        queue = harness.queue()
        unit = harness.unit()
        for message in (TextMessage("\ud800"), Message(properties={"p": "\ud800"}), Message(type="\ud800")):
            with pytest.raises(MessageFormatError):
                unit.send(message, queue)
        harness.note(unit, queue, "good")
        unit.commit()
        harness.expect(queue, "good")


def _through(harness: Harness, message: Message) -> Message:
    """The message as it comes out of a queue."""
    queue = harness.queue()
    harness.send_messages(queue, message)
    [delivery] = harness.gather(harness.connection.consumer(queue), 1)
    return delivery.message
