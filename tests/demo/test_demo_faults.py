"""The main job with many events and a crash; and what shows when something is wrong."""

import json
from pathlib import Path

import pytest
from settle_first import SettledMoment

from jmsjca.demo.events import DemoRequest
from jmsjca.demo.run import Display, run_demo
from tests.demo.accounts import assert_balanced, assert_crashed

pytestmark = [pytest.mark.demo, pytest.mark.torture]

HERE = Path(__file__).parent


@pytest.mark.timeout(0)  # a busy machine makes the run long; the fixture ends one without progress
def test_a_crash_among_all_flights_loses_nothing(demo, flights):
    done, account = demo(*flights, "--poison", "0.01", "--crash")
    assert_balanced(done, account, 20_000)
    assert_crashed(account)


@pytest.mark.timeout(0)  # a busy machine makes the run long; the run itself ends when it makes no progress
def test_the_account_shows_what_settling_before_staging_loses(tmp_path, monkeypatch):
    """The control: the same run with the fault must not balance, or the account would prove nothing."""
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent / "support"))
    request = DemoRequest(HERE / "data" / "flights.csv", poison=0.05, crash=True, output=tmp_path, patience=8)
    account = run_demo(request, Display(), query_module="control_query", crash_moment=SettledMoment)
    print(json.dumps(account))
    assert account["lost"] > 0
    assert account["duplicated"] == 0
    assert not account["balanced"]
