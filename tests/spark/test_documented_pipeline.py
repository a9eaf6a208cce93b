"""The pipeline of the documentation, run two times by the program of Spark that the documentation names."""

import re
import shlex
from pathlib import Path

import pyarrow.parquet
import pytest
from spark_programs import run_program

from jmsjca.management import Insight
from tests.spark.conftest import Broker

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(3600)]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark-jobs.md"
FOLDER = "/var/lib/app"


class Pipeline:
    """The pipeline of the documentation in the folder of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.folder = broker.folder
        self._insight = Insight(broker.url)
        page = PAGE.read_text()
        for name, text in re.findall(r'^```\w+ title="(.*?)"\n(.*?)^```', page, re.MULTILINE | re.DOTALL):
            (self.folder / name).write_text(text.replace(FOLDER, str(self.folder)))
        [command] = re.findall(r"^\$ (spark-pipelines .*)$", page, re.MULTILINE)
        self._command = shlex.split(command, comments=True)

    def run(self) -> None:
        """Run the pipeline; again if Spark gave up waiting for the start of a process, as on a busy machine."""
        while True:
            done = run_program(*self._command, "--conf", "spark.ui.enabled=false", folder=self.folder)
            if not done.returncode:
                return
            assert "failed to connect back" in done.stdout, done.stdout + done.stderr

    def rows(self) -> list[str]:
        """Return the rows of the table, as Spark has written them."""
        return sorted(pyarrow.parquet.read_table(self.folder / "spark-warehouse" / "orders")["text"].to_pylist())

    def texts(self, queue: str) -> list[str]:
        return sorted(message.body for message in self._insight.messages(queue))


@pytest.fixture
def pipeline(broker: Broker) -> Pipeline:
    return Pipeline(broker)


def test_a_queue_is_the_source_of_a_table_and_the_sink_of_a_flow(broker: Broker, pipeline: Pipeline) -> None:
    broker.send("a", "b")
    pipeline.run()
    assert pipeline.rows() == ["a", "b"]
    broker.send("c")
    pipeline.run()
    assert pipeline.rows() == ["a", "b", "c"]
    assert pipeline.texts("answers") == ["seen: a", "seen: b", "seen: c"]
    assert broker.waiting() == []
    assert len(pipeline.texts("jmsjca.sink.answer_orders")) == 1
