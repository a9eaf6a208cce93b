"""Faults and another design that a real Spark must show: otherwise its crash tests would prove nothing."""

# ruff: noqa: F811  # fixtures are imported

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from crashing_streams import TEXTS, await_until, make_stream, spark  # noqa: F401  # fixtures

from tests.torture import spark_kills
from tests.torture.planting import copied_source, plant, run_in

pytestmark = [pytest.mark.spark, pytest.mark.torture, pytest.mark.timeout(1200)]

KILLS = "--messages 2000 --kills 12 --seed 21 --settle-after 1 --kind worker"
TORTURE = Path(__file__).parents[1] / "torture"
CONTROLS: list[dict[str, Any]] = tomllib.loads((TORTURE / "spark_controls.toml").read_text())["control"]
FAULTS = {each["name"]: each for each in tomllib.loads((TORTURE / "spark_faults.toml").read_text())["fault"]}


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control["fault"])
def test_a_fault_is_shown(control: dict[str, Any]) -> None:
    changes = control.get("changes") or FAULTS[control["fault"]]["changes"]
    with copied_source() as copy:
        for change in changes:
            plant(copy, f"spark/{change['file']}", change["old"], change["new"])
        done = run_in(copy, ["pytest", "-q", "-x", "-p", "no:cacheprovider", control["check"]], 1000)
    assert "1 failed" in done.stdout, done.stdout
    assert re.search(control["said"], done.stdout), done.stdout


@pytest.mark.parametrize("fault", [None, "redelivered messages are not recognised"])
def test_random_kills_show_a_fault_and_nothing_without_it(fault: str | None) -> None:
    with copied_source() as copy:
        for change in FAULTS[fault]["changes"] if fault else ():
            plant(copy, f"spark/{change['file']}", change["old"], change["new"])
        done = run_in(copy, [spark_kills.__name__, *KILLS.split()], 1100)
    found = re.search("2000 sent, ([0-9]+) rows, 2000 distinct, 0 left", done.stdout)
    assert found, done.stdout + done.stderr[-4000:]
    assert (int(found[1]) > 2000, done.returncode) == (bool(fault), int(bool(fault))), done.stdout


def test_a_connector_with_a_driver_that_receives_loses_messages(spark, make_stream) -> None:
    """It has read some. Then it is killed, and neither the queue nor the sink has the others."""
    stream = make_stream("embedded")
    stream.send(TEXTS[:20])
    options = json.dumps({"url": stream.url, "destination": stream.queue.name})
    run = stream.start_module("receiving_query", options)
    await_until(lambda: run.code is not None or (stream.has_rows() and stream.texts(spark)))
    assert run.code is None, run.said
    stream.send(TEXTS[20:])
    await_until(lambda: not stream.left().total)
    run.end()
    texts = stream.texts(spark)
    assert set(texts) <= set(TEXTS)
    assert 0 < len(set(texts)) + stream.left().total < len(TEXTS)
