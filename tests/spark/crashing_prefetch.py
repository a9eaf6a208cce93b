"""Crashes a driver at the points of a prefetch and after it, and restarts the query as Spark would.

``python -m tests.spark.crashing_prefetch FOLDER`` prints what was handed over after a crash at each point, as JSON.
Each attempt is a process of its own, forked here. The log of offsets and the sink are Spark's, so they do not crash: an
offset is logged before its batch, and a batch that the sink has is not written again.

The prefetch runs where the sink would work, in the same thread, so that the points are the same in each attempt.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.providers.embedded.unit import EmbeddedUnit
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark import folder_store, partition
from jmsjca.spark.epoch_plans import EpochPlans
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import PartitionReader
from jmsjca.spark.reader import JmsStreamReader, Prefetch
from jmsjca.spark.staging import Staging
from tests.spark.crashing import CRASHED, Crash, in_child

TEXTS = [f"m{n}" for n in range(4)]  # two epochs of two partitions


def arm(crash: Crash) -> None:
    for owner, name in [
        (PartitionReader, "_receive"),
        (Staging, "create_epoch"),
        (EpochPlans, "_record"),
        (EpochPlans, "remove"),
        (Staging, "publish"),
        (EmbeddedUnit, "commit"),
        (Staging, "confirm"),
        (partition, "resolve_duplicates"),
        (folder_store, "_write"),
        (os, "link"),
        (Path, "mkdir"),
        (Path, "replace"),
        (Path, "rename"),
        (Path, "unlink"),
    ]:
        crash.around(owner, name)


class Query:
    """A query with a log of offsets, and a sink that keeps each batch once.

    Args:
        folder: Where everything is.
    """

    def __init__(self, folder: Path) -> None:
        self.crash: Crash | None = None
        self._url = f"embedded://{folder}/broker.db"
        self._log, self._sink = folder / "offsets", folder / "sink"
        for path in (self._log, self._sink):
            path.mkdir(parents=True, exist_ok=True)
        self._options = SourceOptions(
            *(self._url, "q"), stagingLocation=str(folder / "staging"), prefetchEpochs=1, partitions=2,
            maxMessagesPerBatch=2, receiveIdleTimeout=0.0, pollInterval=0.0, retainEpochs=0,
        )  # fmt: skip

    def send(self) -> None:
        with ConnectionFactory(self._url).create_connection() as connection, connection.create_session() as session:
            for text in TEXTS:
                session.create_producer(Queue("q")).send(TextMessage(text))

    def run(self) -> None:
        """Run until the queue is empty. Points are counted from the first prefetch on."""
        Prefetch.start = lambda self: None  # type: ignore[method-assign]
        reader = JmsStreamReader(self._options)
        offsets = [reader.initialOffset(), *(json.loads(path.read_text()) for path in sorted(self._log.iterdir()))]
        if len(offsets) > 1 and not (self._sink / str(len(offsets) - 1)).exists():
            self._batch(reader, len(offsets) - 1, offsets[-2], offsets[-1])
        while (end := reader.latestOffset(offsets[-1], reader.getDefaultReadLimit())) != offsets[-1]:
            _write(self._log / str(len(offsets)), end)
            reader.commit(offsets[-1])
            offsets.append(end)
            self._batch(reader, len(offsets) - 1, offsets[-2], end)
        reader.stop()

    def _batch(self, reader: JmsStreamReader, number: int, start: dict[str, Any], end: dict[str, Any]) -> None:
        texts: list[str] = []
        for part in reader.partitions(start, end):
            texts += [text for batch in reader.read(part) for text in batch.column("text").to_pylist()]
        assert reader._prefetch is not None
        if self.crash is not None and number == 1:
            arm(self.crash)
        _run_to_end(reader._prefetch)
        _write(self._sink / str(number), texts)

    def handed(self) -> list[str]:
        return sorted(text for path in self._sink.iterdir() for text in json.loads(path.read_text()))

    def left(self) -> int:
        connection = connect(ConnectionSettings(self._url))
        try:
            return connection.admin().depth(Queue("q")).total  # type: ignore[union-attr]
        finally:
            connection.close()


def _run_to_end(prefetch: Prefetch) -> None:
    """Run a prefetch that does not wait for more messages: nobody sends any."""
    prefetch._ended.wait = lambda timeout: True  # type: ignore[method-assign,assignment]
    prefetch.run()


def _write(path: Path, value: object) -> None:
    """Write a file of Spark's, where no point for a crash is."""
    new = f"{path.parent.parent}/new"
    with open(new, "w") as file:  # noqa: PTH123
        file.write(json.dumps(value))
    os.rename(new, path)  # noqa: PTH104


def crash_at(folder: Path, *crashes: int) -> dict[str, object]:
    """One query whose first runs crash, each at its point."""
    query = Query(folder)
    in_child(query.send)

    def crashing(at: int) -> None:
        query.crash = Crash(at)
        query.run()
        sys.stderr.write(str(query.crash.passed))

    code, point = [in_child(lambda at=at: crashing(at)) for at in crashes][-1]
    ended, said = in_child(query.run)
    return {
        "code": code,
        "point": point,
        "later": [said] if ended else [],
        "handed": query.handed(),
        "left": query.left(),
    }


def crash_everywhere(folder: Path, *earlier: int, stride: int = 1) -> list[dict[str, object]]:
    """Crash at each point, or at each n-th one, after earlier crashes, until there is no further point.

    The last report has the number of points.
    """
    reports: list[dict[str, object]] = []
    while not reports or reports[-1]["code"] == CRASHED:
        at = stride * len(reports)
        reports.append(crash_at(folder / "-".join(map(str, [*earlier, at])), *earlier, at))
        print(json.dumps(reports[-1]), flush=True)
    return reports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stride", type=int, default=1, help="crash at each n-th point only")
    arguments = parser.parse_args()
    crash_everywhere(arguments.folder, stride=arguments.stride)


if __name__ == "__main__":
    main()
