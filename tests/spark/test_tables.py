"""Views and tables of SQL: Spark passes the options of a view, and not those of a table in its catalog."""

import pytest

from jmsjca.management import Insight

pytestmark = pytest.mark.spark


def texts(broker, queue):
    return [message.body for message in Insight(broker.url).messages(queue)]


def test_a_temporary_view_reads_and_writes(spark, broker):
    options = f"url '{broker.url}', destination 'bills', columns 'text,priority'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW bills USING jms OPTIONS ({options})")
    spark.sql("INSERT INTO bills VALUES ('a', 4), ('b', 7)")
    assert [row.text for row in spark.sql("SELECT text FROM bills WHERE priority = 7").collect()] == ["b"]
    assert spark.read.table("bills").count() == 2


def test_options_that_a_table_would_lose_are_refused(spark, broker):
    with pytest.raises(Exception, match="CREATE TEMPORARY VIEW … USING jms"):
        spark.sql(f"CREATE TABLE lost USING jms OPTIONS (url '{broker.url}', destination 'orders')")


def test_options_of_a_table_with_columns_are_lost_at_its_first_use(spark, broker):
    """Spark creates the table without asking for its options, and hands none over when it is used."""
    spark.sql(f"CREATE TABLE lost (text STRING) USING jms OPTIONS (url '{broker.url}', destination 'orders')")
    try:
        for use in ("SELECT * FROM lost", "INSERT INTO lost VALUES ('a')"):
            with pytest.raises(Exception, match=r"WITH \(url = '…', …\)"):
                spark.sql(use).collect()
    finally:
        spark.sql("DROP TABLE lost")


def test_a_table_of_a_query_is_refused(spark, broker):
    with pytest.raises(Exception, match=r"WITH \(url = '…', …\)"):
        spark.sql(
            f"CREATE TABLE lost USING jms OPTIONS (url '{broker.url}', destination 'orders') AS SELECT 'a' AS text"
        )
    assert broker.waiting() == []
    assert not spark.catalog.tableExists("lost")


@pytest.fixture(autouse=True)
def table(spark):
    spark.sql("CREATE TABLE receipts (text STRING) USING jms")
    yield
    spark.sql("DROP TABLE receipts")


def test_a_table_of_columns_needs_its_options_in_each_statement(spark, broker):
    with pytest.raises(Exception, match=r"WITH \(url = '…', …\)"):
        spark.sql("INSERT INTO receipts VALUES ('a')")
    spark.sql(f"INSERT INTO receipts WITH (url = '{broker.url}', destination = 'r') VALUES ('a')")  # noqa: S608
    found = spark.sql(f"SELECT * FROM receipts WITH (url = '{broker.url}', destination = 'r', columns = 'text')")  # noqa: S608
    assert [row.text for row in found.collect()] == ["a"]
    with pytest.raises(Exception, match="not overwritten"):
        spark.sql(f"INSERT OVERWRITE receipts WITH (url = '{broker.url}', destination = 'r') VALUES ('b')")  # noqa: S608
    assert texts(broker, "r") == ["a"]


def test_writers_and_streams_take_a_table(spark, broker):
    rows = spark.createDataFrame([("a",)], "text string")
    given = broker.sink(destination="r")
    rows.writeTo("receipts").options(**given).append()
    rows.write.format("jms").options(**given).mode("append").saveAsTable("receipts")
    assert texts(broker, "r") == ["a", "a"]
    broker.send("b", "c")
    stream = spark.readStream.format("jms").options(**broker.given(columns="text", receiveIdleTimeout=0.1)).load()
    sink = stream.writeStream.queryName("receipts").options(**given, guarantee="exactly-once")
    sink = sink.option("checkpointLocation", f"{broker.folder}/checkpoint").trigger(availableNow=True)
    query = sink.toTable("receipts")
    query.awaitTermination()
    assert sorted(texts(broker, "r")) == ["a", "a", "b", "c"]
    assert len(texts(broker, "jmsjca.sink.receipts")) == 1
