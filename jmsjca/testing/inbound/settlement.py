"""Settlement of held messages: by a timeout, and by message id through the activation."""

from __future__ import annotations

import pytest

from jmsjca import Outcome
from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.harness import ListenerContract, ListenerHarness
from jmsjca.testing.inbound.hold_until_ack import HeldMessages

__all__ = ["TestSettling", "TestTimeouts"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestTimeouts(ListenerContract):
    """Nobody acknowledges (the Jitterbit connector's acknowledgement timeout)."""

    def test_the_listener_limits_the_wait(self, stage: ListenerHarness, mode: str) -> None:
        """The message is redelivered; a later acknowledgement of the first delivery reports this."""
        hands = HeldMessages(stage, mode, acknowledgement_timeout=0.05)
        stage.send("a")
        late = hands.take()
        again = hands.take()
        assert again.redelivered
        assert late.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK

    def test_a_message_limits_its_own_wait(self, stage: ListenerHarness, mode: str) -> None:
        """By the property JBXAcknowledgmentTimeout, in seconds; others wait."""
        hands = HeldMessages(stage, mode, endpoint_pool_max_size=1)
        message = stage.connection.create_session().create_text_message("impatient")
        message.set_double_property("JBXAcknowledgmentTimeout", 0.05)
        stage.send("patient")
        stage.harness.send_messages(stage.source, message)
        patient = hands.take()
        assert [hands.take().body for _ in range(3)] == ["impatient"] * 3
        assert patient.acknowledge().wait(PATIENCE) is Outcome.COMMITTED


class TestSettling(ListenerContract):
    """`Activation.settle` (the acknowledge activity of the Jitterbit connector)."""

    @pytest.mark.parametrize("action", ["JBXCommit", "jbxcommit"])
    def test_commits(self, stage: ListenerHarness, action: str) -> None:
        """In upper or lower case."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), action).wait(PATIENCE) is Outcome.COMMITTED

    def test_rolls_back(self, stage: ListenerHarness) -> None:
        """The message is redelivered, and can be settled again."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), "JBXRollback").wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        assert again.redelivered
        assert hands.settle(again, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED

    @pytest.mark.parametrize(("action", "outcome"), [("JBXCommit", "COMMITTED"), ("JBXRollback", "ROLLED_BACK")])
    def test_settles_a_batch_with_the_id_of_its_end(self, stage: ListenerHarness, action: str, outcome: str) -> None:
        """The end of a batch has an id of its own, so that a program that has only ids can settle the whole batch."""
        hands = HeldMessages(stage, "sync", batch_size=2, endpoint_pool_max_size=1)
        stage.send("a")
        *messages, end = hands.take_batch()
        settlements = [hands.settle(message, "JBXCommit") for message in messages]
        assert settlements[0].outcome is None
        assert hands.settle(end, action).wait(PATIENCE) is Outcome[outcome]

    def test_refuses_what_it_does_not_know(self, stage: ListenerHarness) -> None:
        """Another action, an unknown id, and one that is settled."""
        hands = HeldMessages(stage, "sync")
        stage.send("a")
        message = hands.take()
        with pytest.raises(ConfigurationError, match="JBXRollback"):
            hands.settle(message, "commit")
        with pytest.raises(IllegalStateError, match="No message"):
            hands.activation.settle("ID:unknown", "JBXCommit")
        message.acknowledge().wait(PATIENCE)
        with pytest.raises(IllegalStateError, match="already"):
            hands.settle(message, "JBXCommit")
