"""Closing sessions, consumers and connections: from any thread, completely, once (JMS 3.1, 6.1.8 and 6.2.15)."""

import threading

import pytest

from jmsjca import AcknowledgeMode, Outcome, Queue, TextMessage
from jmsjca.errors import IllegalStateError, StoreError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.outbound import Session
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.session import session_for_delivery
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from jmsjca.providers.embedded.unit import EmbeddedUnit
from tests.unit.outbound.queues import PATIENCE, QUEUE, left, put, shown, take

OTHER = Queue("other")


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


@pytest.fixture
def stuck(monkeypatch):
    """Lets every commit wait until `release` is set; `entered` tells that one began."""

    class Stuck:
        entered, release = threading.Event(), threading.Event()

    real = EmbeddedUnit.commit

    def commit(self, **options):
        Stuck.entered.set()
        assert Stuck.release.wait(PATIENCE)
        real(self, **options)

    monkeypatch.setattr(EmbeddedUnit, "commit", commit)
    return Stuck


def test_closing_the_session_ends_its_receive(session, receiving):
    """Another thread may close it; the receive returns None (6.2.15)."""
    call = receiving(session.create_consumer(QUEUE))
    session.close()
    assert call.result() is None
    with pytest.raises(IllegalStateError, match="closed"):
        session.recover()


def test_closing_the_connection_ends_all_receives(connection, receiving):
    """It terminates all pending receives (6.1.8)."""
    calls = [receiving(connection.create_session().create_consumer(queue)) for queue in (QUEUE, OTHER)]
    connection.close()
    assert [call.result() for call in calls] == [None, None]


def test_closing_the_consumer_ends_its_receive(connection, session, receiving):
    """And leaves the rest of the session as it is (8.8)."""
    call = receiving(consumer := session.create_consumer(QUEUE))
    consumer.close()
    assert call.result() is None
    put(connection, "a")
    assert take(session.create_consumer(QUEUE), 1) == ["a"]


def test_closing_the_consumer_waits_for_its_receive(session, monkeypatch, in_thread):
    """The call to close blocks until the receive has completed (8.8)."""
    entered, release = threading.Event(), threading.Event()

    def slow(self, limit, timeout):
        entered.set()
        assert release.wait(PATIENCE)
        return []

    consumer = session.create_consumer(QUEUE)
    monkeypatch.setattr(EmbeddedConsumer, "receive", slow)
    receiving = in_thread(consumer.receive)
    assert entered.wait(PATIENCE)
    closing = in_thread(consumer.close)
    assert not closing.ended()
    release.set()
    assert (closing.result(), receiving.result()) == (None, None)


def test_closing_the_consumer_waits_for_what_is_being_handed_over(connection, session, monkeypatch, in_thread):
    """No receive returns a message once it is closed (8.8)."""
    put(connection, "a")
    consumer = session.create_consumer(QUEUE)
    take_it, interrupt, interrupted, closing, order = (
        session._mode.take,
        consumer._receiver.interrupt,
        threading.Event(),
        [],
        [],
    )

    def handing_over(delivery, source):
        closing.append(in_thread(lambda: (consumer.close(), order.append("closed"))))
        assert interrupted.wait(PATIENCE)
        assert not closing[0].ended()
        order.append("handed over")
        return take_it(delivery, source)

    monkeypatch.setattr(session._mode, "take", handing_over)
    monkeypatch.setattr(consumer._receiver, "interrupt", lambda: (interrupt(), interrupted.set()))
    assert consumer.receive(PATIENCE).body == "a"
    closing[0].result()
    assert order == ["handed over", "closed"]


def test_nothing_is_handed_over_once_the_consumer_is_being_closed(connection, session, in_thread):
    """Not what was taken ahead either: it goes back (8.8)."""
    put(connection, "a", "b")
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(PATIENCE).body == "a"  # and b is here
    with consumer._receiver._handing_over:  # it is there, and not handed over yet
        late = in_thread(consumer.receive)
        assert not late.ended()
        consumer._receiver.closed = True
    assert late.result() is None
    consumer._receiver.closed = False
    consumer.close()
    assert take(session.create_consumer(QUEUE), 1) == ["b"]


def test_closing_another_consumer_does_not_wait(connection, session, receiving):
    """It waits for a receive of that consumer only (8.8)."""
    waiting, closed = session.create_consumer(QUEUE), session.create_consumer(OTHER)
    call = receiving(waiting)
    closed.close()
    put(connection, "a")
    assert call.result().body == "a"


