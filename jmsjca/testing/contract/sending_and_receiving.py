"""Cases for sending and receiving: options of sends, the order of messages, and prefetched ones."""

from __future__ import annotations

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import IllegalStateError
from jmsjca.messages import TextMessage
from jmsjca.spi import Consumer, Order
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies, moment, prepare
from jmsjca.testing.contract.processes import child_process

__all__ = [
    "TestDelivery",
    "TestDuplicates",
    "TestGiveBack",
    "TestLargeMessages",
    "TestManyDestinations",
    "TestOrdering",
    "TestSending",
]


class TestDelivery(Contract):
    """`Consumer.receive`: chunks, waiting, waking (design rule: messages cross threads in chunks)."""

    def test_chunk_is_in_order_and_within_its_limit(self, harness: Harness) -> None:
        """A chunk holds no more than was asked for, in the order of sending (JMS 3.1, section 6.2.9)."""
        queue = harness.queue()
        harness.send(queue, *"abcde")
        consumer = harness.connection.consumer(queue)
        chunk = consumer.receive(3, PATIENCE)
        assert 1 <= len(chunk) <= 3
        assert bodies(chunk) == list("abcde")[: len(chunk)]

    def test_all_messages_come_once(self, harness: Harness) -> None:
        """Point to point: each message goes to one consumer, none is left out (JMS 3.1, section 4.1.2)."""
        queue = harness.queue()
        sent = [str(n) for n in range(500)]
        harness.send(queue, *sent)
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, 500)) == sent
        assert harness.receives_nothing(consumer, queue)

    def test_zero_timeout_does_not_wait(self, harness: Harness) -> None:
        """A timeout of 0 returns an empty chunk at once (JMS 3.1, section 8.5: receiveNoWait)."""
        assert list(harness.connection.consumer(harness.queue()).receive(10, 0)) == []

    def test_receive_ends_when_its_time_runs_out(self, harness: Harness) -> None:
        """An empty chunk after the timeout, not an exception (JMS 3.1, section 8.5)."""
        assert list(harness.connection.consumer(harness.queue()).receive(10, 0.01)) == []

    def test_exact_credit(self, harness: Harness) -> None:
        """With window 0 a consumer takes what it asked for; the rest is free for others (capability exact_credit)."""
        harness.require("exact_credit")
        queue = harness.queue()
        harness.send(queue, *"abc")
        first = harness.connection.consumer(queue, window=0)
        assert bodies(harness.gather(first, 1)) == ["a"]
        second = harness.connect().consumer(queue, window=0)
        assert bodies(harness.gather(second, 2)) == ["b", "c"]

    def test_credit_is_exact_after_fewer_than_asked_for(self, harness: Harness) -> None:
        """A receive that returns fewer messages than its limit leaves no credit behind (capability exact_credit)."""
        harness.require("exact_credit")
        queue = harness.queue()
        first = harness.connection.consumer(queue, window=0)
        harness.send(queue, "a")
        assert bodies(first.receive(5, PATIENCE)) == ["a"]
        harness.send(queue, *"bcd")
        second = harness.connect().consumer(queue, window=0)
        assert bodies(harness.gather(second, 3)) == ["b", "c", "d"]

    def test_credit_is_exact_after_nothing(self, harness: Harness) -> None:
        """A receive that ended empty takes nothing behind its caller's back (capability exact_credit)."""
        harness.require("exact_credit")
        queue = harness.queue()
        first = harness.connection.consumer(queue, window=0)
        assert list(first.receive(5, 0)) == []
        harness.send(queue, *"ab")
        second = harness.connect().consumer(queue, window=0)
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_credit_is_exact_after_a_rollback(self, harness: Harness) -> None:
        """The next receiver gets the messages of a rollback (capability exact_credit)."""
        harness.require("exact_credit")
        harness.require_release("uncounted", "counted")
        queue = harness.queue()
        harness.send(queue, *"ab")
        first = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(first, 1)).rollback()
        second = harness.connect().consumer(queue, window=0)
        assert bodies(harness.gather(second, 2)) == ["a", "b"]

    def test_competing_consumers_never_share_a_message(self, harness: Harness) -> None:
        """A message that one consumer holds is not delivered to another (JMS 3.1, section 4.1.2)."""
        harness.require("exact_credit")
        queue = harness.queue()
        harness.send(queue, *"abcd")
        consumers = [harness.connect().consumer(queue, window=0) for _ in range(4)]
        held = [bodies(harness.gather(consumer, 1))[0] for consumer in consumers]
        assert sorted(held) == list("abcd")

    def test_first_delivery_is_not_redelivered(self, harness: Harness) -> None:
        """JMSXDeliveryCount begins with 1, JMSRedelivered is false (JMS 3.1, sections 3.4.7 and 3.5.11)."""
        harness.require("delivery_count")
        queue = harness.queue()
        harness.send(queue, "a")
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert (delivery.count, delivery.redelivered) == (1, False)
        assert (delivery.message.delivery_count, delivery.message.redelivered) == (1, False)

    def test_send_on_another_connection_wakes_a_waiting_receive(self, harness: Harness) -> None:
        """A receive that waits for ever ends with the next message (JMS 3.1, section 8.5)."""
        queue = harness.queue()
        waiting = harness.in_background(harness.connect().consumer(queue).receive, 1, PATIENCE)
        harness.send(queue, "a")
        assert bodies(waiting.result(PATIENCE)) == ["a"]

    def test_send_in_another_process_wakes_a_waiting_receive(self, harness: Harness) -> None:
        """Processes share the destinations of a broker (capability shared_between_processes)."""
        harness.require("shared_between_processes")
        queue = harness.queue()
        waiting = harness.in_background(harness.connection.consumer(queue).receive, 1, PATIENCE)
        with child_process(harness, 'send(connected(), "from afar", Queue(names[0]))', queue.name):
            assert bodies(waiting.result(PATIENCE)) == ["from afar"]

    def test_wake_ends_a_waiting_receive(self, harness: Harness) -> None:
        """`wake` makes a receive on another thread return empty; this is how an endpoint is stopped."""
        consumer = harness.connection.consumer(harness.queue())
        waiting = harness.in_background(consumer.receive, 1, None)
        consumer.wake()
        assert list(waiting.result(PATIENCE)) == []

    def test_wake_before_receive_is_not_lost(self, harness: Harness) -> None:
        """A wake before the receive ends the next receive. Otherwise a stop would hang."""
        consumer = harness.connection.consumer(harness.queue())
        consumer.wake()
        assert list(harness.in_background(consumer.receive, 1, None).result(PATIENCE)) == []

    def test_closing_the_consumer_ends_a_waiting_receive(self, harness: Harness) -> None:
        """Closing a consumer lets its blocked receive return (JMS 3.1, section 8.8)."""
        consumer = harness.connection.consumer(harness.queue())
        waiting = harness.waiting(consumer.receive, 1, None)
        consumer.close()
        assert list(waiting.result(PATIENCE)) == []

    def test_raw_body_is_readable_without_decoding(self, harness: Harness) -> None:
        """`Delivery.raw` gives the stored body as bytes: what staging and dead-lettering of poison need."""
        queue = harness.queue()
        harness.send(queue, "köln")
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert isinstance(delivery.raw, bytes)
        assert "köln".encode() in delivery.raw

    def test_size_is_that_of_the_whole_message(self, harness: Harness) -> None:
        """`Delivery.size` counts bodies and properties, so that a reader can bound its memory."""
        queue = harness.queue()
        harness.send(queue, "a", "b" * 1000)
        unit = harness.connection.unit(atomic=False)
        unit.send(prepare(TextMessage("c", properties={"large": "c" * 1000}), queue), queue)
        unit.commit(confirmed=True)
        small, *large = (delivery.size for delivery in harness.gather(harness.connection.consumer(queue), 3))
        assert 0 < small < 1000
        assert all(small + 900 < size < small + 1500 for size in large)

    def test_delivery_without_its_content_can_be_settled_or_returned(self, harness: Harness) -> None:
        """`Delivery.drop_content` frees memory here: the broker still has the message, whole."""
        queue = harness.queue()
        harness.send(queue, "a", "b")
        connection = harness.connect()
        consumer = connection.consumer(queue, order=Order.ANY)
        first, second = harness.gather(consumer, 2)
        first.drop_content()
        second.drop_content()
        harness.settle([first], connection)
        consumer.close()
        connection.close()
        harness.expect(queue, "b")


