"""Held acknowledgement: units that somebody acknowledges, here or elsewhere, lose nothing and double nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsjca import Message, Session
from jmsjca.testing.inbound.hearing import Chance
from jmsjca.testing.inbound.holding import Holding, HoldingOnItsOwn
from jmsjca.testing.inbound.stage import Inbound, Stage, forward

__all__ = ["TestHeldBatches", "TestHeldMessages"]

modes = pytest.mark.parametrize("mode", ["sync", "cc"])


class TestHeldMessages(Inbound):
    """Hold-until-acknowledge (JMSJCA manual, section of that name)."""

    @pytest.fixture(autouse=True)
    def _needs_units(self, stage: Stage) -> None:
        stage.harness.require("atomic")

    def test_another_thread_takes_over(self, stage: Stage) -> None:
        """It sends in the delivery's unit after the handler returned; one rolls back (JMSJCA: testHUATxTakenAway)."""
        one = threading.Lock()

        def finish(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if one.acquire(blocking=False):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        def handler(message: Message, session: Session) -> None:
            others.submit(finish, message, session)

        with ThreadPoolExecutor() as others:
            stage.listen(handler, concurrency_mode="sync", hold_until_ack=True)
            stage.many = 5
            stage.pass_many()
        assert one.locked()

    @modes
    def test_what_is_sent_belongs_to_the_unit(self, stage: Stage, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testHUAXA, testHUAXACC)."""
        stage.listen(Holding(stage), concurrency_mode=mode, hold_until_ack=True)
        stage.pass_many()

    @modes
    def test_rolled_back_units_come_again(self, stage: Stage, mode: str) -> None:
        """What they sent never arrives (JMSJCA: testHUAXARB, testHUAXARBCC)."""
        stage.listen(Holding(stage, rollbacks=0.05), concurrency_mode=mode, hold_until_ack=True)
        stage.pass_many()
        stage.expect_rest(stage.never)

    @modes
    def test_transactions_of_the_handler(self, stage: Stage, mode: str) -> None:
        """The receipt has none, the handler makes its own (JMSJCA: testHUAUT, testHUAUTCC)."""
        stage.listen(HoldingOnItsOwn(stage), concurrency_mode=mode, hold_until_ack=True, transaction="none")
        stage.pass_many()

    @modes
    def test_handler_rolls_back_both(self, stage: Stage, mode: str) -> None:
        """Its own transaction and the receipt (JMSJCA: testHUAUTRB, testHUAUTRBCC)."""
        handler = HoldingOnItsOwn(stage, rollbacks=0.05)
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True, transaction="none")
        stage.pass_many()
        stage.expect_rest(stage.never)


class TestHeldBatches(Inbound):
    """Batches that are held until all of their messages, and their ends, are acknowledged (JMSJCA manual)."""

    @pytest.fixture(autouse=True)
    def _needs_units(self, stage: Stage) -> None:
        stage.harness.require("atomic")

    @modes
    def test_what_is_sent_belongs_to_the_batch(self, stage: Stage, mode: str) -> None:
        """Each message is forwarded once (JMSJCA: testBatchXAHUA, testBatchXAHUACC)."""
        stage.listen(Holding(stage), concurrency_mode=mode, hold_until_ack=True, batch_size=50)
        stage.pass_many()
        assert 0 < len(stage.rest(stage.ends)) < stage.many

    @modes
    def test_rolled_back_batches_come_again(self, stage: Stage, mode: str) -> None:
        """What they sent never arrives (JMSJCA: testBatchXAHUARB, testBatchXAHUARBCC)."""
        handler = Holding(stage, rollbacks=0.05)
        stage.listen(handler, concurrency_mode=mode, hold_until_ack=True, batch_size=3)
        stage.pass_many()
        stage.expect_rest(stage.never)
        assert 0 < len(stage.rest(stage.ends)) < stage.many

    def test_one_message_rolls_its_batch_back(self, stage: Stage) -> None:
        """All of it comes again (JMSJCA: testHUABatchXA)."""
        one = threading.Lock()

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if message.body == "0010" and one.acquire(blocking=False):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        stage.listen(handler, concurrency_mode="sync", hold_until_ack=True, batch_size=5)
        stage.many = 50
        stage.pass_many()
        assert one.locked()

    def test_what_was_in_a_failed_batch_is_moved(self, stage: Stage) -> None:
        """Index and size can be read of every message, also of the end (JMSJCA: testHUABatchDlqXA)."""
        wrong: list[object] = []
        chance = Chance(0.1)

        def handler(message: Message, session: Session) -> None:
            index, size = (message.get_int_property(f"JMSJCA.batch{name}") for name in ("Index", "Size"))
            wrong.extend([(index, size)] if size != 3 or not 0 <= index <= 3 else [])
            forward(message, session, stage.ends if message.end_of_batch else stage.out)
            if chance(message.body):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        handling = f"1:move(queue:{stage.out.name})"
        spec = {"concurrency_mode": "sync", "hold_until_ack": True, "batch_size": 3}
        stage.listen(handler, redelivery_handling=handling, **spec)
        stage.many = 150
        stage.pass_many()
        assert not wrong

    def test_what_always_fails_is_moved_without_a_transaction(self, stage: Stage) -> None:
        """A message or the end of its batch rolls back each time (JMSJCA: testHUABatchDlq)."""
        chance = Chance(0.2)

        def handler(message: Message) -> None:
            if message.end_of_batch or chance(message.body):
                message.set_boolean_property("JMSJCA.setRollbackOnly", True)
            message.acknowledge()

        handling = f"3:move(queue:{stage.out.name})"
        spec = {"concurrency_mode": "sync", "hold_until_ack": True, "batch_size": 5, "transaction": "none"}
        stage.listen(handler, redelivery_handling=handling, **spec)
        stage.many = 100
        stage.pass_many()
