"""The options of the data source."""

import subprocess
import sys
from pathlib import Path

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import ConfigurationError, InvalidDestinationError, InvalidOptionError
from jmsjca.spark.folder_store import FolderStore
from jmsjca.spark.object_store import Bucket, ObjectStore
from jmsjca.spark.options import JmsOptions, SinkOptions, SourceOptions
from jmsjca.spark.schema import SCHEMA

GIVEN = {"url": "embedded:///tmp/broker.db", "destination": "orders"}


def test_names_are_read_without_regard_to_case() -> None:
    options = SourceOptions.parse(
        {"URL": GIVEN["url"], "Destination": "orders", "maxmessagesperbatch": "7", "POLLINTERVAL": "0.5"}
    )
    assert (options.maxMessagesPerBatch, options.pollInterval, options.target) == (7, 0.5, Queue("orders"))


def test_a_topic() -> None:
    assert SourceOptions.parse(GIVEN | {"destinationType": "topic"}).target == Topic("orders")


@pytest.mark.parametrize(("text", "wanted"), [("topic:news", Topic("news")), ("queue:topic:news", Queue("topic:news"))])
def test_the_prefix_of_a_name_is_its_type(text: str, wanted: Queue | Topic) -> None:
    assert SourceOptions.parse(GIVEN | {"destination": text}).target == wanted
    assert SinkOptions.parse({"url": GIVEN["url"], "path": text}).target == wanted
    assert SourceOptions.parse(GIVEN | {"destination": text, "destinationType": "queue"}).target == Queue(text)


def test_the_option_of_every_streaming_sink_is_none_of_ours() -> None:
    assert SourceOptions.parse(GIVEN | {"checkpointLocation": "/c"}) == SourceOptions.parse(GIVEN)


@pytest.mark.parametrize("missing", ["url", "destination"])
@pytest.mark.parametrize("empty", [True, False])
def test_what_must_be_given(missing: str, empty: bool) -> None:
    given = GIVEN | {missing: ""} if empty else {name: v for name, v in GIVEN.items() if name != missing}
    with pytest.raises(InvalidOptionError, match=f"'{missing}' is missing"):
        _ = SourceOptions.parse(given).target  # a sink may do without a destination


def test_an_unknown_option_gets_a_hint() -> None:
    with pytest.raises(InvalidOptionError, match=r"no option 'partitons' \(did you mean partitions\?\)"):
        SourceOptions.parse(GIVEN | {"partitons": "2"})
    with pytest.raises(InvalidOptionError, match="there are url, destination, "):
        SourceOptions.parse(GIVEN | {"xyzzy": "2"})


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("queue", "use destination, as 'orders'"),
        ("queueName", "use destination"),
        ("topic", "use destination, as 'topic:news'"),
        ("brokerURL", "use url, as 'amqp://HOST:5672'"),
        ("staging", "use stagingLocation"),
        ("ttl", "use timeToLive"),
        ("durable", "use subscription"),
        ("priority", "use a column of that name"),
        ("reply_to", "use a column of that name"),
    ],
)
def test_an_option_that_has_another_name_here(name: str, remedy: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"(?i)has no option '{name}' .{remedy}"):
        SourceOptions.parse(GIVEN | {name: "2"})