class TestOrdering(Contract):
    """Messages of one sender stay in order (JMS 3.1, section 6.2.9), and `Order` says what a rollback does to it."""

    def test_order_of_sending_is_kept(self, harness: Harness) -> None:
        """First in, first out: within one unit and from one unit to the next."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        harness.send(queue, *"de")
        assert bodies(harness.gather(harness.connection.consumer(queue), 5)) == list("abcde")

    def test_order_of_commits_decides(self, harness: Harness) -> None:
        """The messages of a unit appear when it commits, together and after the messages already there."""
        queue = harness.queue()
        early, late = harness.unit(), harness.unit()
        harness.record(early, queue, "a", "b")
        harness.record(late, queue, "c", "d")
        late.commit()
        early.commit()
        assert bodies(harness.gather(harness.connection.consumer(queue), 4)) == ["c", "d", "a", "b"]

    def test_prefix_rollback_brings_later_ones_back_behind(self, harness: Harness) -> None:
        """Order.PREFIX: a rollback takes back what came later, so the failed message comes first again."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, *_ = harness.gather(consumer, 3)
        harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 3)) == ["a", "b", "c"]

    @pytest.mark.parametrize("window", [None, 0, 1, 100])
    def test_prefix_rollback_overtakes_what_is_on_its_way(self, harness: Harness, window: int | None) -> None:
        """Order.PREFIX: prefetched messages come behind the failed one, repeatedly."""
        queue, sent = harness.queue(), [str(n) for n in range(30)]
        harness.send(queue, *sent)
        consumer = harness.connection.consumer(queue, order=Order.PREFIX, window=window)
        for _ in range(3):
            first, *_ = harness.gather(consumer, 2)
            assert first.message.body == "0"
            harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 30)) == sent

    def test_prefix_rollback_between_commits(self, harness: Harness) -> None:
        """Order.PREFIX: every second unit of a consumer fails once, and the order of sending is kept."""
        queue, sent = harness.queue(), [str(n) for n in range(20)]
        harness.send(queue, *sent)
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        for begin in range(0, 20, 4):
            harness.settle(chunk := harness.gather(consumer, 2))
            assert bodies(chunk) == sent[begin : begin + 2]
            harness.holding(harness.gather(consumer, 2)).rollback()
            harness.settle(chunk := harness.gather(consumer, 2))
            assert bodies(chunk) == sent[begin + 2 : begin + 4]
        harness.connection.close()
        harness.expect(queue)

    def test_prefix_rollback_of_several_open_units(self, harness: Harness) -> None:
        """Order.PREFIX: units that end in the order of receipt leave the rest in that order."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"abcdef")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        units = [harness.holding([delivery]) for delivery in harness.gather(consumer, 4)]
        units[0].commit()
        for unit in units[1:]:
            unit.rollback()
        assert bodies(harness.gather(consumer, 5)) == ["b", "c", "d", "e", "f"]

    def test_prefix_rollback_does_not_count_later_ones(self, harness: Harness) -> None:
        """Order.PREFIX: later messages were not handled, so they are not counted."""
        harness.require("delivery_count")
        harness.require_release("uncounted")
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, *_ = harness.gather(consumer, 3)
        harness.holding([first]).rollback()
        assert [d.count for d in harness.gather(consumer, 3)] == [2, 1, 1]

    def test_prefix_rollback_makes_later_deliveries_useless(self, harness: Harness) -> None:
        """Order.PREFIX: a delivery that was taken back cannot be handled out of order any more."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        first, second = harness.gather(harness.connection.consumer(queue, order=Order.PREFIX), 2)
        harness.holding([first]).rollback()
        with pytest.raises(IllegalStateError):
            harness.unit().take([second])

    def test_prefix_rollback_leaves_earlier_ones_alone(self, harness: Harness) -> None:
        """Order.PREFIX: what was settled before the failed message stays settled."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, second, _ = harness.gather(consumer, 3)
        harness.settle([first])
        harness.holding([second]).rollback()
        assert bodies(harness.gather(consumer, 2)) == ["b", "c"]

    def test_prefix_commit_leaves_later_ones_held(self, harness: Harness) -> None:
        """Order.PREFIX: a commit settles what the unit took and nothing else."""
        harness.require_any_unit()
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, *later = harness.gather(consumer, 3)
        harness.settle([first])
        assert harness.receives_nothing(consumer, queue)
        harness.settle(later)
        harness.connection.close()
        harness.expect(queue)

    def test_any_rollback_leaves_later_ones_held(self, harness: Harness) -> None:
        """Order.ANY: other handlers work on the later messages, so a rollback does not affect them."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.ANY, window=0)
        first, *later = harness.gather(consumer, 3)
        harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        for delivery in later:
            harness.settle([delivery])
        harness.connection.close()
        harness.expect(queue, "a")


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
        harness.require_any_unit()
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
        harness.require_any_unit()
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


