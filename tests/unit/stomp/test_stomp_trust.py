"""TLS however the host is spelled and whoever answers: verified, or not a byte of the login."""

import socket
from urllib.parse import quote

import pytest
from authority import Authority

from jmsjca.errors import JMSError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.amqp.wire.test_tls import REFUSED, old
from tests.unit.stomp.letters import read
from tests.unit.stomp.test_stomp_tls import PASSWORD, Peer

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