@pytest.mark.parametrize("role", [SourceOptions, SinkOptions])
def test_a_password_without_a_user_name_is_refused(role: type[JmsOptions]) -> None:
    """It had no effect: the connection was anonymous."""
    with pytest.raises(InvalidOptionError, match="'password' has no effect without the option 'userName'"):
        role.parse(GIVEN | {"password": "hush"})


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("partitions", "two", "must be a number"),
        ("partitions", "0", "at least 1"),
        ("partitions", "-1", "not negative"),
        ("partitions", "1.5", "must be a number"),
        ("partitions", "100000", "at most 99999, not 100000"),
        ("maxMessagesPerBatch", "0", "at least 1"),
        ("retainEpochs", "-1", "not negative"),  # would remove the epoch that is being read
        ("batchTimeout", "-1", "not negative"),
        ("batchTimeout", "nan", "not negative"),
        ("pollInterval", "inf", "not negative"),
        ("pollInterval", "5 m", "in seconds or with a unit: ms, s, min, h, d, .* '5 seconds' or '1 minute 30 seconds'"),
        ("maxBytesPerBatch", "1.5 GiB", "a whole number .* B, KB, MB, GB or TB, .* '64 MiB', not '1.5 GiB'"),
        ("maxMessagesPerBatch", "10,000", "must be a number that is not negative, not '10,000'"),
        ("batchTimeout", "0", "'batchTimeout' must be greater than 0"),
        ("batchTimeout", "0 seconds", "'batchTimeout' must be greater than 0"),
        ("dedupKey", "property:", "'dedupKey' names no property: write property:NAME"),
        ("dedupKey", "property: ", "'dedupKey' names no property: write property:NAME"),
        ("stagingLocation", "", "'stagingLocation' is empty: name a folder, or a bucket"),
        ("stagingLocation", " ", "'stagingLocation' is empty: name a folder, or a bucket"),
        ("orphans", "adopt", "'fail' or 'ignore'"),
        ("dedupKey", "JMSMessageId", "JMSMessageID"),
        ("url", "embedded://memory", "memory of one process"),
        ("url", "embedded:///", "memory of one process"),
        ("stagingLocation", "s3://key:secret@bucket/staging", "without user, password or query"),
        ("stagingLocation", "s3://bucket/staging?key=secret", "without user, password or query"),
        ("stagingLocation", "hdfs:/staging", "folder"),
        ("stagingLocation", "file://server/staging", "folder"),
    ],
)
def test_values_that_cannot_be_used(name: str, value: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        SourceOptions.parse(GIVEN | {name: value})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0),
        ("0.25", 0.25),
        ("5 seconds", 5.0),
        ("1 second", 1.0),
        ("500 milliseconds", 0.5),
        ("20ms", 0.02),
        ("3s", 3.0),
        ("1 minute 30 seconds", 90.0),
        ("2 Hours", 7200.0),
        ("7 days", 604800.0),
        ("5 min", 300.0),
        ("5h", 18000.0),
        ("2d", 172800.0),
        ("1 week", 604800.0),
        ("2 weeks 1 day", 1296000.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert SourceOptions.parse(GIVEN | {"batchTimeout": text}).batchTimeout == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["5 parsecs", "5 m", "seconds", "5 seconds or so", "-5 seconds", "5 5 seconds", "", "s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="batchTimeout"):
        SourceOptions.parse(GIVEN | {"batchTimeout": text})


def test_a_bad_url_and_a_bad_kind() -> None:
    with pytest.raises(ConfigurationError):
        SourceOptions.parse(GIVEN | {"url": "no url"})
    with pytest.raises(InvalidDestinationError):
        SourceOptions.parse(GIVEN | {"destinationType": "queues"})
    with pytest.raises(InvalidDestinationError, match="'destinationType' must be 'queue' or 'topic', not 'queues'"):
        SinkOptions.parse({"url": GIVEN["url"], "destinationType": "queues"})


def test_several_paths_are_the_option_destinations() -> None:
    """Spark hands over ``.load(["orders", "returns"])`` as the option ``paths``."""
    remedy = "'destinations' names several queues: leave out the paths"
    with pytest.raises(InvalidOptionError, match=remedy):
        SourceOptions.parse({"url": GIVEN["url"], "paths": '["orders","returns"]'})


@pytest.mark.parametrize("key", ["JMSMessageID", "JMSCorrelationID", "property:order", "none"])
def test_keys(key: str) -> None:
    assert SourceOptions.parse(GIVEN | {"dedupKey": key}).dedupKey == key


@pytest.mark.parametrize("location", ["/s/t", "file:/s/t", "file:///s/t"])
def test_a_staging_location_may_be_written_as_spark_writes_it(location: str) -> None:
    assert SourceOptions.parse(GIVEN | {"stagingLocation": location}).staging() == FolderStore(Path("/s/t"))


def test_a_relative_staging_location_is_one_folder_wherever_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = SourceOptions.parse(GIVEN | {"stagingLocation": "staged"})
    monkeypatch.chdir("/")
    assert options.staging() == FolderStore(tmp_path / "staged")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("s3a://bucket/a/b/", "s3://bucket/a/b"),
        ("gs://bucket", "gs://bucket"),
        ("abfss://c@a.dfs.core.windows.net/p", "abfss://c@a.dfs.core.windows.net/p"),
    ],
)
def test_a_staging_location_may_be_a_bucket(location: str, url: str) -> None:
    options = SourceOptions.parse(
        GIVEN | {"stagingLocation": location, "stagingRegion": "eu-west-1", "stagingCredentials": "file:/run/secret"}
    )
    assert options.staging() == ObjectStore(Bucket(url, None, "eu-west-1", "file:/run/secret"))
    assert str(options.staging()) == url


