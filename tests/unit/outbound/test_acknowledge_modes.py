"""Acknowledge modes of sessions that are not transacted (JMS 3.1, section 6.2.10)."""

from functools import partialmethod

import pytest

from jmsjca import AcknowledgeMode, ConnectionFactory, Limits, Outcome, Queue
from jmsjca.errors import IllegalStateError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.embedded.delivery import EmbeddedDelivery
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound.queues import QUEUE, left, put, shown, take

OTHER = Queue("other")
EXPLICIT = [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL]


@pytest.fixture
def session(connection):
    with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        yield session


def test_one_message_acknowledges_those_of_all_consumers(connection, session):
    """It acknowledges all messages that have been delivered by its session (6.2.10)."""
    put(connection, *"ab")
    put(connection, *"xy", to=OTHER)
    consumers = [session.create_consumer(queue) for queue in (QUEUE, OTHER)]
    first, _ = (consumer.receive(0) for consumer in consumers)
    first.acknowledge()
    session.close()
    assert (shown(connection), shown(connection, OTHER)) == (["b"], ["y"])


def test_any_message_of_the_session_acknowledges(connection, session):
    """Also one that is acknowledged already: it acknowledges what came after it (6.2.10)."""
    put(connection, *"abc")
    consumer = session.create_consumer(QUEUE)
    first = consumer.receive(0)
    first.acknowledge()
    assert take(consumer, 1) == ["b"]
    assert first.acknowledge().outcome is Outcome.COMMITTED
    session.close()
    assert shown(connection) == ["c"]


def test_what_was_taken_ahead_is_not_acknowledged(connection, session):
    """Only what was handed over is (6.2.10)."""
    put(connection, *"abc")
    session.create_consumer(QUEUE).receive(0).acknowledge()
    session.close()
    assert shown(connection) == ["b", "c"]


@pytest.mark.parametrize("mode", EXPLICIT)
def test_message_can_be_acknowledged_after_its_consumer_was_closed(connection, mode):
    """Acknowledgement is a function of the session, not of the consumer (8.8)."""
    put(connection, *"ab")
    with connection.create_session(acknowledge_mode=mode) as session:
        with session.create_consumer(QUEUE) as consumer:
            message = consumer.receive(0)
        assert message.acknowledge().outcome is Outcome.COMMITTED
    assert shown(connection) == ["b"]


def test_closed_consumer_of_a_transaction_changes_nothing(connection):
    """The transaction can be committed, or rolled back, all the same (8.8)."""
    put(connection, *"abc")
    with connection.create_session(transacted=True) as session:
        for end in (session.rollback, session.commit):
            with session.create_consumer(QUEUE) as consumer:
                assert take(consumer, 1) == ["a"]
            end()
    assert shown(connection) == ["b", "c"]


@pytest.mark.parametrize("mode", EXPLICIT)
def test_session_acknowledges_without_a_message(connection, mode):
    """All that was received, as JMSContext.acknowledge does (2.8)."""
    put(connection, *"abc")
    with connection.create_session(acknowledge_mode=mode) as session:
        assert take(session.create_consumer(QUEUE), 2) == ["a", "b"]
        session.acknowledge()
        session.acknowledge()
    assert shown(connection) == ["c"]


def test_session_acknowledgement_has_no_effect_on_a_transaction(connection):
    """It is for the client modes (2.8)."""
    put(connection, "a")
    with connection.create_session(transacted=True) as session:
        assert take(session.create_consumer(QUEUE), 1) == ["a"]
        session.acknowledge()
    assert shown(connection) == ["a"]


@pytest.mark.parametrize("options", [{"transacted": True}, *({"acknowledge_mode": mode} for mode in AcknowledgeMode)])
@pytest.mark.parametrize("closed", ["session", "connection"])
def test_message_of_what_was_closed_cannot_be_acknowledged(jms_connection_factory, closed, options):
    """Closing does not acknowledge, and afterwards nobody can; the message stays readable (6.1.8 and 6.2.15)."""
    with jms_connection_factory.create_connection() as connection:
        put(connection, "a")
        session = connection.create_session(**options)
        message = session.create_consumer(QUEUE).receive(0)
        {"session": session, "connection": connection}[closed].close()
        with pytest.raises(IllegalStateError, match="closed"):
            message.acknowledge()
        assert message.body == "a"


def test_failed_acknowledgement_brings_everything_again_in_order(connection, session, monkeypatch):
    """What was taken ahead comes behind what was not acknowledged, not before it (6.2.9)."""
    put(connection, *"abcd")
    consumer = session.create_consumer(QUEUE)
    message, _ = consumer.receive(0), consumer.receive(0)
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedUnit, "commit", _failing_commit)
        with pytest.raises(TransactionRolledBackError):
            message.acknowledge()
    assert left(consumer) == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]


