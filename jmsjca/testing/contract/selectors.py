"""Cases for selectors of consumers, browsers and subscriptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jmsjca.destinations import Destination, Queue
from jmsjca.errors import InvalidSelectorError
from jmsjca.messages import Byte, DeliveryMode, Double, Float, Int, Long, Short, TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = ["TestSelectiveConsumers", "TestSelectiveSubscriptions", "TestSelectors"]


class TestSelectors(Contract):
    """Message selection (JMS 3.1, section 3.8; capability selectors)."""

    needs = ("selectors",)

    @pytest.mark.parametrize(
        ("selector", "selected"),
        [
            ("region = 'EU'", ["a", "c"]),
            ("size > 2", ["b", "c"]),
            ("region = 'EU' AND size > 2", ["c"]),
            ("urgent = TRUE", ["b"]),
            ("region LIKE 'E%' OR size = 3", ["a", "b", "c"]),
        ],
    )
    def test_consumer_gets_what_it_selects(self, harness: Harness, selector: str, selected: list[str]) -> None:
        """Strings, numbers and booleans are compared as what they are."""
        queue = _queue_of_three(harness)
        consumer = harness.connection.consumer(queue, selector=selector)
        chosen = harness.gather(consumer, len(selected))
        assert bodies(chosen) == selected
        harness.settle(chosen)
        harness.connection.close()
        harness.expect(queue, *(body for body in "abc" if body not in selected))

    @pytest.mark.parametrize(
        "selector",
        [
            "JMSPriority = 7",
            "JMSType = 'order'",
            "JMSCorrelationID = 'c-1'",
            "JMSDeliveryMode = 'NON_PERSISTENT'",
            "JMSTimestamp > 0",
            "JMSMessageID LIKE 'ID:%'",
        ],
    )
    def test_headers_can_be_selected(self, harness: Harness, selector: str) -> None:
        """Only these six headers (JMS 3.1, section 3.8.1.1). A missing header matches nothing."""
        if "JMSMessageID" in selector:
            harness.require("exact_selectors")
        queue = harness.queue()
        message = TextMessage("a")
        message.type, message.correlation_id = "order", "c-1"
        harness.send_messages(queue, message, priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
        assert bodies(harness.gather(harness.connection.consumer(queue, selector=selector), 1)) == ["a"]

    def test_missing_property_is_unknown(self, harness: Harness) -> None:
        """Neither equal nor different: only IS NULL is true (JMS 3.1, sections 3.8.1.1 and 3.8.1.2)."""
        harness.require("exact_selectors")
        queue = _queue_of_three(harness)
        harness.send(queue, "without")
        assert _selected(harness, queue, "region <> 'EU'") == ["b"]
        assert _selected(harness, queue, "NOT (region = 'EU')") == ["b"]
        assert _selected(harness, queue, "region IS NULL") == ["without"]

    def test_not_applies_to_the_whole_comparison(self, harness: Harness) -> None:
        """The negation of unknown is unknown (JMS 3.1, sections 3.8.1.1 and 3.8.1.2)."""
        harness.require("exact_selectors")
        queue = _queue_of_three(harness)
        harness.send(queue, "without")
        assert _selected(harness, queue, "NOT region = 'EU'") == ["b"]
        assert _selected(harness, queue, "NOT region IN ('EU') AND NOT region LIKE 'E%'") == ["b"]
        assert _selected(harness, queue, "NOT region IS NULL") == ["a", "b", "c"]
        assert _selected(harness, queue, "'EU' <> region OR nothing = nowhere") == ["b"]
        assert _selected(harness, queue, "NOT size > 1") == ["a"]

    def test_number_is_in_no_list_of_strings_and_not_out_of_it(self, harness: Harness) -> None:
        """IN takes identifiers with a string value (JMS 3.1, section 3.8.1.1)."""
        harness.require("exact_selectors")
        queue = _queue_of_three(harness)
        assert _selected(harness, queue, "size IN ('1') OR size NOT IN ('1')") == []

    def test_numbers_of_all_types_are_compared(self, harness: Harness) -> None:
        """On either side, and as literals of every spelling (JMS 3.1, section 3.8.1.1)."""
        harness.require("exact_selectors")
        queue = harness.queue()
        for number in (Byte(2), Short(2), Int(2), Long(2), Float(2), Double(2)):
            properties = {"n": number, "wide": Double(2), "narrow": Byte(2)}
            harness.send_messages(queue, TextMessage(type(number).__name__, properties=properties))
        everyone = ["Byte", "Short", "Int", "Long", "Float", "Double"]
        for selector in ("2 = n", "n = wide", "narrow = n", "n = 2f", "n > 0L", "n * 2 - 0.5 = 3.5", "wide <= n"):
            assert _selected(harness, queue, selector) == everyone
        assert _selected(harness, queue, "n / 0 > 1 OR NOT n / 0 > 1") == []

    def test_types_are_not_converted(self, harness: Harness) -> None:
        """A string with digits is not a number (JMS 3.1, section 3.8.1.1)."""
        harness.require("exact_selectors")
        queue = harness.queue()
        for value in ("2", 2, 2.0, True):
            harness.send_messages(queue, TextMessage(repr(value), properties={"n": value}))
        assert _selected(harness, queue, "n = 2") == ["2", "2.0"]
        assert _selected(harness, queue, "n = '2'") == ["'2'"]
        assert _selected(harness, queue, "n = TRUE") == ["True"]

    def test_long_numbers_are_exact(self, harness: Harness) -> None:
        """Longs are compared as longs, not as doubles (JMS 3.1, section 3.8.1.1: Java numeric promotion)."""
        queue = harness.queue()
        for n in (2**53, 2**53 + 1, 2**63 - 1):
            harness.send_messages(queue, TextMessage(str(n), properties={"n": n}))
        assert _selected(harness, queue, f"n = {2**53 + 1}") == [str(2**53 + 1)]
        assert _selected(harness, queue, f"n > {2**53 + 1}") == [str(2**63 - 1)]

    def test_strings_are_compared_character_by_character(self, harness: Harness) -> None:
        """Case, blanks, quotes and what looks like SQL are nothing special (JMS 3.1, section 3.8.1.1)."""
        queue, words = harness.queue(), ["o'neil", "O'Neil", "o'neil ", "x' OR '1'='1", "grün", "%"]
        for word in words:
            harness.send_messages(queue, TextMessage(word, properties={"word": word}))
        for word in words:
            quoted = word.replace("'", "''")
            assert _selected(harness, queue, f"word = '{quoted}'") == [word]

    def test_names_are_case_sensitive(self, harness: Harness) -> None:
        """Keywords are not (JMS 3.1, section 3.8.1.1)."""
        queue = _queue_of_three(harness)
        assert _selected(harness, queue, "Region = 'EU' or SIZE > 0") == []
        assert _selected(harness, queue, "region = 'EU' aNd size between 2 and 9") == ["c"]

    def test_empty_selector_selects_all(self, harness: Harness) -> None:
        """An empty text counts as no selector (JMS 3.1, section 3.8.1.1)."""
        queue = _queue_of_three(harness)
        assert bodies(harness.gather(harness.connection.consumer(queue, selector=""), 3)) == ["a", "b", "c"]

    def test_subscriber_gets_what_it_selects(self, harness: Harness) -> None:
        """A subscriber receives only messages that it selects."""
        topic = harness.topic()
        consumer = harness.connection.consumer(topic, selector="region = 'EU'")
        harness.send_messages(topic, *_three())
        assert bodies(harness.gather(consumer, 2)) == ["a", "c"]

    def test_browser_shows_what_it_selects(self, harness: Harness) -> None:
        """Browsers support selectors."""
        harness.require("browse")
        queue = _queue_of_three(harness)
        chunks = list(harness.connection.browse(queue, selector="region = 'EU'"))
        assert [body for chunk in chunks for body in bodies(chunk)] == ["a", "c"]

    def test_invalid_selector_is_refused(self, harness: Harness) -> None:
        """An error when the consumer is made (JMS 3.1, section 3.8.1.1: InvalidSelectorException)."""
        with pytest.raises(InvalidSelectorError):
            harness.connection.consumer(harness.queue(), selector="region = = 'EU'")


def _selected(harness: Harness, queue: Queue, selector: str) -> list[str]:
    """Return the messages that a browser shows; browsing leaves them for the next query."""
    harness.require("browse")
    chunks = harness.connection.browse(queue, selector=selector)
    return [body for chunk in chunks for body in bodies(chunk)]


def _three() -> list[TextMessage]:
    regions = {"a": ("EU", 1, False), "b": ("US", 3, True), "c": ("EU", 5, False)}
    return [
        TextMessage(body, properties={"region": region, "size": size, "urgent": urgent})
        for body, (region, size, urgent) in regions.items()
    ]


def _queue_of_three(harness: Harness) -> Queue:
    queue = harness.queue()
    harness.send_messages(queue, *_three())
    return queue


class TestSelectiveConsumers(Contract):
    """Queues with selecting consumers (JMS 3.1, sections 3.8 and 4.1.2; capability selectors)."""

    needs = ("selectors",)

    def test_not_selected_messages_stay_in_order(self, harness: Harness) -> None:
        """They remain on the queue for others (JMS 3.1, section 4.1.2)."""
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1 d2 e1")
        consumer = harness.connection.consumer(queue, selector="n = 1")
        harness.settle(harness.gather(consumer, 3))
        harness.connection.close()
        harness.expect(queue, "b2", "d2")

    def test_each_consumer_gets_its_own(self, harness: Harness) -> None:
        """Consumers with different selectors share a queue without conflict (JMS 3.1, section 4.1.2)."""
        queue = harness.queue()
        ones, twos = (harness.connection.consumer(queue, selector=f"n = {n}") for n in (1, 2))
        _send(harness, queue, "a1 b2 c2 d1")
        assert bodies(harness.gather(ones, 2)) == ["a1", "d1"]
        assert bodies(harness.gather(twos, 2)) == ["b2", "c2"]

    def test_message_that_is_sent_later_is_found(self, harness: Harness) -> None:
        """It is found whatever was skipped before it (JMS 3.1, section 3.8)."""
        queue = harness.queue()
        consumer = harness.connection.consumer(queue, selector="n = 1")
        for round_ in "abc":
            _send(harness, queue, f"{round_}2 {round_}2 {round_}1")
            assert bodies(harness.gather(consumer, 1)) == [f"{round_}1"]

    def test_order_is_kept_chunk_by_chunk(self, harness: Harness) -> None:
        """However few are asked for at a time, and however many lie between (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        consumer = harness.connection.consumer(queue, selector="n = 1")
        _send(harness, queue, " ".join(f"{n}.{n % 3}" for n in range(300)))
        came: list[str] = []
        for count in (1, 2, 30, 67):
            came += bodies(harness.gather(consumer, count))
        assert came == [f"{n}.1" for n in range(1, 300, 3)]

    def test_higher_priority_comes_first(self, harness: Harness) -> None:
        """Among the selected ones, whenever they were sent (JMS 3.1, section 3.4.10)."""
        harness.require("priority", "exact_credit")
        queue = harness.queue()
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        _send(harness, queue, "a1 b2", priority=4)
        _send(harness, queue, "c2 d1", priority=9)
        _send(harness, queue, "e1 f2", priority=0)
        assert bodies(harness.gather(consumer, 1)) == ["d1"]
        _send(harness, queue, "g1 h2", priority=5)
        assert bodies(harness.gather(consumer, 3)) == ["g1", "a1", "e1"]

    def test_rolled_back_message_comes_first_again(self, harness: Harness) -> None:
        """The scan had passed it, and goes back (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1 d1")
        consumer = harness.connection.consumer(queue, selector="n = 1", order=Order.PREFIX)
        first, _ = harness.gather(consumer, 2)
        harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 3)) == ["a1", "c1", "d1"]

    def test_given_back_message_comes_first_again(self, harness: Harness) -> None:
        """As if it had never been received (JMS 3.1, section 6.2.9; rule of `Consumer.release`)."""
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1 d1")
        consumer = harness.connection.consumer(queue, selector="n = 1")
        consumer.release(harness.gather(consumer, 2))
        assert bodies(harness.gather(consumer, 3)) == ["a1", "c1", "d1"]

    def test_what_another_consumer_gives_back_is_found(self, harness: Harness) -> None:
        """It was not there when this consumer passed its place (JMS 3.1, section 4.1.2)."""
        harness.require("exact_credit")
        harness.require_release("uncounted", "counted")
        queue = harness.queue()
        _send(harness, queue, "a1 b1 c1")
        other = harness.connect().consumer(queue, window=0)
        held = harness.gather(other, 2)
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert bodies(harness.gather(consumer, 1)) == ["c1"]
        other.release(held)
        assert bodies(harness.gather(consumer, 2)) == ["a1", "b1"]

    def test_what_another_connection_lost_is_found(self, harness: Harness) -> None:
        """Its open units release their deliveries (JMS 3.1, section 6.1.8)."""
        harness.require("exact_credit")
        queue, dying = harness.queue(), harness.connect()
        _send(harness, queue, "a1 b1")
        harness.holding(harness.gather(dying.consumer(queue, window=0), 1), dying)
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert bodies(harness.gather(consumer, 1)) == ["b1"]
        dying.close()
        assert bodies(harness.gather(consumer, 1)) == ["a1"]

    def test_message_that_becomes_due_is_found(self, harness: Harness) -> None:
        """It takes its place among those passed over already (JMS 3.1, section 3.4.13)."""
        harness.require("delivery_delay", "exact_credit")
        queue = harness.queue()
        _send(harness, queue, "a1", delivery_time=moment(0.05))
        _send(harness, queue, "b2 c1")
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert sorted(bodies(harness.gather(consumer, 2))) == ["a1", "c1"]

    def test_delayed_rollback_is_found_when_due(self, harness: Harness) -> None:
        """The same for a message that came back with a delay (capability redelivery_delay)."""
        harness.require("redelivery_delay", "exact_credit")
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1")
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        harness.holding(harness.gather(consumer, 1)).rollback(delay=0.05)
        assert sorted(bodies(harness.gather(consumer, 2))) == ["a1", "c1"]

    def test_consumer_that_closes_leaves_its_messages_to_others(self, harness: Harness) -> None:
        """Of the same selector, in order (JMS 3.1, sections 4.1.2 and 8.8)."""
        harness.require_release("uncounted")
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1")
        first = harness.connection.consumer(queue, selector="n = 1")
        harness.gather(first, 2)
        first.close()
        again = harness.gather(harness.connect().consumer(queue, selector="n = 1"), 2)
        assert [(d.message.body, d.redelivered) for d in again] == [("a1", False), ("c1", False)]

    def test_two_consumers_of_one_selector_compete(self, harness: Harness) -> None:
        """Each message goes to one of them (JMS 3.1, section 4.1.2)."""
        harness.require("exact_credit")
        queue = harness.queue()
        first, second = (harness.connect().consumer(queue, selector="n = 1", window=0) for _ in range(2))
        _send(harness, queue, "a1 b2 c1 d1 e2 f1")
        shares = [bodies(harness.gather(first, 1)), bodies(harness.gather(second, 2)), bodies(harness.gather(first, 1))]
        assert shares == [["a1"], ["c1", "d1"], ["f1"]]

    def test_waiting_receive_wakes_for_what_it_selects(self, harness: Harness) -> None:
        """Other messages may arrive and leave during the wait (JMS 3.1, section 8.5)."""
        queue = harness.queue()
        consumer = harness.connection.consumer(queue, selector="n = 1")
        waiting = harness.in_background(harness.gather, consumer, 1)
        other = harness.connect()
        for word in ("a2", "b2", "c1"):
            unit = harness.unit(other)
            unit.send(_numbered(word), queue)
            unit.commit()
        assert bodies(waiting.result()) == ["c1"]


def _send(harness: Harness, to: Destination, words: str, **headers: Any) -> None:
    """Send messages with their last digit as property ``n``."""
    harness.send_messages(to, *map(_numbered, words.split()), **headers)


def _numbered(word: str) -> TextMessage:
    return TextMessage(word, properties={"n": int(word[-1])})


class TestSelectiveSubscriptions(Contract):
    """Selectors of subscriptions (JMS 3.1, sections 4.2.2 and 8.3; capability selectors)."""

    needs = ("selectors",)

    def test_each_subscriber_selects_for_itself(self, harness: Harness) -> None:
        """One message may be for several, for one or for none (JMS 3.1, section 4.2.2)."""
        topic = harness.topic()
        selectors = ("n < 3", "n > 1", None)
        consumers = [harness.connection.consumer(topic, selector=selector) for selector in selectors]
        _publish(harness, topic, 1, 2, 3)
        came = [bodies(harness.gather(consumer, count)) for consumer, count in zip(consumers, (2, 2, 3), strict=True)]
        assert came == [["1", "2"], ["2", "3"], ["1", "2", "3"]]

    def test_message_that_nobody_selects_is_gone(self, harness: Harness) -> None:
        """It is not an error, and comes to no later subscriber (JMS 3.1, section 8.3.1)."""
        topic = harness.topic()
        harness.connection.consumer(topic, selector="n = 9")
        _publish(harness, topic, 1)
        late = harness.connection.consumer(topic, selector="n < 9")
        _publish(harness, topic, 2)
        assert bodies(harness.gather(late, 1)) == ["2"]

    def test_headers_can_be_selected(self, harness: Harness) -> None:
        """When a message is sent they are as known as its properties (JMS 3.1, section 3.8.1.1)."""
        harness.require("priority")
        topic = harness.topic()
        selector = "JMSPriority > 6 AND JMSDeliveryMode = 'NON_PERSISTENT'"
        consumer = harness.connection.consumer(topic, selector=selector)
        for priority, mode in ((9, DeliveryMode.PERSISTENT), (1, DeliveryMode.NON_PERSISTENT)):
            harness.send(topic, "other", priority=priority, delivery_mode=mode)
        harness.send(topic, "selected", priority=7, delivery_mode=DeliveryMode.NON_PERSISTENT)
        assert bodies(harness.gather(consumer, 1)) == ["selected"]

    def test_durable_one_selects_while_it_is_inactive(self, harness: Harness) -> None:
        """It is the subscription that has the selector, not its consumer (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 2").close()
        _publish(harness, subscription.topic, 1, 2, 3)
        consumer = connection.consumer(subscription, selector="n = 2")
        _publish(harness, subscription.topic, 1, 2)
        assert bodies(harness.gather(consumer, 2)) == ["2", "2"]

    def test_another_selector_makes_a_durable_one_anew(self, harness: Harness) -> None:
        """As good as unsubscribing: what waited goes (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 1").close()
        _publish(harness, subscription.topic, 1)
        consumer = connection.consumer(subscription, selector="n > 0")
        _publish(harness, subscription.topic, 2)
        assert bodies(harness.gather(consumer, 1)) == ["2"]

    @pytest.mark.parametrize("selectors", [("n = 1", "n > 0"), ("n = 1", None), (None, "n > 1")])
    def test_another_connection_with_another_selector_makes_it_anew(
        self, harness: Harness, selectors: tuple[str | None, str | None]
    ) -> None:
        """Also a client that starts again with another selector, or without one (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        first, then = selectors
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector=first).close()
        connection.close()
        _publish(harness, subscription.topic, 1)
        consumer = harness.connect(subscription.client_id).consumer(subscription, selector=then)
        _publish(harness, subscription.topic, 2)
        assert bodies(harness.gather(consumer, 1)) == ["2"]

    def test_another_connection_with_the_same_selector_goes_on(self, harness: Harness) -> None:
        """Nothing changed, so what waits is kept (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        selector = " n >= 2 AND (word = 'it''s: \\ \u00e9' OR n < 9) "
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector=selector).close()
        connection.close()
        _publish(harness, subscription.topic, 1, 2, 3)
        consumer = harness.connect(subscription.client_id).consumer(subscription, selector=selector)
        assert bodies(harness.gather(consumer, 2)) == ["2", "3"]

    def test_wrong_selector_leaves_a_durable_one_as_it_is(self, harness: Harness) -> None:
        """A consumer that is refused changes nothing (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 1").close()
        connection.close()
        _publish(harness, subscription.topic, 1)
        connection = harness.connect(subscription.client_id)
        with pytest.raises(InvalidSelectorError):
            connection.consumer(subscription, selector="n = = 1")
        connection.close()
        consumer = harness.connect(subscription.client_id).consumer(subscription, selector="n = 1")
        assert bodies(harness.gather(consumer, 1)) == ["1"]

    def test_not_selected_message_is_not_counted(self, harness: Harness) -> None:
        """It is not added to the subscription, so it takes no room (JMS 3.1, section 4.2.2)."""
        harness.require("durable", "admin")
        subscription = harness.subscription()
        harness.connect(subscription.client_id).consumer(subscription, selector="n = 2")
        _publish(harness, subscription.topic, 1, 2, 3)
        admin = harness.connection.admin()
        assert admin is not None
        assert admin.depth(subscription).total == 1

    def test_names_of_two_clients_select_apart(self, harness: Harness) -> None:
        """A selector belongs to one subscription of one client (JMS 3.1, sections 6.1.2 and 8.3.3)."""
        harness.require("durable")
        mine = harness.subscription()
        other = replace(mine, client_id=harness.subscription().client_id)
        consumers = [
            harness.connect(subscription.client_id).consumer(subscription, selector=f"n = {n}")
            for subscription, n in ((mine, 1), (other, 2))
        ]
        _publish(harness, mine.topic, 1, 2)
        assert [bodies(harness.gather(consumer, 1)) for consumer in consumers] == [["1"], ["2"]]

    def test_removed_subscription_begins_without_selector(self, harness: Harness) -> None:
        """Nothing of it is left (JMS 3.1, section 8.3.3)."""
        harness.require("durable")
        subscription = harness.subscription()
        connection = harness.connect(subscription.client_id)
        connection.consumer(subscription, selector="n = 1").close()
        connection.remove(subscription)
        consumer = connection.consumer(subscription)
        _publish(harness, subscription.topic, 2)
        assert bodies(harness.gather(consumer, 1)) == ["2"]


def _publish(harness: Harness, to: Destination, *numbers: int) -> None:
    harness.send_messages(to, *(TextMessage(str(n), properties={"n": n}) for n in numbers))
