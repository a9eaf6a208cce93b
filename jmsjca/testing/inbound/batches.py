"""Cases for batches: their size, their end, and the EndOfBatch message."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.errors import InvalidActivationSpecError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import HandlerFailed, ListenerContract, ListenerHarness, SeededChance, forward

__all__ = ["TestBatchRules", "TestBatches", "TestSyncBatches"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestBatches(ListenerContract):
    """Batches lose nothing and double nothing (JMSJCA manual, batch processing)."""

    needs = ("atomic",)

    def test_what_is_sent_belongs_to_the_batch(self, stage: ListenerHarness, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testBatchXA, testBatchXACC)."""

        def _handler(message: Message, session: Session) -> None:
            forward(message, session, stage.ends if message.end_of_batch else stage.out)

        stage.listen(_handler, concurrency_mode=mode, batch_size=50)
        stage.forward_many()
        assert 0 < len(stage.remaining(stage.ends)) < stage.many

    def test_failing_at_the_end_takes_back_the_batch(self, stage: ListenerHarness, mode: str) -> None:
        """One end of a batch in ten raises (JMSJCA: testBatchXARB, testBatchXARBCC)."""
        chance = SeededChance(0.1)

        def _handler(message: Message, session: Session) -> None:
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if message.end_of_batch and chance("end"):
                raise HandlerFailed

        stage.listen(_handler, concurrency_mode=mode, batch_size=3)
        stage.forward_many()
        assert 0 < len(stage.remaining(stage.ends)) < stage.many

    def test_without_a_transaction_each_call_may_have_one_of_its_own(self, stage: ListenerHarness, mode: str) -> None:
        """The handler sends in transacted sessions that it makes (JMSJCA: testBatchUT, testBatchUTCC)."""

        def _handler(message: Message) -> None:
            with stage.connection.create_session(transacted=True) as session:
                forward(message, session, stage.ends if message.end_of_batch else stage.out)
                session.commit()

        stage.listen(_handler, concurrency_mode=mode, batch_size=50, transaction="none")
        stage.forward_many()
        assert 0 < len(stage.remaining(stage.ends)) < stage.many


END = "end"
modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class RecordingHandler:
    """A handler that records bodies and ends of batches, and may call a function before it returns.

    Args:
        also: The function to call.
    """

    def __init__(self, also: Callable[[Message], object] = lambda _: None) -> None:
        self._also = also
        self.seen: queue.Queue[Any] = queue.Queue()

    def __call__(self, message: Message) -> None:
        """Record a message."""
        self.seen.put(END if message.end_of_batch else message.body)
        self._also(message)

    def batch(self) -> list[Any]:
        """Wait for the next batch: the bodies before its end."""
        return list(iter(lambda: self.seen.get(timeout=PATIENCE), END))

    def batches(self, count: int) -> list[list[Any]]:
        """Wait for the batches that so many messages make."""
        batches: list[list[Any]] = []
        while sum(map(len, batches)) < count:
            batches.append(self.batch())
        return batches