_DUPLICATE_ID = "_AMQ_DUPL_ID"


class TestSending(Contract):
    """Priority, expiry and delivery delay."""

    def test_higher_priority_comes_first(self, harness: Harness) -> None:
        """Expedited messages before normal ones, in order within one priority (JMS 3.1, section 3.4.10)."""
        harness.require("priority")
        queue = harness.queue()
        for priority, texts in ((4, "ab"), (9, "cd"), (0, "e"), (5, "f")):
            harness.send(queue, *texts, priority=priority)
        assert bodies(harness.gather(harness.connection.consumer(queue), 6)) == ["c", "d", "f", "a", "b", "e"]

    def test_rollback_keeps_the_place_of_a_priority(self, harness: Harness) -> None:
        """A redelivered message keeps its priority."""
        harness.require("priority")
        queue = harness.queue()
        harness.send(queue, "low", priority=1)
        harness.send(queue, "high", priority=8)
        consumer = harness.connection.consumer(queue, window=0)
        harness.holding(harness.gather(consumer, 1)).rollback()
        assert bodies(harness.gather(consumer, 2)) == ["high", "low"]

    def test_expired_message_is_not_delivered(self, harness: Harness) -> None:
        """A client does not receive an expired message (JMS 3.1, section 3.4.9)."""
        queue = harness.queue()
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young", expiration=moment(3600))
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, 1)) == ["young"]
        assert harness.receives_nothing(consumer, queue)

    def test_expired_message_is_not_browsed(self, harness: Harness) -> None:
        """A browser does not show expired messages (JMS 3.1, section 3.4.9)."""
        harness.require("browse")
        queue = harness.queue()
        harness.send(queue, "old", expiration=moment(-1))
        harness.send(queue, "young")
        shown = [d.message.body for chunk in harness.connection.browse(queue) for d in chunk]
        assert shown == ["young"]

    def test_delayed_message_is_not_delivered_before(self, harness: Harness) -> None:
        """A message waits for its delivery time, others do not wait for it (JMS 3.1, section 3.4.13)."""
        harness.require("delivery_delay")
        queue = harness.queue()
        harness.send(queue, "tomorrow", delivery_time=moment(24 * 3600))
        harness.send(queue, "today")
        consumer = harness.connection.consumer(queue)
        assert bodies(harness.gather(consumer, 1)) == ["today"]
        assert harness.receives_nothing(consumer, queue)

    def test_delayed_message_wakes_a_waiting_receive_when_due(self, harness: Harness) -> None:
        """The delivery needs no event other than the passing of time."""
        harness.require("delivery_delay")
        queue = harness.queue()
        consumer = harness.connection.consumer(queue)
        harness.send(queue, "soon", delivery_time=moment(0.05))
        assert bodies(harness.gather(consumer, 1)) == ["soon"]

    def test_delay_applies_to_every_subscriber(self, harness: Harness) -> None:
        """A topic's message is held for all."""
        harness.require("delivery_delay")
        topic = harness.topic()
        consumers = [harness.connection.consumer(topic) for _ in range(2)]
        harness.send(topic, "tomorrow", delivery_time=moment(24 * 3600))
        assert all(harness.receives_nothing(consumer, topic) for consumer in consumers)


