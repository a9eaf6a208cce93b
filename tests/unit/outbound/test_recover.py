"""Session.recover (JMS 3.1, section 6.2.10)."""

import pytest

from jmsjca import AcknowledgeMode, Outcome, Queue
from jmsjca.errors import IllegalStateError, ResourceAllocationError
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.session import session_for_delivery
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound.queues import QUEUE, left, put, shown, take

EXPLICIT = [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL]


@pytest.fixture
def session(connection):
    with connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT) as session:
        yield session


@pytest.mark.parametrize("mode", EXPLICIT)
def test_what_was_not_acknowledged_comes_again_in_order(connection, mode):
    """Redelivered and counted, before what was only taken ahead, which is not counted (6.2.10)."""
    put(connection, *"abcd")
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 2) == ["a", "b"]
        session.recover()
        first = consumer.receive(0)
        assert (first.body, first.redelivered, first.delivery_count) == ("a", True, 2)
        assert left(consumer) == [("b", 2), ("c", 1), ("d", 1)]


def test_recovery_begins_after_the_last_acknowledged_message(connection, session):
    """The series is reset to the point after the last acknowledged message (6.2.10)."""
    put(connection, *"abc")
    consumer = session.create_consumer(QUEUE)
    consumer.receive(0).acknowledge()
    assert take(consumer, 1) == ["b"]
    session.recover()
    assert left(consumer) == [("b", 2), ("c", 1)]


def test_recovery_spares_what_was_acknowledged_individually(connection):
    """A message that was acknowledged never comes again, wherever it stood (6.2.11)."""
    put(connection, *"abcde")
    with connection.create_session(acknowledge_mode=AcknowledgeMode.INDIVIDUAL) as session:
        consumer = session.create_consumer(QUEUE)
        _, second, _ = (consumer.receive(0) for _ in range(3))
        second.acknowledge()
        session.recover()
        assert left(consumer) == [("a", 2), ("c", 2), ("d", 1), ("e", 1)]


@pytest.mark.parametrize("mode", EXPLICIT)
def test_recovery_reaches_all_consumers_of_the_session(connection, mode):
    """Recovery is the session's business, as acknowledgement is (6.2.10)."""
    other = Queue("other")
    put(connection, *"ab")
    put(connection, *"xy", to=other)
    with connection.create_session(acknowledge_mode=mode) as session:
        consumers = [session.create_consumer(queue) for queue in (QUEUE, other)]
        assert [take(consumer, 1) for consumer in consumers] == [["a"], ["x"]]
        session.recover()
        assert [left(consumer) for consumer in consumers] == [[("a", 2), ("b", 1)], [("x", 2), ("y", 1)]]


def test_recovery_leaves_a_consumer_alone_that_handed_nothing_over(connection, session):
    """What was taken ahead for it stays there, in order (6.2.9)."""
    other = Queue("other")
    put(connection, *"ab")
    put(connection, *"xyz", to=other)
    consumer, bystander = session.create_consumer(QUEUE), session.create_consumer(other)
    bystander.receive(0).acknowledge()
    assert take(consumer, 1) == ["a"]
    session.recover()
    assert left(bystander) == [("y", 1), ("z", 1)]


def test_recovery_goes_on_and_on(connection, session):
    """Each time is counted (3.5.11)."""
    put(connection, "a", "b")
    consumer = session.create_consumer(QUEUE)
    for count in (1, 2, 3):
        assert (consumer.receive(0).delivery_count, take(consumer, 1)) == (count, ["b"])
        session.recover()
    session.acknowledge()
    assert shown(connection) == ["a", "b"]


def test_what_is_more_urgent_overtakes_what_comes_again(connection, session):
    """Messages of higher priority that arrived meanwhile come first (6.2.10)."""
    put(connection, "a")
    consumer = session.create_consumer(QUEUE)
    assert take(consumer, 1) == ["a"]
    put(connection, "urgent", priority=9)
    session.recover()
    assert left(consumer) == [("urgent", 1), ("a", 2)]


def test_recovery_after_the_consumer_was_closed(connection, session):
    """A closed consumer's messages belong to the session (8.8); they come to the next consumer."""
    put(connection, *"ab")
    with session.create_consumer(QUEUE) as consumer:
        assert take(consumer, 1) == ["a"]
    session.recover()
    assert left(session.create_consumer(QUEUE)) == [("a", 2), ("b", 1)]


def test_recovered_message_learns_that_it_was_rolled_back(connection, session):
    """Its settlement is that of its delivery, whatever becomes of the next one."""
    put(connection, "a")
    consumer = session.create_consumer(QUEUE)
    early = consumer.receive(0)
    session.recover()
    assert early.acknowledge().outcome is Outcome.ROLLED_BACK
    assert consumer.receive(0).acknowledge().outcome is Outcome.COMMITTED


def test_what_a_recovery_did_not_come_to_can_still_be_acknowledged(connection, monkeypatch):
    """One by one: the last goes back first, and if that fails the others are as they were."""

    def fail(self):
        raise ResourceAllocationError("The disk is full.")

    put(connection, *"ab")
    with connection.create_session(acknowledge_mode=AcknowledgeMode.INDIVIDUAL) as session:
        consumer = session.create_consumer(QUEUE)
        first, _ = (consumer.receive(0) for _ in "ab")
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedUnit, "rollback", fail)
            with pytest.raises(ResourceAllocationError):
                session.recover()
        assert first.acknowledge().outcome is Outcome.COMMITTED


def test_automatic_session_has_nothing_to_recover(connection):
    """Under AUTO a message is acknowledged as it is handed over (6.2.10)."""
    put(connection, *"abc")
    with connection.create_session() as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        session.recover()
        assert left(consumer) == [("b", 1), ("c", 1)]


def test_lazy_session_recovers_what_it_has_not_acknowledged(connection):
    """Under DUPS_OK what was handed over lately comes again (6.2.10)."""
    put(connection, *"abc")
    with connection.create_session(acknowledge_mode=AcknowledgeMode.DUPS_OK) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 2) == ["a", "b"]
        session.recover()
        assert left(consumer) == [("a", 2), ("b", 2), ("c", 1)]


def test_transacted_session_refuses(connection):
    """It is recovered by rollback (6.2.7)."""
    with connection.create_session(transacted=True) as session, pytest.raises(IllegalStateError, match="rollback"):
        session.recover()


def test_session_of_a_delivery_refuses(connection):
    """The listener settles (6.2.10)."""
    work = UnitOfWork(connection._provider_connection.unit())
    context = ConnectionContext.for_listener(connection._provider_connection, connection._context.limits)
    with session_for_delivery(context, work) as session:
        with pytest.raises(IllegalStateError, match="belongs to a delivery"):
            session.recover()
        session.acknowledge()  # has no effect
    work.rollback()


@pytest.mark.parametrize("mode", list(AcknowledgeMode))
def test_nothing_to_recover(connection, mode):
    put(connection, "a")
    with connection.create_session(acknowledge_mode=mode) as session:
        session.recover()
        consumer = session.create_consumer(QUEUE)
        session.recover()
        assert left(consumer) == [("a", 1)]
