"""Messages whose time is over: that nobody sees them, and where they go."""

from __future__ import annotations

import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.messages import TextMessage
from jmsjca.spi import Depth
from jmsjca.testing.contract.configuring import Configured, admin_of, configure
from jmsjca.testing.contract.harness import Harness, bodies, moment

__all__ = ["TestExpiry"]


class TestExpiry(Configured):
    """JMSExpiration (JMS 3.1, section 3.4.9) and the setting ``expiry`` (beyond JMS: Artemis' expiry-address)."""

    def test_expired_message_goes_there(self, harness: Harness) -> None:
        """What has not expired stays (Artemis' expiry-address)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young", expiration=moment(3600))
        harness.expect(queue, "young")
        harness.expect(expired, "old")

    def test_it_goes_although_nobody_consumes_where_it_was(self, harness: Harness) -> None:
        """Who waits at the expiry destination gets it all the same (Artemis scans for it)."""
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        waiting = harness.in_background(harness.gather, harness.connect().consumer(expired), 1)
        harness.send(queue, "old", expiration=moment(-1))
        assert bodies(waiting.result()) == ["old"]

    def test_expired_messages_arrive_in_order(self, harness: Harness) -> None:
        """More than a broker would move at a time (JMS 3.1, section 6.2.9)."""
        queue, expired, sent = harness.queue(), harness.queue(), [str(n) for n in range(250)]
        configure(harness, queue, expiry=expired)
        harness.send(queue, *sent, expiration=moment(-1))
        harness.expect(queue)
        harness.expect(expired, *sent)

    def test_it_is_the_message_that_expired(self, harness: Harness) -> None:
        """Body and properties are those that were sent, and it tells what became of it (Artemis' names)."""
        queue, expired, end = harness.queue(), harness.queue(), moment(-1)
        configure(harness, queue, expiry=expired)
        sent = TextMessage("old", properties={"n": 1 << 40, "s": "x"})
        sent.correlation_id = "c"
        harness.send_messages(queue, sent, expiration=end, priority=2)
        harness.expect(queue)
        [delivery] = harness.gather(harness.connection.consumer(expired), 1)
        came = delivery.message
        assert (came.body, came.correlation_id, came.message_id, came.priority) == ("old", "c", sent.message_id, 2)
        assert (came.expiration, came.destination, delivery.count) == (None, expired, 1)
        assert dict(came.properties) == {
            "n": 1 << 40,
            "s": "x",
            "_AMQ_ORIG_ADDRESS": queue.name,
            "_AMQ_ORIG_MESSAGE_ID": sent.message_id,
            "_AMQ_ACTUAL_EXPIRY": round(end.timestamp() * 1000),
        }

    def test_expiry_destination_may_be_a_topic(self, harness: Harness) -> None:
        """Every subscriber gets a copy (Artemis: a multicast expiry-address)."""
        queue, expired = harness.queue(), harness.topic()
        configure(harness, queue, expiry=expired)
        consumers = [harness.connection.consumer(expired) for _ in range(2)]
        harness.send(queue, "old", expiration=moment(-1))
        harness.expect(queue)
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["old"], ["old"]]

    def test_expired_in_a_durable_subscription(self, harness: Harness) -> None:
        """A subscription retains messages until they expire (JMS 3.1, section 4.2.2); settings are the topic's."""
        harness.require("durable")
        subscription, expired = harness.subscription(), harness.queue()
        configure(harness, subscription.topic, expiry=expired)
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription)
        harness.send(subscription.topic, "old", expiration=moment(-1))
        connection.close()
        harness.expect(subscription)
        harness.expect(expired, "old")

    def test_expired_before_it_is_due(self, harness: Harness) -> None:
        """A delay does not keep it alive (JMS 3.1, sections 3.4.9 and 3.4.13)."""
        harness.require("delivery_delay")
        queue, expired = harness.queue(), harness.queue()
        configure(harness, queue, expiry=expired)
        harness.send(queue, "old", expiration=moment(-1), delivery_time=moment(3600))
        harness.expect(queue)
        harness.expect(expired, "old")

    def test_failed_before_it_expired(self, harness: Harness) -> None:
        """Each message has one end: the dead letter does not expire as well (Artemis' settings)."""
        queue, dead, expired = harness.queue(), harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead, expiry=expired)
        configure(harness, dead, expiry=expired)
        harness.send(queue, "a", expiration=moment(3600))
        harness.holding(harness.gather(harness.connection.consumer(queue), 1)).rollback()
        harness.expect(dead, "a")
        harness.expect(expired)

    def test_expired_message_of_an_expiry_destination(self, harness: Harness) -> None:
        """There messages are sent as to any other; its own would go in circles, so they are deleted."""
        expired = harness.queue()
        configure(harness, expired, expiry=expired)
        harness.send(expired, "old", expiration=moment(-1))
        harness.send(expired, "young")
        harness.expect(expired, "young")

    def test_expired_messages_are_not_counted(self, harness: Harness) -> None:
        """Nobody can get them any more, delayed or not (JMS 3.1, section 3.4.9; design rule of `Depth`)."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "ready")
        harness.send(queue, "later", delivery_time=moment(3600))
        for delivery_time in (None, moment(-2), moment(3600)):
            harness.send(queue, "expired", expiration=moment(-1), delivery_time=delivery_time)
        assert admin_of(harness).depth(queue) == Depth(ready=1, held=0, scheduled=1)

    def test_selecting_consumer_does_not_get_it(self, harness: Harness) -> None:
        """However it comes to its messages (JMS 3.1, sections 3.4.9 and 3.8)."""
        harness.require("selectors")
        queue = harness.queue()
        for body, end in (("old", -1), ("young", 3600)):
            harness.send_messages(queue, TextMessage(body, properties={"n": 1}), expiration=moment(end))
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert bodies(harness.gather(consumer, 1)) == ["young"]

    def test_expired_message_of_a_group(self, harness: Harness) -> None:
        """It leaves its group to the next one (JMS 3.1, section 3.4.9; Artemis' message groups)."""
        harness.require("groups")
        queue = harness.queue()
        for body, end in (("old", -1), ("young", 3600)):
            harness.send_messages(queue, TextMessage(body, properties={"JMSXGroupID": "g"}), expiration=moment(end))
        assert bodies(harness.gather(harness.connection.consumer(queue, window=0), 1)) == ["young"]

    def test_temporary_expiry_destination_is_refused(self, harness: Harness) -> None:
        """It would be gone when it is needed (design rule: wrong settings are refused)."""
        harness.require("temporary")
        with pytest.raises(ConfigurationError):
            configure(harness, harness.queue(), expiry=harness.connection.temporary("queue"))