class TestDuplicates(Contract):
    """A message sent again with the same ``_AMQ_DUPL_ID`` is dropped (duplicate_detection; the name is Artemis')."""

    def test_message_sent_again_counts_once(self, harness: Harness) -> None:
        """The second unit commits, its message is dropped."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, _named("first", "1"))
        harness.send_messages(queue, _named("again", "1"), _named("other", "2"))
        harness.expect(queue, "first", "other")

    def test_acknowledged_message_is_remembered(self, harness: Harness) -> None:
        """It is remembered even if the first message was consumed in between."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        harness.send_messages(queue, _named("first", "1"))
        harness.expect(queue, "first")
        harness.send_messages(queue, _named("again", "1"))
        harness.expect(queue)

    def test_id_of_a_rolled_back_send_is_free(self, harness: Harness) -> None:
        """A message that was not sent causes no duplicate."""
        harness.require("duplicate_detection")
        queue = harness.queue()
        unit = harness.unit()
        unit.send(_named("never", "1"), queue)
        unit.rollback()
        harness.send_messages(queue, _named("first", "1"))
        harness.expect(queue, "first")

    def test_ids_belong_to_their_destination(self, harness: Harness) -> None:
        """The same id elsewhere is another message."""
        harness.require("duplicate_detection")
        queues = [harness.queue(), harness.queue()]
        for queue in queues:
            harness.send_messages(queue, _named("a", "1"))
        for queue in queues:
            harness.expect(queue, "a")

    def test_messages_without_id_are_never_duplicates(self, harness: Harness) -> None:
        """Messages with equal bodies are not duplicates."""
        queue = harness.queue()
        harness.send(queue, "same", "same")
        harness.expect(queue, "same", "same")


