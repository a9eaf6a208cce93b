"""Random failures, the same in every run: no message is lost, and none comes twice after its unit has committed."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.testing.inbound.hearing import Chance, Failed
from jmsjca.testing.inbound.stage import Inbound, Stage, forward

__all__ = ["TestLosingNothing"]

_SPECS: dict[str, dict[str, Any]] = {
    "serial": {"concurrency_mode": "serial"},
    "sync": {"concurrency_mode": "sync"},
    "sync, batches": {"concurrency_mode": "sync", "batch_size": 4},
    "sync, split batches": {"concurrency_mode": "sync", "batch_size": 4, "split_failed_batches": True},
    "cc": {"concurrency_mode": "cc"},
    "cc, batches": {"concurrency_mode": "cc", "batch_size": 4},
    "cc, split batches": {"concurrency_mode": "cc", "batch_size": 4, "split_failed_batches": True},
}
_HELD = {name: {**spec, "hold_until_ack": True} for name, spec in _SPECS.items() if name != "serial"}


class Erring:
    """A handler that forwards, and then now and then raises or rolls back.

    Args:
        stage: Where it plays.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._raises, self._rolls_back = Chance(0.05, 1), Chance(0.05, 2)

    def __call__(self, message: Message, session: Session) -> None:
        """Forward, or fail."""
        if not message.end_of_batch:
            forward(message, session, self._stage.out)
        if self._rolls_back(message.body):
            message.set_rollback_only()
        if self._raises(message.body):
            raise Failed
        message.acknowledge()


class TestLosingNothing(Inbound):
    """Exactly once to a queue of the same broker, at least once elsewhere (JMS 3.1, sections 6.2.7 and 6.2.10)."""

    @pytest.mark.parametrize("spec", _SPECS.values(), ids=list(_SPECS))
    def test_with_units(self, stage: Stage, spec: dict[str, Any]) -> None:
        """Raising and rolling back, in every mode."""
        stage.harness.require("atomic")
        stage.listen(Erring(stage), redelivery_handling="", **spec)
        stage.pass_many(ordered=spec["concurrency_mode"] == "serial")

    @pytest.mark.parametrize("spec", _HELD.values(), ids=list(_HELD))
    def test_with_held_units(self, stage: Stage, spec: dict[str, Any]) -> None:
        """Raising, rolling back and acknowledging, in every mode that can hold."""
        stage.harness.require("atomic")
        stage.listen(Erring(stage), redelivery_handling="", **spec)
        stage.pass_many()

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_without_a_transaction(self, stage: Stage, mode: str) -> None:
        """On every broker: what the handler ended well never comes again, all else does."""
        raises = Chance(0.1)
        done: queue.Queue[str] = queue.Queue()

        def handler(message: Message) -> None:
            if raises(message.body):
                raise Failed
            done.put(message.body)

        stage.listen(handler, concurrency_mode=mode, transaction="none", redelivery_handling="")
        bodies = stage.send_many()
        stage.heard.await_outcome(Outcome.COMMITTED, len(bodies))
        stage.adapter.stop()
        assert sorted(done.queue) == bodies
        stage.expect_rest(stage.source)
