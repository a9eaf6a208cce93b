"""Fail-over lists over sockets."""

from contextlib import ExitStack

import pytest

from jmsjca.errors import ConfigurationError, ConnectionLostError, InvalidClientIDError, JMSSecurityError
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.providers.stomp.broker import Fault, Peer

AT_LOGIN = 0


@pytest.fixture
def hosts():
    """Starts hosts, each with what is wrong with its login, if anything."""
    with ExitStack() as started:
        yield lambda *faults: [started.enter_context(Peer(fault)) for fault in faults]


def _open(*peers, login="ann:s3cr3t", **settings):
    addresses = ",".join(peer.url.removeprefix("stomp://") for peer in peers)
    options = "connect_timeout=5&allow_insecure_login=true"
    return connect(ConnectionSettings(f"stomp://{login}@{addresses}?{options}", **settings))


def _refusing(text):
    return Fault("refuse", AT_LOGIN, text)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("cut", AT_LOGIN),
        Fault("noise", AT_LOGIN),
        _refusing("Broker is not ready: too many connections"),
        _refusing("Internal error"),
    ],
)
def test_a_host_that_is_not_ready_gives_way(hosts, fault):
    first, second = hosts(fault, None)
    _open(first, second).close()
    assert (first.places[0], second.places[0]) == ("CONNECT", "CONNECT")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("User name [ann] or password is invalid.", JMSSecurityError),
        ("Bad CONNECT", JMSSecurityError),
        ("Security Error occurred: unable to validate user", JMSSecurityError),
        ("InvalidClientIDException: Broker: b - Client: c already connected", InvalidClientIDError),
    ],
)
def test_a_login_that_is_refused_is_not_tried_elsewhere(hosts, text, error):
    first, second = hosts(_refusing(text), None)
    with pytest.raises(error):
        _open(first, second)
    assert not second.places


def test_a_login_that_is_refused_ends_the_attempt_of_a_list_that_began_elsewhere(hosts):
    first, second, third = hosts(Fault("cut", AT_LOGIN), _refusing("Bad CONNECT"), None)
    with pytest.raises(JMSSecurityError) as told:
        _open(first, second, third)
    assert not third.places
    [note] = told.value.__notes__
    assert all(peer.url.removeprefix("stomp://") in note for peer in (first, second))
    assert "s3cr3t" not in note


def test_the_error_tells_what_each_host_did(hosts):
    faults = [Fault("cut", AT_LOGIN), _refusing("Broker is not ready")]
    with pytest.raises(ConnectionLostError, match="Broker is not ready") as told:
        _open(*hosts(*faults))
    assert "or use TLS.; 127.0.0.1:" in str(told.value)
    assert "s3cr3t" not in str(told.value)


@pytest.mark.parametrize("text", ["h\ud800", "h\0"])
@pytest.mark.parametrize("what", ["user_name", "password", "client_id"])
def test_what_cannot_be_sent_is_refused_before_any_host_is_asked(hosts, what, text):
    given = {"user_name": "ann", what: text}
    [first] = hosts(None)
    with pytest.raises(ConfigurationError) as told:
        _open(first, **given)
    assert what.replace("_", " ") in str(told.value)
    assert text not in str(told.value)
    assert told.value.__cause__ is None
    assert not first.places


def test_nor_may_what_cannot_be_sent_stand_in_the_url(hosts):
    [first] = hosts(None)
    with pytest.raises(ConfigurationError, match="NUL"):
        _open(first, login="ann:a%00b")
    assert not first.places
