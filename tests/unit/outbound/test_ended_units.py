"""An ended unit keeps no memory."""

import gc
from weakref import ref

import pytest

from jmsjca import AcknowledgeMode, TextMessage
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound.queues import PATIENCE, QUEUE, put

pytestmark = pytest.mark.usefixtures("no_collector")


def units():
    return [each for each in gc.get_objects() if isinstance(each, EmbeddedUnit)]


def test_transacted(connection):
    put(connection, "a")
    session = connection.create_session(transacted=True)
    session.create_consumer(QUEUE).receive(PATIENCE)
    session.create_producer(QUEUE).send(TextMessage("b"))
    assert len(units()) == 1
    session.commit()
    assert units() == []


@pytest.mark.parametrize("end", ["acknowledge", "recover"])
@pytest.mark.parametrize("mode", AcknowledgeMode)
def test_acknowledged(connection, mode, end):
    put(connection, "a")
    session = connection.create_session(acknowledge_mode=mode)
    consumer = session.create_consumer(QUEUE)
    message = consumer.receive(PATIENCE)
    assert len(units()) == (mode is not AcknowledgeMode.AUTO)  # which has ended it already
    getattr(message if end == "acknowledge" else session, end)()
    consumer.receive(0)  # with DUPS_OK it is acknowledged when there is no more
    del message
    session.recover()
    assert units() == []


@pytest.mark.parametrize("mode", AcknowledgeMode)
def test_a_closed_session(connection, mode):
    put(connection, "a")
    session = connection.create_session(acknowledge_mode=mode)
    session.create_consumer(QUEUE).receive(PATIENCE).acknowledge()
    kept = ref(session._mode)
    session.close()
    del session
    connection.create_session()  # which takes note of those that are closed
    assert kept() is None
