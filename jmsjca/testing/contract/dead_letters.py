"""Cases for messages that fail too often: when they are dead-lettered, where they go, and what the copy records."""

from __future__ import annotations

import math

import pytest

from jmsjca.errors import ConfigurationError
from jmsjca.messages import BytesMessage, DeliveryMode, TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.destinations import Configured, admin_of, configure, fail, failing, reject
from jmsjca.testing.contract.harness import Harness, bodies, moment

__all__ = ["TestDeadLetterPlaces", "TestDeadLetters"]


class TestDeadLetters(Configured):
    """The settings ``max_deliveries`` and ``dead_letter`` (beyond JMS: Artemis' max-delivery-attempts)."""

    def test_message_that_failed_often_enough_goes_there(self, harness: Harness) -> None:
        """A message is dead-lettered after max_deliveries, not before (Artemis; counts: JMS 3.1, section 3.5.11)."""
        queue, dead = failing(harness, max_deliveries=3)
        consumer = harness.connection.consumer(queue, window=0)
        harness.send(queue, *"ab")
        for expected in (1, 2, 3):
            harness.expect(dead)
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.message.body, delivery.count) == ("a", expected)
            harness.holding([delivery]).rollback()
        assert bodies(harness.gather(consumer, 1)) == ["b"]
        harness.expect(dead, "a")

    def test_message_that_succeeds_at_last_stays_away(self, harness: Harness) -> None:
        """The last permitted delivery is an attempt like the others (Artemis' max-delivery-attempts)."""
        queue, dead = failing(harness, max_deliveries=2)
        consumer = harness.connection.consumer(queue, window=0)
        harness.send(queue, "a")
        harness.holding(harness.gather(consumer, 1)).rollback()
        harness.settle(harness.gather(consumer, 1))
        consumer.close()
        harness.expect(queue)
        harness.expect(dead)

    def test_without_dead_letter_destination_it_is_deleted(self, harness: Harness) -> None:
        """``dead_letter=None`` (Artemis: no dead-letter-address)."""
        queue = harness.queue()
        configure(harness, queue, max_deliveries=1)
        fail(harness, queue, "a")
        assert admin_of(harness).depth(queue).total == 0

    def test_without_settings_it_comes_again_and_again(self, harness: Harness) -> None:
        """By default messages are redelivered without a limit (JMS 3.1, section 6.2.10, sets none)."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        for _ in range(20):
            harness.holding(harness.gather(consumer, 1)).rollback()
        assert [d.count for d in harness.gather(consumer, 1)] == [21]

    def test_given_back_is_not_failed(self, harness: Harness) -> None:
        """A released message was not handled, so it does not count as failed (design rule of `Consumer.release`)."""
        harness.require_release("uncounted")
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        for _ in range(3):
            consumer.release(harness.gather(consumer, 1))
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        harness.expect(dead)

    def test_unused_deliveries_of_a_rollback_are_not_failed(self, harness: Harness) -> None:
        """Only the handled messages of a batch have failed (design rule of `Unit.rollback`)."""
        harness.require_release("uncounted")
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        first, second = harness.gather(consumer, 2)
        harness.holding([first, second]).rollback(unused=[second])
        assert bodies(harness.gather(consumer, 1)) == ["b"]
        harness.expect(dead, "a")

    def test_taken_back_behind_a_failed_one_is_not_failed(self, harness: Harness) -> None:
        """Order.PREFIX: later messages are released, which is not an attempt (design rule of `Order`)."""
        harness.require_release("uncounted")
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, window=0, order=Order.PREFIX)
        harness.holding(harness.gather(consumer, 3)[:1]).rollback()
        assert bodies(harness.gather(consumer, 2)) == ["b", "c"]
        harness.expect(dead, "a")

    def test_lost_unit_counts_as_a_failure(self, harness: Harness) -> None:
        """A connection that closes over its open units rolls them back (JMS 3.1, section 6.1.8)."""
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, "a")
        connection = harness.connect()
        harness.handling(connection.consumer(queue), 1, connection)
        connection.close()
        harness.expect(dead, "a")
        harness.expect(queue)

    def test_delayed_rollback_counts_as_a_failure(self, harness: Harness) -> None:
        """The last attempt counts in spite of the delay; the dead letter is not delayed (Artemis' redelivery-delay)."""
        harness.require("redelivery_delay")
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=3600)
        harness.expect(dead, "a")

    def test_all_failed_messages_of_a_unit_go_in_order(self, harness: Harness) -> None:
        """A batch that fails as a whole keeps its order (JMS 3.1, section 6.2.9)."""
        queue, dead = failing(harness, max_deliveries=1)
        fail(harness, queue, *"abcd")
        harness.expect(dead, *"abcd")

    def test_consumer_of_dead_letters_is_woken(self, harness: Harness) -> None:
        """A waiting consumer receives the dead letter at once (design rule: prompt wake-up)."""
        queue, dead = failing(harness, max_deliveries=1)
        waiting = harness.in_background(harness.gather, harness.connect().consumer(dead), 1)
        fail(harness, queue, "a")
        assert bodies(waiting.result()) == ["a"]

    def test_dead_letter_is_the_message_that_failed(self, harness: Harness) -> None:
        """Body, headers and typed properties are unchanged (Artemis copies the message)."""
        queue, dead = failing(harness, max_deliveries=1)
        sent = BytesMessage(b"\0\xff", properties={"s": "x", "n": 1 << 40, "b": True, "inf": math.inf})
        sent.set_byte_property("small", 7)
        sent.set_float_property("f", 0.1)
        sent.correlation_id, sent.type, sent.reply_to = "c", "kind", harness.queue()
        harness.send_messages(queue, sent, priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
        reject(harness, queue)
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        came = delivery.message
        for name in ("body", "message_id", "correlation_id", "type", "reply_to", "priority", "delivery_mode"):
            assert getattr(came, name) == getattr(sent, name)
        assert {name: came.properties[name] for name in sent.properties} == dict(sent.properties)
        assert [type(came.properties[name]) for name in sent.properties] == [type(v) for v in sent.properties.values()]

    def test_dead_letters_come_by_priority(self, harness: Harness) -> None:
        """A message keeps its priority, whenever it failed (JMS 3.1, section 3.4.10)."""
        harness.require("priority")
        queue, dead = failing(harness, max_deliveries=1)
        for body, priority in (("low", 1), ("high", 9)):
            harness.send(queue, body, priority=priority)
            reject(harness, queue)
        harness.expect(dead, "high", "low")

    def test_dead_letter_tells_where_it_comes_from(self, harness: Harness) -> None:
        """In ``_AMQ_ORIG_ADDRESS`` and ``_AMQ_ORIG_MESSAGE_ID``; the destination header is the new queue (Artemis)."""
        queue, dead = failing(harness, max_deliveries=1)
        sent = TextMessage("a")
        harness.send_messages(queue, sent)
        reject(harness, queue)
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        assert delivery.message.destination == dead
        assert dict(delivery.message.properties) == {
            "_AMQ_ORIG_ADDRESS": queue.name,
            "_AMQ_ORIG_MESSAGE_ID": sent.message_id,
            "_AMQ_ORIG_ROUTING_TYPE": 1,
        }

    def test_dead_letter_is_counted_anew(self, harness: Harness) -> None:
        """The delivery count of a dead letter starts again (Artemis; JMS 3.1, section 3.5.11)."""
        queue, dead = failing(harness, max_deliveries=1)
        fail(harness, queue, "a")
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        assert (delivery.count, delivery.redelivered) == (1, False)

    def test_dead_letter_does_not_expire(self, harness: Harness) -> None:
        """A dead letter has no expiration (Artemis copies the message without it)."""
        queue, dead = failing(harness, max_deliveries=1)
        harness.send(queue, "a", expiration=moment(3600))
        reject(harness, queue)
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        assert delivery.message.expiration is None
        assert "_AMQ_ACTUAL_EXPIRY" not in delivery.message.properties

    def test_duplicate_detection_does_not_drop_dead_letters(self, harness: Harness) -> None:
        """Ids of two senders may be equal there (Artemis bypasses the duplicate cache)."""
        harness.require("duplicate_detection")
        queues, dead = [harness.queue(), harness.queue()], harness.queue()
        for queue in queues:
            configure(harness, queue, max_deliveries=1, dead_letter=dead)
            harness.send_messages(queue, TextMessage("a", properties={"_AMQ_DUPL_ID": "1"}))
            reject(harness, queue)
        harness.expect(dead, "a", "a")

    def test_dead_letters_keep_their_groups(self, harness: Harness) -> None:
        """Replayed messages are handled in the same groups (Artemis' message groups)."""
        harness.require("groups")
        queue, dead = failing(harness, max_deliveries=1)
        messages = (TextMessage(body, properties={"JMSXGroupID": body[0]}) for body in ("a1", "b1", "a2"))
        harness.send_messages(queue, *messages)
        reject(harness, queue)
        first, second = (harness.connection.consumer(dead, window=0) for _ in range(2))
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 1)) == ["b1"]
        assert bodies(second.receive(1, 0)) == []
        assert bodies(harness.gather(first, 1)) == ["a2"]


