"""The health server and clients that send too much, too slowly, or nothing: they get nothing, and probes an answer."""

import http.client
import math
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from jmsjca.management import health
from jmsjca.management.health import HealthServer

PATIENCE = 60
GREEN = {"status": "idle", "ready": True, "alive": True, "activations": []}


@pytest.fixture
def server():
    with HealthServer(lambda: GREEN) as found:
        yield found


def opened(server, sent=b""):
    """Open a connection, and send the beginning of a request."""
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    client.sendall(sent)
    return client


def read(client):
    """Return all that a server sends until it closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def is_answered(server):
    """Ask until there is a place: the thread of a connection that has ended may not have left its own yet."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        with suppress(ConnectionError), closing(connection):
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
    return False


def test_slow_clients_are_ended_and_hold_no_place(monkeypatch, capsys, server):
    monkeypatch.setattr(health, "_MAX_CONNECTIONS", 2)
    monkeypatch.setattr(health, "_MAX_SECONDS", math.inf)
    with opened(server) as silent, opened(server, b"GET /ready HTTP/1.1\r\nX: ") as slow:
        assert is_answered(server)
        assert read(silent) == b""  # the oldest has made room
        monkeypatch.setattr(health, "_MAX_SECONDS", 0.0)
        assert read(slow) == b""
        monkeypatch.setattr(health, "_MAX_SECONDS", math.inf)
        assert is_answered(server)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [64, 200])
def test_probes_are_answered_beside_slow_connections(server, number):
    """Each at its first attempt."""
    with ExitStack() as stack:
        for sent in [b"", b"GET /ready HTTP/1.1\r\nX: "] * (number // 2):
            stack.enter_context(opened(server, sent))
        for _ in range(10):
            with opened(server, b"GET /live HTTP/1.1\r\n\r\n") as probe:
                assert read(probe).startswith(b"HTTP/1.0 200 ")


def test_slow_connections_of_one_address_do_not_end_those_of_another(monkeypatch, server):
    monkeypatch.setattr(health, "_MAX_CONNECTIONS", 3)
    with ExitStack() as stack:
        probe = socket.create_connection(("127.0.0.1", server.port), PATIENCE, ("127.0.0.2", 0))
        slow = [opened(server) for _ in range(6)]
        for each in (probe, *slow):
            stack.enter_context(each)
        assert [read(each) for each in slow[:4]] == [b""] * 4
        probe.sendall(b"GET /live HTTP/1.1\r\n\r\n")
        assert read(probe).startswith(b"HTTP/1.0 200 ")


def test_probes_that_wait_for_a_check_are_not_ended(monkeypatch):
    """There are as many threads as connections."""
    monkeypatch.setattr(health, "_MAX_CONNECTIONS", 2)
    begun, go_on = threading.Event(), threading.Event()

    def check():
        begun.set()
        go_on.wait(PATIENCE)
        return GREEN

    request = b"GET /ready HTTP/1.1\r\n\r\n"
    with HealthServer(check) as server, opened(server, request) as first:
        assert begun.wait(PATIENCE)
        with opened(server) as slow, opened(server, request) as second:
            assert read(slow) == b""
            while server._server._sending:  # until the second request is read
                time.sleep(0)
            with opened(server, request) as third, suppress(ConnectionError):
                assert third.recv(1) == b""  # there is no place for it
            go_on.set()
            assert read(first).startswith(b"HTTP/1.0 200 ")
            assert read(second).startswith(b"HTTP/1.0 200 ")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET /ready HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(200)) + b"\r\n", b"431"),
        (b"GET /ready HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
        (b"PATCH /ready HTTP/1.1\r\n\r\n", b"501"),
        (b"POST /ready HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n", b"405"),
        (b"GET /%2e%2e/ready HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /ready HTTP/9.9\r\n\r\n", None),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", None),
    ],
    ids=range(8),
)
def test_a_hostile_request_gets_nothing(server, request_, status):
    with opened(server, request_) as client:
        answer = read(client)
    if status:
        assert answer.startswith(b"HTTP/1.0 " + status)
        assert b"\r\nServer: jmsjca\r\n" in answer  # no versions
    assert b"idle" not in answer
    assert is_answered(server)


def test_a_client_that_goes_is_no_error(capsys):
    with HealthServer(lambda: {**GREEN, "reason": "x" * 50_000_000}) as server:
        with opened(server, b"GET /ready HTTP/1.1\r\n\r\n") as client:
            assert client.recv(1) == b"H"  # and goes while the rest is written
        assert is_answered(server)
    assert capsys.readouterr().err == ""


def test_an_error_of_the_check_is_reported(capsys):
    def fail():
        raise ValueError("the check is broken")

    with HealthServer(fail) as server, opened(server, b"GET /ready HTTP/1.1\r\n\r\n") as client:
        assert read(client) == b""
    assert "the check is broken" in capsys.readouterr().err
