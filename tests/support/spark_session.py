"""One Spark session for all tests of a run."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jmsjca.errors import ConfigurationError
from jmsjca.spark import register
from jmsjca.spark.java import find_java

SUPPORT = Path(__file__).parent


@contextmanager
def spark_session(
    folder: Path, master: str = "local[2,4]", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that knows "jms"; its tasks are tried up to four times. Its workers find the modules of this folder."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JAVA_HOME", java_home())
    patch.setenv("PYSPARK_PYTHON", sys.executable)  # else Spark's workers are the first python3 of the PATH
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(SUPPORT), os.environ.get("PYTHONPATH")])))
    session = _session(folder, master, settings or {})
    register(session)
    yield session
    session.stop()
    patch.undo()


def java_home() -> str:
    """A missing Java fails in CI; elsewhere it skips, and says so."""
    try:
        return str(find_java())
    except ConfigurationError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def _session(folder: Path, master: str, more: Mapping[str, str]) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",  # most of it is Java's start
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        **more,
    }
    builder = SparkSession.builder.master(master).appName("jmsjca tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # failures that a test causes need no stack trace
    return session
