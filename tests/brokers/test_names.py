"""What brokers over AMQP take a name for: why some are refused, and what is said of others."""

import uuid
from enum import Enum

import pytest
from raw_amqp import RawAMQP

from jmsjca import ConnectionFactory
from jmsjca.destinations import Queue, Topic
from jmsjca.errors import InvalidDestinationError, TransactionRolledBackError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.brokers.test_transactions import CAPABILITIES

SECONDS = 30
OPTIONS = "?x=1"


@pytest.fixture
def name():
    return f"names.{uuid.uuid4().hex}"


@pytest.fixture
def connection(broker_url):
    opened = []

    def to(broker):
        opened.append(connect(ConnectionSettings(broker_url(f"{broker}-amqp"))))
        return opened[-1]

    yield to
    for each in opened:
        each.close()


def send(connection, to, body):
    unit = connection.unit()
    unit.send(TextMessage(body), to)
    unit.commit()


def test_artemis_takes_options_in_a_source_and_not_in_a_target(broker_url, name):
    """Found: what is sent to "q?x=1" is there, and no receiver of it gets it, but what is in "q"."""
    with RawAMQP(broker_url("artemis-amqp"), CAPABILITIES["artemis"]) as raw:
        raw.send(name + OPTIONS, "with")
        raw.send(name, "without")
        assert raw.receiver(name + OPTIONS, 1).receive(timeout=SECONDS).body == "without"


def test_activemq_takes_options_in_both(broker_url, name):
    """Found: what is sent to "queue://q?x=1" is in "q"."""
    with RawAMQP(broker_url("activemq-amqp"), CAPABILITIES["activemq"]) as raw:
        raw.send(f"queue://{name}{OPTIONS}", "with")
        assert raw.receiver(f"queue://{name}", 1).receive(timeout=SECONDS).body == "with"


READ = [  # the broker, what its sources ask for, where from it is received, and how the name ends that is sent to
    ("artemis", "topic", "{}.#", Topic(".x")),
    ("artemis", "topic", "{}.*", Topic(".x")),
    ("artemis", "queue", "{0}.x::{0}.x", Queue(".x")),
    ("activemq", "queue", "queue://{}.>", Queue(".x")),
    ("activemq", "queue", "queue://{}.*", Queue(".x")),
    ("activemq", "queue", "queue://{0}.other,{0}.x", Queue(".x")),
    ("qpid", None, "amq.topic/{}.#", Topic(".x")),
    ("rabbitmq", None, "/topic/{}.#", Topic(".x")),
]


@pytest.mark.parametrize("read", READ)
def test_a_consumer_of_one_name_gets_what_is_sent_to_another(broker_url, connection, name, read):
    """Found: wildcards, lists, and the queue of an address."""
    broker, capability, asked, to = read
    with RawAMQP(broker_url(f"{broker}-amqp"), capability) as raw:
        receiver = raw.receiver(asked.format(name), 1)
        unit = connection(broker).unit(atomic=False)
        unit.send(TextMessage("x"), type(to)(name + to.name))
        unit.commit()
        assert receiver.receive(timeout=SECONDS).body == "x"


NAMES = {
    "artemis": (Queue, [OPTIONS, "::x", ".#"]),
    "activemq": (Queue, [OPTIONS, ",x", ".>"]),
    "qpid": (Topic, [".#"]),
    "rabbitmq": (Topic, [".#"]),
}


@pytest.mark.parametrize(
    ("broker", "to"), [(broker, kind(end)) for broker, (kind, ends) in NAMES.items() for end in ends]
)
def test_such_names_are_refused_there(connection, broker, name, to):
    here = connection(broker)
    # A consumer of a topic may have wildcards.
    for ask in (here.check,) if isinstance(to, Topic) else (here.consumer, here.check):
        with pytest.raises(InvalidDestinationError, match="use other destinations"):
            ask(type(to)(name + to.name))


WILDCARDS = {
    "artemis-amqp": ("*", "#"),
    "artemis-stomp": ("*", "#"),
    "activemq-amqp": ("*", ">"),
    "activemq-stomp": ("*", ">"),
    "qpid-amqp": ("*", "#"),
    "rabbitmq-amqp": ("*", "#"),
    "rabbitmq-stomp": ("*", "#"),
    "rabbitmq4-amqp": ("*", "#"),
    "rabbitmq4-stomp": ("*", "#"),
}


