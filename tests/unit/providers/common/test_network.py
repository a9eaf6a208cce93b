"""The network code that AMQP and STOMP share: URL options, TLS verification, passwords."""

import logging
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from jmsjca.config import ConnectionURL, Credentials
from jmsjca.errors import (
    ConfigurationError,
    ConnectionLostError,
    InvalidOptionError,
    InvalidURLError,
    JMSError,
    JMSSecurityError,
    WrongProtocolError,
)
from jmsjca.providers.common.network import NetworkOptions, open_socket, require_tls_for_password
from jmsjca.reconnection import ConnectionSettings, connect

SECONDS = 30
SCHEMES = {"amqp": "amqps", "stomp": "stomp+ssl"}
SECRETS = [
    "hush",
    "hu sh",
    'hu"sh',
    "hu%sh",
    "hu:sh",
    "hu@sh",
    "hu/sh",
    "hüsh",
    "hu'sh",
    "hush,hush",
    "hu\\sh",
    "hu?sh",
]


def options(query):
    return NetworkOptions.parse(ConnectionURL.parse(f"amqp://host?{query}"))


def test_defaults():
    assert options("") == NetworkOptions(30.0, 60.0, 10.0, allow_insecure_login=False)


def test_every_option_is_read():
    told = options(
        "connect_timeout=1&reply_timeout=2.5&heartbeat=0&allow_insecure_login=TRUE&ca_file=/a%20b&"
        "certificate_file=c&key_file=k"
    )
    assert told == NetworkOptions(1.0, 2.5, 0.0, True, "/a b", "c", "k")


def test_shortest_heartbeat_is_a_millisecond():
    assert options("heartbeat=0.001").heartbeat == 0.001


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("hartbeat=1", r"amqp:// has no option 'hartbeat' \(did you mean heartbeat\?\)"),
        ("retry_timeout=1", r"\(did you mean JMSJCA\.retrytimeout\?\)"),
        ("ssl=1", "there are connect_timeout, reply_timeout"),
        ("heartbeat=often", "number of seconds up to a day, not 'often'"),
        ("heartbeat=-1", "not '-1'"),
        ("heartbeat=nan", "not 'nan'"),
        ("heartbeat=inf", "not 'inf'"),
        ("heartbeat=0.0009", "up to a day, not '0.0009': above 0 it is at least 0.001"),
        ("connect_timeout=86401", "not '86401'"),
        ("reply_timeout=", "not ''"),
        ("connect_timeout=0", "above 0, up to a day, not '0'"),
        ("reply_timeout=0.0", "above 0, up to a day, not '0.0'"),
        ("allow_insecure_login=yes", "is true or false, not 'yes'"),
        ("allow_insecure_login=1", "is true or false"),
    ],
)
def test_options_that_cannot_be_used(query, text):
    with pytest.raises(InvalidOptionError, match=text):
        options(query)


def test_texts_of_errors_are_bounded():
    with pytest.raises(InvalidOptionError) as told:
        options(f"{'x' * 10_000}={'y' * 10_000}")
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("plain", SCHEMES)
@pytest.mark.parametrize(
    ("scheme", "query", "credentials", "refused"),
    [
        ("plain", "", Credentials("user", "hush"), True),
        ("plain", "allow_insecure_login=true", Credentials("user", "hush"), False),
        ("plain", "allow_insecure_login=false", Credentials("user", "hush"), True),
        ("plain", "", Credentials("user"), False),
        ("plain", "", None, False),
        ("secure", "", Credentials("user", "hush"), False),
    ],
)
def test_password_travels_protected(plain, scheme, query, credentials, refused):
    secure = SCHEMES[plain]
    url = ConnectionURL.parse(f"{secure if scheme == 'secure' else plain}://host?{query}")
    if not refused:
        require_tls_for_password(url, NetworkOptions.parse(url), credentials, secure)
        return
    with pytest.raises(JMSSecurityError, match="in the clear") as told:
        require_tls_for_password(url, NetworkOptions.parse(url), credentials, secure)
    assert "hush" not in str(told.value)


