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
        """As many as the pool has: each waits for all the others. So many messages that each receiver is sent some."""
        together = Event()
        meeting = Barrier(5, action=together.set, timeout=PATIENCE)

        def handler() -> None:
            if not together.is_set():
                meeting.wait()

        activation = stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=5)
        stage.send(*(f"{number:02}" for number in range(50)))
        stage.heard.await_outcome(Outcome.COMMITTED, 50)
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
        """Not even what was taken ahead with its message, where a receiver can say how much it takes."""
        if mode == "sync":
            stage.harness.require("exact_credit")
        go_on = Event()

        def handler(message: Message) -> None:
            if message.body == "slow":
                go_on.wait(PATIENCE)

        stage.send(*(f"{number:03}" for number in range(300)), "slow", *(f"{number:03}" for number in range(30)))
        stage.listen(handler, concurrency_mode=mode, endpoint_pool_max_size=2)
        stage.heard.await_outcome(Outcome.COMMITTED, 330)
        go_on.set()
        stage.heard.await_outcome(Outcome.COMMITTED)

    def test_what_is_behind_a_blocked_handler_is_for_others(self, stage: Stage) -> None:
        """Receivers of mode sync keep nothing back when all their handlers are slow, where they can say so."""
        stage.harness.require("exact_credit")
        go_on, inside = Event(), queue.Queue[str]()

        def handler(message: Message) -> None:
            if int(message.body) >= 300:
                inside.put(message.body)
                go_on.wait(PATIENCE)

        stage.send(*(f"{number:03}" for number in range(330)))
        stage.listen(handler, concurrency_mode="sync", endpoint_pool_max_size=2)
        blocked = [inside.get(timeout=PATIENCE) for _ in range(2)]
        others = stage.arrive(stage.source, 28)
        assert sorted([*blocked, *others]) == [f"{number:03}" for number in range(300, 330)]
        go_on.set()
        stage.heard.await_outcome(Outcome.COMMITTED, 302)

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
