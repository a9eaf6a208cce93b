"""Columns out of bodies, typed properties and JSON of values, through a real Spark session; and written again."""

from datetime import UTC, datetime

import pytest

from jmsjca import BytesMessage, MapMessage, Queue, Short, StreamMessage, TextMessage
from jmsjca.messages import Float, Properties
from jmsjca.reconnection import ConnectionSettings, connect

pytestmark = pytest.mark.spark

TYPED = (
    "amount INT, region STRING, price DECIMAL(10,2), at TIMESTAMP, day DATE, tags ARRAY<STRING>,"
    " buyer STRUCT<name: STRING, born: DATE>, message_id STRING, typed_properties VARIANT, text STRING, body BINARY,"
    " error STRING, _seq BIGINT"
)
ORDER = (
    '{"amount": 7, "region": "EU", "price": 1.5, "at": "2026-01-02T03:04:05Z", "day": "2026-01-02",'
    ' "tags": ["a", null], "buyer": {"name": "é", "born": "2000-02-29"}}'
)


def send(broker, *messages, queue="orders"):
    with broker.factory.create_connection() as connection, connection.create_session(transacted=True) as session:
        producer = session.create_producer(Queue(queue))
        for message in messages:
            producer.send(message)
        session.commit()


def received(broker, queue):
    """The kind, body and properties of each message in a queue."""
    connection = connect(ConnectionSettings(broker.url))
    try:
        found = [d.message for chunk in connection.browse(Queue(queue)) for d in chunk]
        return [(type(m), m.body, dict(m.properties)) for m in found]
    finally:
        connection.close()


def without_id(properties):
    return {name: value for name, value in properties.items() if name != "_AMQ_DUPL_ID"}


def stream_to(spark, broker, schema, sink, **options):
    """The rows of a stream, as a parquet file has them."""
    out, checkpoint = str(broker.folder / f"{sink}.out"), str(broker.folder / f"{sink}.checkpoint")
    frame = spark.readStream.format("jms").schema(schema).options(**broker.given(receiveIdleTimeout=0.1, **options))
    query = (
        frame.load()
        .writeStream.format("parquet")
        .option("path", out)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(out)


def as_found(frame):
    rows = frame.orderBy("_seq").selectExpr(
        *("amount", "region", "price", "cast(at AS STRING) AS at", "day", "tags", "buyer", "body", "error", "text"),
        "variant_get(typed_properties, '$.n', 'int') AS n",
        "to_json(typed_properties) AS properties",
    )
    return [row.asDict(recursive=True) for row in rows.collect()]


def test_a_stream_and_a_table_have_typed_columns(spark, broker):
    send(
        broker,
        TextMessage(ORDER, properties={"n": Short(3), "x": Float(0.5), "s": "t"}),
        TextMessage('{"amount": "seven"}'),
        BytesMessage(b'{"amount": 8}'),
        MapMessage({"amount": 9, "region": "US"}),
        BytesMessage(b"\xff"),
    )
    table = as_found(spark.read.format("jms").schema(TYPED).options(**broker.given(partitions=1)).load())
    stream = as_found(stream_to(spark, broker, TYPED, "typed", partitions=1))
    assert table == stream
    first, misfit, from_bytes, from_map, raw = stream
    assert first["amount"] == 7
    assert (str(first["price"]), first["at"], str(first["day"])) == ("1.50", "2026-01-02 03:04:05", "2026-01-02")
    assert (first["tags"], first["buyer"]["name"], str(first["buyer"]["born"])) == (["a", None], "é", "2000-02-29")
    assert (first["n"], first["properties"], first["error"]) == (3, '{"n":3,"s":"t","x":0.5}', None)
    assert misfit["amount"] is None
    assert bytes(misfit["body"]) == b'{"amount": "seven"}' == misfit["text"].encode()
    assert "column amount" in misfit["error"]
    assert [(row["amount"], row["region"], row["error"]) for row in (from_bytes, from_map)] == [
        (8, None, None),
        (9, "US", None),
    ]
    assert (bytes(raw["body"]), "UTF-8" in raw["error"]) == (b"\xff", True)


def test_records_of_csv_are_columns(spark, broker):
    send(broker, TextMessage('1,"a,b",2026-01-02T03:04:05Z'), TextMessage("x,y,"), TextMessage("2,c,"))
    schema = "id BIGINT, name STRING, at TIMESTAMP, body BINARY, error STRING, _seq BIGINT"
    rows = stream_to(spark, broker, schema, "csv", bodyFormat="csv", partitions=1).orderBy("_seq").collect()
    assert [(row.id, row.name) for row in rows] == [(1, "a,b"), (None, None), (2, "c")]
    assert rows[0].at.astimezone(UTC) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (bytes(rows[1].body), "column id" in rows[1].error) == (b"x,y,", True)


def test_what_cannot_be_is_refused_before_the_query_runs(spark, broker):
    schema = "amount MAP<STRING, INT>, body BINARY, error STRING"
    with pytest.raises(Exception, match="from_json"):
        spark.read.format("jms").schema(schema).options(**broker.given()).load().collect()


def odd_messages():
    """Messages with all that a table must keep: names that no sender may set, and names of the provider."""
    odd = TextMessage("odd")
    odd.properties = Properties.received({"x-opt.key": "k", "é è": "e", "n": Short(3), "x": Float(0.5)})
    grouped = TextMessage("grouped", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 7}, correlation_id="c")
    grouped.type, grouped.reply_to = "order", Queue("replies")
    return [odd, grouped, BytesMessage(b"\xff"), MapMessage({"a": 1}), StreamMessage([1, "x"]), TextMessage(None)]


