"""Producers: headers, options and refusals; the producer of the simplified API (JMS 3.1, sections 3.4 and 7)."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from jmsjca import (
    BytesMessage,
    ConnectionFactory,
    DeliveryMode,
    Limits,
    MapMessage,
    Message,
    Queue,
    Short,
    TextMessage,
    Topic,
)
from jmsjca.errors import (
    ArgumentTypeError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    MessageFormatError,
    MessageNotWriteableError,
)
from tests.unit.outbound.queues import QUEUE, put, shown

NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture
def session_with_receiver(connection):
    with connection.create_session() as session_with_receiver:
        yield session_with_receiver


@pytest.fixture
def producer(session_with_receiver):
    return session_with_receiver.create_producer(QUEUE)


@pytest.fixture
def received_by_session(session_with_receiver):
    """Gives the next message, as it was received."""
    consumer = session_with_receiver.create_consumer(QUEUE)
    return lambda: consumer.receive(0)


def test_defaults(producer, received_by_session):
    """Persistent, of priority 4, for ever, at once (7.4)."""
    options = (producer.delivery_mode, producer.priority, producer.time_to_live, producer.delivery_delay)
    assert options == (DeliveryMode.PERSISTENT, 4, 0, 0)
    producer.send(TextMessage("a"))
    message = received_by_session()
    assert (message.delivery_mode, message.priority, message.expiration) == (DeliveryMode.PERSISTENT, 4, None)


def test_producer_has_defaults_of_its_own(producer, received_by_session):
    """They hold for all messages sent by the producer, unless the send says otherwise (7.4)."""
    producer.priority, producer.delivery_mode, producer.time_to_live = 7, DeliveryMode.NON_PERSISTENT, 60
    producer.send(TextMessage("a"))
    producer.send(TextMessage("b"), priority=0, delivery_mode=DeliveryMode.PERSISTENT, time_to_live=0)
    first, second = received_by_session(), received_by_session()
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
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # times are cut to milliseconds
    producer.send(message)
    assert message.message_id.startswith("ID:")
    assert (message.priority, message.destination) == (4, QUEUE)
    assert before <= message.timestamp <= datetime.now(UTC)


def test_message_ids_are_unique(session_with_receiver):
    """3.4.3."""
    messages = [TextMessage("a") for _ in range(20)]
    producers = [session_with_receiver.create_producer(QUEUE) for _ in range(4)]
    for number, message in enumerate(messages):
        producers[number % 4].send(message)
    assert len({message.message_id for message in messages}) == 20


def test_no_message_id(producer, received_by_session):
    """If the hint is accepted, the message id must be null (3.4.3)."""
    producer.disable_message_id = True
    message = TextMessage("a")
    producer.send(message)
    assert (message.message_id, received_by_session().message_id) == (None, None)


def test_no_timestamp(producer, received_by_session):
    """If the hint is accepted there is none; the message expires all the same (3.4.4)."""
    producer.disable_timestamp = True
    message = TextMessage("a")
    producer.send(message, time_to_live=60)
    got = received_by_session()
    assert (message.timestamp, got.timestamp, got.expiration is None) == (None, None, False)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("priority", value) for value in (-1, 10, 4.5, "7", True, NAN)),
        *(("time_to_live", value) for value in (-1, -0.001, NAN, INFINITY, "60", 1e11)),
        *(("delivery_delay", value) for value in (-1, NAN, INFINITY, "60", 1e11)),
        *(("delivery_mode", value) for value in (0, 3, True, "DURABLE")),
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


def test_longest_times(producer, received_by_session):
    """Centuries."""
    producer.send(TextMessage("a"), time_to_live=1e10)
    assert received_by_session().expiration.year > 2300


def test_numbers_of_delivery_modes(producer, received_by_session):
    """JMS has constants for them (3.4.2)."""
    producer.delivery_mode = 1
    producer.send(TextMessage("a"))
    assert (producer.delivery_mode, received_by_session().delivery_mode) == (DeliveryMode.NON_PERSISTENT,) * 2


@pytest.mark.parametrize("no_destination", ["q", 5, object()], ids=str)
def test_what_is_no_destination(session_with_receiver, no_destination):
    with pytest.raises(InvalidDestinationError, match="no destination"):
        session_with_receiver.create_producer(no_destination)
    with pytest.raises(InvalidDestinationError, match="no destination"):
        session_with_receiver.create_producer().send(TextMessage("a"), no_destination)


def test_closed_producer_refuses(connection, session_with_receiver, producer):
    """What it sent in an open unit stays (6.2.15)."""
    with connection.create_session(transacted=True) as transacted:
        with transacted.create_producer(QUEUE) as leaving:
            leaving.send(TextMessage("a"))
        with pytest.raises(IllegalStateError, match="producer is closed"):
            leaving.send(TextMessage("b"))
        transacted.commit()
    assert shown(connection) == ["a"]


def test_messages_are_made_and_sent_anywhere(connection, session_with_receiver):
    """Not only by the session that made them (6.2.4)."""
    made = [
        session_with_receiver.create_message(properties={"a": 1}),
        session_with_receiver.create_text_message("a"),
        session_with_receiver.create_bytes_message(b"a"),
        session_with_receiver.create_map_message({"a": 1}),
        session_with_receiver.create_stream_message([1, "a"]),
        session_with_receiver.create_object_message({"a": 1}),
    ]
    with connection.create_session() as another:
        for message in made:
            another.create_producer(QUEUE).send(message)
        received = list(another.create_browser(QUEUE))
    assert [type(m) for m in received] == [type(m) for m in made]
    assert received[0].properties == {"a": 1}
    assert [m.body for m in received[1:-1]] == ["a", b"a", {"a": 1}, (1, "a")]
    assert received[-1].get_object({("builtins", "dict")}) == {"a": 1}


def test_destinations_are_named(session_with_receiver):
    """6.2.3."""
    assert (str(session_with_receiver.create_queue("A.b")), str(session_with_receiver.create_topic("C.d"))) == (
        "queue:A.b",
        "topic:C.d",
    )


def test_closed_session_makes_nothing(session_with_receiver):
    """6.2.15."""
    session_with_receiver.close()
    for name in ("queue", "topic"):
        with pytest.raises(IllegalStateError, match="closed"):
            getattr(session_with_receiver, f"create_{name}")("a")
    for name in ("message", *(f"{kind}_message" for kind in ("text", "bytes", "map", "stream", "object"))):
        with pytest.raises(IllegalStateError, match="closed"):
            getattr(session_with_receiver, f"create_{name}")()


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


@pytest.mark.parametrize(
    ("sent", "kind", "received"),
    [
        ("text", TextMessage, "text"),
        ("", TextMessage, ""),
        (b"\x00\xff", BytesMessage, b"\x00\xff"),
        (bytearray(b"ab"), BytesMessage, b"ab"),
        ({"a": 1, "b": "x"}, MapMessage, {"a": 1, "b": "x"}),
        (None, Message, None),
    ],
    ids=repr,
)
def test_producer_makes_the_message_of_its_body(context, sent, kind, received):
    """A message of the appropriate type is created (7.2)."""
    context.create_producer().send(QUEUE, sent)
    message = context.create_consumer(QUEUE).receive(0)
    assert (type(message), message.body) == (kind, received)


def test_producer_sends_a_message(context):
    context.create_producer().send(QUEUE, context.create_text_message("a", properties={"p": 1}))
    message = context.create_consumer(QUEUE).receive(0)
    assert (message.body, message.get_int_property("p")) == ("a", 1)


@pytest.mark.parametrize("unfit", [7, 1.5, object(), ["a"], {1: 2}], ids=repr)
def test_no_message_is_made_of_that(context, unfit):
    with pytest.raises(MessageFormatError):
        context.create_producer().send(QUEUE, unfit)


def test_producer_needs_a_destination(context):
    """The destination must be specified on every send operation (7.1)."""
    with pytest.raises(InvalidDestinationError, match="'text' is no destination"):
        context.create_producer().send("text", QUEUE)


def test_sends_can_be_chained(context):
    """A fluid programming style (7.10)."""
    context.create_producer().send(QUEUE, "a").set(priority=9).send(QUEUE, "b").set(priority=4).send(QUEUE, "c")
    assert [message.body for message in context.create_browser(QUEUE)] == ["b", "a", "c"]


def test_producer_sets_options_headers_and_properties(context):
    """7.4 to 7.6."""
    reply_to = Queue("replies")
    producer = context.create_producer(
        priority=7,
        time_to_live=60,
        delivery_mode=DeliveryMode.NON_PERSISTENT,
        properties={"size": Short(3)},
        correlation_id="c",
        reply_to=reply_to,
        type="order",
    )
    producer.properties["region"] = "EU"
    producer.send(QUEUE, "a")
    message = context.create_consumer(QUEUE).receive(0)
    assert (message.priority, message.delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
    assert (message.expiration - message.timestamp).total_seconds() == 60
    assert (message.correlation_id, message.reply_to, message.type) == ("c", reply_to, "order")
    assert dict(message.properties) == {"size": 3, "region": "EU"}
    assert type(message.properties["size"]) is Short


def test_producer_overrides_the_message(context):
    """What is set on the producer overrides what is set on the message; the rest stays (7.5 and 7.6)."""
    mine = {"correlation_id": "producer's", "type": "producer's", "reply_to": Queue("producer's")}
    headers = {"correlation_id": "message's", "type": "message's", "reply_to": Queue("message's")}
    consumer = context.create_consumer(QUEUE)
    for name, value in mine.items():
        message = TextMessage("a", **headers, properties={"p": 1, "q": 1})
        context.create_producer(**{name: value}, properties={"p": 2}).send(QUEUE, message)
        got = consumer.receive(0)
        assert {header: getattr(got, header) for header in headers} == {**headers, name: value}
        assert dict(got.properties) == {"p": 2, "q": 1}


def test_received_message_is_sent_on(context):
    """Its properties are read-only, so the producer cannot add to them."""
    context.create_producer(properties={"p": 1}).send(QUEUE, "a")
    message = context.create_consumer(QUEUE).receive(0)
    context.create_producer(priority=9).send(QUEUE, message)
    with pytest.raises(MessageNotWriteableError):
        context.create_producer(properties={"q": 1}).send(QUEUE, message)
    again = context.create_consumer(QUEUE).receive(0)
    assert (again.body, again.priority, dict(again.properties)) == ("a", 9, {"p": 1})


@pytest.mark.parametrize("wrong", [{"priority": 10}, {"time_to_live": -1}, {"properties": {"a b": 1}}], ids=repr)
def test_options_are_checked_when_they_are_set(context, wrong):
    with pytest.raises(MessageFormatError):
        context.create_producer(**wrong)


def test_misspelt_option_is_found(context):
    with pytest.raises(TypeError, match=r"prioritty.*priority"):
        context.create_producer(prioritty=7)


PATIENCE = 30


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


def test_session_sends_to_a_name(connection, session_with_receiver):
    sent = session_with_receiver.send(QUEUE.name, "a", priority=7, properties={"n": 1}, correlation_id="c")
    session_with_receiver.send(QUEUE, TextMessage("b"))
    consumer = session_with_receiver.create_consumer(QUEUE)
    first, second = consumer.receive(0), consumer.receive(0)
    assert (first.body, first.priority, first.properties["n"], first.correlation_id) == ("a", 7, 1, "c")
    assert (first.message_id, second.body) == (sent.message_id, "b")


def test_send_of_a_transacted_session_is_part_of_its_transaction(connection):
    with connection.create_session(transacted=True) as session:
        session.send("queue:orders", "a")
        session.rollback()
        session.send("orders", {"n": 1})
        session.commit()
        assert session.create_consumer(Queue("orders")).receive(0).body == {"n": 1}


def test_send_of_a_session_refuses_a_misspelt_option(session_with_receiver):
    with pytest.raises(ArgumentTypeError, match=r"no option 'priorty' \(did you mean priority\?\)"):
        session_with_receiver.send(QUEUE, "a", priorty=7)
