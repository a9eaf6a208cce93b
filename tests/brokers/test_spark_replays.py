"""Batches that Spark repeats, reads twice or leaves behind, on real brokers: they have the same rows."""

# ruff: noqa: F811  # fixtures are imported

import json
import shutil
import uuid

import pytest
from crashing_query import RunningQuery, run_to_end
from crashing_streams import EMPTY, PAIRS, TEXTS, Stream, await_until, make_stream, spark  # noqa: F401  # fixtures
from raw_stomp import RawSTOMP
from spark_cases import cases

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


class Batches:
    """A sink that reads each batch two times, and may fail once."""

    def __init__(self, stream: Stream, fails_in: int | None = None) -> None:
        self._stream = stream
        self._fails_in = fails_in
        self.seen: dict[int, list[list[tuple[object, ...]]]] = {}

    def __call__(self, frame, number: int) -> None:
        for _ in range(2):
            rows = frame.orderBy("_epoch", "_partition", "_seq").collect()
            self.seen.setdefault(number, []).append([tuple(row) for row in rows])
        if number == self._fails_in:
            self._fails_in = None
            raise RuntimeError("the sink failed")

    def run(self, spark, **changes: object) -> None:
        frame = spark.readStream.format("jms").options(**self._stream.options(**changes)).load()
        query = frame.writeStream.foreachBatch(self)
        checkpoint = str(self._stream.folder / "checkpoint")
        run_to_end(query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start)

    @property
    def count(self) -> int:
        return sum(len(rows[0]) for rows in self.seen.values())

    @property
    def are_equal(self) -> bool:
        return all(rows == again[0] for again in self.seen.values() for rows in again)


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_sink_that_fails_once_gets_the_same_rows_in_the_same_partitions(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    batches = Batches(stream, fails_in=1)
    with pytest.raises(Exception, match="the sink failed"):
        batches.run(spark, partitions=3)
    batches.run(spark, partitions=1)
    assert len(batches.seen[1]) == 4
    assert batches.are_equal
    assert batches.count == len(TEXTS)
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_batch_without_its_note_in_sparks_log_has_the_same_rows_again(spark, make_stream, pair):
    """As after a crash of the driver between the sink's commit and Spark's note of it."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    batches = Batches(stream)
    batches.run(spark, partitions=2)
    last = max(batches.seen)
    for path in (stream.folder / "checkpoint" / "commits").glob(f"*{last}*"):
        path.unlink()
    stream.send(["more"])
    batches.run(spark, partitions=2)
    assert len(batches.seen[last]) == 4
    assert batches.are_equal
    assert batches.count == len(TEXTS) + 1
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_copied_checkpoint_with_the_same_staging_is_refused(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    run_to_end(lambda: stream.start(spark, "", "nobody"))
    copy = shutil.copytree(stream.folder / "checkpoint", stream.folder / "copy")
    (copy / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (copy / ".metadata.crc").unlink(missing_ok=True)
    stream.send(["more"])
    frame = spark.readStream.format("jms").options(**stream.options()).load()
    sink = frame.writeStream.format("noop").option("checkpointLocation", str(copy)).trigger(availableNow=True)
    with pytest.raises(Exception, match="each query needs a checkpoint of its own"):
        sink.start().awaitTermination()
    assert stream.take(stream.queue) == ["more"]


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_stream_that_a_query_uses_twice_has_each_row_twice(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    frame = spark.readStream.format("jms").options(**stream.options()).load()
    sink = frame.union(frame).writeStream.format("parquet").option("path", str(stream.folder / "out"))
    sink = sink.option("checkpointLocation", str(stream.folder / "checkpoint"))
    run_to_end(sink.trigger(availableNow=True).start)
    assert stream.texts(spark) == sorted(TEXTS * 2)
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_available_now_ends_while_messages_keep_coming(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    sent = list(TEXTS)

    def process(frame, number: int) -> None:
        more = [f"n{number:03}-{n}" for n in range(10)]  # as many as a batch takes
        stream.send(more)
        sent.extend(more)
        frame.select("text").write.mode("overwrite").parquet(str(stream.folder / "out" / f"batch={number}"))

    def run(**trigger: object):
        frame = spark.readStream.format("jms").options(**stream.options()).load()
        query = frame.writeStream.foreachBatch(process).option("checkpointLocation", str(stream.folder / "checkpoint"))
        return query.trigger(**trigger).start()

    run_to_end(lambda: run(availableNow=True))
    read = stream.texts(spark)
    assert set(TEXTS) <= set(read)
    assert len(read) == len(set(read)) < len(sent)


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_staged_file_that_was_altered_is_named(make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    stream.run_apart("confirmed", "everything")
    staged, *_ = sorted((stream.folder / "staging").glob("v1/*/e-0000000002/*.arrow"))
    data = bytearray(staged.read_bytes())
    data[-100] ^= 1
    staged.write_bytes(data)
    again = stream.run_apart("", "nobody")
    assert again.code > 0
    assert str(staged) in again.said
    assert "the checksum of the rows does not match" in again.said


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_query_that_is_stopped_leaves_no_consumer_and_goes_on(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS[:20])
    for number in (20, 40):
        query = RunningQuery(lambda: stream.start_named(spark, "first"))
        try:
            await_until(lambda number=number: stream.has_read(spark, number, "out-first"), query)
        finally:
            query.stop()
        if pair != "activemq-stomp":  # which does not count them
            await_until(lambda: not stream.consumers())
        stream.send(TEXTS[number:])
    assert stream.texts(spark, "out-first") == TEXTS


@pytest.mark.parametrize("pair", cases(["activemq-stomp", "artemis-stomp"]))
def test_a_stomp_message_that_cannot_be_decoded_is_a_row_with_an_error(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS[:5])
    address = {"destination-type": "ANYCAST"} if pair == "artemis-stomp" else {}
    place = stream.queue.name if pair == "artemis-stomp" else f"/queue/{stream.queue.name}"
    with RawSTOMP(stream.url) as peer:
        assert peer.confirm("SEND", "poison", destination=place, persistent="true", _jmsjca="{", **address) == "RECEIPT"
    stream.send(TEXTS[5:])
    run_to_end(lambda: stream.start(spark, "", "nobody"))
    rows = spark.read.parquet(str(stream.folder / "out")).collect()
    assert sorted(row.text for row in rows if row.error is None) == TEXTS
    (poison,) = (row for row in rows if row.error is not None)
    assert bytes(poison.body) == b"poison"
    assert stream.left() in EMPTY
