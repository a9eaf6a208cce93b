"""The order in which messages come, at first and after a rollback."""

from __future__ import annotations

import pytest

from jmsjca.errors import IllegalStateError
from jmsjca.spi import Order
from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestOrdering"]


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
        harness.note(early, queue, "a", "b")
        harness.note(late, queue, "c", "d")
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
        """Order.PREFIX: messages that were taken ahead come behind the failed one too, again and again."""
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
        """Order.PREFIX: nobody looked at what came later, so it is as good as new."""
        harness.require("delivery_count")
        harness.require_give_back("uncounted")
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
        assert harness.nothing_comes(consumer, queue)
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