@pytest.mark.parametrize("pair", WILDCARDS)
def test_a_subscriber_receives_the_topics_that_its_wildcards_match(broker_url, name, pair):
    one, many = WILDCARDS[pair]
    with ConnectionFactory(broker_url(pair)).create_connection() as connection:
        session = connection.create_session()
        connection.start()
        patterns = [f"{name}.{one}", f"{name}.{one}.c", f"{name}.{many}"]
        consumers = [session.create_consumer(Topic(each)) for each in patterns]
        for topic in (f"{name}.b", f"{name}.b.c", f"other.{name}.b"):
            session.create_producer(Topic(topic)).send(TextMessage(topic))
        for consumer, ends in zip(consumers, ([".b"], [".b.c"], [".b", ".b.c"]), strict=True):
            got = [consumer.receive(timeout=SECONDS) for _ in ends]
            assert [(each.body, each.destination) for each in got] == [(name + e, Topic(name + e)) for e in ends]
            assert consumer.receive(timeout=0.2) is None
        with pytest.raises((InvalidDestinationError, TransactionRolledBackError)):
            session.create_producer(Topic(patterns[0])).send(TextMessage("x"))


@pytest.mark.parametrize("broker", ["qpid", "rabbitmq"])
def test_others_take_them_as_they_are(connection, broker, name):
    here = connection(broker)
    unit = here.unit(atomic=False)
    unit.send(TextMessage("with"), Queue(name + OPTIONS))
    unit.commit()
    (got,) = here.consumer(Queue(name + OPTIONS), window=0).receive(1, SECONDS)
    assert got.message.body == "with"
    assert not here.consumer(Queue(name), window=0).receive(1, 0)


@pytest.mark.parametrize("broker", ["artemis", "activemq", "qpid"])
def test_a_selector_with_nul_arrives_whole(connection, broker, name):
    here, bodies = connection(broker), ["a", "a\0b", "a\0c"]
    unit = here.unit()
    for body in bodies:
        unit.send(TextMessage(body, properties={"colour": body}), Queue(name))
    unit.commit()
    got = here.consumer(Queue(name), selector="colour = 'a\0b'", window=0).receive(3, SECONDS)
    assert [each.message.body for each in got] == ["a\0b"]


@pytest.mark.parametrize(("has", "asked"), [(Queue, Topic), (Topic, Queue)])
def test_artemis_tells_that_it_has_a_name_as_the_other_kind(connection, name, has, asked):
    here = connection("artemis")
    here.consumer(has(name))
    with pytest.raises(InvalidDestinationError, match=f"{name} exists, but not as a {asked.kind}"):
        here.consumer(asked(name))


def test_a_queue_without_a_name_hides_no_others(own_broker, name):
    url = own_broker("qpid").url("amqp")
    with RawAMQP(url) as raw:
        raw.receiver("\0", 0)  # of which proton sends nothing
    here = connect(ConnectionSettings(url))
    try:
        send(here, Queue(name), "x")
        assert Queue(name) in here.admin().destinations()
    finally:
        here.close()


PAIRS = [f"{broker}-{protocol}" for broker in ("artemis", "activemq") for protocol in ("amqp", "stomp")]


@pytest.mark.parametrize("pair", [*PAIRS, "qpid-amqp", "rabbitmq-stomp", "rabbitmq4-amqp", "rabbitmq4-stomp"])
def test_members_of_an_enum_of_texts_name_what_their_values_name(broker_url, name, pair):
    """Found: over STOMP, "Name.ORDERS" was the name of the queue, and others never saw the message."""
    made = Enum("Name", {"QUEUE": name, "TOPIC": f"{name}.t", "CLIENT": f"{name}.c", "SUB": "sub"}, type=str)
    factory = ConnectionFactory(broker_url(pair), client_id=made.CLIENT)
    with factory.create_connection() as connection, connection.create_session() as session:
        reply = Queue(made.QUEUE)
        session.create_producer(reply).send(TextMessage("a", correlation_id=made.SUB, type=made.SUB, reply_to=reply))
        received = session.create_consumer(Queue(name)).receive(SECONDS)
        assert (received.correlation_id, received.type, received.reply_to) == ("sub", "sub", Queue(name))
        if not connection.capabilities.durable:
            return
        session.create_durable_consumer(Topic(made.TOPIC), made.SUB).close()
    with ConnectionFactory(broker_url(pair)).create_connection() as sending, sending.create_session() as session:
        session.create_producer(Topic(f"{name}.t")).send(TextMessage("b"))
    factory = ConnectionFactory(broker_url(pair), client_id=f"{name}.c")
    with factory.create_connection() as connection, connection.create_session() as session:
        with session.create_durable_consumer(Topic(f"{name}.t"), "sub") as consumer:
            assert consumer.receive(SECONDS).body == "b"
        session.unsubscribe(Topic(made.TOPIC), made.SUB)


@pytest.mark.parametrize("broker", ["artemis", "activemq", "qpid"])
def test_a_selector_may_be_a_member_of_an_enum_of_texts(broker_url, name, broker):
    """Found: it ended the connection to Broker-J."""
    made = Enum("Selector", {"BIG": "n > 5"}, type=str)
    connection = ConnectionFactory(broker_url(f"{broker}-amqp")).create_connection()
    with connection, connection.create_session() as session:
        session.create_producer(Queue(name)).send(TextMessage("a", properties={"n": 6}))
        assert session.create_consumer(Queue(name), made.BIG).receive(SECONDS).body == "a"
