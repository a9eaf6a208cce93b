"""Connecting to a server of another protocol, or to one that does not answer: the error says so, with host and port."""

import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import quote

import pytest
from certificate_authority import Authority

from jmsjca import ResourceAdapter
from jmsjca.errors import ActivationFailedError, ConnectionLostError, WrongProtocolError
from jmsjca.providers.common.network import spoken_protocol
from jmsjca.reconnection import ConnectionSettings, connect

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OPENWIRE = b"\0\0\1\x43\1ActiveMQ\0\0\0\x0c\1\0\0\1\x31\0"
STOMP_ERROR = b"ERROR\nmessage:Unknown STOMP action\n\nno such action\0"
OPENMQ = b"101 imqbroker 301\nportmapper tcp PORTMAPPER 7676\n"
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
        ("amqp", OPENMQ, "Open MQ's own protocol, not AMQP 1.0"),
        ("stomp", OPENMQ, "Open MQ's own protocol, not STOMP"),
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


STOMP_HELLO, AMQP_HELLO, TLS_HELLO = b"CONNECT\n", b"AMQP", b"\x16\x03"
CONNECTED = b"CONNECTED\nversion:1.2\n\n\0"


class ReticentServer:
    """Answers first bytes by their beginning, and is silent on all others.

    Args:
        answers: The answers by the beginning.
        late: The answer to the first connection once another one was made; None for none.
        context: With it the late answer is given over TLS.
        closes: The beginning on which it closes the connection.
    """

    def __init__(self, answers, *, late=None, context=None, closes=b"none"):
        self._answers, self._late, self._context, self._closes = answers, late, context, closes
        self._asked = threading.Event()
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self._listener.getsockname()[1]

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._threads:
            each.join(30)

    def _serve(self):
        with suppress(OSError):
            while True:
                accepted = self._listener.accept()[0]
                first = self._late is not None and not self._threads
                self._threads.append(
                    threading.Thread(target=self._answer_late if first else self._answer, args=(accepted,), daemon=True)
                )
                self._threads[-1].start()

    def _answer(self, accepted):
        self._asked.set()
        with suppress(OSError), accepted:
            data = accepted.recv(1000)
            if not data.startswith(self._closes):
                _answer_and_wait(
                    accepted, next((each for begin, each in self._answers.items() if data.startswith(begin)), b"")
                )

    def _answer_late(self, accepted):
        assert self._asked.wait(30)
        with suppress(OSError), self._wrapped(accepted) as connected:
            connected.recv(1000)
            _answer_and_wait(connected, self._late)

    def _wrapped(self, accepted):
        return self._context.wrap_socket(accepted, server_side=True) if self._context else accepted


def _answer_and_wait(connected, answer):
    connected.sendall(answer)
    while connected.recv(1000):
        pass


@pytest.mark.parametrize(
    ("scheme", "answers", "told"),
    [
        ("amqp", {STOMP_HELLO: STOMP_ERROR}, "speaks STOMP, not AMQP 1.0"),
        ("amqp", {STOMP_HELLO: CONNECTED}, "speaks STOMP, not AMQP 1.0"),
        ("stomp", {AMQP_HELLO: AMQP}, "speaks AMQP 1.0, not STOMP"),
        ("stomp", {AMQP_HELLO: AMQP_0_9}, "speaks AMQP 0-9-1, not STOMP"),
        ("amqps", {AMQP_HELLO: AMQP}, "does not answer with TLS, it speaks AMQP 1.0"),
        ("amqps", {STOMP_HELLO: CONNECTED}, "does not answer with TLS, it speaks STOMP"),
        ("stomp+ssl", {STOMP_HELLO: CONNECTED}, "does not answer with TLS, it speaks STOMP"),
    ],
)
def test_a_server_that_is_silent_is_asked_in_other_protocols(scheme, answers, told):
    with ReticentServer(answers) as port, pytest.raises(WrongProtocolError) as raised:
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}?connect_timeout=60"))
    assert f"127.0.0.1:{port} {told}: correct the port or the protocol" in str(raised.value)


@pytest.mark.parametrize("scheme", ["amqps", "stomp+ssl"])
def test_a_server_that_closes_the_connection_over_the_hello_of_tls_is_asked_without_tls(scheme):
    with (
        ReticentServer({STOMP_HELLO: CONNECTED}, closes=TLS_HELLO) as port,
        pytest.raises(WrongProtocolError, match=rf"{port} does not answer with TLS, it speaks STOMP"),
    ):
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}?connect_timeout=60"))


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "stomp", "stomp+ssl"])
def test_a_server_that_is_silent_in_all_protocols_is_awaited(scheme):
    with ReticentServer({}) as port, pytest.raises(ConnectionLostError, match=rf"127\.0\.0\.1:{port}") as raised:
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}?connect_timeout=3"))
    assert not isinstance(raised.value, WrongProtocolError)


@pytest.mark.parametrize("secure", [False, True])
def test_a_slow_server_can_answer_after_the_questions(tmp_path, secure):
    authority = Authority(tmp_path)
    context = authority.server("IP:127.0.0.1") if secure else None
    with ReticentServer({}, late=CONNECTED, context=context) as port:
        options = f"reply_timeout=1&ca_file={quote(str(authority.file))}"
        connection = connect(ConnectionSettings(f"stomp{'+ssl' * secure}://127.0.0.1:{port}?{options}"))
        connection.close(0.1)
