"""The commands for queues and dead letters, as a person on call calls them."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from jmsjca import ConnectionFactory, MapMessage, Queue, TextMessage, Topic
from jmsjca.__main__ import run
from jmsjca.errors import ConnectionLostError
from jmsjca.management.insight import Insight
from jmsjca.management.message_changes import Change
from jmsjca.management.queue_commands import find_message, print_changes
from tests.unit.management.test_dead_letters import drain, fail, letter, listen, send


@pytest.fixture(autouse=True)
def url(tmp_path, monkeypatch):
    url = f"embedded://{tmp_path}/broker.db"
    monkeypatch.setenv("JMSJCA_URL", url)
    return url


@pytest.fixture
def call(capsys):
    """Run a command; return its exit status, its output and its errors."""

    def _call(*arguments):
        status = run(arguments)
        return status, *capsys.readouterr()

    return _call


@pytest.fixture
def read(call):
    """Run a command with ``--json``; return what it writes."""
    return lambda *arguments: json.loads(call(*arguments, "--json")[1])


def test_a_message_is_sent_browsed_moved_and_received(call, read):
    [sent] = read("send", "orders", "a pear", "-p", "shop=Bern")
    assert read("browse", "orders", "-s", "shop = 'Bern'") == [sent]
    assert read("browse", "orders", "-s", "shop = 'Basel'") == []
    [row] = read("queues")
    assert row == {"kind": "queue", "name": "orders", "ready": 1, "held": 0, "scheduled": 0, "consumers": 0}
    assert [each["outcome"] for each in read("move", "orders", "audit")] == ["done"]
    assert [each["body"] for each in read("receive", "audit")] == ["a pear"]
    assert call("receive", "audit", "--timeout", "0.01")[:2] == (1, "nothing found\n")


def subscribe(url, client_id, *bodies):
    """Make a durable subscription "audit" of the topic "news", and send messages there."""
    with ConnectionFactory(url, client_id=client_id).create_connection() as connection:
        session = connection.create_session()
        session.create_durable_consumer(Topic("news"), "audit").close()
        for body in bodies:
            session.send("topic:news", body)


def test_a_subscription_is_listed_browsed_and_removed(url, call, read):
    subscribe(url, "a.b", "a pear", "a fig")
    [row] = read("subscriptions", "list")
    assert (row["name"], row["client_id"], row["topic"], row["ready"], row["consumers"]) == (
        "audit",
        "a.b",
        "news",
        2,
        0,
    )
    assert [each["body"] for each in read("subscriptions", "browse", "audit")] == ["a pear", "a fig"]
    assert read("subscriptions", "remove", "audit", "--dry-run")[0]["outcome"] == "planned"
    subscribe(url, "c")
    assert call("subscriptions", "remove", "audit")[0] == 2  # two have the name
    assert read("subscriptions", "remove", "audit", "--client-id", "a.b")[0]["outcome"] == "removed"
    assert [each["client_id"] for each in read("subscriptions", "list")] == ["c"]
    assert call("subscriptions", "browse", "nosuch")[0] == 2


def test_a_dry_run_of_a_send_sends_nothing(read):
    assert read("publish", "orders", "a pear", "-p", "shop=Bern", "--dry-run")[0]["properties"] == {"shop": "Bern"}
    assert read("queues") == []
    read("publish", "orders", "a pear")
    assert [each["body"] for each in read("browse", "orders")] == ["a pear"]


@pytest.mark.parametrize("command", [("move", "orders", "audit"), ("purge", "orders", "--all")])
def test_a_dry_run_of_a_move_or_a_purge_changes_nothing(url, read, command):
    send(url, letter("a pear"))
    assert [each["outcome"] for each in read(*command, "--dry-run")] == ["planned"]
    assert [each["body"] for each in read("browse", "orders")] == ["a pear"]
    read(*command)
    assert read("browse", "orders") == []


def test_a_broken_listener_is_mended_and_its_message_processed(url, call, read):
    assert call("send", "orders", "a pear")[0] == 0
    listen(url, fail, 1)
    [listed] = read("dlq", "list", "dlq.orders")
    assert (listed["origin"], listed["reason"]) == ("queue:orders", "ValueError")
    shown = call("dlq", "show", "dlq.orders", listed["message_id"])[1]
    assert "body:           a pear" in shown
    assert "no price for a pear" in shown
    assert "in fail" in shown
    assert read("dlq", "show", "dlq.orders", listed["message_id"])["user_data"] == {"shop": "Bern"}
    assert [each["outcome"] for each in read("dlq", "replay", "dlq.orders", "--dry-run")] == ["planned"]
    assert [each["outcome"] for each in read("dlq", "replay", "dlq.orders")] == ["done"]
    got = []
    listen(url, lambda message: got.append(message.body), 1)
    assert got == ["a pear"]


def test_all_messages_are_browsed_unless_a_page_is_named(url, read):
    send(url, *(TextMessage(str(number)) for number in range(120)))
    assert len(read("browse", "orders")) == 120
    assert len(read("browse", "orders", "--page", "3")) == 20
    assert len(read("browse", "orders", "--page-size", "7")) == 7


@pytest.mark.parametrize(
    "command",
    [
        ["browse", "order"],
        ["browse", "order", "--page", "2"],
        ["copy", "order", "audit"],
        ["move", "order", "audit"],
        ["purge", "order", "--all"],
        ["dlq", "list", "order"],
        ["dlq", "replay", "order"],
        ["dlq", "drop", "order", "--all"],
        ["dlq", "export", "order"],
    ],
    ids=" ".join,
)
def test_a_queue_that_does_not_exist_is_an_error(call, command):
    assert call("send", "orders", "a pear")[0] == 0
    status, output, errors = call(*command)
    assert (status, output) == (1, "")
    assert "no queue 'order' (did you mean 'orders'?" in errors


def test_letters_are_exported_as_json_lines_and_dropped(url, call):
    send(url, letter("x"), letter("y"), to="dlq.orders")
    exported = [json.loads(line) for line in call("dlq", "export", "dlq.orders")[1].splitlines()]
    assert [each["body"] for each in exported] == ["x", "y"]
    assert exported[0]["properties"]["_JMSJCA_OriginalDestinationName"] == "orders"
    assert call("dlq", "drop", "dlq.orders")[0] == 2
    assert call("dlq", "drop", "dlq.orders", "-s", "shop = 'x'")[0] == 0
    assert call("purge", "dlq.orders")[0] == 2
    assert call("purge", "dlq.orders", "--all")[0] == 0
    assert call("dlq", "list", "dlq.orders")[:2] == (0, "nothing found\n")


def test_a_table_has_no_control_characters(url, call):
    send(url, letter("\x1b[2J\nred"), to="dlq.orders")
    assert call("browse", "dlq.orders")[1].count("\n") == 2
    assert "\x1b" not in call("browse", "dlq.orders")[1]
    [row] = json.loads(call("dlq", "list", "dlq.orders", "--json")[1])
    assert "\x1b" not in call("dlq", "show", "dlq.orders", row["message_id"])[1]


def test_the_ladder_of_a_redelivery_handling_is_drawn(call):
    assert call("explain", "1:25; 2:50; 5:move(same:dlq.$)", "--source", "topic:news")[1].splitlines() == [
        "redelivery   action",
        "0            deliver at once",
        "1            deliver after 25 ms",
        "2-4          deliver after 50 ms",
        "5 and later  move to topic:dlq.news",
    ]
    assert call("explain", "")[1].splitlines()[1:] == ["0 and later  deliver at once"]


@pytest.mark.parametrize(
    ("selector", "status"), [("n > 3 AND eu", 0), ("n > 4 AND eu", 1), ("shop LIKE 'B%'", 0), ("price = 1.5", 0)]
)
def test_a_selector_is_tested(call, selector, status):
    values = [each for pair in ("n=4", "eu=true", "shop=Bern", "price=1.5") for each in ("-p", pair)]
    assert call("selector", "test", selector, *values)[0] == status


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("nan", "'nan'"),
        ("inf", "'inf'"),
        ("-Infinity", "'-Infinity'"),
        ("1_000", "'1_000'"),
        ("\u0663", "'\u0663'"),  # a digit, but of Arabic
        (" 4", "' 4'"),
        ("08", "'08'"),  # 8 is no octal digit
        ("1e999", "'1e999'"),
        ("5L", "5"),
        ("0x1F", "31"),
        ("017", "15"),
        ("+.5", "0.5"),
        ("-2.5e3", "-2500"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("2f", "2"),
        ("True", "TRUE"),
    ],
)
def test_a_value_is_a_number_if_it_is_a_literal_of_selectors(call, value, literal):
    assert call("selector", "test", f"x = {literal}", "-p", f"x={value}")[0] == 0


def test_capabilities_are_shown(url, read):
    found = {each["capability"]: each["value"] for each in read("capabilities", url)}
    assert found["atomic"] is True


FILES = {
    "broken.py": "a = 1\na / 0\n",
    "wrong.py": "def (",
    "failing.py": "def make():\n    raise ValueError('no shop')\n",
    "misspelt.py": "from jmsjca import ResourceAdapter\nadapter = ResourceAdapter('embeded')\n",
    "good.py": "from jmsjca import ResourceAdapter\nadapter = ResourceAdapter('embedded://x')\n",
    "letters": "",
    "ra.xml": "<connector><resourceadapter/></connector>",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["queues", "--url", "env:NOT_SET"], 2, "The environment variable 'NOT_SET' of --url is not set: export it"),
        (["explain", "3:forget"], 2, "wrong in element 0"),
        (["relay", "--database", "env:NOT_SET"], 2, "The environment variable 'NOT_SET' of --database is not set"),
        (["browse", "orders", "-s", "a >"], 2, "selector"),
        (["browse", "orders", "--page", "0"], 2, "page=0"),
        (["browse", "orders", "--page", "9" * 20], 2, "page_size=50 are too large"),
        (["browse", "orders", "--page-size", "9" * 20], 2, "are too large"),
        (["selector", "test", "a = 1", "-p", "a"], 2, "must be NAME=VALUE"),
        (["dlq", "replay", "dlq.orders", "--rate", "0"], 2, "rate=0.0 must be above 0"),
        (["dlq", "show", "dlq.orders", "ID:1"], 1, "jmsjca dlq list dlq.orders shows the ids"),
        (["dlq", "edit", "dlq.orders", "ID:1", "--body", "x"], 1, "jmsjca dlq list dlq.orders shows the ids"),
        (["view", "orders", "ID:1"], 1, "jmsjca browse orders shows the ids"),
        (["edit", "orders", "ID:1", "--body", "x"], 1, "jmsjca browse orders shows the ids"),
        (["dlq", "import", "orders", "letters", "--url", "stomp://127.0.0.1:1"], 1, "127.0.0.1:1 (nothing listens"),
        (["dlq", "import", "orders", "none"], 2, "none cannot be read"),
        (["check", "broken:adapter"], 2, "broken cannot be imported: ZeroDivisionError: division by zero ("),
        (["check", "broken:adapter"], 2, "broken.py, line 2)."),
        (["run", "wrong:adapter"], 2, "wrong cannot be imported: SyntaxError: "),
        (["docs", "failing:make"], 2, "failing cannot be imported: ValueError: no shop ("),
        (["check", "misspelt:adapter"], 2, "'embeded' is no connection URL"),
        (["run", "good:adapter", "--health-file", "no/folder"], 2, "The health file no/folder cannot be written"),
        (["convert", "ra.xml", "--output", "no/folder"], 2, "--output no/folder cannot be written"),
        (["send", "", "x"], 2, "A Queue needs a name, but it is empty"),
        (["send", "queue:", "x"], 2, "A Queue needs a name, but it is empty"),
        (["copy", "orders", "topic:"], 2, "A Topic needs a name, but it is empty"),
        (["browse", ""], 2, "A Queue needs a name, but it is empty"),
        (["create", ""], 2, "A Queue needs a name, but it is empty"),
        (["dlq", "list", ""], 2, "A Queue needs a name, but it is empty"),
        (["dlq", "import", "", "letters"], 2, "A Queue needs a name, but it is empty"),
        (["explain", "3:25", "--source", "queue:"], 2, "A Queue needs a name, but it is empty"),
        (["send", "orders", "x", "-p", "JMSPriority=9"], 2, "'JMSPriority' cannot name a property"),
        (["send", "orders", "x", "-p", "a b=1"], 2, "'a b' cannot name a property"),
        (["edit", "orders", "ID:1", "-p", "a b=1"], 2, "'a b' cannot name a property"),
        (["dlq", "edit", "orders", "ID:1", "-p", "a b=1"], 2, "'a b' cannot name a property"),
        (["selector", "test", "a = 1", "-p", "a b=1"], 2, "'a b' cannot name a property"),
        (["purge", "orders", "-s", " "], 2, "add --all to do that"),
        (["dlq", "drop", "dlq.orders", "-s", "\t"], 2, "add --all to do that"),
        (["queues", "--rates", "inf"], 2, "interval=inf must be above 0 seconds, and finite"),
        (["send", "orders", "\udce9"], 2, "'body' cannot be decoded: write it in the encoding utf-8"),
        (["send", "orders", "x", "-p", "n=\udce9"], 2, "'properties' cannot be decoded"),
        (["edit", "orders", "ID:1", "--body", "\udce9"], 2, "'body' cannot be decoded"),
        (["dlq", "edit", "orders", "ID:1", "-p", "n=\udce9"], 2, "'properties' cannot be decoded"),
        (["send", "\udce9", "x"], 2, "The destination cannot be decoded"),
        (["browse", "\udce9"], 2, "The destination cannot be decoded"),
        (["purge", "topic:news", "--all"], 2, "topic:news is a topic, and this command needs a queue"),
        (["dlq", "list", "topic:news"], 2, "for a queue of this name write queue:topic:news"),
        (["remove", "nosuch"], 1, "There is no queue:nosuch to remove"),
        (["nothing"], 2, "Try 'jmsjca --help'"),
        (["send", "orders"], 2, "Try 'jmsjca send --help'"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_mistake_is_one_line_with_a_remedy(call, arguments, status, text):
    found, output, errors = call(*arguments)
    assert (found, output) == (status, "")
    assert text in errors
    assert errors.count("\n") == 1


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a disk that is always full")
def test_an_output_that_cannot_be_written_is_one_line():
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "jmsjca", "explain", "3:25"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in done.stderr


@pytest.fixture
def heeded():
    """Let the processes of a test heed SIGINT, which a shell's background jobs ignore, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_an_interrupted_command_has_a_status_of_its_own(url):
    command = [sys.executable, "-m", "jmsjca", "top", "--url", url, "--interval", "0.1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (130, "jmsjca: stopped\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt, typer.Abort])
