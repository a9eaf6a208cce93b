"""What each command shows on a terminal of 80 and of 200 columns: no line is longer, so none is wrapped or cut."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
import typer

from jmsjca import ConnectionFactory, MapMessage, Queue, TextMessage, Topic
from jmsjca.__main__ import run
from jmsjca.demo.run import Display
from jmsjca.errors import ConfigurationError
from jmsjca.management.commands import app
from jmsjca.management.health import HealthFile, read_health_file
from jmsjca.management.insight import Insight
from jmsjca.management.worker import load_adapter
from jmsjca.transactions import Outbox
from tests.unit.inbound.deliveries import until
from tests.unit.management.terminals import ROOT, Terminal
from tests.unit.management.test_dead_letters import fail, letter, listen, send

COLUMNS = [80, 200]
LONG = "a pear from the garden behind the house, " * 12

MODULE = """
from jmsjca import Limits, ResourceAdapter
adapter = ResourceAdapter({url!r})

@adapter.listener("orders.of.the.garden.behind.the.house", concurrency_mode="cc", redelivery_handling="3:25")
def on_order_of_the_garden_behind_the_house(message):
    pass
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Provide a broker with messages, dead letters, a worker's health and a module with an adapter."""
    url = f"embedded://{tmp_path}/broker.db"
    monkeypatch.setenv("JMSJCA_URL", url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "terminal_shop.py").write_text(MODULE.format(url=url))
    send(url, TextMessage("poison"))
    listen(url, fail, 1)
    send(url, letter("x"), letter("y\x1b[2J"), to="dlq.orders")
    text = TextMessage(LONG, properties={"shop": LONG, "n": 3}, correlation_id="c" * 60)
    send(url, text, MapMessage({"fruit": LONG}))
    with (
        ConnectionFactory(url, client_id="shop").create_connection() as connection,
        connection.create_session() as session,
    ):
        session.create_durable_consumer(Topic("news"), "daily").close()
        session.create_producer(Topic("news")).send(text)
    adapter = load_adapter("terminal_shop:adapter")
    stats = {each.name: each.stats.as_dict() for each in adapter.activations}
    HealthFile(lambda: {**adapter.health().as_dict(), "stats": stats}, tmp_path / "health.json").write()
    engine = sa.create_engine(f"sqlite:///{tmp_path}/application.db")
    metadata = sa.MetaData()
    Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    engine.dispose()
    yield url
    sys.modules.pop("terminal_shop", None)


@pytest.fixture(params=COLUMNS)
def terminal(request, monkeypatch):
    return Terminal(monkeypatch, request.param), request.param


