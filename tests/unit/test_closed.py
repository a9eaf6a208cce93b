"""Closed objects refuse; closing is thorough even when something fails."""

import pytest

from jmsjca import AcknowledgeMode, Outcome, Queue, TextMessage
from jmsjca.errors import IllegalStateError, StoreError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.outbound import Session
from jmsjca.outbound.connection_state import ConnectionContext
from jmsjca.outbound.session import session_for_delivery
from jmsjca.outbound.unit_of_work import UnitOfWork
from jmsjca.providers.embedded.unit import EmbeddedUnit

QUEUE = Queue("q")


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
        lambda s: s.create_producer(QUEUE),
        lambda s: s.create_consumer(QUEUE),
        lambda s: s.create_browser(QUEUE),
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
    producer, consumer = session.create_producer(QUEUE), session.create_consumer(QUEUE)
    session.close()
    with pytest.raises(IllegalStateError):
        producer.send(TextMessage("a"))
    with pytest.raises(IllegalStateError):
        consumer.receive(0)


def test_closed_producer_and_consumer_refuse(connection):
    session = connection.create_session()
    producer, consumer = session.create_producer(QUEUE), session.create_consumer(QUEUE)
    producer.close()
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError):
        producer.send(TextMessage("a"))
    with pytest.raises(IllegalStateError):
        consumer.receive(0)


@pytest.mark.parametrize(
    "call",
    [Session.commit, Session.rollback, lambda s: s.transaction().__enter__(), lambda s: s.create_consumer(QUEUE)],
)
def test_session_of_a_delivery_is_settled_by_the_listener(connection, call):
    work = UnitOfWork(connection._provider_connection.unit())
    context = ConnectionContext.for_listener(connection._provider_connection, connection._context.limits)
    with session_for_delivery(context, work) as session:
        session.create_producer(QUEUE).send(TextMessage("a"))
        with pytest.raises(IllegalStateError):
            call(session)
    work.commit()
    assert connection.admin.depth(QUEUE).ready == 1


def put_and_receive(connection, **options):
    with connection.create_session() as session:
        session.create_producer(QUEUE).send(TextMessage("a"))
    session = connection.create_session(**options)
    return session, session.create_consumer(QUEUE).receive(0)


def fail_with(monkeypatch, name: str, error: Exception) -> None:
    """Let a method of every unit do its work and then fail."""
    real = getattr(EmbeddedUnit, name)

    def failing(self: EmbeddedUnit, *args: object, **kwargs: object) -> None:
        real(self, *args, **kwargs)
        raise error

    monkeypatch.setattr(EmbeddedUnit, name, failing)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TransactionInDoubtError("?"), Outcome.IN_DOUBT),
        (TransactionRolledBackError("no"), Outcome.ROLLED_BACK),
    ],
)
@pytest.mark.parametrize(
    "options", [{"transacted": True}, {"acknowledge_mode": AcknowledgeMode.CLIENT}], ids=["transacted", "client"]
)
def test_settlement_learns_of_a_failed_commit(connection, monkeypatch, error, outcome, options):
    session, message = put_and_receive(connection, **options)
    settlement = message.acknowledge() if session.transacted else message._context._unit.settlement
    fail_with(monkeypatch, "commit", error)
    with pytest.raises(type(error)):
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
        assert (other.admin.depth(QUEUE).ready, other.admin.depth(QUEUE).held) == (1, 0)
