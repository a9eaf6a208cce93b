"""The option ``credentials`` of the Spark source and sink over a broker that wants a password.

Readers and writers are pickled as for executors. Only the processes that take the place of executors know the password.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import BrokerMissing, registry
from guarded_artemis import PASSWORD, USER, GuardedArtemis
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from jmsjca.spark import JmsDataSource
from jmsjca.spark.partition import JmsPartition
from jmsjca.spark.staging import EpochPartition, Staging

ROOT = Path(__file__).parents[2]
TEXTS = ["a", "b"]
EXECUTOR = """
import sys
import pyarrow as pa
from pyspark import cloudpickle

task, partition = cloudpickle.load(sys.stdin.buffer)
if partition is None:
    print(task.write(iter([pa.RecordBatch.from_pydict({"text": ["a", "b"]})])).messages)
else:
    print([text for batch in task.read(partition) for text in batch.column("text").to_pylist()])
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start the broker, and return its URL."""
    broker = GuardedArtemis()
    try:
        yield f"{broker.start().url('amqp')}?allow_insecure_login=true"
    except BrokerMissing as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
    finally:
        registry.discard(broker)


def execute(task: object, partition: JmsPartition | None, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Do what an executor does, in a process that knows the password."""
    pickled = cloudpickle.dumps((task, partition))
    assert PASSWORD.encode() not in pickled
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTOR],
        env=os.environ | {"SPARK_PASSWORD": PASSWORD, "PYTHONPATH": path},
        input=pickled,
        cwd=folder,
        capture_output=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize("given", ["env:SPARK_PASSWORD", "file:{folder}/password", "call:login_of_shop:login"])
def test_an_executor_reads_the_password_itself(url: str, tmp_path: Path, given: str) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    function = f"import os\n\ndef login():\n    return {USER!r}, os.environ['SPARK_PASSWORD']\n"
    (tmp_path / "login_of_shop.py").write_text(function)
    options = {"url": url, "destination": f"credentials.{given[:4]}", "credentials": given.format(folder=tmp_path)}
    if not given.startswith("call"):
        options["userName"] = USER
    writer = JmsDataSource(options).writer(StructType().add("text", "string"), overwrite=False)
    written = execute(writer, None, tmp_path)
    assert written.stdout == b"2\n", written.stderr.decode()

    source = JmsDataSource(options | {"stagingLocation": str(tmp_path / "staging")})
    Staging(tmp_path / "staging", "g").create_epoch(1)
    read = execute(source.streamReader(source.schema()), JmsPartition("g", EpochPartition(1, 0), 2), tmp_path)
    assert read.stdout.decode() == f"{TEXTS}\n", read.stderr.decode()
    assert PASSWORD not in read.stderr.decode() + written.stderr.decode()
    staged = [path for path in (tmp_path / "staging").rglob("*") if path.is_file()]
    assert staged
    assert [path for path in staged if PASSWORD.encode() in path.read_bytes()] == []


def test_a_wrong_password_is_refused(url: str, tmp_path: Path) -> None:
    """So the broker of these tests looks at it."""
    (tmp_path / "password").write_text("wr0ng-secret")
    options = {"url": url, "destination": "q", "userName": USER, "credentials": f"file:{tmp_path}/password"}
    writer = JmsDataSource(options).writer(StructType().add("text", "string"), overwrite=False)
    refused = execute(writer, None, tmp_path).stderr.decode()
    assert "JMSSecurityError" in refused
    assert "wr0ng-secret" not in refused
