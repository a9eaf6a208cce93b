"""Cases for handlers that fail or roll back: no message is lost, and none comes twice after a commit."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.testing.inbound.harness import HandlerFailed, ListenerContract, ListenerHarness, SeededChance, forward

__all__ = ["TestExceptions", "TestExceptionsWithoutTransaction", "TestNoMessageLoss"]

modes = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])


class TestExceptions(ListenerContract):
    """A handler's receipt and its sends are one (JMSJCA manual, transactions; JMS 3.1, section 6.2.7)."""

    needs = ("atomic",)

    @modes
    def test_raising_after_the_send(self, stage: ListenerHarness, mode: str) -> None:
        """Serial also keeps the order (JMSJCA: testExceptionCMTSerial, testExceptionCMTCC)."""
        chance = SeededChance(0.1)

        def _handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if chance(message.body):
                raise HandlerFailed

        stage.listen(_handler, concurrency_mode=mode)
        stage.forward_many(ordered=mode == "serial")

    @modes
    def test_sending_on_after_rolling_back(self, stage: ListenerHarness, mode: str) -> None:
        """With the option for one local session in and out.

        JMSJCA: testRollbackNoXACMTCC, testRollbackNoXACMTSync, testRollbackNoXACMTSerial.
        """
        chance = SeededChance(0.1)

        def _handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if chance(message.body):
                message.set_rollback_only()
                forward(message, session, stage.never)

        stage.listen(_handler, concurrency_mode=mode, options={"JMSJCA.NoXA": "true"})
        stage.forward_many(ordered=mode == "serial")
        stage.expect_remaining(stage.never)


class TestExceptionsWithoutTransaction(ListenerContract):
    """An exception causes redelivery, also without a transaction (JMSJCA: bean-managed transactions)."""

    needs = ("atomic",)

    @modes
    def test_raising_before_the_handlers_own_transaction(self, stage: ListenerHarness, mode: str) -> None:
        """JMSJCA: testExceptionBMTCC, testExceptionBMTSerial, testExceptionBMTSync."""
        chance = SeededChance(0.1)

        def _handler(message: Message) -> None:
            if chance(message.body):
                raise HandlerFailed
            with stage.connection.create_session(transacted=True) as session:
                forward(message, session, stage.out)
                session.commit()

        self._pass(stage, _handler, mode)

    @modes
    def test_raising_after_rolling_its_own_transaction_back(self, stage: ListenerHarness, mode: str) -> None:
        """JMSJCA: testExceptionInBMTCC, testExceptionInBMTSerial, testExceptionInBMTSync."""
        chance = SeededChance(0.1)

        def _handler(message: Message) -> None:
            with stage.connection.create_session(transacted=True) as session, session.transaction():
                forward(message, session, stage.out)
                if chance(message.body):
                    raise HandlerFailed

        self._pass(stage, _handler, mode)

    def _pass(self, stage: ListenerHarness, handler: Callable[[Message], None], mode: str) -> None:
        stage.listen(handler, concurrency_mode=mode, transaction="none")
        stage.forward_many(ordered=mode == "serial")


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


class FlakyHandler:
    """A handler that forwards, and then now and then raises or rolls back.

    Args:
        stage: Where it plays.
    """

    def __init__(self, stage: ListenerHarness) -> None:
        self._stage = stage
        self._raises, self._rolls_back = SeededChance(0.05, 1), SeededChance(0.05, 2)

    def __call__(self, message: Message, session: Session) -> None:
        """Forward, or fail."""
        if not message.end_of_batch:
            forward(message, session, self._stage.out)
        if self._rolls_back(message.body):
            message.set_rollback_only()
        if self._raises(message.body):
            raise HandlerFailed
        message.acknowledge()


class TestNoMessageLoss(ListenerContract):
    """Exactly once to a queue of the same broker, at least once elsewhere (JMS 3.1, sections 6.2.7 and 6.2.10)."""

    @pytest.mark.parametrize("spec", _SPECS.values(), ids=list(_SPECS))
    def test_with_units(self, stage: ListenerHarness, spec: dict[str, Any]) -> None:
        """Raising and rolling back, in every mode."""
        stage.harness.require("atomic")
        stage.listen(FlakyHandler(stage), redelivery_handling="", **spec)
        stage.forward_many(ordered=spec["concurrency_mode"] == "serial")

    @pytest.mark.parametrize("spec", _HELD.values(), ids=list(_HELD))
    def test_with_held_units(self, stage: ListenerHarness, spec: dict[str, Any]) -> None:
        """Raising, rolling back and acknowledging, in every mode that can hold."""
        stage.harness.require("atomic")
        stage.listen(FlakyHandler(stage), redelivery_handling="", **spec)
        stage.forward_many()

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_without_a_transaction(self, stage: ListenerHarness, mode: str) -> None:
        """On every broker: successfully handled messages are never redelivered, all others are."""
        raises = SeededChance(0.1)
        done: queue.Queue[str] = queue.Queue()

        def _handler(message: Message) -> None:
            if raises(message.body):
                raise HandlerFailed
            done.put(message.body)

        stage.listen(_handler, concurrency_mode=mode, transaction="none", redelivery_handling="")
        bodies = stage.send_many()
        stage.heard.await_outcome(Outcome.COMMITTED, len(bodies))
        stage.adapter.stop()
        assert sorted(done.queue) == bodies
        stage.expect_remaining(stage.source)
