"""Units that have ended, or whose connection has: they take nothing more, or it would be lost without a word."""

import pytest
from amqp_peer import Broker

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, IllegalStateError
from jmsjca.messages import TextMessage

QUEUE = Queue("q")


@pytest.fixture
def connection(stage):
    return stage(Broker()).connect()


@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_finished_unit_takes_no_message(connection, how, atomic):
    unit = connection.unit(atomic=atomic)
    unit.send(TextMessage("a"), QUEUE)
    getattr(unit, how)()
    with pytest.raises(IllegalStateError, match="finished"):
        unit.send(TextMessage("b"), QUEUE)


def test_a_unit_of_a_closed_connection_takes_no_message(connection):
    unit = connection.unit()
    unit.send(TextMessage("a"), QUEUE)
    connection.close()
    with pytest.raises(ConnectionLostError):
        unit.send(TextMessage("b"), QUEUE)
