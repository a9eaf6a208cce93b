"""Workers: ``jmsjca run`` serves an adapter, in one process or in several that are supervised."""

import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from jmsjca import ResourceAdapter
from jmsjca.__main__ import run
from jmsjca.errors import ConfigurationError
from jmsjca.management.insight import Insight
from jmsjca.management.worker import load_adapter
from tests.unit.inbound.deliveries import until

ROOT = Path(__file__).parents[3]
APP = """
import os
from jmsjca import Message, Queue, ResourceAdapter, Session, TextMessage

adapter = ResourceAdapter({url!r})

@adapter.listener("orders", concurrency_mode="serial", redelivery_handling="9:delete")
def on_order(message: Message, session: Session) -> None:
    print("an order", flush=True)
    session.create_producer(Queue("done")).send(TextMessage(f"{{os.getpid()}} {{message.body}}"))

def make():
    return adapter

nothing = 1
"""


@pytest.fixture
def url(tmp_path):
    url = f"embedded://{tmp_path}/broker.db"
    (tmp_path / "shop_app.py").write_text(APP.format(url=url))
    return url


class Worker:
    """A process that runs ``jmsjca run``."""

    def __init__(self, folder, *options, target="shop_app:adapter", program=("-m", "jmsjca")):
        self.events = []
        self.process = subprocess.Popen(
            [sys.executable, *program, "run", target, "--json", *options],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": f"{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.events.append(line)

    def pids(self, event="started"):
        """The ids of processes of which an event was told, in order."""
        lines = [line for line in self.events if f"jmsjca: {event} " in line]
        return [int(line.split("pid=")[1].split()[0]) for line in lines]

    def kinds(self):
        """The kinds of the events, in order."""
        found = [re.match("jmsjca: (started|ended|failed|reload|stopped) ", line) for line in self.events]
        return [each[1] for each in found if each]

    def statuses(self):
        """The exit statuses of the processes at the end."""
        return [int(line.split("status=")[1].split()[0]) for line in self.events if "jmsjca: stopped " in line]

    def stop(self):
        """Stop it as an orchestrator does; return the exit status and the accounts."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self):
        output = self.process.stdout.read()  # ends with the process
        self.process.wait(120)
        self._reader.join(60)
        return self.process.returncode, [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.fixture
def worker(tmp_path, url):
    started = []

    def start(*options, **more):
        started.append(Worker(tmp_path, *options, **more))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            for pid in each.pids():  # a frozen one would not see the end of its supervisor
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        each.process.wait(60)
        each.process.stdout.close()
        each._reader.join(60)
        each.process.stderr.close()


def kill(pid):
    """Kill a process, and wait until its parent process can know it."""
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [], 120)
    os.close(ended)


def done(url):
    return sorted(message.body.split()[1] for message in Insight(url).messages("done", page_size=1000))


def test_a_worker_serves_until_it_is_stopped_and_accounts(url, worker, tmp_path):
    ResourceAdapter(url).send_many("orders", ["a", "b"])
    file = tmp_path / "health.json"
    serving = worker("--health-file", f"{file}")
    until(lambda: done(url) == ["a", "b"])
    until(lambda: run(["status", "--file", f"{file}"]) == 0)
    status, [account] = serving.stop()
    assert (status, account["ended"], account["in_doubt"], account["abandoned"]) == (0, True, 0, 0)
    assert not file.exists()


@pytest.mark.parametrize("options", [[], ["--processes", "2"]], ids=["alone", "supervised"])
def test_a_worker_tells_at_its_start_what_it_serves(url, worker, options):
    serving = worker("--log-level", "info", *options)
    record = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO jmsjca\.inbound: .* is Up\.\n")
    until(lambda: len(list(filter(record.fullmatch, list(serving.events)))) == (2 if options else 1))
    serving.stop()
    processes = " in 2 processes" if options else ""
    assert f"serves shop_app:adapter on {url}{processes};" in serving.events[0]
    assert serving.events[1] == "jmsjca: listener on_order of queue:orders, serial\n"
    assert [line for line in serving.events if " serves " in line] == serving.events[:1]


def test_the_log_of_a_program_stays_as_it_configured_it(tmp_path, url, worker):
    module = tmp_path / "shop_app.py"
    module.write_text(
        f"import logging\nlogging.basicConfig(format='mine: %(message)s', level='INFO')\n{APP.format(url=url)}"
    )
    ResourceAdapter(url).send("orders", "a")
    serving = worker()
    until(lambda: done(url) == ["a"])
    serving.stop()
    assert any(re.fullmatch(r"mine: .* is Up\.\n", line) for line in serving.events)
    assert not any("INFO" in line for line in serving.events)


METERED = """
from prometheus_client import CollectorRegistry
from jmsjca.management.metrics import Metrics
metrics = Metrics(CollectorRegistry())
"""


@pytest.mark.parametrize("metered", [False, True])
def test_the_metrics_of_a_worker_are_served(tmp_path, url, worker, unused_tcp_port, metered):
    app = APP.format(url=url)
    if metered:
        app = METERED + app.replace(f"{url!r})", f"{url!r}, hooks=[metrics])")
    (tmp_path / "shop_app.py").write_text(app)
    ResourceAdapter(url).send("orders", "a")
    serving = worker("--health-port", f"{unused_tcp_port}")
    until(lambda: done(url) == ["a"])
    with urlopen(f"http://127.0.0.1:{unused_tcp_port}/metrics") as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith("text/plain; version=")
    assert re.search(r"^jmsjca_messages_received_total\{listener=.*\} 1\.0$", text, re.MULTILINE)
    assert ("jmsjca_handler_seconds_count{" in text) is metered
    assert serving.stop()[0] == 0


def test_a_worker_ends_with_the_status_of_a_program_whose_listeners_all_fail(tmp_path, url, worker):
    module = tmp_path / "shop_app.py"
    module.write_text(
        APP.format(url="amqp://127.0.0.1:1?wrong=1") + "\nif __name__ == '__main__':\n    adapter.run()\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT}"}
    program = subprocess.run([sys.executable, module], env=environment, capture_output=True, check=False)
    assert (program.returncode, worker().end()[0]) == (1, 1)


def test_processes_are_restarted_and_no_message_is_lost(url, worker):
    supervisor = worker("--processes", "2", "--health-port", "0")
    until(lambda: len(supervisor.pids()) == 2)
    sender = ResourceAdapter(url)
    sender.send_many("orders", [f"{number:02}" for number in range(10)])
    until(lambda: len(done(url)) == 10)
    killed = supervisor.pids()[0]
    os.kill(killed, signal.SIGKILL)
    sender.send_many("orders", [f"{number:02}" for number in range(10, 30)])
    until(lambda: supervisor.pids("ended") == [killed])
    until(lambda: len(supervisor.pids()) == 3)
    until(lambda: len(done(url)) == 30)
    assert done(url) == [f"{number:02}" for number in range(30)]
    status, accounts = supervisor.stop()
    assert (status, len(accounts)) == (0, 2)
    assert supervisor.pids("stopped") == [supervisor.pids()[2], supervisor.pids()[1]]
    assert all(account["ended"] for account in accounts)


def test_processes_end_with_their_supervisor(url, worker):
    supervisor = worker("--processes", "2")
    until(lambda: len(supervisor.pids()) == 2)
    ResourceAdapter(url).send("orders", "a")
    until(lambda: done(url) == ["a"])  # so that one has taken over its signals
    pids = supervisor.pids()
    supervisor.process.kill()
    supervisor.process.wait(60)
    until(
        lambda: (
            not any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
        )
    )


GRACE = """
import sys
from jmsjca import __main__ as cli
from jmsjca.management import worker
worker._GRACE = 0.5
sys.exit(cli.run())
"""


def freeze(pid):
    """Stop a process; until it has stopped, the SIGTERM of its supervisor could still end it."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state_of(pid) == "T")


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_processes_that_are_frozen_share_one_deadline(worker):
    supervisor = worker("--processes", "3", "--timeout", "0", program=("-c", GRACE))
    until(lambda: len(supervisor.pids()) == 3)
    pids = supervisor.pids()
    for pid in pids:
        freeze(pid)
    ends = [os.pidfd_open(pid) for pid in pids]
    supervisor.process.send_signal(signal.SIGTERM)
    select.select(ends, [], [], 120)
    until(lambda: state_of(supervisor.process.pid) in "SZ")  # it waits again, and has killed all that are due
    for end in ends:  # one that has been killed does not go on; one with a deadline of its own would
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(end, signal.SIGCONT)
        select.select([end], [], [], 120)
        os.close(end)
    assert supervisor.end()[0] == 1
    assert supervisor.statuses() == [-signal.SIGKILL] * 3


def test_a_second_signal_is_the_begin_of_a_deadline(worker):
    supervisor = worker("--processes", "2", program=("-c", GRACE))
    until(lambda: len(supervisor.pids()) == 2)
    freeze(supervisor.pids()[0])
    supervisor.process.send_signal(signal.SIGTERM)
    ended = os.pidfd_open(supervisor.pids()[1])
    select.select([ended], [], [], 120)
    os.close(ended)
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.end()[0] == 1
    assert supervisor.statuses()[0] == -signal.SIGKILL


FULL = "import os, sys\nfrom jmsjca import __main__ as cli\nos.dup2(os.open('/dev/full', os.O_WRONLY), 2)\ncli.run()"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_events_that_cannot_be_written_do_not_stop_the_processes(url, worker):
    supervisor = worker("--processes", "2", program=("-c", FULL))
    ResourceAdapter(url).send("orders", "a")
    until(lambda: done(url) == ["a"] or supervisor.process.poll() is not None)
    assert (len(supervisor.stop()[1]), done(url)) == (2, ["a"])


def test_a_process_that_cannot_be_started_is_started_later(worker):
    supervisor = worker("--processes", "2")
    until(lambda: len(supervisor.pids()) == 2)
    pid = supervisor.process.pid
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (5, usual[1]))
    kill(supervisor.pids()[0])
    until(lambda: "failed" in supervisor.kinds() or supervisor.process.poll() is not None)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
    until(lambda: len(supervisor.pids()) == 3)
    assert supervisor.stop()[0] == 0


def test_a_change_of_a_source_restarts_the_processes(url, worker, tmp_path):
    supervisor = worker("--reload")
    until(lambda: len(supervisor.pids()) == 1)
    ResourceAdapter(url).send("orders", "a")
    until(lambda: done(url) == ["a"])
    source = tmp_path / "shop_app.py"
    source.write_text(source.read_text().replace("{message.body}", "new-{message.body}"))
    until(lambda: len(supervisor.pids()) == 2)
    ResourceAdapter(url).send("orders", "b")
    until(lambda: done(url) == ["a", "new-b"])
    assert supervisor.stop()[0] == 0


def test_changes_of_a_source_restart_the_processes_without_a_pause(url, worker, tmp_path):
    source, supervisor = tmp_path / "shop_app.py", worker("--reload")
    good = source.read_text()

    def change(text, number):
        source.write_text(text)
        until(lambda: supervisor.kinds().count("reload") == number and supervisor.kinds()[-1] == "started")

    until(supervisor.pids)
    change("broken(", 1)
    until(lambda: "ended" in supervisor.kinds())
    change(f"{good}# mended", 2)
    change(f"{good}# again", 3)
    ResourceAdapter(url).send("orders", "a")
    until(lambda: done(url) == ["a"])
    assert supervisor.stop()[0] == 0
    assert " ".join(supervisor.kinds()).count("reload stopped started") == 3


def test_the_health_of_all_processes_is_served(url, worker, unused_tcp_port):
    supervisor = worker("--processes", "2", "--health-port", f"{unused_tcp_port}")

    def ready():
        try:
            with urlopen(f"http://127.0.0.1:{unused_tcp_port}/ready") as answer:
                return json.load(answer)
        except HTTPError as refused:
            refused.close()
            return None
        except OSError:
            return None

    until(ready)
    report = ready()
    assert [each["process"] for each in report["processes"]] == [0, 1]
    assert len(report["activations"]) == 2
    assert supervisor.stop()[0] == 0


def test_a_process_that_has_ended_is_down_until_it_is_restarted(worker, unused_tcp_port):
    supervisor, seen = worker("--processes", "2", "--health-port", f"{unused_tcp_port}"), []

    def report():
        try:
            with urlopen(f"http://127.0.0.1:{unused_tcp_port}/ready") as answer:
                return json.load(answer)
        except HTTPError as refused:
            with refused:
                return json.load(refused)
        except OSError:  # it does not listen yet
            return {"ready": False}

    def restarted():
        seen.append(report())
        return seen[-1]["ready"] and len(supervisor.pids()) == 3

    until(lambda: report()["ready"])
    killed = supervisor.pids()[0]
    kill(killed)
    until(restarted)
    assert [each for each in seen if each["processes"][0].get("pid") == killed] == []
    assert {each["alive"] for each in seen} == {True}
    assert {each["status"] for each in seen if not each["ready"]} <= {"down"}
    assert supervisor.stop()[0] == 0


@pytest.fixture
def unused_tcp_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("shop_app:adapter.none", "has no ResourceAdapter"),
        ("no_such_module:adapter", "no_such_module cannot be imported"),
        ("shop.py", "shop.py is a file: name its module, as shop:adapter"),
        ("work/shop.py:orders", "work/shop.py is a file: name its module, as work.shop:orders"),
        ("shop_app:none", "has no ResourceAdapter 'none'"),
        ("shop_app:nothing", "has no ResourceAdapter 'nothing'"),
    ],
)
@pytest.mark.usefixtures("url")
def test_a_wrong_target_is_one_line(tmp_path, monkeypatch, capsys, target, text):
    monkeypatch.syspath_prepend(tmp_path)
    assert run(["run", target, "--processes", "2"]) == 2
    assert text in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        load_adapter(target)
    sys.modules.pop("shop_app", None)


