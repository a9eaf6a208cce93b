"""AcknowledgeMode.DUPS_OK: late, in chunks, never lost (JMS 3.1, section 6.2.10)."""

import pytest

from jmsjca import AcknowledgeMode, ConnectionFactory, Limits
from jmsjca.errors import IllegalStateError, TransactionRolledBackError
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound import QUEUE, left, put, shown, take


@pytest.fixture
def connection(jms_broker_url):
    """Takes two messages ahead."""
    factory = ConnectionFactory(jms_broker_url, limits=Limits(prefetch_messages=2))
    with factory.create_connection() as connection:
        yield connection


@pytest.fixture
def session(connection):
    with connection.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK) as session:
        yield session


def held(connection):
    return connection.admin.depth(QUEUE).held


def test_acknowledged_when_more_is_asked_for(connection, session):
    put(connection, *"abcd")
    consumer = session.create_consumer(QUEUE)
    assert take(consumer, 2) == ["a", "b"]
    assert held(connection) == 2
    assert take(consumer, 1) == ["c"]
    assert connection.admin.depth(QUEUE).total == 2


def test_acknowledged_when_there_is_no_more(connection, session):
    put(connection, "a")
    consumer = session.create_consumer(QUEUE)
    assert left(consumer) == [("a", 1)]
    assert connection.admin.depth(QUEUE).total == 0


def test_acknowledged_when_another_consumer_asks(connection, session):
    """Acknowledgement is the session's, not the consumer's."""
    put(connection, "a")
    assert take(session.create_consumer(QUEUE), 1) == ["a"]
    session.create_consumer(QUEUE).receive(0)
    assert connection.admin.depth(QUEUE).total == 0


def test_acknowledged_at_the_end(connection, session):
    """The client has seen them."""
    put(connection, *"abc")
    assert take(session.create_consumer(QUEUE), 1) == ["a"]
    session.close()
    assert shown(connection) == ["b", "c"]


def test_lost_connection_brings_them_again(connection, jms_connection_factory):
    """Duplicates are what the mode allows; they are marked (6.2.11)."""
    session = connection.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK)
    put(connection, *"ab")
    assert take(session.create_consumer(QUEUE), 1) == ["a"]
    connection._provider_connection.close()  # as if the process had ended here
    with jms_connection_factory.create_connection() as other:
        first, _ = iter(other.create_session().create_consumer(QUEUE).receive_no_wait, None)
        assert (first.body, first.redelivered) == ("a", True)


def test_failed_acknowledgement_brings_them_again_in_order(connection, session, monkeypatch):
    put(connection, *"abc")
    consumer = session.create_consumer(QUEUE)
    assert take(consumer, 2) == ["a", "b"]

    def failing(unit, **_):
        unit.rollback()
        raise TransactionRolledBackError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedUnit, "commit", failing)
        with pytest.raises(TransactionRolledBackError):
            consumer.receive(0)
    assert left(consumer) == [("a", 2), ("b", 2), ("c", 1)]


def test_message_has_nothing_to_say(connection, session):
    """`acknowledge` has no effect in this mode, and there is nothing to roll back."""
    put(connection, *"ab")
    message = session.create_consumer(QUEUE).receive(0)
    assert message.acknowledge().outcome is None
    assert held(connection) == 2
    with pytest.raises(IllegalStateError, match="not transacted"):
        message.set_rollback_only()
