"""Messages that fail again and again are deleted, held back or moved, as the redelivery handling says."""

from __future__ import annotations

import pytest

from jmsjca import Message, Outcome
from jmsjca.testing.inbound.hearing import Failed
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestDeadLetters"]


class TestDeadLetters(Inbound):
    """What becomes of the messages (JMSJCA manual, redelivery handling)."""

    def test_deleted_when_it_comes_again(self, stage: Stage) -> None:
        """The handler sees it once (JMSJCA: testDlqDelete)."""
        calls: list[str] = []

        def handler(message: Message) -> None:
            calls.append(message.body)
            if message.body != "last":
                message.set_rollback_only()

        stage.send("a", "last")
        stage.listen(handler, redelivery_handling="1:delete")
        stage.heard.await_outcome(Outcome.COMMITTED)
        stage.adapter.stop()
        assert calls == ["a", "last"]
        stage.expect_rest(stage.source)

    @pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
    def test_stop_does_not_wait_for_delays(self, stage: Stage, mode: str) -> None:
        """Nothing is lost by it, either (JMSJCA: testDlqUndeploy)."""
        stage.many = 100
        bodies = stage.send_many()
        stage.listen(Message.set_rollback_only, concurrency_mode=mode, redelivery_handling="5:2147483647")
        stage.heard.await_outcome(Outcome.ROLLED_BACK, 5 if mode == "serial" else 500)
        stage.adapter.stop()
        stage.expect_count(stage.source, len(bodies))

    def test_moved_when_they_fail_for_the_second_time(self, stage: Stage) -> None:
        """All of them (JMSJCA: testDlqXA)."""
        handling = f"2:move(queue:{stage.out.name})"
        stage.listen(Message.set_rollback_only, concurrency_mode="sync", redelivery_handling=handling)
        stage.many = 150
        stage.pass_many()

    def test_another_handling_and_data_outlive_a_stop_by_the_handler(self, stage: Stage) -> None:
        """They are the message's own (JMSJCA: testChangeActionsInMidFlight)."""

        def handler(message: Message) -> None:
            message.set_string_property("_JMSJCA_UserRollbackData1", "x")
            message.set_string_property("_JMSJCA_RedeliveryHandling", f"1:move(queue:{stage.out.name})")
            message.set_string_property("_JMSJCA_StopMessageDelivery", "Some reason")
            raise Failed

        activation = stage.listen(handler)
        stage.send("a")
        stage.heard.await_status("Down")
        stage.expect_rest(stage.out)
        activation.start()
        [delivery] = stage.harness.gather(stage.harness.connection.consumer(stage.out), 1)
        assert delivery.message.properties["_JMSJCA_UserRollbackData1"] == "x"
