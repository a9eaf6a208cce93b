"""That handlers really run beside each other, and that what waits holds up nobody."""

from __future__ import annotations

import queue
from threading import Barrier, Event

import pytest

from jmsjca import Message, Outcome
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.hearing import Failed
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestConcurrency"]

modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class TestConcurrency(Inbound):
    """Several handlers at work (JMSJCA manual, concurrency modes)."""

    @modes
    def test_so_many_handlers_are_inside_at_once(self, stage: Stage, mode: str) -> None:
        """As many as the pool has: each waits for all the others."""
        meeting = Barrier(5, timeout=PATIENCE)
        activation = stage.listen(meeting.wait, concurrency_mode=mode, endpoint_pool_max_size=5)
        stage.send(*"abcdefghij")
        stage.heard.await_outcome(Outcome.COMMITTED, 10)
        assert activation.stats.n_highest_active_endpoints == 5
        assert activation.stats.n_configured_endpoints == 5

    def test_serial_has_one(self, stage: Stage) -> None:
        """Whatever the size of the pool."""
        activation = stage.listen(Message.freeze, concurrency_mode="serial", endpoint_pool_max_size=5)
        stage.send(*"abcdefghij")
        stage.heard.await_outcome(Outcome.COMMITTED, 10)
        assert activation.stats.n_highest_active_endpoints == activation.stats.n_configured_endpoints == 1

    @modes
    def test_a_blocked_handler_holds_up_nobody(self, stage: Stage, mode: str) -> None:
        """Not even what was taken ahead with its message; a receiver takes nothing ahead, where it can say so."""
        if mode == "sync":
            stage.harness.require("exact_credit")
        go_on = Event()

        def handler(message: Message) -> None:
            if message.body == "slow":
                go_on.wait(PATIENCE)

        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=2)
        stage.send("slow", *(f"{number:02}" for number in range(50)))
        stage.heard.await_outcome(Outcome.COMMITTED, 50)
        go_on.set()
        stage.heard.await_outcome(Outcome.COMMITTED)

    @modes
    def test_a_delayed_message_holds_up_nobody(self, stage: Stage, mode: str) -> None:
        """Neither a thread nor what comes behind it: with one handler all others are served."""
        seen: queue.Queue[str] = queue.Queue()

        def handler(message: Message) -> None:
            seen.put(message.body)
            if message.body == "delayed":
                raise Failed

        stage.send("delayed")
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=1, redelivery_handling="1:3600000")
        stage.heard.await_outcome(Outcome.ROLLED_BACK)
        stage.send(*(f"{number:02}" for number in range(30)))
        stage.heard.await_outcome(Outcome.COMMITTED, 30)
        stage.adapter.stop()
        assert list(seen.queue).count("delayed") == 1
        stage.expect_count(stage.source, 1)

    def test_a_delayed_message_holds_up_what_comes_behind_it_in_serial(self, stage: Stage) -> None:
        """Order is kept."""
        seen: list[str] = []

        def handler(message: Message) -> None:
            seen.append(message.body)
            if len(seen) < 4:
                raise Failed

        stage.send(*"ab")
        stage.listen(handler, redelivery_handling="1:20")
        stage.heard.await_outcome(Outcome.COMMITTED, 2)
        assert seen == ["a", "a", "a", "a", "b"]
