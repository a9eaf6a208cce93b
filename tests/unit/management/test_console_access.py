"""Who gets an answer from the console: a request without the token, from another site, or too long gets nothing."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from starlette.testclient import TestClient

from jmsjca import TextMessage
from jmsjca.__main__ import run
from jmsjca.errors import ConfigurationError
from jmsjca.management.console import Console
from jmsjca.management.console.access import Access
from tests.unit.management.test_console import Form, browser
from tests.unit.management.test_dead_letters import drain, letter, send

BASE = "http://127.0.0.1:8321"
TOKEN = "the-token-of-these-tests"  # noqa: S105
PAGES = ["/", "/activation", "/destinations", "/messages?queue=dlq.orders", "/message?queue=dlq.orders&id=x"]
PAGES += ["/dead-letters?queue=dlq.orders", "/capabilities", "/console.css", "/nothing", "//example.org/"]
SECRET = "a secret body"  # noqa: S105


@pytest.fixture
def console(tmp_path):
    url = f"embedded://{tmp_path}/broker.db"
    send(url, letter(SECRET), to="dlq.orders")
    console = Console(url, token=TOKEN, writable=True)
    yield console
    assert [each.body for each in drain(url, "dlq.orders")] == [SECRET]


@pytest.fixture
def stranger(console):
    return TestClient(console, base_url=BASE, follow_redirects=False)


@pytest.fixture
def client(console):
    client = browser(console, follow_redirects=True)
    client.follow_redirects = False
    return client


def refused(response, status):
    """Check that an answer has nothing but a remedy, and the security headers."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert len(response.content) < 200
    assert SECRET not in response.text
    assert "set-cookie" not in response.headers
    guarded(response)
    return True


def guarded(response, *, scripts=False):
    headers = response.headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert ("; script-src 'self';" in policy) == scripts
    assert ("script-src" in policy) == scripts
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("headers", [{}, {"Cookie": "jmsjca=1; x"}, {"Authorization": "Bearer wrong"}])
def test_a_request_without_the_token_gets_nothing(stranger, headers):
    for path in PAGES:
        assert refused(stranger.get(path, headers=headers), 401), path


@pytest.mark.parametrize(
    "wrong", ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "é", "\udc80".encode("utf-8", "surrogateescape")]
)
def test_a_wrong_token_gets_nothing(stranger, wrong):
    assert refused(stranger.get("/", params={"token": wrong}), 401)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_need_the_token_too(stranger, method):
    assert refused(stranger.request(method, "/drop", params={"token": TOKEN}), 401)


def test_the_address_with_the_token_sets_a_strict_cookie_and_leaves_the_token(stranger):
    answer = stranger.get("//example.org/x", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Strict; Path=/" in cookie
    assert TOKEN not in cookie
    guarded(answer)
    assert stranger.get("/capabilities").status_code == 200


def test_the_cookie_is_secure_over_https(console):
    client = TestClient(console, base_url="https://localhost", follow_redirects=False)
    assert client.get("/", params={"token": TOKEN}).headers["set-cookie"].endswith("; Secure")


def test_a_program_sends_the_token_as_a_header(stranger):
    assert stranger.get("/capabilities", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "", "127.0.0.1:x", "127.0.0.1/x", "[::1", "a b"],
)
def test_another_host_name_gets_nothing(client, host):
    assert refused(client.get("/messages?queue=dlq.orders", headers={"Host": host}), 400)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8321", "[::1]:8321"])
def test_loopback_names_are_answered(client, host):
    authorized = {"Host": host, "Authorization": f"Bearer {TOKEN}"}
    assert client.get("/capabilities", headers=authorized).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://127.0.0.1:1", "http://127.0.0.1", "file://", "http://[", "javascript:"],
)
def test_a_wrong_origin_gets_nothing(client, origin):
    fields = {**Form(client.get("/dead-letters?queue=dlq.orders")).fields, "all": "yes", "confirm": "yes"}
    for answer in (
        client.get("/messages?queue=dlq.orders", headers={"Origin": origin}),
        client.post("/drop", data=fields, headers={"Origin": origin}),
    ):
        assert refused(answer, 403)


def test_the_own_origin_is_answered(client):
    fields = {**Form(client.get("/dead-letters?queue=dlq.orders")).fields, "all": "yes"}
    assert client.post("/drop", data=fields, headers={"Origin": BASE}).status_code == 200


