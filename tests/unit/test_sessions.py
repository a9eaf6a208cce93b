"""Sessions: transacted and not, their producers, consumers and browsers."""

import threading

import pytest

from jmsjca import AcknowledgeMode, BytesMessage, Limits, Message, Outcome, Queue, TextMessage, Topic
from jmsjca.config import ConnectionURL
from jmsjca.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    MessageFormatError,
    NotSupportedError,
    TransactionRolledBackError,
)
from jmsjca.outbound import ConnectionFactory

QUEUE = Queue("q")
PATIENCE = 30


@pytest.fixture
def connection(jms_connection_factory):
    with jms_connection_factory.create_connection() as connection:
        yield connection


@pytest.fixture
def session(connection):
    with connection.create_session(transacted=True) as session:
        yield session


def put(connection, *bodies: str) -> None:
    with connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        for body in bodies:
            producer.send(TextMessage(body))


def shown(connection) -> list[str]:
    with connection.create_session() as session:
        return [message.body for message in session.create_browser(QUEUE)]


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


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK])
def test_automatic_acknowledgement(connection, mode):
    put(connection, "a", "b")
    with connection.create_session(acknowledge_mode=mode) as session:
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
    assert message.acknowledge().outcome is Outcome.ROLLED_BACK


@pytest.mark.parametrize("call", ["commit", "rollback", "transaction"])
def test_session_that_is_not_transacted_has_no_transaction(connection, call):
    with connection.create_session() as session, pytest.raises(IllegalStateError, match="not transacted"):
        getattr(session, call)().__enter__() if call == "transaction" else getattr(session, call)()


def test_producer_sets_headers(connection, session):
    message = TextMessage("a", correlation_id="c", properties={"p": 1})
    producer = session.create_producer(QUEUE)
    producer.send(message, priority=7, time_to_live=60)
    first = message.message_id
    producer.send(message)
    session.commit()
    assert first != message.message_id
    one, two = session.create_browser(QUEUE)
    assert (one.message_id, one.priority, one.correlation_id, one.destination) == (first, 7, "c", QUEUE)
    assert (one.expiration - one.timestamp).total_seconds() == 60
    assert (two.message_id, two.priority, two.expiration) == (message.message_id, 4, None)


@pytest.mark.parametrize("wrong", [{"priority": -1}, {"priority": 10}, {"time_to_live": -1}, {"delivery_delay": -0.1}])
def test_producer_refuses_what_makes_no_sense(session, wrong):
    with pytest.raises(MessageFormatError):
        session.create_producer(QUEUE).send(TextMessage("a"), **wrong)


def test_destination_is_named_once(session):
    with pytest.raises(InvalidDestinationError, match="once"):
        session.create_producer().send(TextMessage("a"))
    with pytest.raises(InvalidDestinationError, match="once"):
        session.create_producer(QUEUE).send(TextMessage("a"), QUEUE)
    session.create_producer().send(TextMessage("a"), QUEUE)


def test_messages_are_made(session):
    assert type(session.create_message(properties={"a": 1})) is Message
    assert type(session.create_text_message("a")) is TextMessage
    assert type(session.create_bytes_message(b"a")) is BytesMessage


def test_durable_consumer_needs_a_client_id(session):
    with pytest.raises(InvalidClientIDError, match="client_id"):
        session.create_durable_consumer(Topic("t"), "s")
    with pytest.raises(InvalidClientIDError):
        session.unsubscribe(Topic("t"), "s")


def test_durable_consumer(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    topic = Topic("t")
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_durable_consumer(topic, "s").close()
        session.create_producer(topic).send(TextMessage("kept"))
        with session.create_durable_consumer(topic, "s") as consumer:
            assert consumer.receive(0).body == "kept"
        session.unsubscribe(topic, "s")
        with pytest.raises(InvalidDestinationError):
            session.unsubscribe(topic, "s")


def test_selector_is_refused_by_a_broker_that_has_none(session):
    assert not session._link.capabilities.selectors
    with pytest.raises(NotSupportedError):
        session.create_consumer(QUEUE, selector="a = 1")
    with pytest.raises(NotSupportedError):
        list(session.create_browser(QUEUE, selector="a = 1"))


def test_message_over_the_limit_is_refused(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, limits=Limits(message_bytes=10))
    with factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        producer.send(TextMessage("x" * 10))
        with pytest.raises(Exception, match="over the limit of 10 bytes"):
            producer.send(TextMessage("x" * 11))
        assert shown(connection) == ["x" * 10]


def test_stopped_connection_does_not_deliver(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    put(connection, "a")
    consumer = connection.create_session().create_consumer(QUEUE)
    assert consumer.receive(0) is None
    connection.start()
    connection.stop()
    assert consumer.receive(0.001) is None
    connection.start()
    assert consumer.receive(0).body == "a"
    connection.close()


def test_starting_lets_a_waiting_receive_go_on(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    put(connection, "a")
    consumer = connection.create_session().create_consumer(QUEUE)
    results: list[Message | None] = []
    waiter = threading.Thread(target=lambda: results.append(consumer.receive(PATIENCE)))
    waiter.start()
    connection.start()
    waiter.join(PATIENCE)
    assert results[0].body == "a"
    connection.close()


def test_closing_the_connection_ends_a_waiting_receive(jms_connection_factory):
    connection = jms_connection_factory.create_connection()
    connection.start()
    consumer = connection.create_session().create_consumer(QUEUE)
    results: list[Message | None] = []
    waiter = threading.Thread(target=lambda: results.append(consumer.receive()), daemon=True)
    waiter.start()
    connection.close()
    waiter.join(PATIENCE)
    assert results in ([None], [])
    assert not waiter.is_alive()


def test_url_of_a_factory_is_checked_at_once():
    with pytest.raises(ValueError, match="scheme"):
        ConnectionFactory("nonsense")
    assert ConnectionURL.parse("embedded://x").host == "x"
