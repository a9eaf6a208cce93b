"""Batches: up to so many messages are one unit, and the handler is told when it ends."""

from __future__ import annotations

import pytest

from jmsjca import Message, Session
from jmsjca.testing.inbound.hearing import Chance, Failed
from jmsjca.testing.inbound.stage import Inbound, Stage, forward

__all__ = ["TestBatches"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestBatches(Inbound):
    """Batches lose nothing and double nothing (JMSJCA manual, batch processing)."""

    def test_what_is_sent_belongs_to_the_batch(self, stage: Stage, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testBatchXA, testBatchXACC)."""
        stage.harness.require("atomic")

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.ends if message.end_of_batch else stage.out)

        stage.listen(handler, concurrency_mode=mode, batch_size=50)
        stage.pass_many()
        assert 0 < len(stage.rest(stage.ends)) < stage.many

    def test_failing_at_the_end_takes_back_the_batch(self, stage: Stage, mode: str) -> None:
        """One end of a batch in ten raises (JMSJCA: testBatchXARB, testBatchXARBCC)."""
        stage.harness.require("atomic")
        chance = Chance(0.1)

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if message.end_of_batch and chance("end"):
                raise Failed

        stage.listen(handler, concurrency_mode=mode, batch_size=3)
        stage.pass_many()
        assert 0 < len(stage.rest(stage.ends)) < stage.many

    def test_without_a_transaction_each_call_may_have_one_of_its_own(self, stage: Stage, mode: str) -> None:
        """The handler sends in transacted sessions that it makes (JMSJCA: testBatchUT, testBatchUTCC)."""
        stage.harness.require("atomic")

        def handler(message: Message) -> None:
            with stage.connection.create_session(transacted=True) as session:
                forward(message, session, stage.ends if message.end_of_batch else stage.out)
                session.commit()

        stage.listen(handler, concurrency_mode=mode, batch_size=50, transaction="none")
        stage.pass_many()
        assert 0 < len(stage.rest(stage.ends)) < stage.many
