"""Held messages that nobody acknowledges, or somebody who has nothing but their ids."""

from __future__ import annotations

import pytest

from jmsjca import Outcome
from jmsjca.errors import ConfigurationError, IllegalStateError
from jmsjca.testing.contract.harness import PATIENCE
from jmsjca.testing.inbound.holding import Hands
from jmsjca.testing.inbound.stage import Inbound, Stage

__all__ = ["TestSettling", "TestTimeouts"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
class TestTimeouts(Inbound):
    """Nobody acknowledges (the Jitterbit connector's acknowledgement timeout)."""

    def test_the_listener_limits_the_wait(self, stage: Stage, mode: str) -> None:
        """The message comes again; who acknowledges the first delivery after that learns of it."""
        hands = Hands(stage, mode, acknowledgement_timeout=0.05)
        stage.send("a")
        late = hands.take()
        again = hands.take()
        assert again.redelivered
        assert late.acknowledge().wait(PATIENCE) is Outcome.ROLLED_BACK

    def test_a_message_limits_its_own_wait(self, stage: Stage, mode: str) -> None:
        """By the property JBXAcknowledgmentTimeout, in seconds; others wait."""
        hands = Hands(stage, mode, endpoint_pool_max_size=1)
        message = stage.connection.create_session().create_text_message("impatient")
        message.set_double_property("JBXAcknowledgmentTimeout", 0.05)
        stage.send("patient")
        stage.harness.send_messages(stage.source, message)
        patient = hands.take()
        assert [hands.take().body for _ in range(3)] == ["impatient"] * 3
        assert patient.acknowledge().wait(PATIENCE) is Outcome.COMMITTED


class TestSettling(Inbound):
    """`Activation.settle` (the acknowledge activity of the Jitterbit connector)."""

    @pytest.mark.parametrize("action", ["JBXCommit", "jbxcommit"])
    def test_commits(self, stage: Stage, action: str) -> None:
        """In upper or lower case."""
        hands = Hands(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), action).wait(PATIENCE) is Outcome.COMMITTED

    def test_rolls_back(self, stage: Stage) -> None:
        """The message comes again, and can be settled again."""
        hands = Hands(stage, "sync")
        stage.send("a")
        assert hands.settle(hands.take(), "JBXRollback").wait(PATIENCE) is Outcome.ROLLED_BACK
        again = hands.take()
        assert again.redelivered
        assert hands.settle(again, "JBXCommit").wait(PATIENCE) is Outcome.COMMITTED

    def test_refuses_what_it_does_not_know(self, stage: Stage) -> None:
        """Another action, an unknown id, and one that is settled."""
        hands = Hands(stage, "sync")
        stage.send("a")
        message = hands.take()
        with pytest.raises(ConfigurationError, match="JBXRollback"):
            hands.settle(message, "commit")
        with pytest.raises(IllegalStateError, match="No message"):
            hands.activation.settle("ID:unknown", "JBXCommit")
        message.acknowledge().wait(PATIENCE)
        with pytest.raises(IllegalStateError, match="already"):
            hands.settle(message, "JBXCommit")
