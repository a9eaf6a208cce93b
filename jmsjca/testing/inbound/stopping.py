"""Stops: by the handler, and while messages are held."""

from __future__ import annotations

import queue

import pytest

from jmsjca import Message, Outcome, Session
from jmsjca.errors import IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.stage import Inbound, Stage, forward

__all__ = ["TestStopping"]


class TestStopping(Inbound):
    """A stop loses nothing and doubles nothing (JMSJCA manual, message wrapping and life cycle)."""

    @pytest.mark.parametrize("name", ["_JMSJCA_StopMessageDelivery", "JMS_Sun_JMSJCA_StopMessageDelivery"])
    def test_by_the_handler(self, stage: Stage, name: str) -> None:
        """What was forwarded and what is left is all there was (JMSJCA: testStopFromMDB)."""
        stage.harness.require("atomic")

        def handler(message: Message, session: Session) -> None:
            forward(message, session, stage.out)
            if message.body == "0010":
                message.set_string_property(name, "Some reason")
            if message.body >= "0010":
                stage.heard.stopping.wait(PATIENCE)

        bodies = stage.send_many()
        stage.listen(handler, concurrency_mode="sync", options={"JMSJCA.messagewrapping": "1"})
        stage.heard.await_status("Down")
        forwarded = stage.rest(stage.out)
        assert len(set(forwarded)) == len(forwarded) < len(bodies)
        stage.expect_rest(stage.source, *set(bodies).difference(forwarded))

    @pytest.mark.parametrize("batch_size", [0, 3])
    @pytest.mark.parametrize("mode", ["sync", "cc"])
    def test_while_messages_are_held(self, stage: Stage, mode: str, batch_size: int) -> None:
        """They are rolled back; who acknowledges later learns of it (JMSJCA manual, hold-until-acknowledge)."""
        held: queue.Queue[Message] = queue.Queue()
        spec = {"concurrency_mode": mode, "batch_size": batch_size, "max_outstanding": stage.many}
        stage.listen(held.put, hold_until_ack=True, endpoint_pool_max_size=4, **spec)
        bodies = stage.send_many()
        messages = [held.get(timeout=PATIENCE) for _ in range(stage.many)]
        stage.adapter.stop()
        for message in messages[:3]:
            assert message.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK
        with pytest.raises(IllegalStateError):
            messages[-1].set_rollback_only()
        stage.expect_rest(stage.source, *bodies)