def test_what_does_not_fit_a_staging_location_is_refused_without_showing_a_secret() -> None:
    for given, why in (
        ({"stagingLocation": "s3://b/p", "stagingCredentials": "AKIA:5ecret"}, "env:NAME or file:PATH"),
        ({"stagingLocation": "/folder", "stagingCredentials": "AKIA:5ecret"}, "are for buckets"),
        ({"stagingLocation": "s3://AKIA:5ecret@b/p"}, "use the option 'stagingCredentials'"),
        ({"stagingLocation": "wasb://AKIA:5ecret@b/p"}, "not wasb:"),
        *(
            ({"stagingLocation": "s3://b/p", "stagingEndpoint": endpoint}, "use the option 'stagingCredentials'")
            for endpoint in ("https://AKIA:5ecret@host", "https://AKIA:5e/5ecret@host", "https://host?key=5ecret")
        ),
        ({"stagingEndpoint": "https://AKIA:5ecret@host"}, "use the option 'stagingCredentials'"),
        ({"stagingCredentials": "AKIA:5ecret"}, "env:NAME or file:PATH"),
        *(
            ({"stagingLocation": "s3://b/p", "stagingEndpoint": endpoint}, "the URL of a service, as https://host:port")
            for endpoint in ("localhost:9000", "ftp://host", "https://", "http:///path")
        ),
    ):
        with pytest.raises(InvalidOptionError, match=why) as caught:
            SourceOptions.parse(GIVEN | given)
        assert "5ecret" not in str(caught.value)


def test_no_staging_location() -> None:
    with pytest.raises(InvalidOptionError, match="stagingLocation"):
        SourceOptions.parse(GIVEN).staging()


@pytest.mark.parametrize(
    ("selector", "variables", "built"),
    [
        ("n > 5", {}, "n > 5"),
        ("region = ${Region} AND n > ${min}", {"region": "O'Hare", "min": "5"}, "region = 'O''Hare' AND n > 5"),
        ("region LIKE '${region}%'", {"region": "a'b"}, "region LIKE 'a''b%'"),
        ("x > ${x}", {"x": "-0.5"}, "x > (-0.5)"),
    ],
)
def test_a_selector(selector: str, variables: dict[str, str], built: str) -> None:
    named = {f"Selector.{name}": value for name, value in variables.items()}
    assert SourceOptions.parse(GIVEN | {"selector": selector} | named).selector == built


@pytest.mark.parametrize(
    ("selector", "problem"),
    [("n >", "'selector' is invalid"), ("n > ${min}", "no value for min: set selector.min"), ("n > ${", "no closing")],
)
def test_a_selector_that_cannot_be_used(selector: str, problem: str) -> None:
    with pytest.raises(InvalidOptionError, match=problem):
        SourceOptions.parse(GIVEN | {"selector": selector})


def test_columns() -> None:
    assert SourceOptions.parse(GIVEN).columns == tuple(SCHEMA.names)
    assert SourceOptions.parse(GIVEN | {"columns": "_seq, text"}).columns == ("_seq", "text")


@pytest.mark.parametrize(
    ("columns", "problem"), [("txet", "did you mean text"), ("text,text", "twice"), ("", "no column")]
)
def test_columns_that_are_not_there(columns: str, problem: str) -> None:
    with pytest.raises(InvalidOptionError, match=problem):
        SourceOptions.parse(GIVEN | {"columns": columns})


