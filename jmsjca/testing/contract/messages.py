"""Text and bytes arrive as they were sent."""

from __future__ import annotations

import pytest

from jmsjca.errors import MessageEOFError, MessageFormatError, MessageNotWriteableError, NotSupportedError
from jmsjca.messages import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    Short,
    StreamMessage,
    TextMessage,
    type_name,
)
from jmsjca.testing.contract.harness import Contract, Harness, prepare
from jmsjca.testing.contract.round_trip import through

__all__ = ["TestBodies"]


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
        received = through(harness, message)
        assert (type(received), received.body) == (type(message), message.body)

    def test_bytes_that_were_never_set_arrive_as_no_bytes(self, harness: Harness) -> None:
        """A message of bytes is a stream (JMS 3.1, section 3.11): one that holds nothing may arrive as an empty one."""
        received = through(harness, BytesMessage(None))
        assert type(received) is BytesMessage
        assert not received.body

    def test_received_body_is_read_only(self, harness: Harness) -> None:
        """Changing it needs `clear_body` first (JMS 3.1, section 3.11.2)."""
        message = through(harness, TextMessage("received"))
        with pytest.raises(MessageNotWriteableError):
            message.body = "changed"
        message.clear_body()
        message.body = "changed"
        assert message.body == "changed"

    def test_received_message_can_be_sent_on(self, harness: Harness) -> None:
        """Forwarding needs no copy."""
        queue = harness.queue()
        received = through(harness, TextMessage("a", properties={"p": Short(1)}))
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

    def test_clearing_the_body_leaves_the_rest(self, harness: Harness) -> None:
        """It becomes that of a new message; properties stay, and stay read-only (JMS 3.1, section 3.11.1)."""
        message = through(harness, TextMessage("a", correlation_id="c", properties={"p": 1}))
        message.clear_body()
        assert (message.body, message.correlation_id, dict(message.properties)) == (None, "c", {"p": 1})
        with pytest.raises(MessageNotWriteableError):
            message.properties["p"] = 2

    def test_cleared_body_is_back_when_the_message_comes_again(self, harness: Harness) -> None:
        """What a consumer changes is its own copy (JMS 3.1, section 3.10)."""
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
        """What one of them changes does not reach the other (JMS 3.1, sections 3.10 and 4.2)."""
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        harness.send(topic, "sent")
        [first], [second] = [harness.gather(consumer, 1) for consumer in consumers]
        first.message.clear_body()
        assert second.message.body == "sent"

    def test_received_bytes_are_read_from_their_beginning(self, harness: Harness) -> None:
        """A received message is ready to be read, not to be written (JMS 3.1, section 3.11)."""
        message = through(harness, BytesMessage(b"\x00\x00\x00\x07\xff"))
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
        assert through(harness, message).body == b"\x00\x01" + b"\x00\x02\xc3\x9f" + b"\xc0" + bytes(7)

    def test_missing_structured_bodies_are_refused(self, harness: Harness) -> None:
        """A broker that cannot carry them gets no message without its body; the unit stays usable."""
        harness.require_lack("structured")
        queue = harness.queue()
        unit = harness.unit()
        for message in (MapMessage({"a": 1}), StreamMessage([1]), ObjectMessage(1), ObjectMessage()):
            with pytest.raises(NotSupportedError):
                unit.send(prepare(message, queue), queue)
        harness.note(unit, queue, "good")
        unit.commit()
        harness.expect(queue, "good")

    def test_body_is_given_as_its_type_only(self, harness: Harness) -> None:
        """`get_body` refuses every type that the body has not (JMS 3.1, section 3.11)."""
        message = through(harness, TextMessage("text"))
        assert message.get_body(str) == "text"
        assert not message.is_body_assignable_to(bytes)
        with pytest.raises(MessageFormatError):
            message.get_body(bytes)
