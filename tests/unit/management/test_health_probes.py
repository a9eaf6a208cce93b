"""Probes of orchestrators: the ASGI application, the HTTP server, and the file."""

import asyncio
import http.client
import json
import threading
from contextlib import closing

import pytest

from jmsjca.__main__ import run
from jmsjca.errors import ConfigurationError
from jmsjca.inbound.health import Health
from jmsjca.management import health
from jmsjca.management.health import HealthFile, HealthServer, app_for, read_health_file
from jmsjca.management.worker_commands import activity_rows
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE

GREEN = {"status": "idle", "reason": None, "since": None, "ready": True, "alive": True, "activations": []}
RED = {**GREEN, "status": "stuck", "reason": "q: a handler has not ended", "ready": False, "alive": False}
CONNECTING = {**GREEN, "status": "down", "reason": "q: refused", "ready": False}


def ask(app, path, method="GET", **scope):
    """Send a request to an ASGI application; return the status, the headers and the body."""
    sent = []

    async def send(event):
        sent.append(event)

    async def receive():
        return {"type": "http.request", "body": b""}

    asyncio.run(app({"type": "http", "method": method, "path": path, **scope}, receive, send))
    start, body = sent
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body["body"]


def test_an_adapter_without_broker_is_alive_but_not_ready(jms_adapter):
    jms_adapter.listener("q")(print)
    jms_adapter.start(wait=PATIENCE)
    app = app_for(jms_adapter)
    status, headers, body = ask(app, "/ready")
    assert (status, json.loads(body)["activations"][0]["status"]) == (200, "idle")
    assert headers == {
        "content-type": "application/json",
        "content-length": f"{len(body)}",
        "cache-control": "no-store",
    }
    jms_adapter.stop()
    assert (ask(app, "/ready")[0], ask(app, "/live")[0]) == (503, 200)


def test_other_requests_are_refused(jms_adapter):
    app = app_for(jms_adapter)
    assert ask(app, "/")[0] == 404
    assert ask(app, "/ready", "POST")[0] == 405
    assert ask(app, "/ready", "HEAD")[::2] == (200, b"")
    assert ask(app, "/health/live", root_path="/health")[0] == 200


def test_a_check_that_hangs_is_red(jms_adapter):
    released = threading.Event()
    jms_adapter.health = lambda interval: released.wait(60)

    async def both():
        sent = []

        async def send(event):
            sent.append(event)

        await app_for(jms_adapter, interval=0.05)({"type": "http", "method": "GET", "path": "/live"}, None, send)
        released.set()
        return sent

    start, body = asyncio.run(both())
    assert start["status"] == 503
    assert "the check takes longer than 0.05 s" in json.loads(body["body"])["reason"]


def test_a_check_that_hangs_is_not_begun_again(jms_adapter):
    released, begun, daemons = threading.Event(), [], []

    def check(interval):
        begun.append(interval)
        daemons.append(threading.current_thread().daemon)  # it does not hold up the end of the process
        released.wait(PATIENCE)
        return Health.of([])

    jms_adapter.health = check
    app = app_for(jms_adapter, interval=0.05)

    async def probe():
        sent = []

        async def send(event):
            sent.append(event)

        await app({"type": "http", "method": "GET", "path": "/ready"}, None, send)
        return sent[0]["status"]

    async def probes():
        found = [await probe() for _ in range(5)]
        found += await asyncio.gather(*(probe() for _ in range(5)))
        released.set()
        return found

    assert asyncio.run(probes()) == [503] * 10
    assert (begun, daemons) == ([0.05], [True])
    until(lambda: ask(app, "/ready")[0] == 200)
    assert len(begun) > 1


def test_the_server_begins_one_check_at_a_time(monkeypatch):
    monkeypatch.setattr(health, "_MAX_CHECK_SECONDS", 0.05)
    released, begun = threading.Event(), []

    def check():
        begun.append(None)
        released.wait(PATIENCE)
        return GREEN

    with HealthServer(check) as server:

        def probe(path):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            with closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, json.load(answer).get("reason")

        stuck = 503, "the check takes longer than 0.05 s"
        assert [probe("/ready"), probe("/live")] == [stuck, stuck]
        assert begun == [None]
        released.set()
        until(lambda: probe("/ready")[0] == 200)


