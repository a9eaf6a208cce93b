"""The Spark source over every pair of a broker and a protocol."""

import uuid
from collections.abc import Iterator

import pytest
from brokers import PAIRS
from raw_amqp import RawAMQP
from spark_session import spark_session

from jmsjca import ConnectionFactory, Queue, TextMessage, Topic
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.test_poison import DEFECTS

pytestmark = pytest.mark.spark

TEXTS = [f"m{n:02}" for n in range(30)]


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[object]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


class Stream:
    """A queue of its own, and a query over it into Parquet."""

    def __init__(self, spark, url, folder):
        self._spark = spark
        self._folder = folder
        self.url = url
        self.queue = Queue(f"spark.{uuid.uuid4().hex}")

    def send(self, *texts):
        connection = connect(ConnectionSettings(self.url))
        for text in texts:
            message = TextMessage(text, properties={"key": text})
            message.message_id = f"ID:{text}"
            unit = connection.unit(atomic=False)
            unit.send(message, self.queue)
            unit.commit()
        connection.close()

    def frame(self):
        return self._spark.readStream.format("jms").options(
            url=self.url,
            destination=self.queue.name,
            stagingLocation=str(self._folder / "staging"),
            maxMessagesPerBatch="20",
            receiveIdleTimeout="0.5",
            dedupKey="property:key",
        )

    def run(self, **trigger):
        sink = self.frame().load().writeStream.format("parquet").option("path", str(self._folder / "out"))
        return sink.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(**trigger).start()

    def texts(self):
        return sorted(row.text for row in self._spark.read.parquet(str(self._folder / "out")).collect())

    def forget_last_commit(self):
        """What a crash after the sink's commit leaves behind."""
        commits = self._folder / "checkpoint" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for path in commits.glob(f"*{last}*"):
            path.unlink()


IN_EVERY_RUN = {"artemis-amqp", "activemq-stomp", "rabbitmq4-amqp", "artemis-java"}
ALL = [*PAIRS, "artemis-java", "activemq-java"]


@pytest.fixture(params=[pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in ALL])
def stream(request, spark, broker_url, tmp_path):
    return Stream(spark, broker_url(request.param), tmp_path)


def test_a_stream_takes_each_message_once(stream):
    stream.send(*TEXTS)
    stream.run(availableNow=True).awaitTermination()
    assert stream.texts() == TEXTS
    stream.forget_last_commit()
    stream.send("more")
    query = stream.run(processingTime="0 seconds")
    query.processAllAvailable()
    query.stop()
    assert stream.texts() == [*TEXTS, "more"]


# What an AMQP peer may send, as bytes: brokers differ in what they take.
REFUSED = {
    "artemis": {
        *("no message at all", "a header with fields of other types"),
        *("a header in which a broker cannot count", "a header that is long"),
    },
    "rabbitmq4": {"no message at all", "no sections"},
}
UNREADABLE = {"a list as correlation id", "a list as message id"}


@pytest.mark.parametrize("broker", REFUSED)
def test_a_stream_takes_whatever_other_clients_send(spark, broker, broker_url, tmp_path):
    """What cannot be read comes with its error, and ends nothing: what was sent behind it comes too."""
    sent = {name: payload for name, payload in DEFECTS.items() if name not in REFUSED[broker]}
    stream = Stream(spark, broker_url(f"{broker}-amqp"), tmp_path)
    connection = connect(ConnectionSettings(stream.url))
    connection.check(stream.queue)
    connection.close()
    artemis = broker == "artemis"
    with RawAMQP(stream.url, "queue" if artemis else None) as sender:
        address = stream.queue.name if artemis else f"/queues/{stream.queue.name}"
        sender.send_encoded(address, *sent.values())
    stream.send("behind")
    stream.run(availableNow=True).awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len(rows) == len(sent) + 1
    assert sum(row.error is not None for row in rows) == len(UNREADABLE)
    assert "behind" in {row.text for row in rows}


@pytest.mark.parametrize("pair", ["artemis-amqp", "rabbitmq4-amqp", "artemis-stomp"])
def test_a_table_is_written_with_and_without_transactions(spark, pair, broker_url):
    url, queue = broker_url(pair), Queue(f"spark.{uuid.uuid4().hex}")
    numbers = [f"{number:04}" for number in range(2500)]
    table = spark.createDataFrame([(number,) for number in numbers], "text string").repartition(2)
    table.write.format("jms").options(url=url, destination=queue.name).mode("append").save()
    connection = connect(ConnectionSettings(url))
    consumer, received = connection.consumer(queue), []
    while len(received) < len(numbers):
        chunk = consumer.receive(500, 60)
        received += [delivery.message.body for delivery in chunk]
        unit = connection.unit(atomic=False)
        unit.take(chunk)
        unit.commit()
        assert chunk, f"{len(received)} came"
    connection.close()
    assert sorted(received) == numbers


@pytest.mark.parametrize("pair", ["artemis-amqp", pytest.param("qpid-amqp", marks=pytest.mark.torture)])
def test_a_stream_reads_a_topic_through_a_shared_subscription(spark, pair, broker_url, tmp_path):
    """Two partitions compete on it, and it keeps what is published between the runs."""
    url, topic, name = broker_url(pair), Topic(f"spark.{uuid.uuid4().hex}"), f"s{uuid.uuid4().hex}"
    options = {"url": url, "destination": topic.name, "destinationType": "topic", "subscription": name}
    options |= {"stagingLocation": str(tmp_path / "staging"), "receiveIdleTimeout": "0.5", "partitions": "2"}
    sent: list[str] = []
    for texts in ([], TEXTS[:20], TEXTS[20:]):
        with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
            producer = session.create_producer(topic)
            for text in texts:
                producer.send(text)
        sent += texts
        sink = spark.readStream.format("jms").options(**options).load().writeStream.format("parquet")
        sink = sink.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start().awaitTermination()
    assert sorted(row.text for row in spark.read.parquet(str(tmp_path / "out")).collect()) == sent


def test_a_batch_looks_or_is_refused(spark, stream):
    stream.send("a", "b")
    connection = connect(ConnectionSettings(stream.url))
    can_look = connection.capabilities.browse
    connection.close()
    frame = spark.read.format("jms").options(url=stream.url, destination=stream.queue.name).load()
    if can_look:
        assert [row.text for row in frame.orderBy("_seq").collect()] == ["a", "b"]
    else:
        with pytest.raises(Exception, match="brows"):
            frame.collect()
