"""Cases for receiving: how messages reach a consumer, and in which order."""

from __future__ import annotations

import pytest

from jmsjca.errors import IllegalStateError
from jmsjca.messages import TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies, prepare
from jmsjca.testing.contract.processes import child_process

__all__ = ["TestDelivery", "TestOrdering"]


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
        """A timeout of 0 looks once and gives an empty chunk (JMS 3.1, section 8.5: receiveNoWait)."""
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
        """`wake` lets a receive on another thread return empty: how an endpoint is stopped."""
        consumer = harness.connection.consumer(harness.queue())
        waiting = harness.in_background(consumer.receive, 1, None)
        consumer.wake()
        assert list(waiting.result(PATIENCE)) == []

    def test_wake_before_receive_is_not_lost(self, harness: Harness) -> None:
        """A wake that comes too early ends the next receive, or a stop would hang."""
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
        """A unit's messages appear when it commits, together and behind what was there already."""
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
        """Order.PREFIX: each second unit of a consumer fails once, and the order is that of sending all the same."""
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
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, second, _ = harness.gather(consumer, 3)
        harness.settle([first])
        harness.holding([second]).rollback()
        assert bodies(harness.gather(consumer, 2)) == ["b", "c"]

    def test_prefix_commit_leaves_later_ones_held(self, harness: Harness) -> None:
        """Order.PREFIX: a commit settles what the unit took and nothing else."""
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
        """Order.ANY: other handlers work on the later messages; a rollback is no business of theirs."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.ANY, window=0)
        first, *later = harness.gather(consumer, 3)
        harness.holding([first]).rollback()
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        harness.settle(later)
        harness.connection.close()
        harness.expect(queue, "a")
