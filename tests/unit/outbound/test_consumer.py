"""Consumers: receive with and without waiting, and bodies only (JMS 3.1, sections 8.5, 8.6 and 8.8)."""

from decimal import Decimal

import pytest

from jmsjca import AcknowledgeMode, BytesMessage, MapMessage, Message, ObjectMessage, TextMessage
from jmsjca.errors import IllegalStateError, MessageFormatError
from jmsjca.providers.embedded.consumer import EmbeddedConsumer
from tests.unit.outbound.queues import PATIENCE, QUEUE, left, put, shown, take

AUTOMATIC = [AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK]
DECIMAL = {("decimal", "Decimal")}


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


def send(connection, *messages):
    with connection.create_session() as session:
        for message in messages:
            session.create_producer(QUEUE).send(message)


def test_receive_no_wait(connection, session):
    """8.5."""
    consumer = session.create_consumer(QUEUE)
    assert consumer.receive_no_wait() is None
    put(connection, "a")
    assert consumer.receive_no_wait().body == "a"


def test_receive_waits_for_the_next_message(connection, session, receiving):
    """8.5."""
    call = receiving(session.create_consumer(QUEUE))
    put(connection, "a")
    assert call.result().body == "a"


def test_receive_goes_on_waiting(connection, session, monkeypatch):
    """The broker's consumer may return early and empty-handed; the time is not over then."""
    consumer = session.create_consumer(QUEUE)
    put(connection, "a")
    real, calls = EmbeddedConsumer.receive, []

    def early(self, limit, timeout):
        calls.append(timeout)
        return [] if len(calls) < 3 else real(self, limit, timeout)

    monkeypatch.setattr(EmbeddedConsumer, "receive", early)
    assert consumer.receive(PATIENCE).body == "a"
    assert PATIENCE >= calls[0] >= calls[1] >= calls[2] > 0


def test_a_stop_during_a_receive_makes_no_later_queue_seem_empty(connection, session, receiving):
    """The broker's consumer was woken, and keeps that for its next receive."""
    numbers = [str(number) for number in range(40)]
    put(connection, *numbers)
    consumer = session.create_consumer(QUEUE)
    found = take(consumer, 1)  # and some are prefetched
    connection.stop()
    call = receiving(consumer, PATIENCE, stopped=True)
    connection.start()
    found.append(call.result().body)
    assert [*found, *(body for body, _ in left(consumer))] == numbers


def test_iteration_takes_one_after_the_other(connection, session):
    put(connection, *"abc")
    consumer = session.create_consumer(QUEUE)
    seen = []
    for message in consumer:
        seen.append(message.body)
        if message.body == "b":
            break
    assert seen == ["a", "b"]
    assert left(consumer) == [("c", 1)]


def test_iteration_ends_when_the_consumer_is_closed(connection, session, receiving):
    """By its own thread, or by another while it waits."""
    put(connection, "a")
    own = session.create_consumer(QUEUE)
    assert [(message.body, own.close()) for message in own] == [("a", None)]
    other = session.create_consumer(QUEUE)
    call = receiving(lambda: list(other))
    other.close()
    assert call.result() == []


def test_bodies(connection, session):
    """8.6."""
    send(connection, TextMessage("a"), BytesMessage(b"b"), MapMessage({"c": 1}))
    consumer = session.create_consumer(QUEUE)
    assert (consumer.receive_body(str), consumer.receive_body(bytes, 0)) == ("a", b"b")
    assert dict(consumer.receive_body(dict, PATIENCE)) == {"c": 1}
    assert consumer.receive_body(str, 0) is None


@pytest.mark.parametrize("mode", AUTOMATIC)
def test_body_of_another_type_stays_the_next_one(connection, mode):
    """As if the unsuccessful call had not occurred: not redelivered, not counted (8.6)."""
    put(connection, "a", "b")
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        for _ in range(2):
            with pytest.raises(MessageFormatError):
                consumer.receive_body(bytes, 0)
        message = consumer.receive(0)
        assert (message.body, message.redelivered) == ("a", False)
        assert consumer.receive_body(str, 0) == "b"