def _named(body: str, duplicate_id: str) -> TextMessage:
    return TextMessage(body, properties={_DUPLICATE_ID: duplicate_id})


class TestManyDestinations(Contract):
    """One commit sends to all of them (JMS 3.1, section 6.2.7)."""

    def test_sends_reach_many_destinations(self, harness: Harness) -> None:
        """One commit sends to queues and to a topic."""
        queues, topic = [harness.queue(), harness.queue()], harness.topic()
        subscriber = harness.connect().consumer(topic)
        unit = harness.unit()
        for to in (*queues, topic, queues[0]):
            harness.record(unit, to, "a")
        unit.commit()
        harness.expect(queues[0], "a", "a")
        harness.expect(queues[1], "a")
        assert bodies(harness.gather(subscriber, 1)) == ["a"]

    def test_sends_reach_more_destinations_than_a_connection_has_links(self, harness: Harness) -> None:
        """Whatever a provider keeps for each destination, the unit is not bounded by it."""
        queues, topic = [harness.queue() for _ in range(70)], harness.topic()
        connection = harness.connect()
        subscriber = connection.consumer(topic)
        unit = harness.unit()
        for to in (*queues, topic):
            harness.record(unit, to, str(to))
        unit.commit()
        assert bodies(harness.gather(subscriber, 1)) == [str(topic)]
        for queue in queues:
            consumer = connection.consumer(queue)
            assert bodies(harness.gather(consumer, 1)) == [str(queue)]
            consumer.close()
