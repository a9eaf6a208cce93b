"""The server of ``jmsjca console`` and raw bytes: hostile heads and bodies get nothing of the broker."""

import socket
import threading

import pytest

from jmsjca.management.console import Console, access
from jmsjca.management.console import server as server_module
from jmsjca.management.console.server import _MAX_HEAD, console_server
from tests.unit.inbound.deliveries import until
from tests.unit.management.test_dead_letters import drain, letter, send

PATIENCE = 60
TOKEN = "the-token-of-these-tests"  # noqa: S105
SECRET = "a secret body"  # noqa: S105
SHOWN = b"queue:orders"
HOST = b"Host: 127.0.0.1\r\n"
LOGIN = HOST + f"Authorization: Bearer {TOKEN}\r\n".encode()
PAGE = b"GET /dead-letters?queue=dlq.orders HTTP/1.1\r\n"
DROP = b"POST /drop HTTP/1.1\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
END = b"Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    url = f"embedded://{tmp_path_factory.mktemp('wire')}/broker.db"
    send(url, letter(SECRET), to="dlq.orders")
    server = console_server(Console(url, token=TOKEN, writable=True))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        server.port = listener.getsockname()[1]
        try:
            yield server
        finally:
            server.should_exit = True
            thread.join()
    assert [each.body for each in drain(url, "dlq.orders")] == [SECRET]


@pytest.fixture
def port(server):
    return server.port


def exchange(port, *sent):
    """Send bytes; return all that the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        for each in sent:
            client.sendall(each)
        return read(client)


def read(client):
    """Return all until the end. A server that closes before it has read all resets the connection."""
    answer = b""
    try:
        while part := client.recv(65_536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def test_a_good_request_is_answered(port):
    assert SHOWN in exchange(port, PAGE + LOGIN + END)


@pytest.mark.parametrize(
    "sent",
    [
        PAGE + HOST + END,
        PAGE + END,
        PAGE + LOGIN + HOST + END,
        PAGE + LOGIN.replace(b"127.0.0.1", b"evil.example") + END,
        PAGE + LOGIN + b"Origin: http://evil.example\r\n" + END,
        PAGE + LOGIN + b"Origin: null\r\nOrigin: http://127.0.0.1\r\n" + END,
        b"GET http://evil.example/messages?queue=dlq.orders HTTP/1.1\r\nHost: evil.example\r\n" + END,
        PAGE + LOGIN + b"X: " + b"y" * 2 * _MAX_HEAD,
        b"GET /messages?queue=" + b"x" * 2 * _MAX_HEAD,
        PAGE + LOGIN.replace(b": Bearer", b" : Bearer") + END,
        PAGE + LOGIN + b" folded: x\r\n" + END,
        PAGE + LOGIN + b"X: \x00\r\n" + END,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        DROP + LOGIN + FORM + b"Content-Length: -1\r\n" + END,
        DROP + LOGIN + FORM + b"Content-Length: 5\r\nContent-Length: 6\r\n" + END + b"queue",
        DROP + LOGIN + FORM + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" + END + b"0\r\n\r\n",
        DROP + LOGIN + FORM + b"Transfer-Encoding: chunked\r\n" + END + b"20000\r\n" + b"x" * 0x20000,
        DROP + LOGIN + FORM + b"Content-Length: 100000000\r\n" + END + b"x" * 200_000,
    ],
    ids=range(19),
)
def test_hostile_bytes_get_nothing(port, sent):
    answer = exchange(port, sent)
    status = answer.partition(b"\r\n")[0]
    assert not status or status.split(b" ")[1].startswith(b"4"), status
    assert SHOWN not in answer
    assert b"dlq.orders" not in answer
    assert b"set-cookie" not in answer.lower()


@pytest.mark.parametrize("body", [b"", b"fffffffff\r\n", b"5\r\nqueue\r\n"], ids=range(3))
def test_a_form_that_does_not_end_is_refused(port, monkeypatch, body):
    monkeypatch.setattr(access, "_FORM_SECONDS", 0.05)
    answer = exchange(port, DROP + LOGIN + FORM + b"Transfer-Encoding: chunked\r\n" + END + body)
    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", PAGE + LOGIN + b"X: "], ids=["silent", "slow"])
def test_a_connection_without_a_whole_request_is_closed(port, monkeypatch, sent):
    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", 0.05)
    assert exchange(port, sent) == b""


def test_a_connection_is_closed_in_the_middle_of_its_second_request_only(server):
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        client.sendall(PAGE + LOGIN + b"\r\n")
        received = b""
        while SHOWN not in received:
            received += client.recv(65_536)
        [protocol] = server.server_state.connections
        until(lambda: protocol.cycle.response_complete)
        client.sendall(PAGE)
        for before in (None, protocol.cycle):  # a first look sees that there was a request, a second one no other
            protocol.loop.call_soon_threadsafe(protocol._look, before)
        assert read(client) == b""


def test_an_answer_is_not_divided_by_a_name(port):
    """A line break in a query forges no header of the redirect."""
    answer = exchange(port, f"GET /?token={TOKEN}&x=%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\n".encode() + HOST + END)
    assert answer.startswith(b"HTTP/1.1 303")
    assert answer.lower().count(b"set-cookie") == 1
    assert b"a=b" not in answer
