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
        early, late = harness.connection.unit(), harness.connection.unit()
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
        unit = harness.connection.unit()
        unit.take([first])
        unit.rollback()
        assert bodies(harness.gather(consumer, 3)) == ["a", "b", "c"]

    def test_prefix_rollback_does_not_count_later_ones(self, harness: Harness) -> None:
        """Order.PREFIX: nobody looked at what came later, so it is as good as new."""
        harness.require("delivery_count")
        harness.require_give_back("uncounted")
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, *_ = harness.gather(consumer, 3)
        unit = harness.connection.unit()
        unit.take([first])
        unit.rollback()
        assert [d.count for d in harness.gather(consumer, 3)] == [2, 1, 1]

    def test_prefix_rollback_makes_later_deliveries_useless(self, harness: Harness) -> None:
        """Order.PREFIX: a delivery that was taken back cannot be handled out of order any more."""
        queue = harness.queue()
        harness.send(queue, *"ab")
        first, second = harness.gather(harness.connection.consumer(queue, order=Order.PREFIX), 2)
        unit = harness.connection.unit()
        unit.take([first])
        unit.rollback()
        with pytest.raises(IllegalStateError):
            harness.connection.unit().take([second])

    def test_prefix_rollback_leaves_earlier_ones_alone(self, harness: Harness) -> None:
        """Order.PREFIX: what was settled before the failed message stays settled."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, second, _ = harness.gather(consumer, 3)
        harness.settle([first])
        unit = harness.connection.unit()
        unit.take([second])
        unit.rollback()
        assert bodies(harness.gather(consumer, 2)) == ["b", "c"]

    def test_prefix_commit_leaves_later_ones_held(self, harness: Harness) -> None:
        """Order.PREFIX: a commit settles what the unit took and nothing else."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.PREFIX)
        first, *later = harness.gather(consumer, 3)
        harness.settle([first])
        assert harness.nothing_comes(consumer)
        harness.settle(later)
        harness.connection.close()
        assert harness.remaining(queue) == []

    def test_any_rollback_leaves_later_ones_held(self, harness: Harness) -> None:
        """Order.ANY: other handlers work on the later messages; a rollback is no business of theirs."""
        queue = harness.queue()
        harness.send(queue, *"abc")
        consumer = harness.connection.consumer(queue, order=Order.ANY, window=0)
        first, *later = harness.gather(consumer, 3)
        unit = harness.connection.unit()
        unit.take([first])
        unit.rollback()
        assert bodies(harness.gather(consumer, 1)) == ["a"]
        harness.settle(later)
        harness.connection.close()
        assert harness.remaining(queue) == ["a"]
