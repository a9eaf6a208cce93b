"""Cases for the decisions of a handler: `Reject` dead-letters a message at once, `Retry` redelivers it later."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from jmsjca import Message, Outcome, Reject, Retry, Session
from jmsjca.destinations import Destination
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import ListenerContract, ListenerHarness, forward

__all__ = ["TestRejected", "TestRetried"]

modes = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
concurrent_modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class Deciding:
    """A handler that counts its calls by body, and raises for some bodies.

    Args:
        errors: The errors to raise, by body.

    Attributes:
        calls: The number of calls by body.
    """

    def __init__(self, **errors: Exception) -> None:
        self._errors = errors
        self._lock = threading.Lock()
        self.calls: Counter[str | None] = Counter()

    def __call__(self, message: Message) -> None:
        """Count, and raise."""
        with self._lock:
            self.calls[message.body] += 1
        if message.body in self._errors:
            raise self._errors[message.body]


class TestRejected(ListenerContract):
    """A message that its handler rejects."""

    @modes
    def test_goes_to_the_dead_letter_queue_at_once_with_its_reason(self, stage: ListenerHarness, mode: str) -> None:
        """The handler sees it once; the messages before and behind it are consumed as always."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("a", "bad", "b")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=f"9:move(queue:{stage.out.name})")
        letter = self._dead_letter(stage, stage.out)
        stage.heard.await_outcome(Outcome.COMMITTED, 3)
        assert letter.body == "bad"
        told = {name: letter.properties[f"JMS_Sun_JMSJCA_{name}"] for name in ("ExceptionClass", "ExceptionMessage")}
        assert told == {"ExceptionClass": "jmsjca.errors.Reject", "ExceptionMessage": "no such article"}
        assert letter.properties["JMS_Sun_JMSJCA_OriginalDestinationName"] == stage.source.name
        stage.adapter.stop()
        assert handler.calls == {"a": 1, "bad": 1, "b": 1}
        stage.expect_remaining(stage.source)

    @modes
    def test_is_deleted_where_no_dead_letter_queue_is_configured(
        self, stage: ListenerHarness, mode: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A warning names the message and the reason."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad", "b")
        stage.listen(handler, concurrency_mode=mode)
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        stage.adapter.stop()
        assert handler.calls == {"bad": 1, "b": 1}
        stage.expect_remaining(stage.source)
        [warning] = [record.getMessage() for record in caplog.records if "no such article" in record.getMessage()]
        assert "deleted" in warning
        assert stage.source.name in warning

    @modes
    def test_takes_back_what_its_handler_has_sent(self, stage: ListenerHarness, mode: str) -> None:
        """It is dead-lettered, although its unit is rolled back, and its handler does not see it again."""
        stage.harness.require("atomic")
        calls: list[str] = []

        def _handler(message: Message, session: Session) -> None:
            calls.append(message.body)
            forward(message, session, stage.never)
            raise Reject("no such article")

        stage.send("bad")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling=f"9:move(queue:{stage.out.name})")
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert calls == ["bad"]
        for place in (stage.source, stage.never):
            stage.expect_remaining(place)

    @concurrent_modes
    def test_leaves_the_rest_of_its_batch_alone(self, stage: ListenerHarness, mode: str) -> None:
        """The others are consumed in the same unit, once."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("a", "bad", "b")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "endpoint_pool_max_size": 1}
        stage.listen(handler, concurrency_mode=mode, batch_size=3, **spec)
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.heard.await_outcome(Outcome.COMMITTED, 3)
        stage.adapter.stop()
        assert {body: handler.calls[body] for body in ("a", "bad", "b")} == {"a": 1, "bad": 1, "b": 1}
        stage.expect_remaining(stage.source)

    def test_is_the_whole_batch_if_the_handler_takes_it_whole(self, stage: ListenerHarness) -> None:
        """The cause in the batch is unknown."""

        def _handler(messages: Sequence[Message]) -> None:
            raise Reject(f"{len(messages) > 0}")

        stage.send("a", "b")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "batch_size": 2}
        stage.listen(_handler, concurrency_mode="sync", **spec)
        assert sorted(stage.arrive(stage.out, 2)) == ["a", "b"]
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    @concurrent_modes
    def test_needs_no_acknowledgement(self, stage: ListenerHarness, mode: str) -> None:
        """With held acknowledgement, too, it goes at once."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad")
        spec: dict[str, Any] = {"redelivery_handling": f"9:move(queue:{stage.out.name})", "hold_until_ack": True}
        stage.listen(handler, concurrency_mode=mode, **spec)
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert handler.calls == {"bad": 1}
        stage.expect_remaining(stage.source)

    def test_by_a_coroutine(self, stage: ListenerHarness) -> None:
        """As by any handler."""

        async def _handler(message: Message) -> None:
            raise Reject(f"no such article as {message.body}")

        stage.send("bad")
        stage.listen(_handler, concurrency_mode="cc", redelivery_handling=f"9:move(queue:{stage.out.name})")
        reason = self._dead_letter(stage, stage.out).properties["JMS_Sun_JMSJCA_ExceptionMessage"]
        assert reason == "no such article as bad"
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    def test_by_a_handler_without_a_transaction(self, stage: ListenerHarness) -> None:
        """The copy is sent before the message is acknowledged, or both at once."""
        handler = Deciding(bad=Reject("no such article"))
        stage.send("bad")
        stage.listen(handler, transaction="none", redelivery_handling=f"9:move(queue:{stage.out.name})")
        assert self._dead_letter(stage, stage.out).body == "bad"
        stage.adapter.stop()
        assert handler.calls == {"bad": 1}
        stage.expect_remaining(stage.source)

    def _dead_letter(self, stage: ListenerHarness, place: Destination) -> Message:
        connection = stage.harness.connect()
        [delivery] = stage.harness.gather(connection.consumer(place), 1)
        message = delivery.message
        stage.harness.settle([delivery], connection)
        connection.close()
        return message


