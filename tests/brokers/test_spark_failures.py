"""Failures in a real Spark in which no process dies at once: late attempts, brokers that are away, lost folders."""

# ruff: noqa: F811  # fixtures are imported

import shutil
from pathlib import Path

import pytest
from crash import await_end
from crashing_query import RunningQuery, run_to_end
from crashing_streams import EMPTY, PAIRS, TEXTS, Stream, await_until, make_stream, spark  # noqa: F401  # fixtures
from spark_cases import cases

from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.staging import EpochPartition, generations

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

MORE = [f"n{n:02}" for n in range(10)]


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_late_attempt_at_an_epoch_that_is_over_takes_nothing(make_stream, pair):
    """Its process lives on while everything else is killed. It wakes up when its epoch is removed."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    stream.run_apart("receiving", "others", retainEpochs=0)
    (late,) = stream.crashes("receiving")
    done = stream.run_apart("receiving", "others", retainEpochs=0)
    assert done.code == 0, done.said
    stream.send(MORE)
    stream.at("receiving").release()
    await_end([late])
    again = stream.run_apart("receiving", "others")
    assert again.code == 0, again.said
    assert again.texts == TEXTS + MORE
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_of_two_attempts_at_a_partition_the_second_releases_its_messages(make_stream, pair):
    """The first one goes on when the second one has decided, and Spark has not got its rows yet."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    stream.run_apart("receiving", "others")
    (late,) = stream.crashes("receiving")
    run = stream.start_apart("decided", "nobody", crashes=2)
    await_until(lambda: stream.at("decided").marks[1:] or run.code is not None)
    stream.at("receiving").release()
    await_end([late])
    stream.at("decided").release()
    assert run.wait().code == 0, run.said
    again = stream.run_apart("", "nobody")  # what the first one released last may come behind the end of the run
    assert again.code == 0, again.said
    assert again.texts == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS, keep=1))
def test_one_of_two_partitions_keeps_a_message_that_both_have_staged(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS[:20])
    run_to_end(lambda: stream.start(spark, "", "nobody", tasks="meeting", retainEpochs=10))
    assert stream.texts(spark) == TEXTS[:20]
    (staging,) = generations(FolderStore(stream.folder / "staging"))
    first, second = (EpochPartition(2, number) for number in (0, 1))
    assert staging.keys(first) & staging.keys(second)
    assert not staging.is_confirmed(first)
    stream.send(TEXTS[20:])
    run_to_end(lambda: stream.start(spark, "", "nobody", retainEpochs=10))  # drops what the first has not settled
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS[:2], keep=1))
def test_a_batch_has_a_consumer_for_each_partition_and_none_stays(spark, make_stream, pair):
    """Spark makes a dozen copies of the reader in the meantime."""
    stream = make_stream(pair)
    stream.send(TEXTS)
    query = RunningQuery(lambda: stream.start(spark, "received", "nobody", crashes=2))
    await_until(lambda: stream.at("received").marks[1:], query)
    assert stream.consumers() == 2
    stream.at("received").release()
    query.await_end()
    assert stream.texts(spark) == TEXTS
    await_until(lambda: not stream.consumers())
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS, keep=1))
def test_a_full_disk_fails_the_query_and_takes_nothing(spark, make_stream, pair):
    stream = make_stream(pair)
    stream.send(TEXTS)
    with pytest.raises(Exception, match="File too large"):  # of the kernel, as a limit of the size makes it
        run_to_end(lambda: stream.start(spark, "publishing", "space"))
    assert len(stream.texts(spark)) < len(TEXTS)
    stream.at("publishing").release()
    run_to_end(lambda: stream.start(spark, "publishing", "space"))
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_a_lost_epoch_is_named(make_stream, pair):
    stream = staged_and_killed(make_stream(pair))
    (epoch,) = (stream.folder / "staging").glob("v1/*/e-0000000002")
    shutil.rmtree(epoch)
    again = stream.run_apart("", "nobody")
    assert again.code > 0
    assert f"{epoch} is missing, with the messages of epoch 2" in again.said


@pytest.mark.parametrize("pair", cases(PAIRS))
def test_messages_of_a_lost_checkpoint_are_named(make_stream, pair):
    stream = staged_and_killed(make_stream(pair))
    shutil.rmtree(stream.folder / "checkpoint")
    again = stream.run_apart("", "nobody")
    assert again.code > 0
    assert "e-0000000002/p-00000.arrow" in again.said
    assert "messages of another checkpoint that were perhaps never processed" in again.said


def staged_and_killed(stream: Stream) -> Stream:
    """Return a stream whose second batch was staged and settled when everything was killed."""
    stream.send(TEXTS)
    stream.run_apart("sink written", "everything", sink="batches")
    assert stream.crashed
    return stream


@pytest.mark.parametrize("pair", cases(PAIRS[1:]))
def test_a_broker_that_dies_while_a_task_reads_fails_the_query_and_loses_nothing(spark, own_broker, tmp_path, pair):
    broker, stream = own(own_broker, pair, tmp_path)
    stream.send(TEXTS)
    query = RunningQuery(lambda: stream.start(spark, "receiving", "nobody", driverRetryTimeout=1))
    await_until(lambda: stream.crashed, query)
    broker.kill()
    stream.at("receiving").release()
    with pytest.raises(Exception, match=r"jmsjca\.errors\.\w+"):
        query.await_end()
    broker.start()
    run_to_end(lambda: stream.start(spark, "receiving", "nobody"))
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY


@pytest.mark.parametrize("pair", cases(PAIRS[1:]))
def test_a_query_goes_on_when_an_idle_broker_is_back(spark, own_broker, tmp_path, pair):
    broker, stream = own(own_broker, pair, tmp_path)
    stream.send(TEXTS[:20])
    query = RunningQuery(lambda: stream.start_named(spark, "first"))
    try:
        await_until(lambda: stream.has_read(spark, 20, "out-first"), query)
        broker.kill()
        broker.start()
        stream.send(TEXTS[20:])
        await_until(lambda: stream.has_read(spark, 40, "out-first"), query)
    finally:
        query.stop()
    assert stream.texts(spark, "out-first") == TEXTS
    assert stream.left() in EMPTY


def own(own_broker, pair: str, folder: Path) -> tuple[object, Stream]:
    """Return a broker of the test's own, and a stream."""
    kind, _, protocol = pair.partition("-")
    broker = own_broker(kind)
    return broker, Stream(broker.url(protocol), folder)


@pytest.mark.parametrize("pair", cases(PAIRS[1:], keep=1))
def test_available_now_fails_if_it_loses_the_broker(spark, own_broker, tmp_path, pair):
    """It never ends well with messages left, and the next run reads them."""
    broker, stream = own(own_broker, pair, tmp_path)
    stream.send(TEXTS)
    out = tmp_path / "out"

    def run(kill_in: int | None) -> None:
        def sink(frame, number: int) -> None:
            frame.select("text").write.mode("overwrite").parquet(str(out / f"batch={number}"))
            if number == kill_in:
                broker.kill()

        frame = spark.readStream.format("jms").options(**stream.options(driverRetryTimeout=1)).load()
        query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(query.trigger(availableNow=True).start)

    with pytest.raises(Exception, match=r"jmsjca\.errors\.\w+"):
        run(kill_in=1)
    assert len(stream.texts(spark)) == 20
    broker.start()
    run(kill_in=None)
    assert stream.texts(spark) == TEXTS
    assert stream.left() in EMPTY
