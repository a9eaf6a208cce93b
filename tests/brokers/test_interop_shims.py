"""The shims of Apache's interop suite: what one sends another one receives, and says so in the same JSON."""

import json
import os
import subprocess
import sys
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop import __main__ as interop
from tests.interop.cases import GROUPS
from tests.interop.clients import Shim
from tests.interop.matrix import BROKERS, run
from tests.interop.shim.__main__ import main

SHIMS = Path(__file__).parents[1] / "interop" / "shims"
DATA = [{"index": 0, "type": "text", "value": "täxt"}]


class Commands:
    """The commands of a shim, in this process."""

    def __init__(self, url, capsys):
        self._url, self._capsys = url, capsys

    def __call__(self, command, queue, *words, status=0):
        assert main(["jmsjca", command, "--broker", self._url, "--queue", queue, *words]) == status
        out = self._capsys.readouterr().out
        return json.loads(out) if out else None

    def send(self, queue, group):
        words = [word for name, told in group.arguments().items() for word in (f"--{name}", _word(told))]
        return self("send", queue, *words)


def _word(told):
    return told if isinstance(told, str) else json.dumps(told)


@pytest.fixture(params=["embedded", "artemis-amqp", "rabbitmq4-amqp", "activemq-stomp"])
def shim(request, broker_url, tmp_path, capsys):
    url = f"embedded://{tmp_path / 'broker.db'}" if request.param == "embedded" else broker_url(request.param)
    return Commands(url, capsys)


@pytest.fixture
def queue():
    return f"interop.{uuid.uuid4().hex}"


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_sent_is_received(shim, queue, name):
    group = GROUPS[name]
    sent = shim.send(queue, group)
    assert sent == {"messages": group.data, "stats": {"sent": len(group.data)}}
    received = shim("receive", queue, "--count", str(len(group.data)), "--timeout", "60")
    assert received == {"messages": group.expected(), "stats": {"received": len(group.data)}}
    values = [(told["type"], told["value"]) for told in received["messages"]]
    assert values == [(told["type"], told["value"]) for told in group.data]
    assert received["messages"][-1].get("properties", {}) == group.properties


@pytest.mark.parametrize(
    ("content", "size"), [("binary", ["--size", "200000"]), ("string", ["--size", "200000"])]
    + [(content, ["--elements", "50", "--element-size", "5000"]) for content in ("list", "map")],
)  # fmt: skip
def test_large_content_is_compared(shim, queue, content, size):
    words = ("--large-content", content, "--seed", "42", *size)
    assert shim("send", queue, *words)["sent"] is True
    assert shim("receive", queue, *words)["match"] is True
    shim("send", queue, *words)
    assert shim("receive", queue, "--large-content", content, "--seed", "43", *size, status=1)["match"] is False


def test_nothing_that_comes_is_told(tmp_path, capsys, queue):
    shim = Commands(f"embedded://{tmp_path / 'broker.db'}", capsys)
    assert shim("receive", queue, "--timeout", "0") == {"messages": [], "stats": {"received": 0}}
    told = shim("receive", queue, "--timeout", "0", "--large-content", "binary", "--size", "1", status=1)
    assert told == {"match": False, "error": "timeout"}


def test_a_type_that_jms_does_not_have_is_refused(tmp_path, capsys, queue):
    words = ["--broker", f"embedded://{tmp_path / 'broker.db'}", "--queue", queue]
    data = json.dumps([{"index": 0, "type": "symbol", "value": "x"}])
    assert main(["jmsjca", "send", *words, "--data", data]) == 2
    assert "'symbol'" in capsys.readouterr().err


def test_the_suite_finds_the_shims_and_runs_them_from_anywhere(tmp_path, queue):
    """By what it reads of a manifest, and through a link from its folder."""
    (tmp_path / "shims").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    (tmp_path / "shims" / "jmsjca").symlink_to(SHIMS / "jmsjca")
    for folder in SHIMS.iterdir():
        manifest = json.loads((folder / "shim.json").read_text())
        assert (manifest["type"], manifest["broker_prefix"]) == ("jms", "")
        assert os.access(folder / "shim.sh", os.X_OK)

    def call(*words):
        command = [tmp_path / "shims" / "jmsjca" / "shim.sh", *words, "--broker", f"embedded://{tmp_path / 'b.db'}"]
        told = subprocess.run(
            [*command, "--queue", queue], check=True, capture_output=True, cwd=tmp_path, env={"PATH": path}
        )
        return json.loads(told.stdout)

    call("send", "--type", "JMS_TEXTMESSAGE_TYPE", "--data", json.dumps(DATA))
    assert call("receive", "--count", "1")["messages"] == DATA


@pytest.mark.parametrize("name", BROKERS)
def test_every_client_reads_every_other_one(name, java, broker_url):
    for protocol in BROKERS[name].clients.values():
        broker_url(f"{name}-{protocol}")  # a missing broker is told
    groups = [group for group in GROUPS if group not in BROKERS[name].not_carried]
    with ExitStack() as stack:
        clients = list(interop._connect(name, stack))
        assert [client.name for client in clients] == list(BROKERS[name].clients)
        outcomes = list(run(clients, groups=groups))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert len(outcomes) == len(clients) ** 2 * len(groups)


class Changing:
    """A client that changes what it receives."""

    name = "changing"

    def __init__(self, client, change):
        self._client, self._change = client, change

    def __getattr__(self, name):
        return getattr(self._client, name)

    def receive(self, queue, count):
        received = self._client.receive(queue, count)
        self._change(received)
        return received


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda received: received.pop(), "6 of 7 came"),
        (lambda received: received[1].update(value="other"), "message 1: value is other, not Hello, world"),
        (lambda received: received[0].update(type="bytes"), "message 0: type is bytes, not text"),
    ],
)
def test_a_difference_is_told(change, problem, broker_url):
    broker_url("artemis-amqp")
    with ExitStack() as stack:
        ours = next(interop._connect("artemis", stack))
        [outcome] = run([Changing(ours, change)], groups=["text"])
    assert outcome.problem == problem


def test_a_shim_that_does_not_run_is_told(tmp_path):
    (tmp_path / "shim.json").write_text('{"name": "x", "type": "amqp"}')
    (tmp_path / "shim.sh").write_text("#!/bin/sh\necho not built >&2; exit 3\n")
    (tmp_path / "shim.sh").chmod(0o755)
    with pytest.raises(RuntimeError, match="send ended with 3: not built"):
        Shim(tmp_path, "amqp://localhost").send("q", GROUPS["text"])