class TestRetried(ListenerContract):
    """A message that its handler wants again later."""

    @modes
    def test_comes_again_after_the_delay_and_counts(self, stage: ListenerHarness, mode: str) -> None:
        """The delay replaces that of the redelivery handling; the redelivery is counted as any other."""
        seen: list[tuple[float, int]] = []

        def _handler(message: Message) -> None:
            seen.append((time.monotonic(), message.redelivery_count))
            if len(seen) == 1:
                raise Retry("the shop is closed", delay=0.3)

        stage.send("a")
        stage.listen(_handler, concurrency_mode=mode, redelivery_handling="1:60000")
        stage.heard.await_outcome(Outcome.COMMITTED)
        assert [count for _, count in seen] == [0, 1]
        assert seen[1][0] - seen[0][0] >= 0.3
        stage.adapter.stop()
        stage.expect_remaining(stage.source)

    @modes
    def test_without_a_delay_comes_again_as_the_redelivery_handling_says(
        self, stage: ListenerHarness, mode: str
    ) -> None:
        """It is moved in the end: a handler that always asks for another time does not get the message for ever."""
        handler = Deciding(a=Retry("the shop is closed"))
        stage.send("a")
        stage.listen(handler, concurrency_mode=mode, redelivery_handling=f"2:move(queue:{stage.out.name})")
        assert stage.arrive(stage.out, 1) == ["a"]
        stage.adapter.stop()
        assert handler.calls == {"a": 2}
        stage.expect_remaining(stage.source)

    @concurrent_modes
    def test_while_others_go_on(self, stage: ListenerHarness, mode: str) -> None:
        """A delay takes no thread, so the messages behind it are consumed meanwhile."""
        done = threading.Event()

        def _handler(message: Message) -> None:
            if message.body == "later" and not done.is_set():
                raise Retry(delay=0.2)
            if message.body == "b":
                done.set()

        stage.send("later", "b")
        stage.listen(_handler, concurrency_mode=mode, endpoint_pool_max_size=1)
        assert done.wait(PATIENCE)
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        stage.adapter.stop()
        stage.expect_remaining(stage.source)