def test_nothing_is_handed_over_once_the_session_is_being_closed(connection, in_thread):
    """Nobody could settle it any more: it goes back, not counted (6.2.15)."""
    put(connection, "a", "b")
    session = connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(PATIENCE).body == "a"  # and b is here
    with consumer._receiver._handing_over:
        late = in_thread(consumer.receive)
        assert not late.ended()
        session._lock.closed = True  # as close() does first
    assert late.result() is None
    session._lock.closed = False
    session.close()
    assert left(connection.create_session().create_consumer(QUEUE)) == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
def test_closing_ends_a_receive_that_waits_for_the_start(jms_connection_factory, receiving, what):
    """A stopped connection's receive ends as well (6.1.5 and 6.1.8)."""
    with jms_connection_factory.create_connection() as connection:
        connection.stop()
        session = connection.create_session()
        consumer = session.create_consumer(QUEUE)
        call = receiving(consumer, stopped=True)
        {"consumer": consumer, "session": session, "connection": connection}[what].close()
        assert call.result() is None


def test_closing_waits_for_a_call_in_another_thread(connection, stuck, in_thread):
    """What another thread is about ends in an orderly fashion: the commit happens (6.2.15)."""
    session = connection.create_session(transacted=True)
    session.create_producer(QUEUE).send(TextMessage("a"))
    commit = in_thread(session.commit, "committer")
    assert stuck.entered.wait(PATIENCE)
    closing = in_thread(session.close, "closer")
    assert not closing.ended()
    with pytest.raises(IllegalStateError, match="closed"):
        session.commit()
    stuck.release.set()
    assert (commit.result(), closing.result()) == (None, None)
    assert shown(connection) == ["a"]


def test_thread_that_is_late_learns_that_the_session_is_closed(session, receiving):
    """Not that somebody else uses it (6.2.15)."""
    call = receiving(session.create_consumer(QUEUE))
    session._lock.closed = True  # as close() does first
    with pytest.raises(IllegalStateError, match="The session is closed"):
        session.recover()
    session._lock.closed = False
    session.close()
    assert call.result() is None


def test_thread_that_is_late_does_not_keep_the_closing_one_out(session, in_thread):
    """It may come when the session is closed already, but the closing thread is not in it yet."""
    session._lock.closed = True  # as close() does first
    with pytest.raises(IllegalStateError, match="The session is closed"):
        session.recover()
    session._lock.closed = False
    in_thread(session.close).result()
    assert session.closed


def test_closing_inside_of_a_receive(session, monkeypatch):
    """A signal handler runs in the thread that it interrupts, and may close what that thread waits for (6.2.5)."""
    real = EmbeddedConsumer.receive

    def interrupted(self, limit, timeout):
        session.close()
        return real(self, limit, timeout)

    consumer = session.create_consumer(QUEUE)
    monkeypatch.setattr(EmbeddedConsumer, "receive", interrupted)
    assert consumer.receive() is None


def test_block_of_a_transaction_that_another_thread_ends(connection, in_thread):
    """Its own exception comes out, not that of the rollback that is not needed any more."""

    def fail():
        with session.transaction():
            in_thread(session.close).result()
            raise KeyError("mine")

    session = connection.create_session(transacted=True)
    session.create_producer(QUEUE).send(TextMessage("never"))
    with pytest.raises(KeyError, match="mine"):
        fail()
    assert shown(connection) == []


def test_message_that_came_too_late_is_given_back(connection, receiving, monkeypatch, in_thread):
    """What arrives while the consumer is being closed is not handed over, and is not counted (8.8)."""
    session = connection.create_session()
    consumer = session.create_consumer(QUEUE)
    real, interrupt, closed, closing = EmbeddedConsumer.receive, consumer._receiver.interrupt, threading.Event(), []

    def closed_meanwhile(self, limit, timeout):
        chunk = real(self, limit, timeout)
        closing.append(in_thread(consumer.close))
        assert closed.wait(PATIENCE)
        return chunk

    put(connection, "a")
    monkeypatch.setattr(consumer._receiver, "interrupt", lambda: (closed.set(), interrupt()))
    monkeypatch.setattr(EmbeddedConsumer, "receive", closed_meanwhile)
    assert consumer.receive(0) is None
    closing[0].result()
    monkeypatch.undo()
    again = session.create_consumer(QUEUE).receive(0)
    assert (again.body, again.delivery_count) == ("a", 1)


CLOSED_QUEUE = Queue("q")


def test_closed_connection_makes_no_session(connection):
    connection.close()
    connection.close()
    with pytest.raises(IllegalStateError, match="closed"):
        connection.create_session()


