"""From a broken listener to its mended message, with the command line alone, on real brokers."""

import json
import threading
import uuid

import pytest

from jmsjca import Hooks, ResourceAdapter
from jmsjca.__main__ import run

PAIRS = ["artemis-amqp", "activemq-amqp", "qpid-amqp"]


class Told(Hooks):
    """Sets an event when a message is dead-lettered, another when a unit is settled."""

    def __init__(self):
        self.moved, self.settled_once = threading.Event(), threading.Event()

    def dead_lettered(self, endpoint, letter):
        self.moved.set()

    def settled(self, endpoint, outcome, messages):
        self.settled_once.set()


@pytest.fixture
def name():
    return f"walk.{uuid.uuid4().hex}"


@pytest.fixture
def call(capsys):
    """Run a command with ``--json``; return its exit status and what it writes."""

    def _call(*arguments):
        status = run([*arguments, "--json"])
        written = capsys.readouterr()
        assert not written.err, written.err
        return status, json.loads(written.out)

    return _call


def fail(message):
    raise ValueError(f"no price for {message.body}")


def move_to_dead_letters(url, name, handler):
    """Run a listener that fails until its message is dead-lettered."""
    told = Told()
    adapter = ResourceAdapter(url, hooks=[told])
    adapter.listener(name, redelivery_handling="1:move(queue:dlq.$)")(handler)
    with adapter:
        assert told.moved.wait(120)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_poison_message_is_found_replayed_and_processed(pair, broker_url, name, call, monkeypatch):
    url, letters = broker_url(pair), f"dlq.{name}"
    monkeypatch.setenv("JMSJCA_URL", url)
    assert call("send", name, "a pear", "-p", "shop=Bern")[0] == 0
    move_to_dead_letters(url, name, fail)
    [listed] = call("dlq", "list", letters)[1]
    assert (listed["origin"], listed["reason"], listed["error"]) == (
        f"queue:{name}",
        "ValueError",
        "no price for a pear",
    )
    shown = call("dlq", "show", letters, listed["message_id"])[1]
    assert (shown["message"]["body"], shown["message"]["properties"]["shop"]) == ("a pear", "Bern")
    assert "in fail" in shown["stack_trace"]
    assert [each["outcome"] for each in call("dlq", "replay", letters, "--dry-run")[1]] == ["planned"]
    assert len(call("dlq", "list", letters)[1]) == 1
    status, replayed = call("dlq", "replay", letters, "-s", "shop = 'Bern'")
    assert (status, [(each["outcome"], each["target"]) for each in replayed]) == (0, [("done", f"queue:{name}")])
    assert call("dlq", "list", letters)[1] == []
    told, got = Told(), []
    mended = ResourceAdapter(url, hooks=[told])
    mended.listener(name)(lambda message: got.append((message.body, message.properties["_JMSJCA_ReplayCount"])))
    with mended:
        assert told.settled_once.wait(120)
    assert [(body, int(count)) for body, count in got] == [("a pear", 1)]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_message_that_fails_again_is_told_and_dropped(pair, broker_url, name, call, monkeypatch):
    url, letters = broker_url(pair), f"dlq.{name}"
    monkeypatch.setenv("JMSJCA_URL", url)
    call("send", name, "a pear")
    move_to_dead_letters(url, name, fail)
    assert call("dlq", "replay", letters)[0] == 0
    move_to_dead_letters(url, name, fail)
    [listed] = call("dlq", "list", letters)[1]
    assert int(listed["replays"]) == 1
    assert call("dlq", "drop", letters, "--all")[0] == 0
    assert call("dlq", "list", letters)[1] == []
    assert call("browse", name)[1] == []


@pytest.mark.parametrize("command", [["list"], ["show", "ID:1"], ["replay"], ["drop", "--all"], ["export"]])
def test_over_stomp_they_are_refused_with_a_reason(command, broker_url, name, monkeypatch, capsys):
    """ActiveMQ has queue browsers over STOMP, which jmsjca does not use yet: AMQP is the way to its dead letters."""
    monkeypatch.setenv("JMSJCA_URL", broker_url("activemq-stomp"))
    verb, *arguments = command
    assert run(["dlq", verb, f"dlq.{name}", *arguments]) == 2
    assert "capability browse" in capsys.readouterr().err


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
def test_the_doctor_finds_a_broker_healthy(pair, broker_url, call):
    status, findings = call("doctor", broker_url(pair))
    found = {each["check"]: each["result"] for each in findings}
    assert (status, found["connection and login"], found["round trip"]) == (0, "ok", "ok")
    assert found["capability browse"] == ("ok" if pair == "artemis-amqp" else "missing")