def test_an_interruption_is_one_line_with_each_release_of_typer(call, monkeypatch, error):
    def interrupt(source):
        raise error

    monkeypatch.setattr("jmsjca.management.queue_commands.Insight", interrupt)
    assert call("queues") == (130, "", "jmsjca: stopped\n")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "JSON"])
def test_a_message_that_cannot_be_written_as_the_output_is_closed_is_not_acknowledged(url, options):
    send(url, letter("x"))
    command = [sys.executable, "-m", "jmsjca", "receive", "orders", "--url", url, *options]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), "The output is closed" in done.stderr) == (1, 1, True)
    assert [each.body for each in drain(url, "orders")] == ["x"]


@pytest.mark.parametrize(
    ("arguments", "status"), [(["dlq", "export", "orders"], 0), (["browse", "orders", "-s", "("], 2)]
)
def test_errors_and_progress_do_not_need_an_error_output(url, arguments, status):
    Insight(url).create(Queue("orders"))
    command = [sys.executable, "-m", "jmsjca", *arguments, "--url", url]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.parametrize("command", [["browse", "orders", "--json"], ["dlq", "export", "orders"], ["browse", "orders"]])
def test_an_output_in_another_encoding_has_every_character(url, command):
    send(url, letter("p\u00e9ar \U0001f350"))
    done = subprocess.run(
        [sys.executable, "-m", "jmsjca", *command],
        env=os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        capture_output=True,
        encoding="latin-1",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if command == ["browse", "orders"]:
        assert "p\u00e9ar \\U0001f350" in done.stdout
    else:
        found = json.loads(done.stdout)
        assert (found if isinstance(found, dict) else found[0])["body"] == "p\u00e9ar \U0001f350"


def test_json_has_no_numbers_that_json_does_not_know(url, call):
    def refuse(constant):
        pytest.fail(f"{constant} is no JSON")

    send(url, MapMessage({"a": math.nan, "b": 1.5}, properties={"c": math.inf, "d": -math.inf}))
    [shown] = json.loads(call("browse", "orders", "--json")[1], parse_constant=refuse)
    assert shown["body"] == {"a": "NaN", "b": 1.5}
    assert shown["properties"] == {"c": "Infinity", "d": "-Infinity"}
    json.loads(call("dlq", "export", "orders")[1], parse_constant=refuse)


def test_the_url_is_read_from_a_variable(url, monkeypatch, read):
    monkeypatch.delenv("JMSJCA_URL")
    monkeypatch.setenv("SHOP", url)
    send(url, letter("x"))
    assert [each["name"] for each in read("queues", "--url", "env:SHOP")] == [Queue("orders").name]


@pytest.mark.parametrize("error", [ConnectionLostError("the broker is gone"), KeyboardInterrupt()])
def test_changes_that_were_made_before_a_failure_are_shown(capsys, error):
    def changes():
        yield Change("ID:1", Queue("audit"), "done")
        yield Change("ID:2", Queue("audit"), "done")
        raise error

    with pytest.raises(type(error)):
        print_changes(changes(), as_json=True)
    assert [(each["message_id"], each["outcome"]) for each in json.loads(capsys.readouterr().out)] == [
        ("ID:1", "done"),
        ("ID:2", "done"),
    ]


def test_a_queue_may_be_named_as_destinations_are_shown(url, call, read):
    send(url, letter("x"))
    assert [each["body"] for each in read("browse", "queue:orders")] == ["x"]
    assert call("create", "queue:topic:news")[0] == 0
    assert [each["name"] for each in read("queues")] == ["orders", "topic:news"]
    assert call("remove", "queue:topic:news")[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        ["send", "orders", "x"],
        ["receive", "orders"],
        ["queues"],
        ["dlq", "import", "orders", "letters"],
        ["top", "--url", "embedded://shop"],
        ["relay", "--database", "sqlite://"],
        ["console"],
        ["mcp"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("files")
def test_a_broker_in_the_memory_of_the_command_is_refused(call, monkeypatch, command):
    monkeypatch.setenv("JMSJCA_URL", "embedded://shop")
    status, output, errors = call(*command)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert "embedded://shop is a broker in the memory of one process" in errors
    assert "embedded:///var/lib/app/broker.db" in errors


def test_the_url_may_stand_before_the_command(url, call, monkeypatch):
    monkeypatch.delenv("JMSJCA_URL")
    assert call("--url", url, "send", "orders", "a pear")[0] == 0
    status, output, _ = call("--url", url, "queues", "--json")
    assert (status, [each["name"] for each in json.loads(output)]) == (0, ["orders"])
    assert "JMSJCA_URL" not in os.environ
    assert call("--url", "embedded://other", "queues", "--url", url)[0] == 0  # that of the command decides
    assert call("queues")[0] == 2


def test_a_failure_before_the_first_change_shows_none(call):
    assert call("move", "orders", "audit", "-s", "no selector")[:2] == (2, "")


def test_a_letter_that_is_gone_before_its_edit_is_no_success(url, call, monkeypatch):
    def found(insight, queue, message_id, shown_by):
        message = find_message(insight, queue, message_id, shown_by)
        drain(url, queue)
        return message

    send(url, letter("x"), to="dlq.orders")
    [message] = Insight(url).messages("dlq.orders")
    monkeypatch.setattr("jmsjca.management.queue_commands.find_message", found)
    status, output, errors = call("dlq", "edit", "dlq.orders", message.message_id, "--body", "y")
    assert (status, output, "has no message" in errors) == (1, "", True)
