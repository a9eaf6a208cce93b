"""What a producer sets in its messages, and what it refuses (JMS 3.1, sections 3.4 and 7)."""

from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import ConnectionFactory, DeliveryMode, Queue, TextMessage
from jmsjca.errors import IllegalStateError, InvalidDestinationError, MessageFormatError
from tests.unit.outbound import QUEUE, shown

NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture
def session(connection):
    with connection.create_session() as session:
        yield session


@pytest.fixture
def producer(session):
    return session.create_producer(QUEUE)


@pytest.fixture
def received(session):
    """Gives the next message, as it was received."""
    consumer = session.create_consumer(QUEUE)
    return lambda: consumer.receive(0)


def test_defaults(producer, received):
    """Persistent, of priority 4, for ever, at once (7.4)."""
    options = (producer.delivery_mode, producer.priority, producer.time_to_live, producer.delivery_delay)
    assert options == (DeliveryMode.PERSISTENT, 4, 0, 0)
    producer.send(TextMessage("a"))
    message = received()
    assert (message.delivery_mode, message.priority, message.expiration) == (DeliveryMode.PERSISTENT, 4, None)


def test_producer_has_defaults_of_its_own(producer, received):
    """They hold for all messages sent by the producer, unless the send says otherwise (7.4)."""
    producer.priority, producer.delivery_mode, producer.time_to_live = 7, DeliveryMode.NON_PERSISTENT, 60
    producer.send(TextMessage("a"))
    producer.send(TextMessage("b"), priority=0, delivery_mode=DeliveryMode.PERSISTENT, time_to_live=0)
    first, second = received(), received()
    assert (first.priority, first.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
    assert first.expiration - first.timestamp == timedelta(seconds=60)
    assert (second.priority, second.delivery_mode, second.expiration) == (0, DeliveryMode.PERSISTENT, None)


def test_delivery_delay(connection, producer):
    """7.9."""
    producer.delivery_delay = 3600
    message = TextMessage("later")
    producer.send(message)
    producer.send(TextMessage("now"), delivery_delay=0)
    assert shown(connection) == ["now"]
    assert connection.admin.depth(QUEUE).scheduled == 1
    assert message.delivery_time - message.timestamp == timedelta(hours=1)


def test_headers_are_set_by_the_send(producer):
    """Values set before are ignored and overwritten; they can be read when the send returns (3.4.11)."""
    message = TextMessage("a")
    message.message_id, message.priority, message.destination = "mine", 9, Queue("other")
    before = datetime.now(UTC)
    producer.send(message)
    assert message.message_id.startswith("ID:")
    assert (message.priority, message.destination) == (4, QUEUE)
    assert before <= message.timestamp <= datetime.now(UTC)


def test_message_ids_are_unique(session):
    """3.4.3."""
    messages = [TextMessage("a") for _ in range(20)]
    producers = [session.create_producer(QUEUE) for _ in range(4)]
    for number, message in enumerate(messages):
        producers[number % 4].send(message)
    assert len({message.message_id for message in messages}) == 20


def test_no_message_id(producer, received):
    """If the hint is accepted, the message id must be null (3.4.3)."""
    producer.disable_message_id = True
    message = TextMessage("a")
    producer.send(message)
    assert (message.message_id, received().message_id) == (None, None)


def test_no_timestamp(producer, received):
    """If the hint is accepted there is none; the message expires all the same (3.4.4)."""
    producer.disable_timestamp = True
    message = TextMessage("a")
    producer.send(message, time_to_live=60)
    got = received()
    assert (message.timestamp, got.timestamp, got.expiration is None) == (None, None, False)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("priority", value) for value in (-1, 10, 4.5, "7", True, NAN)),
        *(("time_to_live", value) for value in (-1, -0.001, NAN, INFINITY, "60", 1e11)),
        *(("delivery_delay", value) for value in (-1, NAN, INFINITY, "60", 1e11)),
        *(("delivery_mode", value) for value in (0, 3, "PERSISTENT")),
    ],
)
def test_what_makes_no_sense_is_refused(connection, producer, option, wrong):
    """For the producer and for the send, with the value in the error; the message is as it was (7.7 to 7.9)."""
    message = TextMessage("a")
    with pytest.raises(MessageFormatError, match=f"{option.replace('_', '.')}.*not"):
        setattr(producer, option, wrong)
    with pytest.raises(MessageFormatError, match=f"{option.replace('_', '.')}.*not"):
        producer.send(message, **{option: wrong})
    assert message.message_id is None
    producer.send(message)
    assert shown(connection) == ["a"]