def test_closing_the_connection_closes_its_sessions(connection):
    session = connection.create_session(transacted=True)
    connection.close()
    assert session.closed
    session.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.create_producer(CLOSED_QUEUE),
        lambda s: s.create_consumer(CLOSED_QUEUE),
        lambda s: s.create_browser(CLOSED_QUEUE),
        lambda s: s.commit(),
        lambda s: s.rollback(),
        lambda s: s.transaction().__enter__(),
    ],
)
def test_closed_session_refuses(connection, call):
    session = connection.create_session(transacted=True)
    session.close()
    with pytest.raises(IllegalStateError, match="closed"):
        call(session)


def test_producer_and_consumer_of_a_closed_session_refuse(connection):
    session = connection.create_session(transacted=True)
    producer, consumer = session.create_producer(CLOSED_QUEUE), session.create_consumer(CLOSED_QUEUE)
    session.close()
    with pytest.raises(IllegalStateError):
        producer.send(TextMessage("a"))
    with pytest.raises(IllegalStateError):
        consumer.receive(0)


def test_closed_producer_and_consumer_refuse(connection):
    session = connection.create_session()
    producer, consumer = session.create_producer(CLOSED_QUEUE), session.create_consumer(CLOSED_QUEUE)
    producer.close()
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError):
        producer.send(TextMessage("a"))
    with pytest.raises(IllegalStateError):
        consumer.receive(0)


@pytest.mark.parametrize(
    "call",
    [
        Session.commit,
        Session.rollback,
        lambda s: s.transaction().__enter__(),
        lambda s: s.create_consumer(CLOSED_QUEUE),
    ],
)
def test_session_of_a_delivery_is_settled_by_the_listener(connection, call):
    work = UnitOfWork(connection._provider_connection.unit())
    context = ConnectionContext.for_listener(connection._provider_connection, connection._context.limits)
    with session_for_delivery(context, work) as session:
        session.create_producer(CLOSED_QUEUE).send(TextMessage("a"))
        with pytest.raises(IllegalStateError):
            call(session)
    work.commit()
    assert connection.admin.depth(CLOSED_QUEUE).ready == 1


def put_and_receive(connection, **options):
    with connection.create_session() as session:
        session.create_producer(CLOSED_QUEUE).send(TextMessage("a"))
    session = connection.create_session(**options)
    return session, session.create_consumer(CLOSED_QUEUE).receive(0)


def fail_with(monkeypatch, name: str, error: Exception) -> None:
    """Let a method of every unit do its work and then fail."""
    real = getattr(EmbeddedUnit, name)

    def failing(self: EmbeddedUnit, *args: object, **kwargs: object) -> None:
        real(self, *args, **kwargs)
        raise error

    monkeypatch.setattr(EmbeddedUnit, name, failing)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [  # classes: an error that outlives the test keeps the unit through its traceback
        (TransactionInDoubtError, Outcome.IN_DOUBT),
        (TransactionRolledBackError, Outcome.ROLLED_BACK),
    ],
)
@pytest.mark.parametrize(
    "options", [{"transacted": True}, {"acknowledge_mode": AcknowledgeMode.CLIENT}], ids=["transacted", "client"]
)
def test_settlement_learns_of_a_failed_commit(connection, monkeypatch, error, outcome, options):
    session, message = put_and_receive(connection, **options)
    settlement = message.acknowledge() if session.transacted else message._context._unit.settlement
    fail_with(monkeypatch, "commit", error("planted"))
    with pytest.raises(error):
        session.commit() if session.transacted else message.acknowledge()
    assert settlement.outcome is outcome


def test_settlement_learns_of_a_failed_rollback(connection, monkeypatch):
    session, message = put_and_receive(connection, transacted=True)
    settlement = message.acknowledge()
    fail_with(monkeypatch, "rollback", StoreError("disk"))
    with pytest.raises(StoreError):
        session.rollback()
    assert settlement.outcome is Outcome.ROLLED_BACK


def test_connection_is_closed_although_a_rollback_fails(connection, jms_connection_factory, monkeypatch):
    """What the session held must not stay held by a connection that nobody can close again."""
    put_and_receive(connection, transacted=True)

    def fail(self: EmbeddedUnit, **_: object) -> None:
        raise StoreError("disk")

    monkeypatch.setattr(EmbeddedUnit, "rollback", fail)
    with pytest.raises(StoreError):
        connection.close()
    with jms_connection_factory.create_connection() as other:
        assert (other.admin.depth(CLOSED_QUEUE).ready, other.admin.depth(CLOSED_QUEUE).held) == (1, 0)
