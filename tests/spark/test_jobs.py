"""What a job sends beside its results, through a real Spark: rejected rows, replies, reports, and rows of foreach."""

import pytest
from pyspark.sql import functions as f

from jmsjca import Queue, TextMessage
from jmsjca.errors import InvalidOptionError, InvalidRedeliveryHandlingError
from jmsjca.management import Insight
from jmsjca.messages import Properties
from jmsjca.spark import ForeachWriter, dead_letter, replies, reports
from jmsjca.spark.rejections import RETRY_COUNT

pytestmark = pytest.mark.spark

HANDLING = "2:move(queue:dlq.$)"


def stream(spark, broker, **changes):
    return spark.readStream.format("jms").options(**broker.given(receiveIdleTimeout=0.1, **changes)).load()


def run(query, broker):
    started = query.option("checkpointLocation", f"{broker.folder}/checkpoint").trigger(availableNow=True).start()
    try:
        started.awaitTermination()
    finally:
        started.stop()


class Prices:
    """Writes the prices of a batch, rejects the rows without one, and fails once when all is written."""

    def __init__(self, url):
        self.url = url
        self.failures = 1

    def __call__(self, batch, number):
        priced = batch.withColumn("price", f.expr("try_cast(text AS int)"))
        self.write(priced.filter("price IS NOT NULL").select("text"), "prices", number, destination="prices")
        rejected = dead_letter(priced.filter("price IS NULL"), f.concat(f.lit("no price: "), "text"), HANDLING)
        self.write(rejected, "rejected", number)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("what follows failed")

    def write(self, rows, name, number, **options):
        named = rows.write.format("jms").options(url=self.url, queryName=name, batchId=str(number), **options)
        named.mode("append").save()


def test_rejected_rows_are_retried_and_dead_lettered_once_although_the_batch_is_repeated(spark, broker):
    broker.send("1", "a pear", "3")
    prices = Prices(broker.url)
    with pytest.raises(Exception, match="what follows failed"):
        run(stream(spark, broker).writeStream.foreachBatch(prices), broker)
    run(stream(spark, broker).writeStream.foreachBatch(prices), broker)  # the batch again, and the retry
    insight = Insight(broker.url)
    assert sorted(message.body for message in insight.messages("prices")) == ["1", "3"]
    if broker.waiting():  # the retry came after the run had counted the queue
        run(stream(spark, broker).writeStream.foreachBatch(prices), broker)
    [letter] = insight.dead_letters("dlq.orders")
    assert (letter.origin, letter.error, letter.redeliveries) == (Queue("orders"), "no price: a pear", 2)
    assert broker.waiting() == []


def test_a_table_of_rejected_rows_is_written_as_dead_letters(spark, broker):
    broker.send("a pear")
    rows = spark.read.format("jms").options(**broker.sink()).load().withColumn("price", f.lit(None))
    rejected = dead_letter(rows, "no price", error_class=f.lit("shop.NoPrice"))
    rejected.write.format("jms").option("url", broker.url).mode("append").save()
    [letter] = Insight(broker.url).dead_letters("dlq.orders")
    assert (letter.origin, letter.reason, letter.error) == (Queue("orders"), "shop.NoPrice", "no price")


def test_a_table_of_rejected_rows_is_checked_when_it_is_made(spark, broker):
    rows = spark.read.format("jms").options(**broker.sink()).load()
    with pytest.raises(InvalidOptionError, match="destination, properties"):
        dead_letter(rows.select("text"), "no")
    with pytest.raises(InvalidRedeliveryHandlingError, match="for ever"):
        dead_letter(rows, "no", "3:1000")
    with pytest.raises(InvalidRedeliveryHandlingError, match="element 0"):
        dead_letter(rows, "no", "x")
    extra = rows.withColumn("price", f.lit(1))
    assert dead_letter(extra, "no", origin="orders").columns[-2:] == ["error", "_rejection"]


def requests(broker):
    first, second, third, retry = (TextMessage(text) for text in "abcd")
    first.reply_to = second.reply_to = Queue("answers")
    second.correlation_id = "4711"
    retry.reply_to = Queue("answers")
    retry.properties.update({RETRY_COUNT: 1, "_JMSJCA_OriginalJMSMessageID": "ID:first"})
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(broker.queue)
        for message in (first, second, third, retry):
            producer.send(message, priority=7)
    return first.message_id


def test_replies_go_where_each_request_wants_them(spark, broker):
    asked = requests(broker)
    rows = spark.read.format("jms").options(**broker.sink()).load()
    answers = replies(rows, f.upper("text"), properties=f.struct(f.lit(1).alias("ok")))
    answers.write.format("jms").options(url=broker.url).mode("append").save()
    insight = Insight(broker.url)
    found = {message.body: message for message in insight.messages("answers")}
    assert {body: message.correlation_id for body, message in found.items()} == {
        "A": asked,
        "B": "4711",
        "D": "ID:first",
    }
    assert {(m.priority, m.reply_to, m.properties["ok"]) for m in found.values()} == {(7, None, 1)}

    other = replies(rows, "text", without="unanswerable").filter("text = 'c'")
    assert [tuple(row) for row in other.select("destination", "text").collect()] == [("queue:unanswerable", "c")]
    with pytest.raises(Exception, match="has no reply_to: filter such rows"):
        replies(rows, "text", without="fail").collect()
    with pytest.raises(InvalidOptionError, match="reply_to"):
        replies(rows.drop("reply_to"), "text")
    with pytest.raises(InvalidOptionError, match="one body"):
        replies(rows)


