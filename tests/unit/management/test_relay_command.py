"""The command that sends the messages of an outbox."""

import json
import os
import signal
import subprocess
import sys

import pytest
import sqlalchemy as sa

from jmsjca import ConnectionFactory, Queue
from jmsjca.__main__ import run
from jmsjca.transactions import Outbox, Relay

PATIENCE = 60


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path}/application.db"


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


@pytest.fixture
def outbox(database):
    metadata = sa.MetaData()
    engine = sa.create_engine(database)
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    yield outbox
    engine.dispose()


def add(outbox, *bodies):
    with outbox.engine.begin() as connection:
        for body in bodies:
            outbox.add(connection, "orders", body, key="k")


def receive(url, count):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(Queue("orders"))
        return [consumer.receive(timeout=PATIENCE).body for _ in range(count)]


def test_what_waits_is_sent_once(outbox, database, url, capsys, monkeypatch):
    add(outbox, "a", "b")
    monkeypatch.setenv("DATABASE", database)
    assert run(["relay", "--url", url, "--database", "env:DATABASE", "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"waiting_before": 2, "waiting": 0, "refused": 0, "held": 0, "oldest": None},
    ]
    assert receive(url, 2) == ["a", "b"]


def test_it_sends_until_it_is_terminated(outbox, database, url):
    command = [sys.executable, "-m", "jmsjca", "relay", "--url", url, "--database", database, "--poll-interval", "0.01"]
    with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, text=True) as relay:
        add(outbox, "a")
        assert receive(url, 1) == ["a"]
        relay.send_signal(signal.SIGTERM)
        output, _ = relay.communicate(timeout=PATIENCE)
    assert (relay.returncode, "waiting" in output) == (0, True)


@pytest.mark.parametrize(
    ("database", "status", "text"),
    [
        ("no url with s3cret", 2, "--database"),
        ("nosuchdialect://u:s3cret@h/d", 2, "driver"),
        ("sqlite:////nowhere/s3cret.db", 1, "cannot be used"),
        ("env:NO_SUCH_VARIABLE", 2, "NO_SUCH_VARIABLE"),
    ],
)
def test_a_wrong_database_is_an_error_of_one_line(url, database, status, text, capsys):
    assert run(["relay", "--url", url, "--database", database, "--once"]) == status
    errors = capsys.readouterr().err
    assert (text in errors, "s3cret" in errors, errors.count("\n")) == (True, False, 1)


def test_a_missing_table_is_an_error(tmp_path, url, capsys):
    assert run(["relay", "--url", url, "--database", f"sqlite:///{tmp_path}/new.db", "--once"]) == 1
    assert "jmsjca_outbox" in capsys.readouterr().err


def test_what_is_refused_does_not_end_the_rest(outbox, database, url, capsys):
    with outbox.engine.begin() as connection:
        for _ in range(2):
            outbox.add(connection, "orders", "refused")
        connection.execute(sa.update(outbox.table).values(headers="no message"))
        outbox.add(connection, "orders", "a")
    assert run(["relay", "--url", url, "--database", database, "--once", "--batch-size", "2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0].items() >= {"waiting": 2, "refused": 2}.items()
    assert receive(url, 1) == ["a"]


@pytest.fixture
def dead_relay(outbox, url):
    """A relay that has leased all parts of the table, and does not run any more."""
    relay = Relay(outbox, ConnectionFactory(url))
    relay.run_once()
    yield relay
    relay.close()


def test_what_other_relays_have_leased_is_no_success(outbox, database, url, dead_relay, capsys):
    add(outbox, "a", "b")
    arguments = ["relay", "--url", url, "--database", database, "--once", "--json"]
    assert run(arguments) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)[0].items() >= {"waiting_before": 2, "waiting": 2, "held": 2}.items()
    assert ("2 messages" in output.err, "jmsjca_outbox" in output.err, output.err.count("\n")) == (True, True, 1)
    dead_relay.close()
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)[0].items() >= {"waiting": 0, "held": 0}.items()
    assert receive(url, 2) == ["a", "b"]


def test_leases_of_others_without_messages_are_a_success(outbox, database, url, dead_relay):
    assert run(["relay", "--url", url, "--database", database, "--once"]) == 0
