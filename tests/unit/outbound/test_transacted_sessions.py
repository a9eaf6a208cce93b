"""Transacted sessions: commit, rollback and prefetched messages."""

import pytest

from jmsjca import Outcome, Queue, TextMessage
from jmsjca.errors import IllegalStateError, TransactionRolledBackError
from tests.unit.outbound.queues import QUEUE, put, shown

PATIENCE = 30


def test_commit_and_rollback(connection, session):
    put(connection, "a", "b")
    consumer, producer = session.create_consumer(QUEUE), session.create_producer(Queue("out"))
    assert consumer.receive(0).body == "a"
    producer.send(TextMessage("never"))
    session.rollback()
    again = consumer.receive(0)
    assert (again.body, again.redelivered, again.delivery_count) == ("a", True, 2)
    producer.send(TextMessage("sent"))
    session.commit()
    assert connection.admin.depth(Queue("out")).ready == 1
    assert consumer.receive(0).body == "b"


def test_transaction_block_commits(connection, session):
    with session.transaction() as inside:
        assert inside is session
        session.create_producer(QUEUE).send(TextMessage("a"))
        assert shown(connection) == []
    assert shown(connection) == ["a"]


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt(), SystemExit()])
def test_transaction_block_rolls_back_on_any_exception(connection, session, error):
    def send_and_fail() -> None:
        with session.transaction():
            session.create_producer(QUEUE).send(TextMessage("a"))
            raise error

    with pytest.raises(type(error)):
        send_and_fail()
    assert shown(connection) == []
    session.commit()
    assert shown(connection) == []


def test_commit_and_rollback_of_nothing(session):
    session.commit()
    session.rollback()
    with session.transaction():
        pass


def test_rollback_of_nothing_keeps_what_was_taken_ahead(connection, session):
    put(connection, "a", "b", "c")
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(0).body == "a"
    session.commit()
    session.rollback()
    assert [consumer.receive(0).body, consumer.receive(0).body, consumer.receive(0)] == ["b", "c", None]


def test_rollback_of_another_queue_keeps_what_was_taken_ahead(connection, session):
    put(connection, "a", "b")
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive(0).body == "a"
    session.commit()
    session.create_producer(Queue("out")).send(TextMessage("never"))
    session.rollback()
    assert consumer.receive(0).body == "b"


def test_rollback_only_message_makes_the_commit_fail(connection, session):
    put(connection, "a")
    message = session.create_consumer(QUEUE).receive(0)
    settlement = message.acknowledge()
    message.set_rollback_only()
    with pytest.raises(TransactionRolledBackError, match="demanded"):
        session.commit()
    assert settlement.outcome is Outcome.ROLLED_BACK
    with pytest.raises(IllegalStateError, match="settled"):
        message.set_rollback_only()
    assert shown(connection) == ["a"]


def test_acknowledging_in_a_transaction_changes_nothing(connection, session):
    put(connection, "a")
    settlement = session.create_consumer(QUEUE).receive(0).acknowledge()
    assert settlement.outcome is None
    session.commit()
    assert settlement.outcome is Outcome.COMMITTED


def test_closing_a_session_rolls_back(connection):
    put(connection, "a", "b")
    with connection.create_session(transacted=True) as session:
        session.create_producer(QUEUE).send(TextMessage("never"))
        session.create_consumer(QUEUE).receive(0)
    with connection.create_session(transacted=True) as session:
        consumer = session.create_consumer(QUEUE)
        first, second = consumer.receive(0), consumer.receive(0)
        assert [(m.body, m.delivery_count) for m in (first, second)] == [("a", 2), ("b", 1)]
        assert consumer.receive(0) is None


@pytest.mark.parametrize("call", ["commit", "rollback", "transaction"])
def test_session_that_is_not_transacted_has_no_transaction(connection, call):
    with connection.create_session() as session, pytest.raises(IllegalStateError, match="not transacted"):
        getattr(session, call)().__enter__() if call == "transaction" else getattr(session, call)()