@pytest.mark.parametrize("error", [TransactionRolledBackError, TransactionInDoubtError])
def test_failed_automatic_acknowledgement_brings_the_message_again(connection, monkeypatch, error):
    """`receive` did not return successfully, so nothing was acknowledged (6.2.10), or nobody knows."""
    put(connection, *"abc")
    with connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedUnit, "commit", partialmethod(_failing_commit, error))
            with pytest.raises(error):
                consumer.receive(0)
        assert left(consumer) == [("a", 2), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("step", ["take", "decode", "commit"])
def test_interrupted_automatic_acknowledgement_brings_the_message_again(connection, other, monkeypatch, step):
    """A signal handler may raise before the message is acknowledged; who receives has not seen it then."""
    put(connection, *"abc")
    take_in = EmbeddedUnit.take

    def interrupted(*arguments):
        if step == "take":
            take_in(*arguments)
        raise KeyboardInterrupt

    where, name, planted = {
        "take": (EmbeddedUnit, "take", interrupted),
        "decode": (EmbeddedDelivery, "message", property(interrupted)),
        "commit": (EmbeddedUnit, "commit", lambda *_, **__: interrupted()),
    }[step]
    with connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        with monkeypatch.context() as patch:
            patch.setattr(where, name, planted)
            with pytest.raises(KeyboardInterrupt):
                consumer.receive(0)
    with other.create_session() as session:
        assert [body for body, _ in left(session.create_consumer(QUEUE))] == ["a", "b", "c"]


def test_message_of_an_automatic_session_is_acknowledged_already(connection):
    """So `acknowledge` has no effect (3.6), and there is nothing to roll back."""
    put(connection, *"ab")
    with connection.create_session() as session:
        message = session.create_consumer(QUEUE).receive(0)
        assert (message.acknowledge().outcome, message.acknowledge().wait(0)) == (Outcome.COMMITTED,) * 2
        with pytest.raises(IllegalStateError, match="not transacted"):
            message.set_rollback_only()
        session.recover()
    assert shown(connection) == ["b"]


def _failing_commit(unit, error=TransactionRolledBackError, **_):
    unit.rollback()
    raise error("planted")


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


@pytest.fixture
def dups_ok_connection(jms_broker_url):
    """Takes two messages ahead."""
    factory = ConnectionFactory(jms_broker_url, limits=Limits(prefetch_messages=2))
    with factory.create_connection() as dups_ok_connection:
        yield dups_ok_connection


@pytest.fixture
def dups_ok_session(dups_ok_connection):
    with dups_ok_connection.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK) as dups_ok_session:
        yield dups_ok_session


def held(dups_ok_connection):
    return dups_ok_connection.admin.depth(QUEUE).held


def test_acknowledged_when_more_is_asked_for(dups_ok_connection, dups_ok_session):
    put(dups_ok_connection, *"abcd")
    consumer = dups_ok_session.create_consumer(QUEUE)
    assert take(consumer, 2) == ["a", "b"]
    assert held(dups_ok_connection) == 2
    assert take(consumer, 1) == ["c"]
    assert dups_ok_connection.admin.depth(QUEUE).total == 2


def test_acknowledged_when_there_is_no_more(dups_ok_connection, dups_ok_session):
    put(dups_ok_connection, "a")
    consumer = dups_ok_session.create_consumer(QUEUE)
    assert left(consumer) == [("a", 1)]
    assert dups_ok_connection.admin.depth(QUEUE).total == 0


def test_acknowledged_when_another_consumer_asks(dups_ok_connection, dups_ok_session):
    """Acknowledgement is the session's, not the consumer's."""
    put(dups_ok_connection, "a")
    assert take(dups_ok_session.create_consumer(QUEUE), 1) == ["a"]
    dups_ok_session.create_consumer(QUEUE).receive(0)
    assert dups_ok_connection.admin.depth(QUEUE).total == 0


def test_acknowledged_at_the_end(dups_ok_connection, dups_ok_session):
    """The client has seen them."""
    put(dups_ok_connection, *"abc")
    assert take(dups_ok_session.create_consumer(QUEUE), 1) == ["a"]
    dups_ok_session.close()
    assert shown(dups_ok_connection) == ["b", "c"]


def test_lost_connection_brings_them_again(dups_ok_connection, jms_connection_factory):
    """Duplicates are what the mode allows; they are marked (6.2.11)."""
    dups_ok_session = dups_ok_connection.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK)
    put(dups_ok_connection, *"ab")
    assert take(dups_ok_session.create_consumer(QUEUE), 1) == ["a"]
    dups_ok_connection._provider_connection.close()  # as if the process had ended here
    with jms_connection_factory.create_connection() as other:
        first, _ = iter(other.create_session().create_consumer(QUEUE).receive_no_wait, None)
        assert (first.body, first.redelivered) == ("a", True)


def test_failed_acknowledgement_brings_them_again_in_order(dups_ok_connection, dups_ok_session, monkeypatch):
    put(dups_ok_connection, *"abc")
    consumer = dups_ok_session.create_consumer(QUEUE)
    assert take(consumer, 2) == ["a", "b"]

    def failing(unit, **_):
        unit.rollback()
        raise TransactionRolledBackError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedUnit, "commit", failing)
        with pytest.raises(TransactionRolledBackError):
            consumer.receive(0)
    assert left(consumer) == [("a", 2), ("b", 2), ("c", 1)]


def test_message_has_nothing_to_say(dups_ok_connection, dups_ok_session):
    """`acknowledge` has no effect in this mode, and there is nothing to roll back."""
    put(dups_ok_connection, *"ab")
    message = dups_ok_session.create_consumer(QUEUE).receive(0)
    assert message.acknowledge().outcome is None
    assert held(dups_ok_connection) == 2
    with pytest.raises(IllegalStateError, match="not transacted"):
        message.set_rollback_only()
