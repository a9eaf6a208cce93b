"""TLS: trusted authorities, host names, and no login without verification."""

import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import quote

import pytest
from certificate_authority import Authority

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSError, JMSSecurityError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.amqp.wire.test_tls import REFUSED, old
from tests.unit.providers.stomp.reference_frames import read, write

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
def peer_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("peer_authority"))


def _settings(peer, ca_file=None, **options):
    given = {"ca_file": ca_file, "connect_timeout": 20, **options}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
    return ConnectionSettings(f"stomp+ssl://127.0.0.1:{peer.port}?{query}", user_name="user", password=PASSWORD)


def test_signed_for_this_host(peer_authority):
    with Peer(peer_authority.server("IP:127.0.0.1")) as peer:
        connection = connect(_settings(peer, peer_authority.file))
        connection.consumer(Queue("q")).close()
        connection.close()
    commands = [command for command, *_ in read(peer.clear)]
    assert commands == ["CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "DISCONNECT"]
    assert f"passcode:{PASSWORD}".encode() in peer.clear


@pytest.mark.parametrize("host", ["DNS:other.example", "IP:127.0.0.2"])
def test_signed_for_another_host(peer_authority, host):
    _refused(peer_authority.server(host), peer_authority.file)


def test_signed_by_itself(peer_authority):
    _refused(peer_authority.server("IP:127.0.0.1", signed=False), peer_authority.file)


def test_signed_by_an_authority_that_only_the_peer_knows(peer_authority):
    _refused(peer_authority.server("IP:127.0.0.1"), None)


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_peer_without_tls_never_gets_the_password(peer_authority, allowed):
    """Not even with allow_insecure_login: the scheme says TLS."""
    with Peer(None) as peer, pytest.raises(ConnectionLostError):
        connect(_settings(peer, peer_authority.file, allow_insecure_login=allowed))
    assert peer.raw.startswith(b"\x16")  # a TLS handshake
    assert PASSWORD.encode() not in peer.raw
    assert b"CONNECT" not in peer.raw


def test_authority_that_cannot_be_read(tmp_path):
    with pytest.raises(JMSSecurityError):
        connect(ConnectionSettings(f"stomp+ssl://127.0.0.1:1?ca_file={tmp_path / 'none'}"))


def test_client_certificate_that_is_missing(peer_authority):
    """TLS 1.3 tells it behind the handshake, where it looks like a connection that broke; no second attempt helps."""
    context = peer_authority.server("IP:127.0.0.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(peer_authority.file)
    with Peer(context) as peer, pytest.raises(JMSSecurityError, match="another client certificate"):
        connect(_settings(peer, peer_authority.file))
    assert not peer.clear


def _refused(context, ca_file):
    with Peer(context) as peer, pytest.raises(JMSSecurityError):
        connect(_settings(peer, ca_file))
    assert not peer.clear


SPELLINGS = [
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "127.0.0.1",
    "127.1",
    "[::ffff:127.0.0.1]",
    "%6cocalhost",
]


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trusted"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"))


def _log_in(peer, authority, host="localhost"):
    url = f"stomp+ssl://{host}:{peer.port}?ca_file={quote(str(authority.file))}&connect_timeout=20"
    connect(ConnectionSettings(url, user_name="user", password=PASSWORD)).close()


@pytest.mark.parametrize("host", SPELLINGS)
@pytest.mark.parametrize("names", ["DNS:localhost", "IP:127.0.0.1", "DNS:other.example"])
def test_host_is_verified_as_it_is_spelled_or_not_connected(trusted, names, host):
    """Only ever inside TLS, and only to whom the certificate names."""
    with Peer(trusted.server(names)) as peer:
        try:
            _log_in(peer, trusted, host)
        except JMSError:
            _wake(peer)
            assert not peer.clear
        else:
            named = {"DNS:localhost": "localhost", "IP:127.0.0.1": "127.0.0.1"}[names]
            assert named in host.lower() or names.startswith("IP")
            assert read(peer.clear)[0][0] == "CONNECT"
    assert not peer.raw


@pytest.mark.parametrize("host", SPELLINGS)
def test_peer_without_tls_sees_no_login_however_the_host_is_spelled(trusted, host):
    with Peer(None) as peer:
        with pytest.raises(JMSError):
            _log_in(peer, trusted, host)
        _wake(peer)
    assert PASSWORD.encode() not in peer.raw
    assert b"CONNECT" not in peer.raw


@pytest.mark.parametrize("certificate", REFUSED)
def test_certificate_that_is_not_to_be_trusted(trusted, other, certificate):
    make, reason = REFUSED[certificate]
    with Peer(make(trusted, other)) as peer, pytest.raises(JMSError, match=f"not to be trusted: .*{reason}"):
        _log_in(peer, trusted)
    assert not peer.clear


def test_server_of_old_protocols_only(trusted):
    with Peer(old(trusted.server("DNS:localhost"))) as peer, pytest.raises(JMSError):
        _log_in(peer, trusted)
    assert not peer.clear


def test_authority_of_the_system_does_not_count_beside_a_given_one(trusted, other, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    with Peer(other.server("DNS:localhost")) as peer, pytest.raises(JMSError):
        _log_in(peer, trusted)
    assert not peer.clear


def _wake(peer):
    """Let a peer end that may still wait for its one connection."""

    with socket.create_connection(("127.0.0.1", peer.port)):
        pass
