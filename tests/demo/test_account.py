"""The account detects every way in which a run can go wrong, on real brokers too."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jmsjca import ConnectionFactory, reconnection
from jmsjca.demo import account as account_module
from jmsjca.demo.account import balance, take_account
from jmsjca.demo.settings import DemoSettings, check_broker, clean_up, subscribe
from jmsjca.messages import DUPLICATE_ID
from jmsjca.providers.embedded.provider import EmbeddedProvider
from jmsjca.providers.embedded.store import messages

SENT = {"1", "2", "3", "4"}


def take(*, stored="123", published="123", dead="4", waiting="", sent=SENT, poison=frozenset("4")):
    found = {"stored": stored, "published": published, "dead": dead, "waiting": waiting}
    return balance(set(sent), set(poison), **{place: Counter(ids) for place, ids in found.items()})


def test_a_run_without_fault_balances():
    assert take() == {
        "sent": 4,
        "processed": 3,
        "dead_lettered": 1,
        "unprocessed": 0,
        "lost": 0,
        "duplicated": 0,
        "unexpected": 0,
        "wrongly_dead_lettered": 0,
        "balanced": True,
    }


@pytest.mark.parametrize(
    ("fault", "figure"),
    [
        ({"stored": "12"}, "lost"),
        ({"published": "12"}, "lost"),
        ({"dead": ""}, "lost"),
        ({"stored": "12", "published": "12", "waiting": "3"}, "unprocessed"),
        ({"waiting": "9"}, "unexpected"),
        ({"stored": "1233"}, "duplicated"),
        ({"published": "1233"}, "duplicated"),
        ({"dead": "44"}, "duplicated"),
        ({"dead": "43"}, "duplicated"),
        ({"stored": "1239", "published": "1239"}, "unexpected"),
        ({"poison": ""}, "wrongly_dead_lettered"),
        ({"poison": "34"}, "wrongly_dead_lettered"),
    ],
)
def test_every_fault_shows(fault, figure):
    account = take(**fault)
    assert account[figure] == 1
    assert not account["balanced"]


EVENTS = {"1": "BOS", "2": "BOS", "3": "JFK", "4": None}  # the last one is spoiled


class Plain:
    """The embedded broker as one on a network: nobody may look inside."""

    def __init__(self, connection, **lacks):
        self._connection = connection
        self.capabilities = replace(connection.capabilities, browse=False, duplicate_detection=False, **lacks)

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def admin(self):
        return None


def provider(**lacks):
    """A provider of such connections."""
    embedded = EmbeddedProvider()
    return SimpleNamespace(connect=lambda *args, **kwargs: Plain(embedded.connect(*args, **kwargs), **lacks))


class Run:
    """A run whose query has done its work."""

    def __init__(self, folder):
        self.settings = DemoSettings(str(folder), f"embedded://{folder}/broker.db", None, 1, "r1", shared=True)
        self.settings.journal.write_text("1\n2\n3\n4 poison\n")
        subscribe(self.settings)
        self.store("1", "2", "3")
        self.result("r1/0/BOS", "1", "2")
        self.result("r1/0/JFK", "3")
        self.dead("r1/0/4", "4")

    def store(self, *ids):
        folder = self.settings.events / "batch=0"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": list(ids)}), folder / "part.parquet")

    def result(self, duplicate_id, *ids):
        self._send(self.settings.results, json.dumps({"ids": ids}), {DUPLICATE_ID: duplicate_id})

    def dead(self, duplicate_id, event):
        self._send(self.settings.dead_letters, "spoiled", {DUPLICATE_ID: duplicate_id, "event_id": event})

    def leave(self, event):
        self._send(self.settings.flights, "", {"event_id": event})

    def _send(self, to, body, properties):
        with (
            ConnectionFactory(self.settings.url).create_connection() as connection,
            connection.create_session() as session,
        ):
            session.create_producer(to).send(session.create_text_message(body, properties=properties))

    def account(self):
        account = take_account(self.settings)
        return {name: figure for name, figure in account.items() if figure}


@pytest.fixture(params=["with a view", "without a view"])
def run(request, tmp_path, monkeypatch):
    """A run over a broker that does not recognise what is sent twice."""
    monkeypatch.setattr(messages.DuplicateIds, "record", lambda *_: True)
    made = Run(tmp_path)
    if request.param == "without a view":
        monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider())
        monkeypatch.setattr(account_module, "_QUIET", 0.0)
        monkeypatch.setattr(account_module, "_PATIENCE", 0.0)
    return made


GOOD = {"sent": 4, "processed": 3, "dead_lettered": 1, "balanced": True}


def test_what_is_there_is_found_also_by_a_second_account(run):
    assert run.account() == GOOD
    assert run.account() == GOOD


def test_what_was_sent_again_is_recognised(run):
    run.result("r1/0/BOS", "1", "2")
    run.dead("r1/0/4", "4")
    assert run.account() == GOOD | {"repeated": 2}


@pytest.mark.parametrize(
    "plant", [lambda run: run.result("r1/1/BOS", "2"), lambda run: run.dead("r1/1/4", "4")], ids=["result", "dead"]
)
def test_a_planted_duplicate_shows(run, plant):
    plant(run)
    account = run.account()
    assert account["duplicated"] == 1
    assert "balanced" not in account


def test_another_content_under_a_known_id_is_no_repeat(run):
    run.result("r1/0/BOS", "1")
    account = run.account()
    assert account["duplicated"] == 1
    assert "repeated" not in account


def test_what_still_waits_is_not_lost(run):
    run.settings.journal.write_text("1\n2\n3\n4 poison\n5\n6\n")
    run.leave("5")
    account = run.account()
    assert (account["unprocessed"], account["lost"]) == (1, 1)
    assert "balanced" not in account


def test_nothing_is_left_at_a_shared_broker(run, monkeypatch):
    run.account()
    clean_up(run.settings)
    monkeypatch.undo()
    with ConnectionFactory(run.settings.url).create_connection() as connection:
        assert list(connection.admin.destinations()) == []


def test_a_broker_that_will_not_do_is_refused_by_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(reconnection, "find_provider", lambda scheme: provider(durable=False))
    with pytest.raises(reconnection.NotSupportedError, match="needs durable, which"):
        check_broker(f"embedded://{tmp_path}/broker.db")
