"""More bytes than a consumer may take ahead: JMS 3.1 leaves it open how many messages are, section 6.2 asks for all."""

from __future__ import annotations

import pytest

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.messages import TextMessage
from jmsjca.spi import Consumer
from jmsjca.testing.contract.harness import PATIENCE, Contract, Harness, bodies

__all__ = ["TestLargeMessages"]

_LIMITS = Limits(prefetch_messages=50, prefetch_bytes=1024 * 1024)
_BODIES = [f"{number:02}" + "x" * 300_000 for number in range(20)]


class TestLargeMessages(Contract):
    """A consumer that may take fifty messages ahead, but only as many bytes as three of these have."""

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
        """What nobody looked at is there for others (section 6.2.16)."""
        consumer.receive(1, PATIENCE)
        consumer.close()
        other = harness.connect().consumer(queue)
        assert sorted(bodies(harness.gather(other, len(_BODIES)))) == _BODIES

    def test_what_had_no_room_comes_with_the_end_of_asking(self, harness: Harness, consumer: Consumer) -> None:
        """What was on its way is handed over when no more is asked for."""
        first = harness.gather(consumer, 1)
        found = bodies([*first, *consumer.drain()])
        assert found == _BODIES[: len(found)]

    def test_a_rollback_keeps_the_order(self, harness: Harness, queue: Queue) -> None:
        """What went back comes again before what was behind it (section 6.2.9)."""
        connection = harness.connect(limits=_LIMITS)
        consumer = connection.consumer(queue)
        harness.holding(harness.gather(consumer, 2), connection).rollback()
        assert bodies(harness.gather(consumer, len(_BODIES))) == _BODIES
