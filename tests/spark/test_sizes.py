"""The figures of `docs/how-to/spark-clusters.md` that follow from the design."""

import os
import re
from pathlib import Path

from jmsjca.spark.reader import JmsStreamReader
from jmsjca.spark.staging import Staging

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "spark-clusters.md").read_text()


def test_the_flushes_of_an_epoch(broker, monkeypatch) -> None:
    """Those of the second one: the first one creates folders and files that stay."""
    broker.send(*"abcdefgh")
    reader = JmsStreamReader(broker.options(partitions=2, maxMessagesPerBatch=4))
    flushes: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushes.append(fd), fsync(fd)))

    def count(act) -> int:
        flushes.clear()
        act()
        return len(flushes)

    offsets = [reader.initialOffset()]
    limit = reader.getDefaultReadLimit()
    for epoch in (1, 2):
        of_driver = count(lambda: offsets.append(reader.latestOffset(offsets[-1], limit)))
        of_driver += count(lambda epoch=epoch: reader.commit(offsets[epoch - 1]))
        of_tasks = [count(lambda p=p: [*reader.read(p)]) for p in reader.partitions(*offsets[-2:])]
    assert Staging(broker.location, offsets[-1]["gen"]).low == 1
    assert of_tasks == [2, 2]
    told = re.search(r"flushes to disk \| (\d+) for each partition and batch, (\d+) for each batch", PAGE)
    assert told is not None
    assert told.groups() == (str(of_tasks[0]), str(of_driver))
    assert f"With *P* = 100 a batch has {100 * of_tasks[0] + of_driver} flushes" in PAGE
    reader.stop()