def test_a_table_that_was_read_is_written_with_all_its_columns(spark, broker):
    send(broker, *odd_messages(), queue="source")
    names = "typed_properties,message_id,correlation_id,reply_to,type,priority,timestamp,expiration,redelivered"
    options = broker.sink(destination="source", columns=f"{names},delivery_count,properties,text,body,error,_seq")
    spark.read.format("jms").options(**options).load().orderBy("_seq").coalesce(1).write.format("jms").options(
        **broker.sink(destination="typed")
    ).mode("append").save()
    whole = spark.read.format("jms").options(**broker.sink(destination="source")).load()
    whole.drop("destination").orderBy("_seq").coalesce(1).write.format("jms").options(
        **broker.sink(destination="texts")
    ).mode("append").save()

    found = received(broker, "typed")
    assert [(kind, body) for kind, body, _ in found] == [
        (TextMessage, "odd"),
        (TextMessage, "grouped"),
        (BytesMessage, b"\xff"),
        (TextMessage, '{"a":1}'),
        (TextMessage, '[1,"x"]'),
        (TextMessage, None),
    ]
    properties = [without_id(each) for *_, each in found]
    assert properties[0] == {"x-opt.key": "k", "é è": "e", "n": 3, "x": 0.5}
    assert (type(properties[0]["n"]), type(properties[0]["x"])) == (Short, Float)
    assert properties[1] == {"JMSXGroupID": "g", "JMSXGroupSeq": 7}
    texts = [without_id(each) for *_, each in received(broker, "texts")]
    assert texts[0] == {"x-opt.key": "k", "é è": "e", "n": "3", "x": "0.5"}
    assert texts[1] == {"JMSXGroupID": "g", "JMSXGroupSeq": 7}
    again = spark.read.format("jms").options(**broker.sink(destination="texts")).load().orderBy("_seq").collect()
    assert [(row.correlation_id, row.type, row.reply_to) for row in again[1:2]] == [("c", "order", "queue:replies")]


def test_rows_with_an_error_are_written_with_their_bytes(spark, broker):
    send(broker, TextMessage('{"amount": "x"}'), BytesMessage(b"\xff"))
    schema = "amount INT, properties MAP<STRING, STRING>, body BINARY, error STRING, _seq BIGINT"
    frame = spark.read.format("jms").schema(schema).options(**broker.sink()).load()
    bad = frame.where("error IS NOT NULL").drop("amount").orderBy("_seq").coalesce(1)
    bad.write.format("jms").options(**broker.sink(destination="bad")).mode("append").save()
    assert [(kind, body) for kind, body, _ in received(broker, "bad")] == [
        (BytesMessage, b'{"amount": "x"}'),
        (BytesMessage, b"\xff"),
    ]