@pytest.mark.parametrize("plain", SCHEMES)
def test_password_in_the_clear_is_refused_before_anything_is_connected(plain):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        with pytest.raises(JMSSecurityError):
            connect(ConnectionSettings(f"{plain}://user:hush@127.0.0.1:{server.getsockname()[1]}"))
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("scheme", [*SCHEMES, *SCHEMES.values()])
def test_addresses_without_a_host_or_without_a_broker(scheme):
    with pytest.raises(InvalidURLError):
        connect(ConnectionSettings(f"{scheme}://"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionLostError):
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:{port}"))


# TLS. The certificates are made by openssl: two authorities, and servers and a client that the first one signed.

SERVERS = {
    "good": "DNS:localhost",
    "address": "IP:127.0.0.1",
    "elsewhere": "DNS:elsewhere.example",
    "wildcard": "DNS:*",
}


LEAF = "basicConstraints=critical,CA:FALSE"


def _openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def _certificate(folder, name, extension, authority=None):
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key")
    signed = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-addext", LEAF) if authority else ()
    subject = ("-subj", f"/CN={name}", "-addext", extension, "-days", "2", "-out", f"{name}.pem")
    _openssl(folder, "req", "-x509", *key, *signed, *subject)
    return folder / f"{name}.pem"


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    usage = "keyUsage=critical,keyCertSign"
    made = {name: _certificate(folder, name, usage) for name in ("authority", "other")}
    made |= {n: _certificate(folder, n, f"subjectAltName={names}", "authority") for n, names in SERVERS.items()}
    made["client"] = _certificate(folder, "client", "extendedKeyUsage=clientAuth", "authority")
    made["self-signed"] = _certificate(folder, "self-signed", "subjectAltName=DNS:localhost")
    return SimpleNamespace(folder=folder, pem=made)


@pytest.fixture
def serve(files):
    """Serves TLS with a certificate, once; gives the port, and what came."""
    started = []

    def start(name, *, asks_for_client=False):
        server, seen = socket.create_server(("127.0.0.1", 0)), []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.pem[name], files.folder / f"{name}.key")
        if asks_for_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(files.pem["authority"])
        thread = threading.Thread(target=_serve, args=(server, context, seen))
        thread.start()
        started.append((server, thread))
        return server.getsockname()[1], seen

    yield start
    for server, thread in started:
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)
        server.close()


def _serve(server, context, seen):
    try:
        plain, _ = server.accept()
    except OSError:
        return
    with plain:
        plain.settimeout(SECONDS)
        try:
            with context.wrap_socket(plain, server_side=True) as secured:
                seen.append(secured.recv(1000))
                secured.sendall(b"pong")
        except OSError as error:
            seen.append(error)


def ping(port, host="localhost", **files):
    url = ConnectionURL.parse(f"amqps://{host}:{port}")
    given = NetworkOptions(connect_timeout=SECONDS, **{name: str(path) for name, path in files.items()})
    with open_socket(url, given, default_port=1, tls=True) as sock:
        sock.sendall(b"ping")
        return sock.recv(4)


def test_trusted_certificate(files, serve):
    port, seen = serve("good")
    assert ping(port, ca_file=files.pem["authority"]) == b"pong"
    assert seen == [b"ping"]


def test_certificate_for_an_address(files, serve):
    assert ping(serve("address")[0], "127.0.0.1", ca_file=files.pem["authority"]) == b"pong"


REFUSED = [
    ("self-signed", "localhost", "authority", "self-signed certificate"),
    ("good", "127.0.0.1", "authority", "IP address mismatch"),
    ("address", "localhost", "authority", "Hostname mismatch"),
    ("elsewhere", "localhost", "authority", "Hostname mismatch"),
    ("wildcard", "localhost", "authority", "Hostname mismatch"),
    ("good", "localhost", "other", "unable to get local issuer certificate"),
    ("good", "localhost", None, "unable to get local issuer certificate"),
]