class TestBatchRules(ListenerContract):
    """The rules of batches (JMSJCA manual, batch processing)."""

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    @pytest.mark.parametrize("size", [0, 1])
    def test_a_size_of_one_makes_no_batches(self, stage: ListenerHarness, mode: str, size: int) -> None:
        """Only a greater size does: there is no end of batch, and every index is 0."""
        handler = RecordingHandler(lambda message: indexes.append((message.batch_index, message.batch_size)))
        indexes: list[tuple[int, int]] = []
        stage.send(*"ab")
        stage.listen(handler, concurrency_mode=mode, batch_size=size)
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        stage.adapter.stop()
        assert sorted(handler.seen.queue) == ["a", "b"]
        assert indexes == [(0, 1), (0, 1)]

    def test_serial_has_none(self, stage: ListenerHarness) -> None:
        """It is refused, and the modes that have them are named."""
        with pytest.raises(InvalidActivationSpecError, match="'sync' or 'cc'"):
            stage.listen(print, batch_size=2)

    @modes
    def test_its_end_is_told_by_a_property(self, stage: ListenerHarness, mode: str) -> None:
        """It is absent on other messages."""
        found: queue.Queue[tuple[object, object]] = queue.Queue()

        def _handler(message: Message) -> None:
            found.put((message.body, message.get_object_property("JMSJCA.EndOfBatch")))

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, batch_size=2)
        assert [found.get(timeout=PATIENCE) for _ in range(2)] == [("a", None), (None, True)]

    @modes
    def test_index_and_size(self, stage: ListenerHarness, mode: str) -> None:
        """The index is how many came before, of the end how many there were; the size is the configured one."""
        found: list[tuple[object, object]] = []

        def _note(message: Message) -> None:
            found.append(
                (message.get_object_property("JMSJCA.batchIndex"), message.get_object_property("JMSJCA.batchSize"))
            )

        handler = RecordingHandler(_note)
        stage.send(*"abcd")
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=2)
        batches = handler.batches(4)
        stage.adapter.stop()
        assert found == [(index, 2) for batch in batches for index in range(len(batch) + 1)]

    @modes
    def test_no_batch_is_greater_than_the_size(self, stage: ListenerHarness, mode: str) -> None:
        """Its end comes on top."""
        handler = RecordingHandler()
        bodies = stage.send_many()
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=7)
        batches = handler.batches(len(bodies))
        stage.adapter.stop()
        assert 1 <= min(map(len, batches)) <= max(map(len, batches)) == 7
        assert sorted(body for batch in batches for body in batch) == bodies

    @modes
    @pytest.mark.parametrize("how", ["raises", "rolls back"])
    def test_a_failure_ends_it_early_and_its_end_is_told(self, stage: ListenerHarness, mode: str, how: str) -> None:
        """Also if the first message failed. Messages that the handler did not see are not counted."""
        failures = ["a"]

        def _fail_once(message: Message) -> None:
            if failures and not message.end_of_batch:
                failures.pop()
                message.set_rollback_only()
                if how == "raises":
                    raise HandlerFailed

        handler = RecordingHandler(_fail_once)
        stage.send(*"abc")
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3)
        assert handler.batch() == ["a"]
        stage.heard.await_outcome(Outcome.ROLLED_BACK)
        stage.heard.await_outcome(Outcome.COMMITTED, 3)
        stage.adapter.stop()
        assert sorted(body for body in handler.seen.queue if body != END) == ["a", "b", "c"]

    @modes
    def test_failing_at_its_end_rolls_all_of_it_back(self, stage: ListenerHarness, mode: str) -> None:
        """The end is in the unit."""
        failures = [HandlerFailed()]

        def _fail_once(message: Message) -> None:
            if failures and message.end_of_batch:
                raise failures.pop()

        handler = RecordingHandler(_fail_once)
        stage.send(*"abc")
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=1, batch_size=3)
        first = handler.batch()
        stage.heard.await_outcome(Outcome.ROLLED_BACK, len(first))
        assert sorted(body for batch in handler.batches(3) for body in batch) == ["a", "b", "c"]

    @modes
    def test_failed_batches_can_be_split(self, stage: ListenerHarness, mode: str) -> None:
        """The good messages do not share the fate of the bad one (`split_failed_batches`, beyond the manual)."""

        def _fail(message: Message) -> None:
            if message.body == "bad":
                raise HandlerFailed

        spec = {"batch_size": 5, "split_failed_batches": True, "endpoint_pool_max_size": 1}
        stage.send("a", "b", "bad", "c", "d")
        stage.listen(
            RecordingHandler(_fail),
            concurrency_mode=mode,
            redelivery_handling=f"2:move(queue:{stage.out.name})",
            **spec,
        )
        stage.heard.await_outcome(Outcome.COMMITTED, 4)
        assert stage.arrive(stage.out, 1) == ["bad"]
        stage.adapter.stop()
        stage.expect_remaining(stage.source)
        stage.expect_remaining(stage.out)


class TestSyncBatches(ListenerContract):
    """Batches of receivers."""

    def test_a_pause_ends_it(self, stage: ListenerHarness) -> None:
        """No message for 100 milliseconds."""
        handler = RecordingHandler()
        stage.listen(handler, concurrency_mode="sync", endpoint_pool_max_size=1, batch_size=3)
        stage.send("a")
        assert handler.batch() == ["a"]
