"""The wheel: with it alone Spark knows format("jms")."""

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from spark_session import java_home
from wheels import build_wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the wheel, as pip would install them."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build_wheel(folder)) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(code: str, path: Path, **more: str) -> str:
    """Run code where nothing but the wheel's files and the installed packages can be imported."""
    spark = Path(find_spec("pyspark").origin).parents[1]  # of which there may be several
    environment = os.environ | {"PYTHONPATH": f"{path}:{spark}", "PYSPARK_PYTHON": sys.executable} | more
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        cwd=path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


QUERY = """
import jmsjca
from pathlib import Path
assert Path(jmsjca.__file__).is_relative_to(Path.cwd()), jmsjca.__file__
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
table = spark.createDataFrame([("hello",)], "text string")
url = f"embedded://{Path.cwd()}/broker.db"
table.write.format("jms").options(url=url, destination="q").mode("append").save()
print([row.text for row in spark.read.format("jms").options(url=url, destination="q").load().collect()])
from jmsjca.spark import register
register(spark)
print(spark.read.format("jms").options(url=url, destination="q").load().count())
spark.stop()
"""


@pytest.mark.spark
def test_the_wheel_alone_is_enough(installed: Path) -> None:
    """Both the batch writer and the batch reader, and a registration on top changes nothing."""
    output = run(QUERY, installed, JAVA_HOME=java_home(), SPARK_LOCAL_IP="127.0.0.1")
    assert output.splitlines() == ["['hello']", "1"]


WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
import pyspark_jmsjca
print(hasattr(pyspark_jmsjca, "DefaultSource"))
"""


def test_without_pyarrow_other_data_sources_are_still_found(installed: Path) -> None:
    assert run(WITHOUT_ARROW, installed) == "False\n"


def test_it_is_the_data_source(installed: Path) -> None:
    code = "import pyspark_jmsjca; print(pyspark_jmsjca.DefaultSource.name(), pyspark_jmsjca.__file__)"
    assert run(code, installed).split() == ["jms", str(installed / "pyspark_jmsjca.py")]
