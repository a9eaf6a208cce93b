"""The exactly-once sink of Spark over real brokers: its protocol, and a crash at each of its steps."""

import json
import uuid

import pytest

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.errors import NotSupportedError
from jmsjca.spark.exactly_once import StateQueue, Token
from tests.spark.test_crashing_sink import crash, is_right

ATOMIC = ["artemis-amqp", "qpid-amqp", "activemq-amqp", "activemq-stomp"]
OTHERS = ["rabbitmq4-amqp", "rabbitmq-stomp", "artemis-stomp"]


class Sink:
    """A sink of its own."""

    def __init__(self, url):
        self._factory = ConnectionFactory(url)
        self._name = f"once.{uuid.uuid4().hex}"

    def write(self, number, *texts, query="q"):
        def send(session):
            producer = session.create_producer(Queue(self._name))
            for text in texts:
                producer.send(TextMessage(text))

        with self._factory.create_connection() as connection:
            # A broker without duplicate detection lets the first batch wait for the whole patience.
            state = StateQueue(connection, self._name, 5 if number == 0 else 60)
            return state.write(Token(query, number, len(texts)), send)

    def take(self, queue):
        """Receive all messages."""
        with self._factory.create_connection() as connection, connection.create_session() as session:
            consumer, bodies = session.create_consumer(queue), []
            while message := consumer.receive(2):
                bodies.append(message.body)
            return bodies

    @property
    def results(self):
        return self.take(Queue(self._name))

    @property
    def tokens(self):
        return [json.loads(body)["batch"] for body in self.take(Queue(f"jmsjca.sink.{self._name}"))]


@pytest.mark.parametrize("pair", ATOMIC)
def test_a_batch_is_written_once(broker_url, pair):
    sink = Sink(broker_url(pair))
    assert sink.write(0, "a", "b")
    assert not sink.write(0, "b", "a")
    assert sink.write(1, "c")
    assert not sink.write(1, "c")
    assert sink.results == ["a", "b", "c"]
    assert sink.tokens == [1]


@pytest.mark.parametrize("pair", OTHERS)
def test_a_broker_without_transactions_of_both_is_refused(broker_url, pair):
    sink = Sink(broker_url(pair))
    with pytest.raises(NotSupportedError, match=r"commits receipts and sends together.*capability 'atomic'"):
        sink.write(0, "a")


@pytest.mark.parametrize("pair", ["artemis-amqp", pytest.param("qpid-amqp", marks=pytest.mark.torture)])
def test_a_crash_at_steps_loses_nothing_and_doubles_nothing(broker_url, pair):
    reports = crash(broker_url(pair), stride=199)
    assert [report for report in reports if not is_right(report)] == []


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("pair", "stride"), [("activemq-amqp", 11), ("activemq-stomp", 2)])
def test_a_crash_without_duplicate_detection_loses_nothing_and_doubles_nothing(broker_url, pair, stride, capsys):
    """The first batch waits for a token that may come: not for long, as ActiveMQ redelivers at once."""
    reports = crash(broker_url(pair), "--patience", "3", stride=stride, seconds=1100)
    assert [report for report in reports if not is_right(report)] == []
    with capsys.disabled():
        print(f"\n{pair}: {len(reports) - 3} steps to crash at", end="")


@pytest.mark.torture
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("pair", ["artemis-amqp"])
def test_a_crash_at_each_step_loses_nothing_and_doubles_nothing(broker_url, pair, capsys):
    reports = crash(broker_url(pair), stride=1)
    assert [report for report in reports if not is_right(report)] == []
    names = {"UnitCommit._write", "UnitCommit._discharge", "SocketTransport.write", "StateQueue._create"}
    assert {f"{when} {name}" for when in ("before", "after") for name in names} <= {r["point"] for r in reports}
    with capsys.disabled():
        print(f"\n{pair}: {len(reports) - 3} steps to crash at", end="")