def test_longest_times(producer, received):
    """Centuries."""
    producer.send(TextMessage("a"), time_to_live=1e10)
    assert received().expiration.year > 2300


def test_numbers_of_delivery_modes(producer, received):
    """JMS has constants for them (3.4.2)."""
    producer.delivery_mode = 1
    producer.send(TextMessage("a"))
    assert (producer.delivery_mode, received().delivery_mode) == (DeliveryMode.NON_PERSISTENT,) * 2


@pytest.mark.parametrize("no_destination", ["q", 5, object()], ids=str)
def test_what_is_no_destination(session, no_destination):
    with pytest.raises(InvalidDestinationError, match="no destination"):
        session.create_producer(no_destination)
    with pytest.raises(InvalidDestinationError, match="no destination"):
        session.create_producer().send(TextMessage("a"), no_destination)


def test_closed_producer_refuses(connection, session, producer):
    """What it sent in an open unit stays (6.2.15)."""
    with connection.create_session(transacted=True) as transacted:
        with transacted.create_producer(QUEUE) as leaving:
            leaving.send(TextMessage("a"))
        with pytest.raises(IllegalStateError, match="producer is closed"):
            leaving.send(TextMessage("b"))
        transacted.commit()
    assert shown(connection) == ["a"]


def test_messages_are_made_and_sent_anywhere(connection, session):
    """Not only by the session that made them (6.2.4)."""
    made = [
        session.create_message(properties={"a": 1}),
        session.create_text_message("a"),
        session.create_bytes_message(b"a"),
        session.create_map_message({"a": 1}),
        session.create_stream_message([1, "a"]),
        session.create_object_message({"a": 1}),
    ]
    with connection.create_session() as another:
        for message in made:
            another.create_producer(QUEUE).send(message)
        assert [type(m) for m in another.create_browser(QUEUE)] == [type(m) for m in made]


def test_destinations_are_named(session):
    """6.2.3."""
    assert (str(session.create_queue("a")), str(session.create_topic("b"))) == ("queue:a", "topic:b")


def test_closed_session_makes_nothing(session):
    """6.2.15."""
    session.close()
    for name in ("queue", "topic"):
        with pytest.raises(IllegalStateError, match="closed"):
            getattr(session, f"create_{name}")("a")
    for name in ("message", *(f"{kind}_message" for kind in ("text", "bytes", "map", "stream", "object"))):
        with pytest.raises(IllegalStateError, match="closed"):
            getattr(session, f"create_{name}")()


def test_credentials_of_one_connection(monkeypatch):
    """createConnection(userName, password) (6.1); a password without its user name is ignored."""
    seen = []

    def connect(settings, lost):
        seen.append((settings.user_name, settings.password))
        raise ConnectionRefusedError

    monkeypatch.setattr("jmsjca.outbound.connection.connect", connect)
    factory = ConnectionFactory("embedded://x", user_name="ann", password="a")  # noqa: S106  # none
    for given in ((), ("bob", "b"), (None, "b"), ("bob",)):
        with pytest.raises(ConnectionRefusedError):
            factory.create_connection(*given)
    assert seen == [("ann", "a"), ("bob", "b"), ("ann", "a"), ("bob", None)]
