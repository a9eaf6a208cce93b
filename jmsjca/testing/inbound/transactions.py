"""Handlers that raise or roll back now and then: what they sent never arrives, what they got comes again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsjca import Message, Session
from jmsjca.testing.inbound.hearing import Chance, Failed
from jmsjca.testing.inbound.stage import Inbound, Stage, forward

__all__ = ["TestExceptions", "TestExceptionsWithoutTransaction"]

modes = pytest.mark.parametrize("mode", ["serial", "sync", "cc"])


class TestExceptions(Inbound):
    """A handler's receipt and its sends are one (JMSJCA manual, transactions; JMS 3.1, section 6.2.7)."""

    @pytest.fixture(autouse=True)
    def _needs_units(self, stage: Stage) -> None:
        stage.harness.require("atomic")

    @modes
    def test_raising_after_the_send(self, stage: Stage, mode: str) -> None:
        """Serial keeps the order, too (JMSJCA: testExceptionCMTSerial, testExceptionCMTCC)."""
        chance = Chance(0.1)

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if chance(message.body):
                raise Failed

        stage.listen(handler, concurrency_mode=mode)
        stage.pass_many(ordered=mode == "serial")

    @modes
    def test_sending_on_after_rolling_back(self, stage: Stage, mode: str) -> None:
        """With the option for one local session in and out.

        JMSJCA: testRollbackNoXACMTCC, testRollbackNoXACMTSync, testRollbackNoXACMTSerial.
        """
        chance = Chance(0.1)

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if chance(message.body):
                message.set_rollback_only()
                forward(message, session, stage.never)

        stage.listen(handler, concurrency_mode=mode, options={"JMSJCA.NoXA": "true"})
        stage.pass_many(ordered=mode == "serial")
        stage.expect_rest(stage.never)


class TestExceptionsWithoutTransaction(Inbound):
    """An exception brings the message again, without a transaction, too (JMSJCA: bean-managed transactions)."""

    @pytest.fixture(autouse=True)
    def _needs_units(self, stage: Stage) -> None:
        stage.harness.require("atomic")

    @modes
    def test_raising_before_the_handlers_own_transaction(self, stage: Stage, mode: str) -> None:
        """JMSJCA: testExceptionBMTCC, testExceptionBMTSerial, testExceptionBMTSync."""
        chance = Chance(0.1)

        def handler(message: Message) -> None:
            if chance(message.body):
                raise Failed
            with stage.connection.create_session(transacted=True) as session:
                forward(message, session, stage.out)
                session.commit()

        self._pass(stage, handler, mode)

    @modes
    def test_raising_after_rolling_its_own_transaction_back(self, stage: Stage, mode: str) -> None:
        """JMSJCA: testExceptionInBMTCC, testExceptionInBMTSerial, testExceptionInBMTSync."""
        chance = Chance(0.1)

        def handler(message: Message) -> None:
            with stage.connection.create_session(transacted=True) as session, session.transaction():
                forward(message, session, stage.out)
                if chance(message.body):
                    raise Failed

        self._pass(stage, handler, mode)

    def _pass(self, stage: Stage, handler: Callable[[Message], None], mode: str) -> None:
        stage.listen(handler, concurrency_mode=mode, transaction="none")
        stage.pass_many(ordered=mode == "serial")
