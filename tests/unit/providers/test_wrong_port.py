"""Connecting to a server of another protocol, or to one that does not answer: the error says so, with host and port."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from jmsjca import ResourceAdapter
from jmsjca.errors import ActivationFailedError, ConnectionLostError, WrongProtocolError
from jmsjca.providers.common.network import spoken_protocol
from jmsjca.reconnection import ConnectionSettings, connect

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OPENWIRE = b"\0\0\1\x43\1ActiveMQ\0\0\0\x0c\1\0\0\1\x31\0"
STOMP_ERROR = b"ERROR\nmessage:Unknown STOMP action\n\nno such action\0"
TLS_ALERT = b"\x15\x03\x03\0\2\2\x46"
AMQP, AMQP_0_9 = b"AMQP\3\1\0\0", b"AMQP\0\0\x09\1"


@contextmanager
def server(answer, *, stays=True):
    """Yield the port of a server that answers the first bytes, and stays silent then, or closes the connection."""

    def serve():
        with suppress(OSError), listener.accept()[0] as accepted:
            accepted.recv(1000)
            accepted.sendall(answer)
            while stays and accepted.recv(1000):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(30)


@pytest.mark.parametrize(
    ("scheme", "answer", "told"),
    [
        ("amqp", HTTP, "HTTP, not AMQP 1.0"),
        ("amqp", STOMP_ERROR, "STOMP, not AMQP 1.0"),
        ("amqp", AMQP_0_9, "AMQP 0-9-1, not AMQP 1.0"),
        ("amqp", OPENWIRE, "OpenWire, not AMQP 1.0"),
        ("stomp", HTTP, "HTTP, not STOMP"),
        ("stomp", AMQP, "AMQP 1.0, not STOMP"),
        ("stomp", AMQP_0_9, "AMQP 0-9-1, not STOMP"),
        ("stomp", OPENWIRE, "OpenWire, not STOMP"),
        ("stomp", TLS_ALERT, "TLS, not STOMP"),
    ],
)
def test_another_protocol_is_told_at_once_although_the_server_waits_for_more(scheme, answer, told):
    with server(answer) as port, pytest.raises(WrongProtocolError) as raised:
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}?connect_timeout=60"))
    assert f"The server at 127.0.0.1:{port} speaks {told}: correct the port" in str(raised.value)


@pytest.mark.parametrize(("scheme", "name"), [("amqp", "AMQP 1.0"), ("stomp", "STOMP")])
@pytest.mark.parametrize("answer", [HTTP, TLS_ALERT, AMQP_0_9], ids=["HTTP", "TLS", "AMQP 0-9-1"])
def test_another_protocol_is_told_when_the_server_closes_the_connection(scheme, name, answer):
    with (
        server(answer, stays=False) as port,
        pytest.raises(WrongProtocolError, match=rf"{port} speaks .*, not {name}:"),
    ):
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}"))


@pytest.mark.parametrize("scheme", ["amqps", "stomp+ssl"])
def test_a_server_without_tls_is_told(scheme):
    with (
        server(HTTP) as port,
        pytest.raises(WrongProtocolError, match=rf"127\.0\.0\.1:{port} does not answer with TLS"),
    ):
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}"))


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "stomp", "stomp+ssl"])
def test_a_timeout_names_host_and_port(scheme):
    with server(b"") as port, pytest.raises(ConnectionLostError, match=rf"127\.0\.0\.1:{port}"):
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}?connect_timeout=0.05"))


@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_a_listener_with_a_wrong_port_stops_permanently(scheme):
    with server(HTTP) as port:
        adapter = ResourceAdapter(f"{scheme}://127.0.0.1:{port}")
        adapter.listener("q")(print)
        with pytest.raises(ActivationFailedError, match=f"{port} speaks HTTP"):
            adapter.run()


@pytest.mark.parametrize("greeting", [b"", b"AM", b"HT", b"MESSAGE\n", b"ERRO", b"\0" * 16, b"\x15\x02"])
def test_what_shows_no_protocol_is_none(greeting):
    assert spoken_protocol(greeting) is None