def commands_of(group, *path):
    """Return the paths of all commands."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if hasattr(found, "list_commands"):
            yield from commands_of(found, *path, name)
        else:
            yield (*path, name)


ALL = list(commands_of(typer.main.get_command(app)))
EXPECTED = {
    *(
        "send",
        "receive",
        "browse",
        "view",
        "edit",
        "copy",
        "move",
        "purge",
        "queues",
        "create",
        "remove",
        "run",
        "check",
    ),
    *("convert", "explain", "selector test", "capabilities", "doctor", "status", "top", "relay", "console", "bench"),
    *("dlq list", "dlq show", "dlq replay", "dlq edit", "dlq drop", "dlq export", "dlq import", "mcp", "docs"),
    *("file check", "file compact", "file backup", "spark repair", "demo"),
    *("publish", "subscriptions list", "subscriptions browse", "subscriptions remove"),
}


def test_every_command_is_there():
    assert {" ".join(each) for each in ALL} == EXPECTED


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_the_help_of_each_command_fits(terminal, command):
    shell, columns = terminal
    status, lines = shell.run(*command, "--help")
    assert status == 0
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith(f" Usage: jmsjca {' '.join(command)}") or lines[0].startswith("Usage: jmsjca")


JSON_ALWAYS = {"docs", "mcp", "dlq export"}
WITH_JSON = [each for each in ALL if " ".join(each) not in JSON_ALWAYS]


@pytest.mark.parametrize("command", WITH_JSON, ids=" ".join)
def test_each_command_has_json(capsys, command):
    assert run([*command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


SHOWN = {
    "queues": ["queues"],
    "browse": ["browse", "orders"],
    "view a text": ["view", "orders", "$text"],
    "view a map": ["view", "orders", "$map"],
    "send": ["send", "orders", LONG],
    "receive": ["receive", "orders"],
    "move": ["move", "orders", "audit"],
    "copy": ["copy", "orders", "audit"],
    "edit": ["edit", "orders", "$text", "--body", "a fig"],
    "create": ["create", "new"],
    "remove": ["remove", "orders"],
    "purge": ["purge", "orders", "--all"],
    "capabilities": ["capabilities", "env:JMSJCA_URL"],
    "doctor": ["doctor", "env:JMSJCA_URL"],
    "bench": ["bench", "env:JMSJCA_URL", "--messages", "5"],
    "explain": ["explain", "3:25; 5:move(queue:dlq.$)"],
    "explain the memory": ["explain", "--adapter", "terminal_shop:adapter"],
    "selector": ["selector", "test", f"shop = '{LONG}'", "-p", f"shop={LONG}"],
    "check": ["check", "terminal_shop:adapter"],
    "status": ["status", "--file", "health.json"],
    "top": ["top", "--file", "health.json", "--count", "1"],
    "top of queues": ["top", "--url", "env:JMSJCA_URL", "--count", "1", "--interval", "0.1"],
    "letters": ["dlq", "list", "dlq.orders"],
    "letter": ["dlq", "show", "dlq.orders", "$letter"],
    "replay": ["dlq", "replay", "dlq.orders"],
    "edit a letter": ["dlq", "edit", "dlq.orders", "$letter", "--body", "a fig"],
    "drop": ["dlq", "drop", "dlq.orders", "--all"],
    "file check": ["file", "check", "broker.db"],
    "file compact": ["file", "compact", "broker.db"],
    "file backup": ["file", "backup", "broker.db", "copy.db"],
    "import": ["dlq", "import", "orders", "letters.jsonl"],
    "relay": ["relay", "--database", "sqlite:///application.db", "--once"],
    "spark repair": ["spark", "repair", "staging"],
    "publish": ["publish", "news", LONG],
    "subscriptions": ["subscriptions", "list"],
    "browse a subscription": ["subscriptions", "browse", "daily"],
    "remove a subscription": ["subscriptions", "remove", "daily", "--dry-run"],
}
ELSEWHERE = {"run", "console", "demo"}  # tests below
WHOLE = {"dlq export", "docs", "convert", "mcp"}  # what they write is for programs, whatever the width


def test_every_command_is_seen_on_a_terminal():
    seen = {name for name in EXPECTED for words in SHOWN.values() if " ".join(words).startswith(name)}
    assert seen | ELSEWHERE | WHOLE == EXPECTED


def stage_damaged(folder):
    """Make a staging location of Spark with a damaged file."""
    from jmsjca.spark.part_file import Counts, StagedPart
    from jmsjca.spark.schema import pa
    from jmsjca.spark.staging import EpochPartition, Origin, Staging

    staging, part = Staging(folder, "g"), EpochPartition(2, 0)
    staging.begin(Origin("queue:orders"))
    staging.claim("query")
    staging.create_epoch(part.epoch)
    staging.publish(part, StagedPart(pa.table({"text": ["t"]}), ["key"], Counts(1, 1)))
    for file in folder.rglob("*.arrow"):
        file.write_bytes(b"")


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("what", SHOWN)
def test_no_line_is_longer_than_the_terminal(place, terminal, what):
    shell, columns = terminal
    orders, letters = (Insight(place).messages(queue) for queue in ("orders", "dlq.orders"))
    ids = {"$text": orders[0].message_id, "$map": orders[1].message_id, "$letter": letters[0].message_id}
    if what == "spark repair":
        stage_damaged(Path("staging"))
    status, lines = shell.run(*(ids.get(each, each) for each in SHOWN[what]))
    assert status in {0, 1}
    assert lines
    lines = [line.removeprefix("\x1b[2J\x1b[H") for line in lines]  # top begins with it
    assert max(map(len, lines)) <= columns
    assert not any("\x1b" in line for line in lines)
    keep(what, columns, lines)


def keep(what, columns, lines):
    """Keep a capture for a person to look at, if a folder for it is named."""
    if folder := os.environ.get("JMSJCA_CAPTURES"):
        with (Path(folder) / f"{columns}.txt").open("a", encoding="utf-8") as file:
            print(f"$ {what}", *lines, "", sep="\n", file=file)


def is_ready(file):
    try:
        return read_health_file(file)["ready"]
    except ConfigurationError:  # it is not written yet
        return False


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["alone", "supervised"])
def test_the_account_of_a_worker_fits(terminal, options):
    shell, columns = terminal
    process, shown = shell.start("run", "terminal_shop:adapter", "--health-file", "served.json", *options)
    try:
        until(lambda: is_ready("served.json"))
    finally:
        process.terminate()
    lines = shown.lines()
    assert process.wait(60) == 0, shown.errors.read_text()
    assert any("finished" in line for line in lines)
    assert max(map(len, lines)) <= columns
    keep("run " + " ".join(options), columns, lines)


def await_response(address):
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", "/")
    connection.getresponse()
    connection.close()


@pytest.mark.usefixtures("place")
def test_the_address_of_the_console_fits(terminal):
    shell, columns = terminal
    process, shown = shell.start("console", "--port", "0")
    try:
        until(lambda: b"\n" in shown.bytes)
        await_response(urlsplit(shown.bytes.decode()).netloc)  # it serves, so it handles signals
    finally:
        process.send_signal(signal.SIGINT)
    [line] = shown.lines()
    assert process.wait(60) == 0
    assert line.startswith("http://127.0.0.1:")
    assert len(line) <= columns
    keep("console", columns, [line])


def test_the_account_of_the_demo_fits(terminal, monkeypatch):
    shell, columns = terminal
    monkeypatch.setenv("COLUMNS", f"{columns}")  # rich asks the terminal of the process

    def show():
        with Display() as display:
            display.update("sent to the queue", 20_000, 20_000)
        figures = {f"a figure of the account with a long name, number {n}": 10**n for n in range(12)}
        display.account("The account", {**figures, "query: kind of the end": "it was killed, and continued " * 9})

    _, lines = shell.show(show)
    shown = [re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", line) for line in lines]
    assert 80 <= max(map(len, shown)) <= columns
    assert any("1,000,000,000" in line for line in shown)
    keep("demo", columns, shown)


def test_a_narrow_terminal_shows_all_that_a_wide_one_shows(place, monkeypatch):
    narrow, wide = (Terminal(monkeypatch, columns).run("dlq", "list", "dlq.orders")[1] for columns in (60, 400))
    assert len(wide) == 4
    words = [set(re.findall(r"[\w.]+", " ".join(lines))) for lines in (narrow, wide)]
    assert words[0] == words[1]


def queues_on(monkeypatch, columns, *options):
    return Terminal(monkeypatch, columns).run("queues", *options)[1]


def test_a_long_name_is_shortened_in_the_middle_and_the_table_stays(place, monkeypatch, capsys):
    name = f"{'orders.of.the.garden.' * 4}behind.the.house"
    Insight(place).create(Queue(name))
    lines = queues_on(monkeypatch, 80)
    assert lines[0].split() == ["kind", "name", "ready", "held", "scheduled", "consumers"]
    [row] = [line for line in lines if "house" in line]
    shown = row.split()[1]
    head, tail = shown.split("\u2026")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert abs(len(head) - len(tail)) <= 1
    assert max(map(len, lines)) == 80
    assert name in "".join(line.removeprefix(" " * 10).strip() for line in queues_on(monkeypatch, 80, "-w"))
    assert name in "\n".join(queues_on(monkeypatch, 200))
    assert run(["queues"]) == 0
    assert name in capsys.readouterr().out  # a pipe gets whole names


@pytest.mark.parametrize("group", ["", "dlq", "file"])
def test_the_help_of_a_group_has_each_summary_whole(terminal, group):
    shell, columns = terminal
    status, lines = shell.run(*group.split(), "--help")
    text = " ".join(" ".join(lines).split())
    tree = typer.main.get_command(app)
    tree = tree.commands[group] if group else tree
    assert status == 0
    assert "..." not in text.replace("[ARGS]...", "")
    for command in tree.commands.values():
        assert command.get_short_help_str(500) in text
    assert max(map(len, lines)) <= columns


def test_the_help_has_groups(capsys):
    assert run(["--help"]) == 0
    headings = re.findall(r"^(\w[\w ]*):$", capsys.readouterr().out, re.MULTILINE)
    assert headings == ["Options", "Work", "Queues", "Dead letters", "Brokers", "Spark", "Files"]


def test_a_pipe_gets_whole_lines(place, capsys):
    assert run(["dlq", "list", "dlq.orders"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


LONG_WORK = {
    "dlq replay": (["dlq", "replay", "dlq.orders"], "3/3"),
    "dlq drop": (["dlq", "drop", "dlq.orders", "--all"], "3/3"),
    "dlq export": (["dlq", "export", "dlq.orders"], "messages"),
    "dlq import": (["dlq", "import", "orders", "letters.jsonl"], "bytes"),
    "move": (["move", "orders", "audit"], "2/2"),
    "copy": (["copy", "orders", "audit"], "2/2"),
    "purge": (["purge", "orders", "--all"], "2/2"),
    "file check": (["file", "check", "broker.db"], "checking"),
    "file compact": (["file", "compact", "broker.db"], "compacting"),
    "file backup": (["file", "backup", "broker.db", "copy.db"], "copying"),
}


@pytest.fixture
def letters(place, capsys):
    """Provide a file of exported letters."""
    assert run(["dlq", "export", "dlq.orders"]) == 0
    Path("letters.jsonl").write_text(capsys.readouterr().out, "utf-8")


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("work", LONG_WORK)
def test_long_work_shows_a_bar_on_the_terminal_and_writes_the_same_output(monkeypatch, capsys, terminal, work):
    monkeypatch.setenv("TERM", "xterm")
    arguments, shown = LONG_WORK[work]
    shell, columns = terminal
    status, lines = shell.run(*arguments, "--json" if work not in JSON_ALWAYS else "--selector=", stream="stderr")
    assert status == 0
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", "\r".join(lines))
    assert shown in text
    assert max(map(len, re.split(r"[\r\n]", text))) <= columns
    for line in [capsys.readouterr().out] if work != "dlq export" else capsys.readouterr().out.splitlines():
        json.loads(line)


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("work", LONG_WORK)
def test_a_pipe_gets_no_bar(capsys, work):
    assert run(LONG_WORK[work][0]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("typed", "completed"), [("dlq re", "replay"), ("queues --ra", "--rates")])
def test_the_shell_completes_commands_and_options(monkeypatch, capsys, shell, typed, completed):
    monkeypatch.setenv("_JMSJCA_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", f"jmsjca {typed}")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"jmsjca {typed}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert run([]) == 0
    assert completed in capsys.readouterr().out


def test_completion_is_installed(tmp_path):
    program = shlex.quote(sys.executable)
    done = subprocess.run(  # typer looks for a shell among the parents of the process
        ["bash", "-c", f"{program} -m jmsjca --install-completion bash; exit $?"],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "jmsjca" in (tmp_path / ".bash_completions" / "jmsjca.sh").read_text()


def test_the_memory_of_a_listener_is_that_of_its_prefetch(place, capsys):
    assert run(["explain", "--adapter", "terminal_shop:adapter", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    mebibyte = 1024 * 1024
    assert (row["mode"], row["consumers"], row["prefetched"]) == ("cc", 1, 30)
    assert (row["usual_bytes"], row["worst_bytes"]) == (116 * mebibyte, 3000 * mebibyte)
    assert run(["explain"]) == 2