@pytest.mark.parametrize("case", REFUSED)
def test_certificate_that_is_not_to_be_trusted(files, serve, case):
    certificate, host, authority, text = case
    port, seen = serve(certificate)
    given = {"ca_file": files.pem[authority]} if authority else {}
    with pytest.raises(JMSSecurityError, match=f"not to be trusted: .*{text}"):
        ping(port, host, **given)
    assert b"ping" not in seen


def test_given_authority_is_the_only_one(files, serve, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(files.pem["authority"]))
    assert ping(serve("good")[0]) == b"pong"  # the system's, as it says
    with pytest.raises(JMSSecurityError):
        ping(serve("good")[0], ca_file=files.pem["other"])


def test_client_certificate(files, serve):
    own = {"certificate_file": files.pem["client"], "key_file": files.folder / "client.key"}
    port, seen = serve("good", asks_for_client=True)
    assert ping(port, ca_file=files.pem["authority"], **own) == b"pong"
    assert seen == [b"ping"]


def test_client_certificate_that_is_missing(files, serve):
    port, seen = serve("good", asks_for_client=True)
    with pytest.raises((JMSError, OSError)):
        assert ping(port, ca_file=files.pem["authority"]) == b"pong"
    assert b"ping" not in seen


@pytest.mark.parametrize("scheme", [*SCHEMES, *SCHEMES.values()])
@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example", "a" * 300])
def test_host_that_cannot_exist(scheme, host):
    with pytest.raises(InvalidURLError, match="cannot exist"):
        connect(ConnectionSettings(f"{scheme}://{host}:1"))


@pytest.mark.parametrize("scheme", [*SCHEMES, *SCHEMES.values()])
@pytest.mark.parametrize("hosts", ["localhost\0.example:1", "localhost\0.example:1,localhost:1"])
def test_host_that_would_be_cut(scheme, hosts):
    """What stands before NUL is a host of its own, to which nobody wanted to connect."""
    with pytest.raises(InvalidURLError, match=r"'localhost\\x00.example' .*NUL .*leave it out"):
        connect(ConnectionSettings(f"{scheme}://{hosts}"))


@pytest.mark.parametrize("scheme", [*SCHEMES, *SCHEMES.values()])
@pytest.mark.parametrize(
    "rest", ["a\ud800", "ann:pass\ud800@host", "ann\ud800:pass@host", "host/\ud800", "host?ca_file=\ud800"]
)
def test_url_with_half_of_a_surrogate_pair(scheme, rest):
    with pytest.raises(InvalidURLError, match="surrogate") as told:
        connect(ConnectionSettings(f"{scheme}://{rest}"))
    assert "pass" not in str(told.value)
    assert told.value.__cause__ is None


@pytest.mark.parametrize("scheme", [*SCHEMES, *SCHEMES.values()])
@pytest.mark.parametrize("text", ["hush\ud800", "hush\0"])
@pytest.mark.parametrize("what", ["user_name", "password", "client_id"])
def test_settings_that_cannot_be_sent(scheme, what, text):
    """They are refused before anybody is asked: port 1 refuses connections."""
    given = {"user_name": "ann", what: text}
    with pytest.raises(ConfigurationError, match=what.replace("_", " ")) as told:
        connect(ConnectionSettings(f"{scheme}://127.0.0.1:1", **given))
    assert "hush" not in str(told.value)
    assert told.value.__cause__ is None


def test_file_that_no_system_can_name():
    with pytest.raises(JMSSecurityError, match="cannot be used"):
        ping(1, ca_file="a\0b")


@pytest.mark.parametrize("name", ["ca_file", "certificate_file"])
def test_file_that_cannot_be_read(tmp_path, name):
    (tmp_path / "empty").touch()
    for path in (tmp_path / "missing", tmp_path / "empty"):
        with pytest.raises(JMSSecurityError, match="cannot be used"):
            ping(1, **{name: path})


