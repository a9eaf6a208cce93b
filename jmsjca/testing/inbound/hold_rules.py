"""What held acknowledgement means: who may acknowledge, when, and how often."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import Message, Outcome
from jmsjca.config import ActivationSpec
from jmsjca.errors import IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.hearing import Failed
from jmsjca.testing.inbound.holding import Hands
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestHoldRules"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestHoldRules(Inbound):
    """The rules (JMSJCA manual, hold-until-acknowledge)."""

    def test_settled_when_acknowledged_on_another_thread(self, stage: Stage, mode: str) -> None:
        """Whoever that is."""
        hands = Hands(stage, mode)
        stage.send("a")
        message = hands.take()
        with ThreadPoolExecutor() as other:
            settlement = other.submit(message.acknowledge).result()
        assert settlement.wait(PATIENCE) is Outcome.COMMITTED
        stage.adapter.stop()
        stage.expect_rest(stage.source)

    def test_acknowledged_before_the_handler_returns(self, stage: Stage, mode: str) -> None:
        """The unit waits for the return."""
        outcomes: list[object] = []

        def handler(message: Message) -> None:
            outcomes.append(message.acknowledge().outcome)

        stage.send("a")
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True)
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert outcomes == [None]

    def test_acknowledged_in_a_coroutine(self, stage: Stage, mode: str) -> None:
        """The settlement can be awaited."""

        async def work() -> Outcome:
            return await message.acknowledge()

        hands = Hands(stage, mode)
        stage.send("a")
        message = hands.take()
        assert asyncio.run(work()) is Outcome.COMMITTED

    def test_acknowledging_twice_is_as_once(self, stage: Stage, mode: str) -> None:
        """It stands for no other message of the unit. Also when the unit is settled."""
        hands = Hands(stage, mode, batch_size=2, endpoint_pool_max_size=1)
        stage.send(*"abcd")
        batch, later = hands.take_batch(), hands.take_batch()
        *_, last = [message.acknowledge() for message in (*batch[:1] * 5, *later)]
        assert last.wait(PATIENCE) is Outcome.COMMITTED
        assert batch[0].acknowledge().outcome is None
        *_, last = [message.acknowledge() for message in batch]
        assert last.wait(PATIENCE) is Outcome.COMMITTED
        assert batch[0].acknowledge().outcome is Outcome.COMMITTED

    def test_rolling_back_is_for_before(self, stage: Stage, mode: str) -> None:
        """After the acknowledgement it is refused."""
        hands = Hands(stage, mode)
        stage.send("a")
        message = hands.take()
        message.set_boolean_property("JMSJCA.setRollbackOnly", True)
        assert message.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        settlement = again.acknowledge()
        with pytest.raises(IllegalStateError, match="acknowledged already"):
            again.set_boolean_property("JMSJCA.setRollbackOnly", True)
        assert settlement.wait(PATIENCE) is Outcome.COMMITTED

    def test_an_exception_rolls_back_and_needs_no_acknowledgement(self, stage: Stage, mode: str) -> None:
        """As if the handler had rolled back and acknowledged."""
        failures = [Failed()]

        def handler(message: Message) -> None:
            if failures:
                raise failures.pop()
            message.acknowledge()

        stage.send("a")
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True)
        stage.heard.await_outcome(Outcome.ROLLED_BACK)
        stage.heard.await_outcome(Outcome.COMMITTED)

    @pytest.mark.parametrize("rolled_back", [0, -1, None])
    def test_a_batch_is_settled_with_its_last_acknowledgement(
        self, stage: Stage, mode: str, rolled_back: int | None
    ) -> None:
        """That of each message and of the end, in any order; any of them can roll it back."""
        hands = Hands(stage, mode, batch_size=2, endpoint_pool_max_size=1)
        stage.send(*"ab")
        messages = hands.take_batch()
        if rolled_back is not None:
            messages[rolled_back].set_rollback_only()
        settlements = [message.acknowledge() for message in reversed(messages)]
        expected = Outcome.COMMITTED if rolled_back is None else Outcome.ROLLED_BACK
        assert {settlement.wait(PATIENCE) for settlement in settlements} == {expected}

    def test_rolling_back_ends_the_batch(self, stage: Stage, mode: str) -> None:
        """As soon as possible: the handler sees the end next."""
        seen: queue.Queue[object] = queue.Queue()

        def handler(message: Message) -> None:
            if seen.empty():
                message.set_rollback_only()
            seen.put(message.body)
            message.acknowledge()

        stage.send(*"abc")
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True, batch_size=3, endpoint_pool_max_size=1)
        assert [seen.get(timeout=PATIENCE) for _ in range(2)] == ["a", None]

    def test_more_are_outstanding_than_there_are_threads(self, stage: Stage, mode: str) -> None:
        """A handler that has returned holds no thread; never more than `max_outstanding` units are open."""
        hands = Hands(stage, mode, endpoint_pool_max_size=2, max_outstanding=20)
        stage.send(*(f"{number:02}" for number in range(30)))
        held = [hands.take() for _ in range(20)]
        assert len(hands) == 0
        for message in held[:10]:
            message.acknowledge()
        held = held[10:] + [hands.take() for _ in range(10)]
        assert {message.acknowledge().wait(PATIENCE) for message in held} == {Outcome.COMMITTED}

    def test_switched_on_in_the_manuals_words(self, stage: Stage, mode: str) -> None:
        """HoldUntilAck=1."""
        words = {
            "concurrencyMode": mode,
            "destination": stage.source.name,
            "destinationType": "javax.jms.Queue",
            "HoldUntilAck": "1",
        }
        held: queue.Queue[Message] = queue.Queue()
        stage.adapter.activate(ActivationSpec.from_properties(words), held.put).start()
        stage.send("a")
        assert held.get(timeout=PATIENCE).acknowledge().wait(PATIENCE) is Outcome.COMMITTED
