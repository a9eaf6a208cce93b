"""TLS: who is trusted, and that nobody else ever sees the password."""

import socket
import ssl
import threading
from contextlib import suppress

import pytest
from authority import Authority

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSSecurityError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.stomp.letters import read, write

PASSWORD = "hush-hush"  # noqa: S105


class Peer:
    """A STOMP broker for one connection, with TLS or without.

    Attributes:
        raw: What came before or instead of TLS, undeciphered.
        clear: What came, deciphered.
    """

    def __init__(self, context):
        self._context = context
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.port = self._server.getsockname()[1]
        self.raw, self.clear = b"", b""

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(30)
        self._server.close()

    def _serve(self):
        with self._server.accept()[0] as client, suppress(OSError):
            if self._context is None:
                self.raw = client.recv(65536)
                client.sendall(write("CONNECTED", {"version": "1.2", "server": "ActiveMQ/6"}))
            else:
                with self._context.wrap_socket(client, server_side=True) as secured:
                    self._talk(secured)

    def _talk(self, secured):
        """Answer CONNECT and every frame that asks for a receipt, until the client goes."""
        while data := secured.recv(65536):
            self.clear += data
            for command, headers, _ in read(data):
                if command == "CONNECT":
                    secured.sendall(write("CONNECTED", {"version": "1.2", "server": "ActiveMQ/6"}))
                elif receipt := dict(headers).get("receipt"):
                    secured.sendall(write("RECEIPT", {"receipt-id": receipt}))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def _settings(peer, ca_file=None, **options):
    given = {"ca_file": ca_file, "connect_timeout": 20, **options}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
    return ConnectionSettings(f"stomp+ssl://127.0.0.1:{peer.port}?{query}", user_name="user", password=PASSWORD)


def test_signed_for_this_host(authority):
    with Peer(authority.server("IP:127.0.0.1")) as peer:
        connection = connect(_settings(peer, authority.file))
        connection.consumer(Queue("q")).close()
        connection.close()
    commands = [command for command, *_ in read(peer.clear)]
    assert commands == ["CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "DISCONNECT"]
    assert f"passcode:{PASSWORD}".encode() in peer.clear


@pytest.mark.parametrize("host", ["DNS:other.example", "IP:127.0.0.2"])
def test_signed_for_another_host(authority, host):
    _refused(authority.server(host), authority.file)


def test_signed_by_itself(authority):
    _refused(authority.server("IP:127.0.0.1", signed=False), authority.file)


def test_signed_by_an_authority_that_only_the_peer_knows(authority):
    _refused(authority.server("IP:127.0.0.1"), None)


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_peer_without_tls_never_gets_the_password(authority, allowed):
    """Not even with allow_insecure_login: the scheme says TLS."""
    with Peer(None) as peer, pytest.raises(ConnectionLostError):
        connect(_settings(peer, authority.file, allow_insecure_login=allowed))
    assert peer.raw.startswith(b"\x16")  # a TLS handshake
    assert PASSWORD.encode() not in peer.raw
    assert b"CONNECT" not in peer.raw


def test_authority_that_cannot_be_read(tmp_path):
    with pytest.raises(JMSSecurityError):
        connect(ConnectionSettings(f"stomp+ssl://127.0.0.1:1?ca_file={tmp_path / 'none'}"))


def test_client_certificate_that_is_missing(authority):
    """TLS 1.3 tells it behind the handshake, where it looks like a connection that broke; no second attempt helps."""
    context = authority.server("IP:127.0.0.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    with Peer(context) as peer, pytest.raises(JMSSecurityError, match="another client certificate"):
        connect(_settings(peer, authority.file))
    assert not peer.clear


def _refused(context, ca_file):
    with Peer(context) as peer, pytest.raises(JMSSecurityError):
        connect(_settings(peer, ca_file))
    assert not peer.clear