PAN, NAN, PASS_ID, KIND = (
    f"JMS_IBM_{name}" for name in ("Report_PAN", "Report_NAN", "Report_Pass_Correl_ID", "MsgType")
)


def test_reports_go_to_the_requests_that_ask_for_them(spark, broker):
    asked = {
        "both": {PAN: 1, NAN: 1, KIND: 8},
        "success": {PAN: True},
        "failure": {NAN: 2},
        "by correlation": {NAN: 1, PASS_ID: 1},
        "retry": {PAN: 1, RETRY_COUNT: 1, "_JMSJCA_OriginalJMSMessageID": "ID:first"},
        "a reply": {PAN: 1, KIND: 2},
        "nothing": {PAN: 0, NAN: False},
        "nowhere": {PAN: 1, NAN: 1},
    }
    ids = {}
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        for text, properties in asked.items():
            message = TextMessage(text, correlation_id="4711")
            message.properties.update(properties)
            message.reply_to = None if text == "nowhere" else Queue("queue://manager/the%20reports?priority=1")
            session.create_producer(broker.queue).send(message)
            ids[text] = message.message_id
    rows = spark.read.format("jms").options(**broker.sink()).load()

    def reported(**given):
        target = f"reports.{len(given)}"
        table = reports(rows, **given).withColumn("destination", f.concat("destination", f.lit(f".{target}")))
        table.write.format("jms").options(url=broker.url).mode("append").save()
        found = Insight(broker.url).messages(f"the reports.{target}")
        return sorted((m.correlation_id, m.body, m.properties[KIND], m.properties["JMS_IBM_Feedback"]) for m in found)

    succeeded = {(ids["both"], "", 4, 275), (ids["success"], "", 4, 275), ("ID:first", "", 4, 275)}
    assert reported() == sorted(succeeded)
    failed = {(ids["both"], "NO: both", 4, 276), (ids["failure"], "NO: failure", 4, 276)}
    error = f.when(f.col("text") != "retry", f.concat(f.lit("NO: "), "text"))
    expected = failed | {("4711", "NO: by correlation", 4, 276), ("ID:first", "RETRY", 4, 275)}
    assert reported(error=error, text=f.upper("text")) == sorted(expected)
    with pytest.raises(InvalidOptionError, match="Reports need the column properties"):
        reports(rows.drop("properties"))


ODD = {"x-opt.key": "k", "JMSXGroupSeq": "abc", "JMSXDeliveryCount": "2", "region": "EU"}  # those of other clients


def send_odd(broker):
    message = TextMessage("odd")
    message.properties = Properties.received(dict(ODD))
    with broker.factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(broker.queue).send(message)


@pytest.mark.parametrize("column", ["properties", "typed_properties"])
def test_a_foreach_writer_writes_what_was_read(spark, broker, column):
    send_odd(broker)
    rows = stream(spark, broker, columns=f"text,{column}")
    run(rows.writeStream.foreach(ForeachWriter(rows.schema, url=broker.url, destination="copies")), broker)
    [copy] = Insight(broker.url).messages("copies")
    assert (copy.body, dict(copy.properties)) == ("odd", {"x-opt.key": "k", "region": "EU"})


@pytest.mark.parametrize("column", ["properties", "typed_properties"])
def test_a_table_and_dead_letters_take_what_was_read(spark, broker, column):
    send_odd(broker)
    rows = spark.read.format("jms").options(**broker.sink(columns="text,properties,typed_properties,destination"))
    rows = rows.load().drop(*({"properties", "typed_properties"} - {column, "properties"}))
    rows.drop("destination").write.format("jms").options(**broker.sink(destination="copies")).mode("append").save()
    dead_letter(rows, "no").write.format("jms").option("url", broker.url).mode("append").save()
    for queue in ("copies", "dlq.orders"):
        [copy] = Insight(broker.url).messages(queue)
        assert {name: copy.properties.get(name) for name in ODD} == {
            "x-opt.key": "k",
            "region": "EU",
            "JMSXGroupSeq": None,
            "JMSXDeliveryCount": None,
        }


def test_a_variant_that_is_null_in_json_is_no_object(spark, broker):
    rows = spark.sql("SELECT 'a' AS text, parse_json('null') AS typed_properties, map('n', '1') AS properties")
    rows.write.format("jms").options(**broker.sink()).mode("append").save()
    [message] = Insight(broker.url).messages("orders")
    assert message.properties["n"] == "1"


def test_a_task_of_a_foreach_writer_that_fails_leaves_nothing(spark, broker):
    broker.send(*map(str, range(20)))
    marker = broker.folder / "failed"

    class FailsOnce(ForeachWriter):
        def close(self, error):
            if error is None and not marker.exists():
                marker.touch()
                error = RuntimeError("the task failed after its last row")
                super().close(error)
                raise error
            super().close(error)

    rows = stream(spark, broker, partitions=1).select("text")
    run(rows.writeStream.foreach(FailsOnce(rows.schema, url=broker.url, destination="copies")), broker)
    assert marker.exists()
    copied = spark.read.format("jms").options(**broker.sink(destination="copies")).load()
    assert [row.text for row in copied.orderBy("_seq").collect()] == [*map(str, range(20))]
