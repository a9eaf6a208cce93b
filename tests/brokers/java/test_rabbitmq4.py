"""Ours and Qpid JMS over RabbitMQ 4, whose addresses are names of destinations to Java."""

import uuid

import pytest
from jms_java import JavaClient, OurClient, describe, receive

from jmsjca import Queue, Topic
from jmsjca.messages import ObjectMessage, TextMessage
from tests.brokers.java.test_messages import DATA, MESSAGES, TYPED_OBJECTS, an_object, told_data

BY_ADDRESS = {"queue": "/queues/{}", "topic": "/exchanges/amq.topic/{}"}


@pytest.fixture(scope="module")
def ours(broker_url):
    client = OurClient(broker_url("rabbitmq4-amqp"))
    yield client
    client.close()


@pytest.fixture(scope="module")
def theirs(broker_url, java):
    client = JavaClient(java, broker_url("rabbitmq4-amqp"))
    yield client
    client.close()


@pytest.fixture
def queue(ours):
    """A queue that is there: Java declares none."""
    made = Queue(f"java.{uuid.uuid4().hex} ü/%")
    with ours.connection.create_session() as session:
        session.create_consumer(made).close()
    return made


def address(destination):
    """The destination as Java names it."""
    name = BY_ADDRESS[destination.kind].format(percent_encoded(destination.name))
    return type(destination)(name)


def percent_encoded(name):
    return name.replace("%", "%25").replace("/", "%2F").replace(" ", "%20").replace("ü", "%C3%BC")


def told_as_java(message, queue):
    """What Java tells of a message of ours."""
    told = describe(message)
    for name, destination in (("destination", queue), ("reply_to", message.reply_to)):
        if destination is not None:
            told[name] = [destination.kind, address(destination).name]
    return told


COUNTED = {"delivery_count": 1}


@pytest.mark.parametrize("name", MESSAGES)
def test_java_reads_what_we_send(ours, theirs, queue, name):
    ours.send(queue, MESSAGES[name])
    [received] = theirs.session().take(address(queue))
    assert received == told_as_java(MESSAGES[name], queue) | COUNTED


@pytest.mark.parametrize("name", MESSAGES)
def test_we_read_what_java_sends(ours, theirs, queue, name):
    """As texts, where there is no body: Java then sends no section for one, over which this broker ends the session."""
    told = describe(MESSAGES[name])
    if told["kind"] == "plain":
        told |= describe(TextMessage("a")) | {part: told[part] for part in ("properties", "type", "correlation_id")}
    if MESSAGES[name].reply_to is not None:
        told["reply_to"] = [MESSAGES[name].reply_to.kind, address(MESSAGES[name].reply_to).name]
    sent = theirs.session().send(address(queue), told)
    [received] = ours.take(queue)
    expected = sent | {"destination": ["queue", queue.name], "reply_to": describe(MESSAGES[name])["reply_to"]} | COUNTED
    assert describe(received) == expected


@pytest.mark.parametrize("name", ["nested maps", "map of lists", "UUIDs inside", "bytes inside", "nothing"])
def test_plain_data_goes_both_ways(ours, theirs, queue, name):
    ours.send(queue, ObjectMessage.from_data(DATA[name]))
    [received] = theirs.session().take(address(queue))
    assert (received["body"], received["properties"]) == (told_data(DATA[name]), TYPED_OBJECTS)
    theirs.session().send(address(queue), an_object(told_data(DATA[name]), typed=True))
    [back] = ours.take(queue)
    assert back.body == DATA[name]


def test_java_answers_our_request(ours, theirs, queue):
    """In a temporary queue of ours."""
    with ours.connection.create_session() as session:
        answers = session.create_temporary_queue()
        consumer = session.create_consumer(answers)
        ours.send(queue, TextMessage("question", reply_to=answers, correlation_id="q-1"))
        asked = theirs.session().consumer(address(queue))
        asked.receive()
        asked.reply("answer")
        answer = receive(consumer)
        consumer.close()
    assert (answer.body, answer.correlation_id) == ("answer", "q-1")


def test_what_java_did_not_acknowledge_comes_to_us_counted(ours, theirs, queue):
    ours.send(queue, TextMessage("a"))
    session = theirs.session("client")
    assert session.consumer(address(queue)).receive()["delivery_count"] == 1
    session.recover()
    session.close()
    with ours.connection.create_session() as own, own.create_consumer(queue) as consumer:
        received = receive(consumer)
    assert (received.body, received.redelivered) == ("a", True)
    assert received.delivery_count in {2, 3}  # Java may have taken it again before it closed


def test_what_we_did_not_acknowledge_comes_to_java_counted(ours, theirs, queue):
    ours.send(queue, TextMessage("a"))
    with ours.connection.create_session(acknowledge_mode="CLIENT") as own, own.create_consumer(queue) as consumer:
        receive(consumer)
        own.recover()
        assert receive(consumer).delivery_count == 2
    [told] = theirs.session().take(address(queue))
    assert told["redelivered"]
    assert told["delivery_count"] >= 2


def test_topics_are_keys_of_one_exchange(ours, theirs):
    topic = Topic(f"java.{uuid.uuid4().hex}")
    with ours.connection.create_session() as session, session.create_consumer(topic) as subscriber:
        theirs.session().send(address(topic), TextMessage("of Java's"))
        received = receive(subscriber)
    assert (received.body, received.destination) == ("of Java's", topic)
