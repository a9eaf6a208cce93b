"""Cases for messages that cannot be decoded: only who looks at one is affected.

These cases need the fixture ``jms_poison``: a function that puts such a message into a queue behind jmsjca's back. A
provider's test module imports them by name, beside those of `jmsjca.testing.contract`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import pytest

from jmsjca.destinations import Queue
from jmsjca.errors import MessageFormatError
from jmsjca.messages import BytesMessage
from jmsjca.spi import Delivery
from jmsjca.testing.contract.harness import Contract, Harness, bodies, prepare

__all__ = ["TestPoison"]


class TestPoison(Contract):
    """Poison: `MessageFormatError` from `Delivery.message`, never from `Consumer.receive`."""

    @pytest.fixture
    def poisoned(self, harness: Harness, jms_poison: Callable[[Queue], None]) -> Queue:
        """Provide a queue of three messages, the second of which cannot be decoded."""
        queue = harness.queue()
        harness.send(queue, "a")
        jms_poison(queue)
        harness.send(queue, "b")
        return queue

    def test_poison_is_received_between_its_neighbours(self, harness: Harness, poisoned: Queue) -> None:
        """It fails when it is looked at, again and again; the body as it came can be read."""
        first, poison, last = harness.gather(harness.connection.consumer(poisoned), 3)
        assert bodies([first, last]) == ["a", "b"]
        for _ in range(2):
            with pytest.raises(MessageFormatError):
                _ = poison.message
        assert isinstance(poison.raw, bytes)
        assert (poison.redelivered, poison.count) in {(False, 1), (False, None)}

    def test_poison_can_be_settled(self, harness: Harness, poisoned: Queue) -> None:
        """It goes like any other message."""
        harness.settle(harness.gather(harness.connection.consumer(poisoned), 2))
        harness.connection.close()
        harness.expect(poisoned, "b")

    def test_poison_can_be_rolled_back(self, harness: Harness, poisoned: Queue) -> None:
        """It is redelivered and marked as such, in order with its neighbours."""
        consumer = harness.connection.consumer(poisoned)
        harness.holding(harness.gather(consumer, 2)).rollback()
        first, poison, last = harness.gather(consumer, 3)
        assert bodies([first, last]) == ["a", "b"]
        assert poison.redelivered

    def test_poison_can_be_moved(self, harness: Harness, poisoned: Queue) -> None:
        """Its bytes go to another queue in the unit that takes it (capability atomic)."""
        harness.require("atomic")
        target = harness.queue()
        first, poison = harness.gather(harness.connection.consumer(poisoned), 2)
        unit = harness.holding([first, poison])
        unit.send(prepare(BytesMessage(poison.raw), target), target)
        unit.commit()
        harness.connection.close()
        harness.expect(poisoned, "b")
        [moved] = harness.gather(harness.connect().consumer(target), 1)
        assert moved.message.body == poison.raw

    def test_poison_hides_nothing_from_a_browser(self, harness: Harness, poisoned: Queue) -> None:
        """The messages behind it are shown (capability browse)."""
        harness.require("browse")
        seen = list(chain.from_iterable(harness.connection.browse(poisoned)))
        assert [_readable(delivery) for delivery in seen] == ["a", None, "b"]


def _readable(delivery: Delivery) -> object:
    try:
        return delivery.message.body
    except MessageFormatError:
        return None
