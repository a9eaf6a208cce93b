"""A crash at each step of the exactly-once protocol loses no row and doubles none; the control faults do."""

import json
import os
from pathlib import Path

import pytest

from tests.spark import crashing_sink
from tests.spark.crashing import CRASHED
from tests.torture.planting import ROOT, copied_source, plant, run_in

ALL = bool(os.environ.get("JMSJCA_ALL_STEPS"))
STRIDE = 1 if ALL else 29
WANTED = [sorted(texts) for texts in crashing_sink.BATCHES]


def crash(url: str, *arguments: str, where: Path = ROOT, stride: int = STRIDE, seconds: float = 280):
    command = [crashing_sink.__name__, url, "--stride", str(stride), *arguments]
    done = run_in(where, command, seconds if stride > 1 else 2900)
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_right(report) -> bool:
    """Whether each row is there once, each batch behind the one before, and one token behind the last batch."""
    texts = report["texts"]
    written = [sorted(texts[: len(WANTED[0])]), sorted(texts[len(WANTED[0]) :])]
    return (
        written == WANTED and [json.loads(token)["batch"] for token in report["tokens"]] == [1] and not report["later"]
    )


def test_a_crash_at_each_step_and_at_each_after_one_that_held_the_token(tmp_path, capsys):
    reports = crash(f"embedded://{tmp_path}/broker.db")
    assert [report for report in reports if not is_right(report)] == []
    assert [report["code"] for report in reports if report["code"] != CRASHED] == [0, 0, 0]  # at the end of each round
    if ALL:
        seen = {report["point"] for report in reports}
        names = {"StateQueue._create", "MessageConsumer.receive", "MessageProducer.send", "EmbeddedUnit.commit"}
        assert {f"{when} {name}" for when in ("before", "after") for name in names} <= seen
    with capsys.disabled():
        print(f"\n{len(reports) - 3} steps to crash at", end="")


SEND = "                send(session)\n"
PUT = "            self._put(session, batch if is_new else last.repeated_by(batch))\n"
OWN = "                with self._connection.create_session(transacted=True) as own:\n"
FAULTS = {
    "the token moves before the rows": (
        f"            if is_new:\n{SEND}{PUT}",
        f"{PUT}            session.commit()\n            if is_new:\n{SEND}",
    ),
    "the rows have a transaction of their own": (
        SEND,
        f"{OWN}                    send(own)\n                    own.commit()\n",
    ),
    "no look at the token": ("is_new = last.batch < batch.batch", "is_new = True"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(tmp_path, fault):
    with copied_source() as copy:
        plant(copy, "spark/exactly_once.py", *FAULTS[fault])
        reports = crash(f"embedded://{tmp_path}/broker.db", "--steps", "14", "18", where=copy)  # around the commits
    assert [report for report in reports if not is_right(report)]
