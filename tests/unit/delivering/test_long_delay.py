"""Delays of more than five seconds, which the original's earlier release refused."""

import queue

import pytest

from jmsjca import Message, Topic
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.redelivery import RedeliveryPolicy
from tests.unit.clocks import HandClock
from tests.unit.delivering.stage import Performance, depth, endpoint_of, put, terms, until
from tests.unit.inbound import PATIENCE


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_a_message_waits_as_long_and_then_is_moved(jms_broker_url, mode):
    """JMSJCA: testDlqMoveCCXALong."""
    clock = HandClock()
    link = connect(ConnectionSettings(jms_broker_url, clock=clock))
    moved = link.consumer(Topic("Topic2"))
    counts: queue.Queue[int | str] = queue.Queue()

    def handler(message: Message) -> None:
        counts.put("poke" if message.body == "poke" else message.redelivery_count)
        if message.body != "poke":
            message.set_rollback_only()

    policy = RedeliveryPolicy.parse("4:6000;5:move(topic:Topic2)")
    performance = Performance(endpoint_of(handler, terms(mode, redelivery=policy, pool_size=1), clock=clock), link)
    put(link, "a")
    assert [counts.get(timeout=PATIENCE) for _ in range(4)] == [0, 1, 2, 3]
    until(lambda: depth(link).scheduled == 1)
    clock.time += 5.9
    put(link, "poke")  # so that the broker looks at its clock
    assert counts.get(timeout=PATIENCE) == "poke"
    clock.time += 0.2
    put(link, "poke")
    assert {counts.get(timeout=PATIENCE) for _ in range(2)} == {"poke", 4}
    [copy] = moved.receive(1, None)
    performance.stop()
    assert copy.message.properties["JMS_Sun_JMSJCA_RedeliveryCount"] == 5
    assert depth(link).total == 0
    link.close()
