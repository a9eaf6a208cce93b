"""Message groups beside priorities, selectors, subscriptions and browsers."""

from __future__ import annotations

from jmsjca.destinations import Subscription
from jmsjca.messages import TextMessage
from jmsjca.spi import Order
from jmsjca.testing.contract.grouping import Grouping, grouped, send_groups, two_consumers
from jmsjca.testing.contract.harness import Harness, bodies

__all__ = ["TestGroupsAndOthers"]


class TestGroupsAndOthers(Grouping):
    """``JMSXGroupID`` (JMS 3.1, section 3.5.9; what is done with it is Artemis' way; capability groups)."""

    def test_higher_priority_goes_first_within_a_group(self, harness: Harness) -> None:
        """Groups tell who gets a message, priorities when (JMS 3.1, section 3.4.10)."""
        harness.require("priority")
        queue = harness.queue()
        first, second = two_consumers(harness, queue)
        send_groups(harness, queue, "a1 b1")
        harness.settle([*harness.gather(first, 1), *harness.gather(second, 1)])
        send_groups(harness, queue, "a2 b2", priority=1)
        send_groups(harness, queue, "b3 a3", priority=8)
        assert bodies(harness.gather(first, 2)) == ["a3", "a2"]
        assert bodies(harness.gather(second, 2)) == ["b3", "b2"]

    def test_selector_and_group_hold_together(self, harness: Harness) -> None:
        """What another consumer's group or one's own selector keeps away stays (JMS 3.1, section 3.8)."""
        harness.require("selectors")
        queue = harness.queue()
        first = harness.connection.consumer(queue, selector="even = TRUE", window=0, order=Order.ANY)
        second = harness.connection.consumer(queue, window=0, order=Order.ANY)
        send_groups(harness, queue, "a1 a2 b1")
        assert bodies(harness.gather(first, 1)) == ["a2"]  # and with it the group
        assert bodies(harness.gather(second, 1)) == ["b1"]
        send_groups(harness, queue, "b2 a4")
        assert bodies(harness.gather(first, 1)) == ["a4"]
        assert bodies(harness.gather(second, 1)) == ["b2"]
        first.close()
        assert bodies(harness.gather(second, 3)) == ["a1", "a2", "a4"]

    def test_one_unit_may_hold_many_groups(self, harness: Harness) -> None:
        """More groups than a broker may keep apart: none is lost or doubled (Artemis' message groups)."""
        queue = harness.queue()
        sent = [f"{n}." for n in range(3000)]
        harness.send_messages(queue, *(grouped(body, body) for body in sent))
        first, second = two_consumers(harness, queue)
        came = harness.gather(first, 1000)
        harness.gather(second, 500)
        second.close()
        came += harness.gather(first, 2000)
        assert bodies(came[:1000]) == sent[:1000]
        assert sorted(bodies(came)) == sorted(sent)

    def test_group_properties_come_as_they_were_sent(self, harness: Harness) -> None:
        """The client sets both, the broker neither (JMS 3.1, section 3.5.9)."""
        queue = harness.queue()
        harness.send_messages(queue, TextMessage("a", properties={"JMSXGroupID": "a", "JMSXGroupSeq": 7}))
        [delivery] = harness.gather(harness.connection.consumer(queue), 1)
        assert dict(delivery.message.properties) == {"JMSXGroupID": "a", "JMSXGroupSeq": 7}

    def test_groups_of_a_shared_subscription(self, harness: Harness) -> None:
        """Its consumers compete as those of a queue do (JMS 3.1, section 8.3.2; Artemis' message groups)."""
        harness.require("shared")
        topic = harness.topic()
        first, second = two_consumers(harness, Subscription(topic, topic.name, shared=True, volatile=True))
        send_groups(harness, topic, "a1 b1 a2 b2")
        assert bodies(harness.gather(first, 1)) == ["a1"]
        assert bodies(harness.gather(second, 2)) == ["b1", "b2"]
        assert bodies(harness.gather(first, 1)) == ["a2"]

    def test_browser_shows_all_groups(self, harness: Harness) -> None:
        """It takes nothing, so no group keeps it out or becomes its own (JMS 3.1, section 4.1.6)."""
        harness.require("browse")
        queue = harness.queue()
        send_groups(harness, queue, "a1 b1 a2")
        first, second = two_consumers(harness, queue)
        harness.gather(first, 1)
        shown = [d.message.body for chunk in harness.connection.browse(queue) for d in chunk]
        assert shown[-2:] == ["b1", "a2"]
        assert bodies(harness.gather(second, 1)) == ["b1"]
