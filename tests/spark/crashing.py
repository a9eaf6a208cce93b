"""Crashes a task and the driver's clean-up at every point where something can be lost, and goes on as Spark would.

``python -m tests.spark.crashing FOLDER`` prints what was handed over after a crash at each point, as JSON lines. Each
attempt is a process of its own, forked here, so that a crash is a real one. Messages are staged in the folder, or with
``--bucket URL --endpoint URL`` in a bucket. With ``--at-least-once`` the folder has no hard links. Both are
a sample of the points, unless ``JMSJCA_ALL_STEPS`` is set.
"""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.providers.embedded.unit import EmbeddedUnit
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark import folder_store, partition
from jmsjca.spark.object_store import ObjectStore
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.partition import JmsPartition, PartitionReader
from jmsjca.spark.staging import EpochPartition, Staging, new_generation
from tests.support.s3_server import CREDENTIALS

CRASHED = 9
TEXTS = ["m0", "m1", "m2", "m3"]
SAMPLE = 4  # each fourth point, in every run

PARSER = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
PARSER.add_argument("--bucket")
PARSER.add_argument("--endpoint")
PARSER.add_argument("--at-least-once", action="store_true")
GIVEN = PARSER.parse_args([])


class Crash:
    """Ends the process at the n-th point that it passes.

    Attributes:
        passed: The number of points that were passed.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self.passed = 0

    def __call__(self, point: str) -> None:
        if self.passed == self._at:
            sys.stderr.write(point)
            sys.stderr.flush()
            os._exit(CRASHED)
        self.passed += 1

    def around(self, owner: object, name: str) -> None:
        """Pass a point before and after each call of a function."""
        whole: Callable[..., object] = getattr(owner, name)
        label = f"{getattr(owner, '__name__', owner)}.{name}".removeprefix("jmsjca.spark.")

        def call(*given: object, **named: object) -> object:
            self(f"before {label}")
            result = whole(*given, **named)
            self(f"after {label}")
            return result

        setattr(owner, name, call)


def arm(at: int) -> None:
    crash = Crash(at)
    for owner, name in [
        (PartitionReader, "_receive"),
        (Staging, "publish"),
        (EmbeddedUnit, "commit"),
        (Staging, "confirm"),
        (partition, "resolve_duplicates"),
        (folder_store, "_write"),
        (os, "link"),
        (Path, "replace"),
        (Path, "rename"),
        (Path, "unlink"),
        (ObjectStore, "_put"),
        (ObjectStore, "_delete"),
        (ObjectStore, "remove_folder"),
    ]:
        crash.around(owner, name)


class Run:
    """A stream over one folder: its epochs, and a sink that keeps each batch once."""

    def __init__(self, folder: Path) -> None:
        bucket, endpoint = GIVEN.bucket, GIVEN.endpoint
        if GIVEN.at_least_once:
            os.link = _refuse_link
        self._url = f"embedded://{folder}/broker.db"
        self._sink = folder / "sink"
        self._sink.mkdir(parents=True)
        self._options = SourceOptions(
            self._url,
            "q",
            stagingLocation=f"{bucket}/{folder.name}" if bucket else str(folder / "staging"),
            stagingEndpoint=endpoint,
            stagingCredentials=CREDENTIALS if bucket else None,
            receiveIdleTimeout=0.0,
            retainEpochs=0,
        )
        self._gen = new_generation(at_least_once=True) if GIVEN.at_least_once else "g"
        self._staging = Staging(self._options.staging(), self._gen)

    def send(self) -> None:
        with ConnectionFactory(self._url).create_connection() as connection, connection.create_session() as session:
            for text in TEXTS:
                session.create_producer(Queue("q")).send(TextMessage(text))

    def batch(self, epoch: int, quota: int) -> None:
        """One micro-batch, or its repetition: plan, read, write, and clean up as the next one is planned."""
        done = self._sink / str(epoch)
        if not done.exists():
            self._staging.create_epoch(epoch)
            parts = [JmsPartition(self._gen, EpochPartition(epoch, 0), quota)]
            parts += [JmsPartition(self._gen, part, 0) for part in self._staging.unsure(epoch - 1)]
            batches = [batch for part in parts for batch in PartitionReader(self._options, part).read()]
            texts = [text for batch in batches for text in batch.column("text").to_pylist()]
            done.with_suffix(".new").write_text(json.dumps(texts))
            os.rename(done.with_suffix(".new"), done)  # noqa: PTH104  # no point for a crash: the sink is not ours
        self._staging.commit(epoch, retain=0, doubt_retention=3600)

    def handed(self) -> list[str]:
        return [text for path in sorted(self._sink.iterdir()) for text in json.loads(path.read_text())]

    def left(self) -> int:
        connection = connect(ConnectionSettings(self._url))
        try:
            return connection.admin().depth(Queue("q")).total  # type: ignore[union-attr]
        finally:
            connection.close()


def in_child(work: Callable[[], object]) -> tuple[int, str]:
    """Do something in a forked process; gives how it ended, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 2)
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def crash_at(folder: Path, *crashes: int) -> dict[str, object]:
    """One run whose first attempts crash, each at its point."""
    run = Run(folder)
    in_child(run.send)

    def crashing(at: int) -> None:
        arm(at)
        run.batch(1, 3)

    code, point = [in_child(lambda at=at: crashing(at)) for at in crashes][-1]
    # The batch is tried again, the next one takes what is left and what came again, and the one after that is empty.
    later = [in_child(lambda epoch=epoch: run.batch(epoch, 10)) for epoch in (1, 2, 3)]
    return {
        "code": code,
        "point": point,
        "later": [said for code, said in later if code],
        "handed": run.handed(),
        "left": run.left(),
    }


def crash_everywhere(folder: Path, *earlier: int, step: int = 1) -> list[dict[str, object]]:
    """Crash at each point after earlier crashes, or at each n-th one, until there is no further point."""
    reports: list[dict[str, object]] = []
    while not reports or reports[-1]["code"] == CRASHED:
        at = len(reports) * step
        reports.append(crash_at(folder / "-".join(map(str, [*earlier, at])), *earlier, at))
        print(json.dumps(reports[-1]), flush=True)
    return reports


def _refuse_link(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def main(folder: Path) -> None:
    if not os.environ.get("JMSJCA_ALL_STEPS"):
        crash_everywhere(folder, step=SAMPLE)
        return
    once = crash_everywhere(folder)
    unsettled = [report["point"] for report in once].index("before EmbeddedUnit.commit")
    crash_everywhere(folder, unsettled)


if __name__ == "__main__":
    PARSER.add_argument("folder", type=Path)
    PARSER.parse_args(namespace=GIVEN)
    main(GIVEN.folder)
