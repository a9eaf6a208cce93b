"""The main job over brokers on a network, with fail-over, poison and a crash; what shows when something is wrong."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from send_twice import SentMoment
from settle_first import SettledMoment

from jmsjca import __main__ as cli
from jmsjca.demo.events import DemoRequest
from jmsjca.demo.progress import CrashTrigger
from jmsjca.demo.run import Display, run_demo

pytestmark = [pytest.mark.demo, pytest.mark.timeout(900)]

SUPPORT = Path(__file__).parent.parent / "support"
QUERY = "jmsjca.demo.query"
EVENTS = 300
SHOWN = ["sent", "processed", "dead_lettered", "lost", "duplicated", "balanced", "heard"]
CANNOT = {"rabbitmq-amqp": "durable"}
WITHOUT_TRANSACTIONS = [
    "rabbitmq4-amqp",
    *(
        pytest.param(f"{broker}-stomp", marks=pytest.mark.torture)
        for broker in ("rabbitmq4", "rabbitmq", "artemis", "openmq")
    ),
]


@pytest.fixture
def run(tmp_path, broker_url, monkeypatch):
    """Runs the main job over a pair of broker and protocol; gives its account."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))

    def run(pair, query_module=QUERY, crash_moment=CrashTrigger, patience=60.0):
        request = DemoRequest(
            events=EVENTS, poison=0.05, crash=True, url=listed(broker_url(pair)), output=tmp_path, patience=patience
        )
        account = run_demo(request, Display(), query_module=query_module, crash_moment=crash_moment)
        print(pair, json.dumps(account))
        return account

    return run


def listed(url):
    """A fail-over list whose first host is dead."""
    scheme, _, rest = url.partition("://")
    user, at, hosts = rest.rpartition("@")
    return f"{scheme}://{user}{at}127.0.0.1:1,{hosts}"


def assert_balanced(account):
    assert account["balanced"], account
    assert account["sent"] == EVENTS
    assert account["lost"] == account["duplicated"] == account["unprocessed"] == 0
    assert account["processed"] + account["dead_lettered"] == EVENTS
    assert account["dead_lettered"] > 0
    assert account["heard"] == account["processed"]
    assert account["crash"]["committed_batches"] >= 1


@pytest.mark.torture
def test_a_crash_loses_nothing_and_doubles_nothing(run):
    account = run("activemq-stomp")
    assert_balanced(account)
    assert account["crash"]["unsettled_messages"] >= 1


@pytest.mark.torture
@pytest.mark.parametrize("pair", WITHOUT_TRANSACTIONS)
def test_a_crash_over_a_broker_without_transactions_loses_nothing_either(run, pair):
    """Each message is confirmed by itself, and what comes again is recognised."""
    account = run(pair)
    assert_balanced(account)
    assert account["crash"]["unsettled_messages"] >= 1


@pytest.mark.torture
def test_the_command_line_loses_nothing_and_doubles_nothing_either(broker_url, tmp_path, capsys):
    """What it prints is the account that it writes."""
    file = tmp_path / "account.json"
    told = ["--url", listed(broker_url("artemis-amqp")), "--events", str(EVENTS), "--poison", "0.05", "--crash"]
    assert cli.run(["demo", *told, "--output", str(tmp_path), "--json", str(file)]) == 0
    assert list(tmp_path.rglob("broker.db")) == []  # which an embedded broker would have left
    account = json.loads(file.read_text())
    assert_balanced(account)
    assert account["crash"]["unsettled_messages"] >= 1
    shown = {name.replace("_", " "): f"{account[name]}" for name in SHOWN}
    assert printed(capsys.readouterr().out).items() >= shown.items()


def printed(output):
    """The rows of a printed account."""
    rows = (re.split("[│|]", line)[1:3] for line in output.splitlines() if line.startswith(("│", "|")))
    return {name.strip(): figure.strip() for name, figure in rows}


@pytest.mark.torture
def test_what_a_repeated_batch_sends_again_is_recognised(run, tmp_path):
    """ActiveMQ keeps both; whoever consumes them drops the second one."""
    account = run("activemq-stomp", "send_twice", SentMoment)
    assert_balanced(account)
    (file,) = tmp_path.glob("*/results.jsonl")
    found = Counter(file.read_text().splitlines())
    assert account["repeated"] >= sum(times - 1 for times in found.values()) > 0


@pytest.mark.torture
def test_the_account_shows_what_settling_before_staging_loses(run):
    account = run("artemis-amqp", "control_query", SettledMoment, patience=10.0)
    assert account["lost"] > 0
    assert account["duplicated"] == 0
    assert not account["balanced"]


@pytest.mark.parametrize("pair", CANNOT)
def test_a_broker_that_cannot_is_refused_by_what_it_lacks(broker_url, tmp_path, pair, capsys):
    assert cli.run(["demo", "--url", broker_url(pair), "--output", str(tmp_path / "out")]) == 2
    assert f"needs {CANNOT[pair]}, which" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
