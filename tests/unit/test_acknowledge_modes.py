"""Sessions that are not transacted: the acknowledge modes."""

import pytest

from jmsjca import AcknowledgeMode, Outcome
from jmsjca.errors import IllegalStateError
from tests.unit.outbound import QUEUE, put, shown

PATIENCE = 30


def test_automatic_acknowledgement(connection):
    put(connection, "a", "b")
    with connection.create_session() as session:
        message = session.create_consumer(QUEUE).receive(0)
        assert message.acknowledge().outcome is Outcome.COMMITTED
    assert shown(connection) == ["b"]


def test_client_acknowledgement_covers_all_received_so_far(connection):
    put(connection, "a", "b", "c")
    with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        consumer = session.create_consumer(QUEUE)
        first, second = consumer.receive(0), consumer.receive(0)
        assert second.acknowledge().outcome is Outcome.COMMITTED
        assert first.acknowledge().outcome is Outcome.COMMITTED  # again is harmless
        consumer.receive(0)
    assert shown(connection) == ["c"]


def test_individual_acknowledgement_covers_one(connection):
    put(connection, "a", "b", "c")
    with connection.create_session(acknowledge_mode=AcknowledgeMode.INDIVIDUAL) as session:
        consumer = session.create_consumer(QUEUE)
        messages = [consumer.receive(0) for _ in range(3)]
        assert messages[1].acknowledge().outcome is Outcome.COMMITTED
        settlement = messages[1].acknowledge()
        assert settlement.outcome is Outcome.COMMITTED
    assert shown(connection) == ["a", "c"]


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL])
def test_what_was_not_acknowledged_comes_again_counted(connection, mode):
    put(connection, "a")
    with connection.create_session(acknowledge_mode=mode) as session:
        message = session.create_consumer(QUEUE).receive(0)
        with pytest.raises(IllegalStateError, match="not transacted"):
            message.set_rollback_only()
    with connection.create_session() as session:
        assert session.create_consumer(QUEUE).receive(0).delivery_count == 2
    with pytest.raises(IllegalStateError, match="closed"):
        message.acknowledge()