def test_broker_that_speaks_no_tls():
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer, args=(server, [b"AMQP\3\1\0\0"], seen := []))
        thread.start()
        with pytest.raises(WrongProtocolError, match="does not answer with TLS"):
            connect(ConnectionSettings(f"amqps://user:hush@localhost:{server.getsockname()[1]}"))
        thread.join(SECONDS)
    assert b"hush" not in b"".join(seen)


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_providers_verify(files, serve, scheme):
    """The whole way: a wrong certificate is refused before the login, a right one gets it."""
    port, seen = serve("elsewhere")
    trusting = f"ca_file={files.pem['authority']}&connect_timeout={SECONDS}"
    with pytest.raises(JMSSecurityError):
        connect(ConnectionSettings(f"{scheme}://user:hush@localhost:{port}?{trusting}"))
    assert not any(isinstance(what, bytes) for what in seen)
    port, seen = serve("good")
    with pytest.raises(JMSError):  # it answers "pong"
        connect(ConnectionSettings(f"{scheme}://user:hush@localhost:{port}?{trusting}"))
    assert seen[0][:4] in {b"AMQP", b"CONN"}


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_a_certificate_that_is_not_to_be_trusted_ends_the_attempt(files, serve, scheme):
    """No further host of the list is asked: who pretends to be the first one shall not choose where we go."""
    (bad, _), (good, seen) = serve("elsewhere"), serve("good")
    hosts, trusting = f"localhost:{bad},localhost:{good}", f"ca_file={files.pem['authority']}"
    with pytest.raises(JMSSecurityError):
        connect(ConnectionSettings(f"{scheme}://user:hush@{hosts}?{trusting}"))
    assert not seen


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_every_host_of_a_list_is_verified(files, serve, scheme):
    with socket.create_server(("127.0.0.1", 0)) as dead:
        port = dead.getsockname()[1]
    bad, seen = serve("elsewhere")
    hosts, trusting = f"localhost:{port},localhost:{bad}", f"ca_file={files.pem['authority']}"
    with pytest.raises(JMSSecurityError, match=f"localhost:{bad} is not to be trusted"):
        connect(ConnectionSettings(f"{scheme}://user:hush@{hosts}?{trusting}"))
    assert not any(isinstance(what, bytes) for what in seen)


# What a broker answers to the first packet: nothing, nonsense, or the offer and then the refusal of a login.
ANSWERS = {
    "silence": [b""],
    "nonsense": [b"nonsense\n\n\0"],
    "refusal": [
        b"AMQP\3\1\0\0" + b"\0\0\0\x15\2\1\0\0\0\x53\x40\xc0\x08\1\xa3\5PLAIN",
        b"\0\0\0\x10\2\1\0\0\0\x53\x44\xc0\3\1\x50\1",
    ],
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    ("scheme", "answer"), [*(("amqp", answer) for answer in ANSWERS), ("stomp", "silence"), ("stomp", "nonsense")]
)
def test_password_is_shown_nowhere(caplog, secret, scheme, answer):
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer, args=(server, ANSWERS[answer], seen := []))
        thread.start()
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}?allow_insecure_login=true"
        settings = ConnectionSettings(url, "user", secret)
        with pytest.raises(JMSError) as told:
            connect(settings)
        thread.join(SECONDS)
    if (scheme, answer) == ("amqp", "refusal"):
        assert f"\0user\0{secret}".encode() in b"".join(seen)  # it was used
    texts = [repr(settings), caplog.text, *(repr(record.args) for record in caplog.records), *_chain(told.value)]
    assert not [text for text in texts if secret in text]


def _answer(server, answers, seen):
    with suppress(OSError), server.accept()[0] as client:
        for answer in answers:
            seen.append(client.recv(1000))
            client.sendall(answer)
        client.shutdown(socket.SHUT_WR)
        while data := client.recv(1000):
            seen.append(data)


def _chain(error):
    while error is not None:
        yield from (str(error), repr(error))
        error = error.__cause__ or error.__context__


def test_port_0_is_no_other_port():
    url, options = ConnectionURL.parse("amqp://127.0.0.1:0"), NetworkOptions(connect_timeout=SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(ConnectionLostError, match=":0"):
        open_socket(url, options, default_port=server.getsockname()[1], tls=False)