def test_an_image_of_another_site_gets_nothing(client):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert refused(client.get("/messages?queue=dlq.orders", headers=headers), 403)


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Content-Type"])
def test_a_repeated_header_gets_nothing(client, name):
    headers = [(name, "127.0.0.1:8321"), (name, "127.0.0.1:8321")]
    assert refused(client.get("/capabilities", headers=headers), 400)


@pytest.mark.parametrize("csrf", [None, "", "x", TOKEN])
def test_a_form_without_its_csrf_token_does_nothing(client, csrf):
    fields = {"queue": "dlq.orders", "all": "yes", "confirm": "yes"} | ({} if csrf is None else {"csrf": csrf})
    assert refused(client.post("/drop", data=fields), 403)


def test_a_form_with_two_csrf_tokens_does_nothing(client):
    csrf = Form(client.get("/dead-letters?queue=dlq.orders")).fields["csrf"]
    fields = {"queue": "dlq.orders", "all": "yes", "confirm": "yes", "csrf": [csrf, csrf]}
    assert refused(client.post("/drop", data=fields), 403)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", ""])
def test_other_content_types_get_nothing(client, kind):
    assert refused(client.post("/drop", content=b"csrf=x", headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"x" * 70_000, 413), (b"a=b&" * 2_000, 400), (b"\xff\xfe=x", 400), (b"", 403), (b"%ff=%00", 403)],
)
def test_a_hostile_form_does_nothing(client, body, status):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert refused(client.post("/drop", content=body, headers=headers), status)


def test_a_form_without_end_is_not_read_to_its_end(console):
    received, sent = [], []

    async def receive():
        received.append(b"x" * 65_536)
        return {"type": "http.request", "body": received[-1], "more_body": True}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
    headers += [(b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/drop", "query_string": b"", "headers": headers}
    asyncio.run(console(scope, receive, send))
    assert sent[0]["status"] == 413
    assert len(received) == 2


def test_a_long_address_gets_nothing(client):
    assert refused(client.get("/messages", params={"queue": "x" * 9000}), 414)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert refused(client.request(method, "/drop"), 405)


def test_every_answer_has_the_security_headers(client):
    for path in [*PAGES, "/events", "/live.js"]:
        answer = client.get(path)
        scripts = answer.url.path in {"/", "/activation"}  # these pages show live numbers, and no message
        guarded(answer, scripts=scripts)
        head = client.head(path)
        guarded(head, scripts=scripts)
        assert head.content == b""


def test_a_websocket_is_closed(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_two_consoles_have_different_tokens_and_show_none(tmp_path):
    first, second = (Console(f"embedded://{tmp_path}/broker.db") for _ in range(2))
    assert first.token != second.token
    assert len(first.token) > 40
    assert first.token not in f"{first!r} {first} {Access.of(first.token, ())!r}"


@pytest.mark.parametrize("token", ["", "short", "a token with spaces in it", "x" * 15, "é" * 20, "x" * 20 + "\n"])
def test_a_weak_token_is_refused(tmp_path, token):
    with pytest.raises(ConfigurationError, match="token") as raised:
        Console(f"embedded://{tmp_path}/broker.db", token=token)
    assert not token or token not in str(raised.value)


def test_the_command_serves_on_loopback_until_it_is_stopped(tmp_path):
    url = f"embedded://{tmp_path}/broker.db"
    send(url, TextMessage("x"), to="orders")
    environment = {**os.environ, "JMSJCA_URL": url, "JMSJCA_CONSOLE_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "jmsjca", "console", "--port", "0"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            printed = server.stdout.readline()
            port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(.*)\n", printed).groups()
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            connection.request("GET", "/destinations")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("server")) == (401, None)
            answer.read()
            connection.request("GET", "/destinations", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            assert (answer.status, b"orders" in answer.read()) == (200, True)
            connection.close()
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert TOKEN not in server.stderr.read()


def test_the_command_writes_its_address_and_its_token_as_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    monkeypatch.setenv("JMSJCA_CONSOLE_TOKEN", TOKEN)
    assert run(["console", "--url", f"embedded://{tmp_path}/broker.db", "--port", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", found.pop("address"))
    assert found == {"token": TOKEN, "writable": False}


def test_a_port_that_is_taken_is_an_error_with_a_remedy(tmp_path, capsys):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["console", "--url", f"embedded://{tmp_path}/broker.db", "--port", port]) == 2
    assert "Name another with --port" in capsys.readouterr().err
