"""A unit that sends to many destinations."""

from __future__ import annotations

from jmsjca.testing.contract.harness import Contract, Harness, bodies

__all__ = ["TestManyDestinations"]


class TestManyDestinations(Contract):
    """One commit sends to all of them (JMS 3.1, section 6.2.7)."""

    def test_sends_reach_many_destinations(self, harness: Harness) -> None:
        """One commit sends to queues and to a topic."""
        queues, topic = [harness.queue(), harness.queue()], harness.topic()
        subscriber = harness.connect().consumer(topic)
        unit = harness.unit()
        for to in (*queues, topic, queues[0]):
            harness.note(unit, to, "a")
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
            harness.note(unit, to, str(to))
        unit.commit()
        assert bodies(harness.gather(subscriber, 1)) == [str(topic)]
        for queue in queues:
            consumer = connection.consumer(queue)
            assert bodies(harness.gather(consumer, 1)) == [str(queue)]
            consumer.close()