class TestDeadLetterPlaces(Configured):
    """Queues, topics and subscriptions as sources and targets of dead letters (beyond JMS: Artemis' settings)."""

    def test_topic_gives_every_subscriber_a_copy(self, harness: Harness) -> None:
        """A dead-letter destination may be a topic (Artemis: a multicast dead-letter-address)."""
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        consumers = [harness.connection.consumer(dead) for _ in range(2)]
        fail(harness, queue, "a")
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]

    def test_topic_without_subscribers_keeps_nothing(self, harness: Harness) -> None:
        """As for any message to such a topic. The message has still left its queue (JMS 3.1, section 4.2.2)."""
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        fail(harness, queue, "a")
        assert harness.receives_nothing(harness.connection.consumer(dead), dead)
        harness.expect(queue)

    def test_no_local_does_not_hide_dead_letters(self, harness: Harness) -> None:
        """The broker sends dead letters, not a connection (JMS 3.1, section 8.3.1)."""
        harness.require("no_local")
        queue, dead = harness.queue(), harness.topic()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        consumer = harness.connection.consumer(dead, no_local=True)
        fail(harness, queue, "a")
        assert bodies(harness.gather(consumer, 1)) == ["a"]

    def test_subscribers_of_dead_letters_can_select(self, harness: Harness) -> None:
        """They can also select by the properties that the broker adds (JMS 3.1, section 8.3.1)."""
        harness.require("selectors")
        queues, dead = [harness.queue(), harness.queue()], harness.topic()
        consumer = harness.connection.consumer(dead, selector=f"_AMQ_ORIG_ADDRESS = '{queues[1].name}'")
        for queue, body in zip(queues, "ab", strict=True):
            configure(harness, queue, max_deliveries=1, dead_letter=dead)
            fail(harness, queue, body)
        assert bodies(harness.gather(consumer, 1)) == ["b"]

    def test_settings_of_a_topic_hold_for_its_subscriptions(self, harness: Harness) -> None:
        """Each copy is independent: one subscriber fails, the other does not (JMS 3.1, section 4.2.2)."""
        topic, dead = harness.topic(), harness.queue()
        configure(harness, topic, max_deliveries=1, dead_letter=dead)
        failing, other = (harness.connection.consumer(topic) for _ in range(2))
        harness.send(topic, "a")
        harness.holding(harness.gather(failing, 1)).rollback()
        harness.settle(harness.gather(other, 1))
        harness.expect(dead, "a")

    def test_failed_message_of_a_durable_subscription(self, harness: Harness) -> None:
        """It leaves the subscription; the dead letter names its topic (Artemis' dead-letter-address)."""
        harness.require("durable")
        subscription, dead = harness.subscription(), harness.queue()
        configure(harness, subscription.topic, max_deliveries=1, dead_letter=dead)
        connection = harness.connect(subscription.client_id)
        consumer = connection.consumer(subscription)
        harness.send(subscription.topic, "a")
        harness.holding(harness.gather(consumer, 1), connection).rollback()
        assert admin_of(harness).depth(subscription).total == 0
        [delivery] = harness.gather(harness.connection.consumer(dead), 1)
        assert delivery.message.properties["_AMQ_ORIG_ADDRESS"] == subscription.topic.name

    def test_dead_letter_destination_gives_up_as_its_own_settings_say(self, harness: Harness) -> None:
        """It is an ordinary destination: a message may move on, and the dead letter names the last origin."""
        queue, dead, last = harness.queue(), harness.queue(), harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=dead)
        configure(harness, dead, max_deliveries=1, dead_letter=last)
        fail(harness, queue, "a")
        harness.holding(harness.gather(harness.connection.consumer(dead), 1)).rollback()
        [delivery] = harness.gather(harness.connection.consumer(last), 1)
        assert delivery.message.properties["_AMQ_ORIG_ADDRESS"] == dead.name

    def test_destination_that_is_its_own_never_gives_up(self, harness: Harness) -> None:
        """Moving a message to the same queue would only reset its count (design rule: never in circles)."""
        queue = harness.queue()
        configure(harness, queue, max_deliveries=1, dead_letter=queue)
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        for expected in (1, 2, 3):
            [delivery] = harness.gather(consumer, 1)
            assert (delivery.count, "_AMQ_ORIG_ADDRESS" in delivery.message.properties) == (expected, False)
            harness.holding([delivery]).rollback()

    def test_failed_earlier_counts_when_settings_come(self, harness: Harness) -> None:
        """Settings also apply to messages already in the queue; the messages after the failed one arrive at once."""
        queue, dead = harness.queue(), harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue, window=0)
        for _ in range(3):
            harness.holding(harness.gather(consumer, 1)).rollback()
        configure(harness, queue, max_deliveries=2, dead_letter=dead)
        assert bodies(consumer.receive(1, 0)) == ["b"]
        harness.expect(dead, "a")

    def test_temporary_dead_letter_destination_is_refused(self, harness: Harness) -> None:
        """It may be deleted before it is needed (design rule: wrong settings are refused)."""
        harness.require("temporary")
        with pytest.raises(ConfigurationError):
            configure(harness, harness.queue(), max_deliveries=1, dead_letter=harness.connection.temporary("queue"))