def test_a_function_may_make_the_adapter_and_check_names_its_listeners(url, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    assert load_adapter("shop_app:make").activations
    assert run(["check", "shop_app:make"]) == 0
    assert "serial-QueueReceiver(orders)" in capsys.readouterr().out
    sys.modules.pop("shop_app", None)


FILE = """
[adapters.shop]
connection_url = "embedded://file-{name}"

[listeners.orders]
handler = "{name}:on_order"
destination = "orders"
"""


def test_the_handlers_of_a_file_are_found_in_the_current_folder(tmp_path):
    (tmp_path / "shop_handlers.py").write_text("def on_order(message):\n    pass\n")
    (tmp_path / "jmsjca.toml").write_text(FILE.format(name="shop_handlers"))
    command = [sys.executable, "-P", "-m", "jmsjca", "check", "jmsjca.toml", "--json"]  # -P as for an installed command
    environment = os.environ | {"PYTHONPATH": f"{ROOT}"}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)[0]["handler"] == "on_order"


CONNECTOR = """
[connectors.hub]
ConnectionFactoryName = "{url}"
InputDestination = "events"
collaboration = "{collaboration}"
"""
HANDLERS = """
import os, signal

def on_order(message):
    pass

def on_event(event):
    print("event", event.get("id"))
    os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize("target", ["jmsjca.toml", "jmsjca.toml:hub"])
@pytest.mark.parametrize("adapters", ["", FILE.format(name="hub_handlers")], ids=["alone", "with adapter"])
def test_a_worker_runs_the_connectors_of_a_file_until_a_signal(url, tmp_path, monkeypatch, capsys, target, adapters):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub_handlers.py").write_text(HANDLERS)
    connector = CONNECTOR.format(url=url, collaboration="hub_handlers:on_event")
    (tmp_path / "jmsjca.toml").write_text(adapters + connector)
    ResourceAdapter(url).send("events", '{"_type": "Order", "id": 7}')
    assert run(["run", target, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == "event 7"
    assert json.loads(shown.out.splitlines()[1])["ended"] is True
    assert "jmsjca: connector hub\n" in shown.err
    assert ("listener on_order" in shown.err) is (bool(adapters) and not target.endswith(":hub"))
    assert list(Insight(url).messages("events")) == []


@pytest.mark.parametrize("adapters", ["", FILE.format(name="hub_handlers")], ids=["alone", "with adapter"])
def test_a_connector_that_terminates_ends_its_worker(url, tmp_path, monkeypatch, capsys, adapters):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub_handlers.py").write_text(HANDLERS)
    terminates = 'InProgressDestination = "held"\nInDoubtEvents = "FailOnStartup"\n'
    (tmp_path / "jmsjca.toml").write_text(adapters + CONNECTOR.format(url=url, collaboration="queue:done") + terminates)
    ResourceAdapter(url).send("held", "in doubt")
    assert run(["run", "jmsjca.toml"]) == 1
    assert "jmsjca: The connector does not start:" in capsys.readouterr().err


def test_connectors_in_several_processes_are_refused(url, tmp_path, capsys):
    file = tmp_path / "jmsjca.toml"
    file.write_text(CONNECTOR.format(url=url, collaboration="queue:done"))
    assert run(["run", f"{file}", "--processes", "2"]) == 2
    assert "leave out --processes" in capsys.readouterr().err
    assert run(["check", f"{file}"]) == 0
    assert "connector hub" in capsys.readouterr().out


def test_a_change_of_the_configuration_file_restarts_the_processes(worker, tmp_path):
    (tmp_path / "shop_handlers.py").write_text("def on_order(message):\n    pass\n")
    file = tmp_path / "jmsjca.toml"
    file.write_text(FILE.format(name="shop_handlers"))
    supervisor = worker("--reload", target="jmsjca.toml:shop")
    until(supervisor.pids)
    file.write_text(f"{FILE.format(name='shop_handlers')}# changed")
    until(lambda: supervisor.kinds() == ["started", "reload", "stopped", "started"])
    assert supervisor.stop()[0] == 0


def test_a_wrong_entry_of_a_file_is_named(tmp_path, capsys):
    (tmp_path / "jmsjca.toml").write_text('[adapters.shop]\nconnection_url = "embedded://"\nwrong = 1\n')
    assert run(["check", f"{tmp_path}/jmsjca.toml"]) == 2
    assert "wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [("--timeout", "-1"), ("--interval", "nan"), ("--health-port", "99999"), ("--health-file", "no/h.json")]
)
def test_a_setting_that_no_process_can_use_starts_none(worker, options):
    supervisor = worker("--processes", "2", *options)
    until(lambda: supervisor.process.poll() is not None)
    assert (supervisor.end(), supervisor.pids()) == ((2, []), [])
    assert len(supervisor.events) == 1


def test_the_listeners_of_all_processes_are_shown_with_their_messages(url, worker, tmp_path, capsys):
    file = tmp_path / "health.json"
    supervisor = worker("--processes", "2", "--health-file", f"{file}")
    ResourceAdapter(url).send_many("orders", ["a", "b", "c"])

    def rows(*command):
        capsys.readouterr()
        return json.loads(capsys.readouterr().out) if run([*command, "--file", f"{file}", "--json"]) == 0 else None

    until(file.exists)
    until(lambda: done(url) == ["a", "b", "c"])
    until(lambda: len(rows("top", "--count", "1")) == 2)
    until(lambda: sum(row["messages"] for row in rows("top", "--count", "1")) == 3)
    shown = rows("top", "--count", "1")
    assert {row["pid"] for row in shown} == set(supervisor.pids())
    assert [row["active"] is None for row in shown] == [False] * 2
    until(lambda: run(["status", "--file", f"{file}"]) == 0)  # a listener may still be connecting
    capsys.readouterr()
    run(["status", "--file", f"{file}"])
    table = capsys.readouterr().out.splitlines()[1:]
    assert {int(line.split()[0]) for line in table} == set(supervisor.pids())
    assert supervisor.stop()[0] == 0


SUPERVISOR = """
import signal, sys
from jmsjca.management.worker import Supervisor, WorkerSettings

def run(moment):
    left = moment
    def interrupt(frame, event, _):
        nonlocal left
        waits = frame.f_code.co_filename.endswith("/threading.py") or frame.f_code.co_name == "_restart_ended"
        if event in {"call", "c_return"} and waits:
            left -= 1
            if not left:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGTERM)
    supervisor = Supervisor(WorkerSettings("none", processes=0), print)
    sys.setprofile(interrupt)
    supervisor.run()

for moment in range(1, %d):
    print(moment, flush=True)
    run(moment)
"""
MOMENTS = 8  # of the wait of a supervisor, at which Python may run a signal handler


def test_a_signal_ends_a_supervisor_at_each_moment(tmp_path):
    command = [sys.executable, "-c", SUPERVISOR % (MOMENTS + 1)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}"}
    found = subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    assert found.stdout.splitlines()[-1] == f"{MOMENTS}"