def test_the_life_span_of_the_application_is_acknowledged(jms_adapter):
    events, sent = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]), []

    async def receive():
        return next(events)

    async def send(event):
        sent.append(event["type"])

    asyncio.run(app_for(jms_adapter)({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.parametrize(
    ("report", "ready", "live"),
    [(GREEN, 200, 200), (RED, 503, 503), (CONNECTING, 503, 200)],
    ids=["green", "red", "down"],
)
def test_the_server_answers_probes(report, ready, live):
    with HealthServer(lambda: report) as server:

        def get(path, method="GET"):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request(method, path)
            answer = connection.getresponse()
            found = answer.status, answer.read()
            connection.close()
            return found

        assert get("/ready") == (ready, json.dumps(report).encode())
        assert (get("/live?x")[0], get("/nothing")[0], get("/live", "POST")[0]) == (live, 404, 405)
        assert get("/live", "HEAD") == (live, b"")
        with pytest.raises(ConfigurationError, match=f"{server.port} cannot be used"):
            HealthServer(lambda: report, server.port)


def test_the_file_is_written_again_and_again(tmp_path):
    path, reports = tmp_path / "health.json", [GREEN, RED]
    with HealthFile(lambda: reports[0], path, interval=0.05):
        assert written_in(path)["ready"]
        reports.reverse()
        until(lambda: not written_in(path)["ready"])
    assert list(tmp_path.iterdir()) == []


def written_in(path):
    """What the file says, whether it is too old or not."""
    return json.loads(path.read_bytes())


class FailingCheck:
    """A check whose second to fifth call fail. Its reports are numbered."""

    calls = 0

    def __call__(self):
        self.calls += 1
        if 1 < self.calls < 6:
            raise RuntimeError("no health\nat all")
        return {**GREEN, "reason": self.calls}


def failures_of(caplog):
    return [each for each in caplog.records if each.name == "jmsjca.management"]


def test_a_check_that_fails_for_some_time_is_logged_once_and_the_file_is_written_again(tmp_path, caplog):
    path, check = tmp_path / "health.json", FailingCheck()
    with HealthFile(check, path, interval=0.05):
        until(lambda: written_in(path)["reason"] > 6)
        [record] = failures_of(caplog)
        assert record.getMessage() == (
            f"The health file {path} cannot be written, trying again: RuntimeError: no health\\nat all"
        )
        check.calls = 1
        until(lambda: len(failures_of(caplog)) == 2)  # another time of failures
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_for_some_time_does_not_end_the_health_file(tmp_path, caplog):
    folder, away, calls = tmp_path / "run", tmp_path / "away", []
    folder.mkdir()
    path = folder / "health.json"

    def check():
        calls.append(None)
        return {**GREEN, "reason": len(calls)}

    with HealthFile(check, path, interval=0.05):
        folder.rename(away)
        until(lambda: failures_of(caplog))
        failed_at = len(calls)
        until(lambda: len(calls) > failed_at + 2)
        away.rename(folder)
        until(lambda: written_in(path)["reason"] > failed_at + 3)
    [record] = failures_of(caplog)
    assert "FileNotFoundError" in record.getMessage()
    assert record.exc_info is None


@pytest.fixture
def written(tmp_path):
    def write(report, name="health.json"):
        HealthFile(lambda: report, tmp_path / name).write()
        return tmp_path / name

    return write


def test_death_14_a_process_that_writes_no_more_is_red(written):
    path = written(GREEN)
    at = read_health_file(path)["written"]
    assert read_health_file(path, at + 30)["ready"]
    stale = read_health_file(path, at + 31)
    assert (stale["ready"], stale["alive"]) == (False, False)
    assert "has not written the file for 31 s" in stale["reason"]


def test_a_file_of_the_future_is_red(written):
    path = written(GREEN)
    at = read_health_file(path)["written"]
    assert read_health_file(path, at - 30)["ready"]
    stale = read_health_file(path, at - 31)
    assert (stale["status"], stale["ready"], stale["alive"]) == ("stuck", False, False)
    assert "has not written the file since the clock was set back by 31 s" in stale["reason"]


@pytest.mark.parametrize(("report", "ready", "live"), [(GREEN, 0, 0), (RED, 1, 1), (CONNECTING, 1, 0)])
def test_the_exit_status_is_a_probe(written, capsys, report, ready, live):
    path = f"{written(report)}"
    assert run(["status", "--file", path]) == ready
    assert report["status"] in capsys.readouterr().out
    assert run(["status", "--file", path, "--live"]) == live


def test_one_red_worker_of_several_is_enough(written, capsys):
    green, red = written(GREEN, "a"), written(RED, "b")
    assert run(["status", "-f", f"{green}", "-f", f"{red}", "--json"]) == 1
    assert [each["status"] for each in json.loads(capsys.readouterr().out)] == ["idle", "stuck"]


@pytest.mark.parametrize(
    "content", [None, "", "{}", "[]", '{"written": "x", "interval": 1}', '{"written": 9e99, "interval": 1}']
)
def test_no_health_file_is_a_mistake(tmp_path, capsys, content):
    path = tmp_path / "none.json"
    if content is not None:
        path.write_text(content)
    assert run(["status", "--file", f"{path}"]) == 2
    assert "is the worker running with --health-file" in capsys.readouterr().err


def test_top_shows_rates_of_the_time_between_two_tables(written, capsys):
    def report(messages, moment):
        activation = {"name": "orders", "status": "consuming", "since": None, "reason": None}
        stats = {"orders": {"n_delivered_messages": messages, "n_active_endpoints": 2, "n_configured_endpoints": 4}}
        return {**GREEN, "activations": [activation], "stats": stats, "pid": 7, "written": moment}

    before = {}
    [first], [second] = (list(activity_rows([report(*each)], before)) for each in ((10, 100.0), (40, 110.0)))
    assert (first["per_second"], second["per_second"]) == (None, 3.0)
    assert run(["top", "--file", f"{written(report(10, 1.0))}", "--count", "2", "--interval", "0.1", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["listener"], row["active"], row["limit"]) for [row] in shown] == [("orders", 2, 4)] * 2
