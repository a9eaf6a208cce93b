"""Headers arrive as they were sent."""

from __future__ import annotations

from jmsjca.destinations import Queue, Topic
from jmsjca.messages import DeliveryMode, Message, TextMessage
from jmsjca.testing.contract.harness import Contract, Harness, moment
from jmsjca.testing.contract.round_trip import again, through

__all__ = ["TestHeaders"]


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
        message = through(harness, Message())
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
        message = through(harness, TextMessage("a", correlation_id="old", type="old", reply_to=Queue("old")))
        message.correlation_id, message.type, message.reply_to = "new", None, Topic("new")
        got = through(harness, message)
        assert (got.correlation_id, got.type, got.reply_to) == ("new", None, Topic("new"))

    def test_delivery_count_is_a_property(self, harness: Harness) -> None:
        """JMSXDeliveryCount is 1 at first, more when the message comes again (JMS 3.1, section 3.5.11)."""
        harness.require("delivery_count")
        first, second = again(harness, TextMessage("a"))
        assert first.get_int_property("JMSXDeliveryCount") == 1
        assert second.message.get_int_property("JMSXDeliveryCount") == second.count == 2
        assert "JMSXDeliveryCount" in second.message.get_property_names()
        assert dict(second.message.properties) == {}  # nobody sent it
