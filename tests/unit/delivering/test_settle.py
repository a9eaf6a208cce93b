"""Held messages are settled by whoever has nothing but their ids."""

import queue

import pytest

from jmsjca import ActivationSpec, Message, Outcome, ResourceAdapter
from jmsjca.errors import ConfigurationError, IllegalStateError
from tests.unit.inbound import PATIENCE, send


@pytest.fixture
def held(adapter: ResourceAdapter) -> queue.Queue[Message]:
    """What the handler got."""
    return queue.Queue()


@pytest.fixture
def activation(adapter, held):
    spec = ActivationSpec(destination="q", concurrency_mode="sync", hold_until_ack=True)
    activation = adapter.activate(spec, held.put)
    activation.start()
    send(adapter, "a")
    return activation


@pytest.mark.parametrize("action", ["JBXCommit", "jbxcommit"])
def test_commit(activation, held, action):
    message = held.get(timeout=PATIENCE)
    assert activation.settle(message.message_id, action).wait(PATIENCE) is Outcome.COMMITTED


def test_rollback_brings_the_message_again(activation, held):
    message_id = held.get(timeout=PATIENCE).message_id
    assert activation.settle(message_id, "JBXRollback").wait(PATIENCE) is Outcome.ROLLED_BACK
    again = held.get(timeout=PATIENCE)
    assert (again.message_id, again.redelivered) == (message_id, True)


def test_what_is_late_or_wrong_is_refused(activation, held):
    message_id = held.get(timeout=PATIENCE).message_id
    with pytest.raises(ConfigurationError, match="JBXRollback"):
        activation.settle(message_id, "commit")
    with pytest.raises(IllegalStateError, match="No message"):
        activation.settle("ID:unknown", "JBXCommit")
    activation.settle(message_id, "JBXCommit").wait(PATIENCE)
    with pytest.raises(IllegalStateError, match="already"):
        activation.settle(message_id, "JBXRollback")