@pytest.mark.parametrize("message", [Message(), TextMessage()])
def test_message_without_body_has_none_to_give(connection, session, message):
    """8.6."""
    send(connection, message)
    consumer = session.create_consumer(QUEUE)
    with pytest.raises(MessageFormatError):
        consumer.receive_body(str, 0)
    assert type(consumer.receive(0)) is type(message)


@pytest.mark.parametrize("message", [Message(), TextMessage()])
def test_missing_body_is_no_object_either(connection, session, message):
    """It could not be told from a timeout (8.6)."""
    send(connection, message)
    with pytest.raises(MessageFormatError, match="NoneType"):
        session.create_consumer(QUEUE).receive_body(object, 0)


@pytest.mark.parametrize("mode", [*AUTOMATIC, AcknowledgeMode.CLIENT])
def test_pickled_body_of_allowed_classes(connection, mode):
    """The object itself is received, but of these classes only (8.6)."""
    send(connection, ObjectMessage(Decimal("1.5")))
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert consumer.receive_body(Decimal, 0, allowed=DECIMAL) == Decimal("1.5")


@pytest.mark.parametrize(("kind", "allowed"), [(Decimal, None), (Decimal, {("fractions", "Fraction")}), (str, DECIMAL)])
@pytest.mark.parametrize("mode", AUTOMATIC)
def test_refused_pickle_stays_the_next_one(connection, mode, kind, allowed):
    """As any other body of a wrong type (8.6)."""
    send(connection, ObjectMessage(Decimal("1.5")))
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        with pytest.raises(MessageFormatError):
            consumer.receive_body(kind, 0, allowed=allowed)
        message = consumer.receive(0)
        assert (message.get_object(DECIMAL), message.redelivered) == (Decimal("1.5"), False)


def test_allowed_classes_do_not_matter_to_other_bodies(connection, session):
    put(connection, "a")
    assert session.create_consumer(QUEUE).receive_body(str, 0, allowed=DECIMAL) == "a"


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL])
def test_body_of_another_type_was_received_by_the_client(connection, mode):
    """Under CLIENT the call counts as successful, and the client may recover (8.6)."""
    put(connection, "a", "b")
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        with pytest.raises(MessageFormatError):
            consumer.receive_body(bytes, 0)
        assert take(consumer, 1) == ["b"]
        session.recover()
        assert left(consumer) == [("a", 2), ("b", 2)]


def test_body_of_another_type_belongs_to_the_transaction(connection):
    """8.6."""
    put(connection, "a", "b")
    with connection.create_session(transacted=True) as session:
        consumer = session.create_consumer(QUEUE)
        with pytest.raises(MessageFormatError):
            consumer.receive_body(bytes, 0)
        session.commit()
        assert take(consumer, 1) == ["b"]


@pytest.mark.parametrize("mode", [*AUTOMATIC, AcknowledgeMode.CLIENT])
def test_closing_gives_back_what_was_taken_ahead(connection, mode):
    """Uncounted, for whoever comes next; closing twice does nothing (8.8)."""
    put(connection, *"abc")
    with connection.create_session(acknowledge_mode=mode) as session:
        consumer = session.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        consumer.close()
        consumer.close()
        assert left(session.create_consumer(QUEUE)) == [("b", 1), ("c", 1)]


def test_closed_consumer_refuses(session):
    """6.2.15, 8.8."""
    consumer = session.create_consumer(QUEUE)
    assert not consumer.closed
    consumer.close()
    assert consumer.closed
    for use in (consumer.receive, consumer.receive_no_wait, lambda: consumer.receive_body(str)):
        with pytest.raises(IllegalStateError, match="consumer is closed"):
            use()
    assert list(consumer) == []


def test_messages_of_one_sender_stay_in_order(connection, session):
    """Those of one session to one destination, within a priority (6.2.9)."""
    producer = session.create_producer(QUEUE)
    for number in range(30):
        producer.send(TextMessage(str(number)), priority=9 if number % 3 == 0 else 4)
    urgent = [str(number) for number in range(0, 30, 3)]
    normal = [str(number) for number in range(30) if number % 3]
    assert take(session.create_consumer(QUEUE), 30) == urgent + normal
    assert shown(connection) == []
