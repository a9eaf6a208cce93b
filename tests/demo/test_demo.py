"""The main job from end to end, in processes of its own."""

import json
from pathlib import Path

import pytest
from settle_first import SettledMoment

from jmsjca import ConnectionFactory, Queue
from jmsjca.management.demo.display import Display
from jmsjca.management.demo.request import DemoRequest
from jmsjca.management.demo.run import run_demo

pytestmark = pytest.mark.demo

HERE = Path(__file__).parent


def assert_balanced(done, account, sent):
    assert done.returncode == 0, done.stdout + done.stderr
    assert account["sent"] == sent
    assert account["lost"] == account["duplicated"] == account["unexpected"] == account["wrongly_dead_lettered"] == 0
    assert account["processed"] + account["dead_lettered"] == sent
    assert account["heard"] == account["processed"]
    assert all(rate > 0 for rate in account["per_second"].values())
    assert Path(account["picture"]).read_bytes().startswith(b"\x89PNG")


def assert_crashed(account):
    assert account["crash"]["committed_batches"] >= 1
    assert account["crash"]["unsettled_messages"] >= 1


def test_every_event_of_the_sample_is_accounted_for(demo, sample):
    done, account = demo(*sample, "--poison", "0.05")
    assert_balanced(done, account, 400)
    assert account["dead_lettered"] > 0
    folder = Path(account["picture"]).parent
    with ConnectionFactory(f"embedded://{folder}/broker.db").create_connection() as connection:
        dead = list(connection.create_session().create_browser(Queue("dlq.flights")))
    assert len(dead) == account["dead_lettered"]
    assert all(message.properties["reason"] for message in dead)


def test_a_crash_loses_nothing_and_doubles_nothing(demo, sample):
    done, account = demo(*sample, "--poison", "0.05", "--crash")
    assert_balanced(done, account, 400)
    assert_crashed(account)


def test_all_flights_are_accounted_for(demo, flights):
    done, account = demo(*flights, "--poison", "0.01")
    assert_balanced(done, account, 20_000)


def test_a_crash_among_all_flights_loses_nothing(demo, flights):
    done, account = demo(*flights, "--poison", "0.01", "--crash")
    assert_balanced(done, account, 20_000)
    assert_crashed(account)


def test_the_account_shows_what_settling_before_staging_loses(tmp_path, monkeypatch):
    """The control: the same run with the fault must not balance, or the account would prove nothing."""
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent / "support"))
    request = DemoRequest(HERE / "data" / "flights.csv", poison=0.05, crash=True, output=tmp_path, patience=20)
    account = run_demo(request, Display(), query_module="control_query", crash_moment=SettledMoment)
    print(json.dumps(account))
    assert account["lost"] > 0
    assert account["duplicated"] == 0
    assert not account["balanced"]