def test_a_path_is_a_destination() -> None:
    url = {"url": GIVEN["url"]}
    assert SourceOptions.parse(url | {"path": "orders"}).target == Queue("orders")
    assert SourceOptions.parse(GIVEN | {"path": "orders"}).target == Queue("orders")
    with pytest.raises(InvalidOptionError, match="'bills' and the option 'destination', 'orders'"):
        SourceOptions.parse(GIVEN | {"path": "bills"})


def test_the_source_of_a_stream() -> None:
    topic = GIVEN | {"destinationType": "topic"}
    assert SourceOptions.parse(GIVEN).sources[""] == Queue("orders")
    assert SourceOptions.parse(topic | {"subscription": "s"}).sources[""] == Subscription(
        Topic("orders"), "s", shared=True
    )
    for wrong in (topic, GIVEN | {"subscription": "s"}):
        with pytest.raises(InvalidOptionError, match="subscription"):
            _ = SourceOptions.parse(wrong).sources


QUEUES = {"url": GIVEN["url"], "destinations": "orders, bills"}


def test_several_queues() -> None:
    options = SourceOptions.parse(QUEUES)
    assert options.sources == {"orders": Queue("orders"), "bills": Queue("bills")}
    assert options.described.startswith("queue:orders, queue:bills at ")
    prefixed = SourceOptions.parse(QUEUES | {"destinations": "queue:orders,queue:topic:news"})
    assert prefixed.sources == {"orders": Queue("orders"), "topic:news": Queue("topic:news")}


@pytest.mark.parametrize(
    "changes",
    [
        {"destination": "a"},
        {"destinationType": "topic"},
        *({"destinations": names} for names in ("a,a", "a,", "a,queue:a", "a,topic:b", "queue:", "a,topic:")),
    ],
)
def test_several_queues_are_named_once_and_alone(changes: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="destinations"):
        SourceOptions.parse(QUEUES | changes)


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("64 MiB", 1 << 26), ("2g", 1 << 31), ("1KB", 1024), ("3 b", 3)]
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert SourceOptions.parse(GIVEN | {"maxBytesPerBatch": text}).maxBytesPerBatch == size


@pytest.mark.parametrize("text", ["64 parsecs", "-1", "1.5 MB", "", "MB", "0"])
def test_sizes_are_checked(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="maxBytesPerBatch"):
        SourceOptions.parse(GIVEN | {"maxBytesPerBatch": text})


def test_a_source_is_described_without_secrets_and_options() -> None:
    url = "amqp://me:hidden@one:5672,two:5673?idle_timeout=5"
    options = SourceOptions.parse(GIVEN | {"url": url})
    assert options.described == "queue:orders at amqp://one:5672,two:5673"


@pytest.mark.parametrize(
    ("role", "other", "name"),
    [
        (SinkOptions, SourceOptions, "Partitions"),
        (SinkOptions, SourceOptions, "stagingLocation"),
        (SourceOptions, SinkOptions, "timeToLive"),
    ],
)
def test_options_of_the_other_side_are_refused(role: type[JmsOptions], other: type[JmsOptions], name: str) -> None:
    other.parse(GIVEN | {name: "1"})
    with pytest.raises(InvalidOptionError, match=f"(?i)has no option '{name}'"):
        role.parse(GIVEN | {name: "1"})
    role.parse(GIVEN)


def test_a_view_that_selects_columns_can_be_written() -> None:
    assert SinkOptions.parse(GIVEN | {"columns": "text"}) == SinkOptions.parse(GIVEN)


def test_no_secret_shows() -> None:
    options = SourceOptions.parse(GIVEN | {"url": "amqp://me:hidden@host", "userName": "me", "password": "hidden"})
    assert options.settings.password
    assert "hidden" not in repr(options)


def test_a_worker_without_the_packages_names_its_python() -> None:
    """Spark's workers run the first `python3` of the PATH, which may not be the driver's."""
    code = "import sys; sys.modules['pyarrow'] = None; import jmsjca.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "jmsjca.spark needs pyarrow" in done.stderr
    assert sys.executable in done.stderr.splitlines()[-1]
    assert "set PYSPARK_PYTHON" in done.stderr
