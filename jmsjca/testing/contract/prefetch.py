"""Cases for prefetched messages: how unused ones are released, and bounds in bytes."""

from __future__ import annotations

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError
from jmsjca.messages import TextMessage
from jmsjca.spi import Consumer
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = ["TestGiveBack", "TestLargeMessages"]


class TestGiveBack(Contract):
    """Prefetched messages that were not handled are released uncounted (design rule: they are not attempts)."""

    def test_give_back_does_not_count(self, harness: Harness) -> None:
        """A released message is delivered as if for the first time."""
        harness.require_release("uncounted")
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        consumer.release(harness.gather(consumer, 1))
        [again] = harness.gather(consumer, 1)
        assert (again.count, again.redelivered) == (1, False)

    def test_given_back_is_free_for_others(self, harness: Harness) -> None:
        """Another consumer can receive a released message."""
        harness.require_release("uncounted", "counted")
        harness.require("exact_credit")
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue, window=0)
        consumer.release(harness.gather(consumer, 1))
        assert bodies(harness.gather(harness.connect().consumer(queue), 1)) == ["a"]

    def test_given_back_keeps_its_place(self, harness: Harness) -> None:
        """A released message keeps its position before all later ones (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue)
        first, second = harness.gather(consumer, 2)
        consumer.release([first, second])
        assert bodies(harness.gather(consumer, 3)) == ["a", "b", "c"]

    def test_giving_back_twice_is_refused(self, harness: Harness) -> None:
        """A released delivery cannot be used: that is an error, never a second message."""
        queue = harness.queue()
        harness.send(queue, "a")
        consumer = harness.connection.consumer(queue)
        deliveries = harness.gather(consumer, 1)
        consumer.release(deliveries)
        with pytest.raises(IllegalStateError):
            consumer.release(deliveries)

    def test_closing_gives_back_what_no_unit_took(self, harness: Harness) -> None:
        """Closing a consumer returns its prefetched messages uncounted (design rule of `Consumer.close`)."""
        harness.require_release("uncounted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        harness.gather(consumer, 2)
        consumer.close()
        again = harness.gather(harness.connect().consumer(queue), 2)
        assert [(d.message.body, d.redelivered) for d in again] == [("a", False), ("b", False)]

    def test_closing_leaves_to_the_unit_what_it_took(self, harness: Harness) -> None:
        """A unit outlives the consumer that received its deliveries (JMS 3.1, section 8.8)."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        first, _ = harness.gather(consumer, 2)
        unit = harness.holding([first])
        consumer.close()
        unit.commit()
        harness.connection.close()
        harness.expect(queue, "b")

    def test_closing_gives_the_others_back_at_once(self, harness: Harness) -> None:
        """Deliveries that no unit took are free for other consumers (capability give_back, except local)."""
        harness.require_release("uncounted", "counted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        consumer = harness.connection.consumer(queue)
        first, _ = harness.gather(consumer, 2)
        unit = harness.holding([first])
        consumer.close()
        other = harness.connect().consumer(queue)
        assert bodies(harness.gather(other, 1)) == ["b"]
        assert harness.receives_nothing(other, queue)
        unit.commit()
        harness.connection.close()
        assert harness.receives_nothing(other, queue)

    def test_consumer_may_hold_more_than_its_window(self, harness: Harness) -> None:
        """A window limits the prefetch, not the unsettled messages: a batch may be larger."""
        queue, sent = harness.queue(), [str(n) for n in range(40)]
        harness.send(queue, *sent)
        assert bodies(harness.gather(harness.connection.consumer(queue, window=2), 40)) == sent

    def test_draining_loses_nothing(self, harness: Harness) -> None:
        """`drain` hands over what was on its way; with what was received it is everything."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue)
        held = [*harness.gather(consumer, 1), *consumer.drain()]
        harness.settle(held)
        consumer.close()
        harness.expect(queue, *list("abc")[len(held) :])
        assert bodies(held) == list("abc")[: len(held)]


_LIMITS = Limits(prefetch_messages=50, prefetch_bytes=1024 * 1024)
_BODIES = [f"{number:02}" + "x" * 300_000 for number in range(20)]


class TestLargeMessages(Contract):
    """A consumer with a prefetch of fifty messages and the bytes of three of these."""

    @pytest.fixture
    def queue(self, harness: Harness) -> Queue:
        """A queue with twenty large messages, each sent by itself."""
        queue = harness.queue()
        for body in _BODIES:
            harness.send_messages(queue, TextMessage(body))
        return queue

    @pytest.fixture
    def consumer(self, harness: Harness, queue: Queue) -> Consumer:
        """A consumer of it."""
        return harness.connect(limits=_LIMITS).consumer(queue)

    def test_all_come_in_order(self, harness: Harness, consumer: Consumer) -> None:
        """They come as room is made for them (section 6.2.9)."""
        assert bodies(harness.gather(consumer, len(_BODIES))) == _BODIES

    def test_what_had_no_room_goes_back_with_the_consumer(
        self, harness: Harness, queue: Queue, consumer: Consumer
    ) -> None:
        """Unhandled messages are available to other consumers (section 6.2.16)."""
        consumer.receive(1, PATIENCE)
        consumer.close()
        other = harness.connect().consumer(queue)
        assert sorted(bodies(harness.gather(other, len(_BODIES)))) == _BODIES

    def test_what_had_no_room_comes_with_the_end_of_asking(self, harness: Harness, consumer: Consumer) -> None:
        """Messages in flight are delivered after the consumer revokes its credit."""
        first = harness.gather(consumer, 1)
        found = bodies([*first, *consumer.drain()])
        assert found == _BODIES[: len(found)]

    def test_a_rollback_keeps_the_order(self, harness: Harness, queue: Queue) -> None:
        """Released messages are redelivered before later ones (section 6.2.9)."""
        connection = harness.connect(limits=_LIMITS)
        consumer = connection.consumer(queue)
        harness.holding(harness.gather(consumer, 2), connection).rollback()
        assert bodies(harness.gather(consumer, len(_BODIES))) == _BODIES
