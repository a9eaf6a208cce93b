"""The sink on brokers without transactions: each message is confirmed, and one that is refused fails the task."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from amqp_peer import Broker, Peer
from amqp_peer.performatives import Rejected, Transfer
from pyspark.sql.types import StringType, StructField, StructType

from jmsjca import ConnectionFactory
from jmsjca.errors import JMSError
from jmsjca.spark.options import SinkOptions
from jmsjca.spark.writer import JmsBatchWriter, PartitionWriter, Sent

SCHEMA = StructType([StructField("text", StringType())])
AT = "/queue/orders"  # the address of the queue at a broker of this product
ROWS = 2500


class Sink:
    """A writer to a small broker without transactions."""

    def __init__(self) -> None:
        self.broker = Broker("RabbitMQ")
        self.peer = Peer(self.broker)
        self.url = f"amqp://{self.peer.address}"

    def write(self, texts: list[str]) -> int:
        """What a task writes."""
        return self.task(texts).messages

    def task(self, texts: list[str]) -> Sent:
        """What a task tells the driver."""
        writer = PartitionWriter(SinkOptions.parse({"url": self.url, "destination": "orders"}), SCHEMA)
        return writer.write(iter([pa.RecordBatch.from_pylist([{"text": text} for text in texts])]), "job")

    @property
    def kept(self) -> int:
        return len(self.broker.store.queues[AT])

    def refuse(self, place: int) -> None:
        """Refuse one message of those that come."""

        def transfer(service, frame) -> None:
            if self.broker.seen[Transfer] == place:
                service.agree(frame, state=Rejected())
            else:
                service.carry_out(frame)

        self.broker.instead[Transfer] = transfer


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.peer.close()


def test_this_broker_has_no_transactions(sink) -> None:
    with ConnectionFactory(sink.url).create_connection() as connection:
        assert not connection.capabilities.atomic


@pytest.mark.parametrize("count", [0, 1, ROWS])
def test_every_row_is_sent_and_confirmed(sink, count) -> None:
    assert sink.write([str(place) for place in range(count)]) == sink.kept == count


def test_a_broker_that_recognises_nothing_has_no_bound(sink, caplog) -> None:
    task = sink.task(["a"])
    JmsBatchWriter(SinkOptions.parse({"url": sink.url, "destination": "orders"}), SCHEMA).commit([task] * 100_000)
    assert (task, caplog.records) == (Sent(1, 0), [])


@pytest.mark.parametrize("place", [1, ROWS // 2, ROWS])
def test_a_message_that_is_refused_fails_the_task(sink, place) -> None:
    sink.refuse(place)
    with pytest.raises(JMSError, match="did not accept"):
        sink.write([str(each) for each in range(ROWS)])


def test_a_connection_that_ends_fails_the_task(sink) -> None:
    def end(service, frame) -> None:
        service.carry_out(frame) if service.broker.seen[Transfer] < ROWS // 2 else service.line.end(reset=True)

    instead: Callable[..., None] = end
    sink.broker.instead[Transfer] = instead
    with pytest.raises(JMSError):
        sink.write([str(each) for each in range(ROWS)])
