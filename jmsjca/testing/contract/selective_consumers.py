"""Consumers that pass over messages: in which order they get theirs, and that nothing is passed over for ever."""

from __future__ import annotations

from typing import Any

import pytest

from jmsjca.destinations import Destination
from jmsjca.messages import TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import Contract, Harness, bodies, moment

__all__ = ["TestSelectiveConsumers"]


class TestSelectiveConsumers(Contract):
    """Queues with selecting consumers (JMS 3.1, sections 3.8 and 4.1.2; capability selectors)."""

    @pytest.fixture(autouse=True)
    def _needs_selectors(self, harness: Harness) -> None:
        harness.require("selectors")

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
        """Whatever was looked at and left before it (JMS 3.1, section 3.8)."""
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
        """Behind it the scan had gone on: it goes back (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1 d1")
        consumer = harness.connection.consumer(queue, selector="n = 1", order=Order.PREFIX)
        first, _ = harness.gather(consumer, 2)
        harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 3)) == ["a1", "c1", "d1"]

    def test_given_back_message_comes_first_again(self, harness: Harness) -> None:
        """As if it had never been received (JMS 3.1, section 6.2.9; rule of `Consumer.give_back`)."""
        queue = harness.queue()
        _send(harness, queue, "a1 b2 c1 d1")
        consumer = harness.connection.consumer(queue, selector="n = 1")
        consumer.give_back(harness.gather(consumer, 2))
        assert bodies(harness.gather(consumer, 3)) == ["a1", "c1", "d1"]

    def test_what_another_consumer_gives_back_is_found(self, harness: Harness) -> None:
        """It was not there when this consumer passed its place (JMS 3.1, section 4.1.2)."""
        harness.require("exact_credit")
        harness.require_give_back("uncounted", "counted")
        queue = harness.queue()
        _send(harness, queue, "a1 b1 c1")
        other = harness.connect().consumer(queue, window=0)
        held = harness.gather(other, 2)
        consumer = harness.connection.consumer(queue, selector="n = 1", window=0)
        assert bodies(harness.gather(consumer, 1)) == ["c1"]
        other.give_back(held)
        assert bodies(harness.gather(consumer, 2)) == ["a1", "b1"]

    def test_what_another_connection_lost_is_found(self, harness: Harness) -> None:
        """Its open units give back what they took (JMS 3.1, section 6.1.8)."""
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
        harness.require_give_back("uncounted")
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
        """Others may come and go meanwhile (JMS 3.1, section 8.5)."""
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
    """Send messages whose property ``n`` is their last digit."""
    harness.send_messages(to, *map(_numbered, words.split()), **headers)


def _numbered(word: str) -> TextMessage:
    return TextMessage(word, properties={"n": int(word[-1])})
