"""Messages that ActiveMQ and Broker-J dead-letter themselves are listed with their origins, and go back there."""

import json
import uuid

import pytest
from brokers import registry

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.__main__ import run
from jmsjca.errors import InvalidDestinationError
from jmsjca.management.insight import Insight
from tests.unit.inbound.deliveries import until

DLQ = "ActiveMQ.DLQ"


@pytest.fixture
def name():
    return f"letters.{uuid.uuid4().hex}"


@pytest.fixture
def read(monkeypatch, capsys):
    """Run a command on a broker; return what it writes as JSON."""

    def call(url, *arguments):
        monkeypatch.setenv("JMSJCA_URL", url)
        assert run([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def fail(url, name, times):
    """Send a message, and roll it back until the broker gives it up."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        session.create_producer(Queue(name)).send(TextMessage("x", properties={"n": 3, "source": name}))
        session.commit()
        consumer = session.create_consumer(Queue(name))
        for _ in range(times):
            assert consumer.receive(60) is not None
            session.rollback()


def expire(url, sender_url, name):
    """Send a message that expires at once; the broker moves it to its dead-letter queue when it looks at it."""
    ConnectionFactory(sender_url).send(name, TextMessage("x", properties={"source": name}), time_to_live=0.001)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        assert session.create_consumer(Queue(name)).receive(1) is None
    until(lambda: bool(letters(url, DLQ, name)))


def letters(url, queue, name):
    return Insight(url).dead_letters(queue, f"source = '{name}'")


def test_broker_j(broker_url, name, read):
    url, dead = broker_url("qpid-amqp"), f"{name}.dead"
    with ConnectionFactory(url).create_connection() as connection:
        admin = connection.admin
        admin.create(Queue(dead))
        attributes = {"maximumDeliveryAttempts": "2", "alternateBinding": json.dumps({"destination": dead})}
        admin._request("org.apache.qpid.Queue", "CREATE", {}, {"name": name, "durable": "true", **attributes})
    fail(url, name, 2)
    until(lambda: bool(letters(url, dead, name)))
    [listed] = read(url, "dlq", "list", dead)
    assert (listed["origin"], listed["reason"]) == (f"queue:{name}", "moved by the broker")
    assert [each["outcome"] for each in read(url, "dlq", "replay", dead)] == ["done"]
    [replayed] = read(url, "browse", name)
    assert (replayed["body"], replayed["properties"]) == ("x", {"n": 3, "source": name, "_JMSJCA_ReplayCount": 1})


@pytest.fixture
def managed(broker_url):
    """The URL of ActiveMQ, with that of its management."""
    return f"{broker_url('activemq-amqp')}?management_url={registry.shared('activemq').url('jolokia')}"


def check_replay(url, name, read, origin):
    chosen = ("-s", f"source = '{name}'")
    [listed] = read(url, "dlq", "list", DLQ, *chosen)
    assert listed["origin"] == origin
    assert read(url, "dlq", "show", DLQ, listed["message_id"])["origin"] == origin
    assert [each["outcome"] for each in read(url, "dlq", "replay", DLQ, *chosen)] == ["done"]
    [replayed] = read(url, "browse", name)
    assert replayed["body"] == "x"
    assert replayed["properties"]["_JMSJCA_ReplayCount"] == 1
    assert "dlqDeliveryFailureCause" not in replayed["properties"]
    return listed["reason"]


def test_activemq_from_a_sender_over_amqp(broker_url, name, read):
    url = broker_url("activemq-amqp")
    expire(url, url, name)
    assert check_replay(url, name, read, f"queue:{name}") == "moved by the broker"


def test_activemq_from_another_sender_with_its_management(broker_url, managed, name, read):
    expire(managed, broker_url("activemq-stomp"), name)
    assert check_replay(managed, name, read, f"queue:{name}") == "expired"


def test_activemq_from_another_sender_over_amqp_alone(broker_url, name):
    url = broker_url("activemq-amqp")
    expire(url, broker_url("activemq-stomp"), name)
    [found] = letters(url, DLQ, name)
    assert (found.origin, found.reason) == (None, "expired")
    with pytest.raises(InvalidDestinationError, match="no record of its origin"):
        Insight(url).replay(DLQ, f"source = '{name}'")
