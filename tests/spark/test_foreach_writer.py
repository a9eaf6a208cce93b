"""The writer for foreach, called as Spark calls it."""

import pickle
from datetime import datetime

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from jmsjca.errors import IllegalStateError, InvalidOptionError, NotSupportedError
from jmsjca.management import Insight
from jmsjca.messages import Int
from jmsjca.spark import ForeachWriter


def text_and(**columns: DataType) -> StructType:
    """Columns of a table; `StructType.add` changes its schema."""
    return StructType([StructField(name, kind) for name, kind in {"text": StringType(), **columns}.items()])


TEXT = text_and()


def call(writer: ForeachWriter, rows: list[Row]) -> None:
    """What Spark does with a writer in a task (`DataStreamWriter.foreach`)."""
    writer = pickle.loads(pickle.dumps(writer))  # noqa: S301  # as for an executor
    error = None
    should_process = writer.open(0, 7)
    try:
        if should_process:
            for row in rows:
                writer.process(row)
    except Exception as raised:  # noqa: BLE001  # as Spark
        error = raised
    finally:
        writer.close(error)
        if error:
            raise error


def rows(*texts: str | None) -> list[Row]:
    return [Row(text=text) for text in texts]


class Interrupting(list[Row]):
    """Rows that end with something that Spark does not catch."""

    def __iter__(self):
        yield from super().__iter__()
        raise SystemExit


def test_a_partition_is_sent_at_its_end(broker) -> None:
    writer = ForeachWriter(TEXT, url=broker.url, destination="orders")
    writer.open(0, 0)
    for row in rows("a", "b"):
        writer.process(row)
    assert broker.waiting() == []
    writer.close(None)
    assert broker.waiting() == ["a", "b"]
    with pytest.raises(IllegalStateError, match="not open"):
        writer.process(Row(text="c"))


def test_a_task_that_fails_leaves_nothing(broker) -> None:
    schema = text_and(reply_to=StringType())
    writer = ForeachWriter(schema, url=broker.url, destination="orders")
    bad = [Row(text=str(number), reply_to="nowhere" if number == 3 else None) for number in range(5)]
    with pytest.raises(Exception, match="nowhere"):
        call(writer, bad)
    assert broker.waiting() == []
    call(writer, [row for row in bad if row.reply_to is None])
    assert broker.waiting() == ["0", "1", "2", "4"]


def test_a_task_that_is_interrupted_leaves_nothing_although_spark_reports_no_error(broker) -> None:
    with pytest.raises(SystemExit):
        call(ForeachWriter(TEXT, url=broker.url, destination="orders"), Interrupting(rows("a", "b")))
    assert broker.waiting() == []


def test_a_partition_without_rows_sends_nothing(broker) -> None:
    call(ForeachWriter(TEXT, url=broker.url, destination="orders"), [])
    assert broker.depth().total == 0


def test_a_row_keeps_its_types_and_headers(broker) -> None:
    schema = text_and(
        body=BinaryType(),
        priority=IntegerType(),
        destination=StringType(),
        properties=StructType([StructField("small", IntegerType()), StructField("large", LongType())]),
    )
    row = Row(text=None, body=bytearray(b"\xff"), priority=9, destination="orders", properties=Row(small=1, large=2))
    call(ForeachWriter(schema, url=broker.url), [row])
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        [message] = session.create_browser(broker.queue)
    assert (message.body, message.priority) == (b"\xff", 9)
    assert (type(message.properties["small"]), message.properties["large"]) == (Int, 2)


def test_a_rejected_row_keeps_its_times_and_names(broker) -> None:
    """A `Row` has times of the zone of the machine, and a dict for a map."""
    kinds = {"handling": StringType(), "reason": StringType(), "error_class": StringType(), "origin": StringType()}
    schema = text_and(
        destination=StringType(),
        timestamp=TimestampType(),
        expiration=TimestampType(),
        properties=MapType(StringType(), StringType()),
        _rejection=StructType([StructField(name, kind) for name, kind in kinds.items()]),
    )
    told = Row(handling="1:move(queue:dlq.$)", reason="no", error_class="shop.No", origin=None)
    sent, ends = datetime(2026, 1, 2, 3, 4, 5), datetime(2200, 1, 1)  # noqa: DTZ001  # as Spark gives them
    properties = {"x-opt.key": "k", "JMSXDeliveryCount": "2"}
    row = Row(
        text="a", destination="queue:orders", timestamp=sent, expiration=ends, properties=properties, _rejection=told
    )
    call(ForeachWriter(schema, url=broker.url), [row])
    [copy] = Insight(broker.url).messages("dlq.orders")
    assert copy.properties["x-opt.key"] == "k"
    assert copy.properties["_JMSJCA_OriginalTimestamp"] == round(sent.timestamp() * 1000)
    assert copy.properties["_JMSJCA_OriginalExpiration"] == round(ends.timestamp() * 1000)
    assert copy.expiration is None


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (TEXT, {"guarantee": "exactly-once"}, "no option 'guarantee'"),
        (TEXT, {"queryname": "q", "batchId": 1}, "queryName"),
        (TEXT, {"partitions": 1}, "which is for a source"),
        (TEXT, {"destination": None}, "destination"),
        (text_and(duplicate_id=StringType()), {}, "drop the column 'duplicate_id'"),
        (text_and(amount=LongType()), {}, "no column amount"),
    ],
)
def test_what_cannot_be_is_refused_when_the_query_is_made(broker, schema, options, message) -> None:
    given = {name: value for name, value in {"destination": "orders", **options}.items() if value is not None}
    with pytest.raises(InvalidOptionError, match=message):
        ForeachWriter(schema, url=broker.url, **given)


def test_a_broker_without_transactions_is_refused() -> None:
    from amqp_peer import Broker, Peer

    peer = Peer(Broker("RabbitMQ"))
    try:
        writer = ForeachWriter(TEXT, url=f"amqp://{peer.address}", destination="orders")
        with pytest.raises(NotSupportedError, match="atomic"):
            writer.open(0, 0)
        writer.close(None)  # nothing is open
    finally:
        peer.close()
