"""Awkward passwords appear in no log record of a connection, nor in the text forms of pools and asyncio."""

import asyncio
import base64
import logging
import socket
import traceback
from contextlib import ExitStack
from urllib.parse import quote, quote_plus

import pytest
from amqp_peer import Broker
from amqp_peer import Peer as AMQPPeer

from jmsjca import ActivationSpec, ConnectionFactory, aio
from jmsjca.config import Credentials, resolve_spec
from jmsjca.config.connection_url import resolve_source
from jmsjca.errors import ConfigurationError, ConnectionLostError, JMSSecurityError, PoolTimeoutError
from jmsjca.hooks import HookChain
from jmsjca.inbound import Activation
from jmsjca.outbound import ConnectionPool
from jmsjca.reconnection import ConnectionSettings
from tests.unit.awkward_passwords import SECRETS, assert_unseen, shown
from tests.unit.clocks import HandClock
from tests.unit.inbound.failing_provider import Waits
from tests.unit.inbound.listeners import PATIENCE, Inbox
from tests.unit.providers.stomp.broker import Fault
from tests.unit.providers.stomp.broker import Peer as STOMPPeer

PASSWORDS = [secret for secret in SECRETS if not secret.startswith("__:ENC:08:")]  # that one is refused
every_password = pytest.mark.parametrize("secret", PASSWORDS, ids=range(len(PASSWORDS)))


class Everything(logging.Handler):
    """Keeps each record of every logger as text, with its arguments and its exception."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.texts = []

    def emit(self, record):
        self.texts += [self.format(record), repr(record.args), repr(vars(record))]


@pytest.fixture
def records(caplog):
    """The texts of all records, those of libraries included."""
    handler = Everything()
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "jmsjca")
    logging.getLogger().addHandler(handler)
    yield handler.texts
    logging.getLogger().removeHandler(handler)


def closed_hosts(count):
    """Addresses where nothing listens."""
    with ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)


def url_of(scheme, hosts, secret, options="allow_insecure_login=true"):
    return f"{scheme}://joe:{quote(secret, safe='')}@{hosts}?{options}"


def forms(secret):
    """A password as it is, and as it stands in URLs, in headers of STOMP, and in SASL's base64."""
    encoded = secret.encode()
    stomp = secret.replace("\\", "\\\\").replace("\n", "\\n").replace(":", "\\c")
    return {secret, quote(secret, safe=""), quote_plus(secret), stomp, base64.b64encode(encoded).decode()}


def assert_no_form(secret, *texts):
    for form in forms(secret):
        assert_unseen(form, *texts)


def attempts(settings, waits, count):
    """Run a listener until it waits before its next attempt, so often; then stop it."""
    waits.lasting = count
    spec = ActivationSpec(destination="q", connection_url=settings.url, user_name=settings.user_name)
    activation = Activation(resolve_spec(spec), Inbox(), settings, HookChain([]))
    activation.start()
    assert waits.begun.wait(PATIENCE)
    activation.stop()
    return activation


@every_password
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
@pytest.mark.parametrize("count", [1, 3])
def test_listener_that_cannot_connect_logs_no_password(records, scheme, count, secret):
    waits = Waits(HandClock())
    settings = ConnectionSettings(url_of(scheme, closed_hosts(count), secret), clock=waits.clock, wait=waits)
    activation = attempts(settings, waits, 2)
    assert any("attempt 2 failed" in text for text in records)
    assert_no_form(secret, *records, repr(activation), repr(settings))


@pytest.mark.parametrize("secret", [each for each in PASSWORDS if "\n" not in each])  # CONNECT holds no line break
@pytest.mark.parametrize("fault", [Fault("refuse", 0, "Broker is not ready"), Fault("cut", 0)], ids=["refused", "cut"])
def test_listener_that_fails_over_and_reconnects_over_stomp_logs_no_password(records, recorder, secret, fault):
    with STOMPPeer(fault) as first, STOMPPeer() as second:
        hosts = ",".join(peer.url.removeprefix("stomp://") for peer in (first, second))
        waits = Waits(HandClock())
        settings = ConnectionSettings(url_of("stomp", hosts, secret), clock=waits.clock, wait=waits)
        spec = resolve_spec(ActivationSpec(destination="q", connection_url=settings.url))
        activation = Activation(spec, Inbox(), settings, HookChain([recorder]))
        activation.start()
        recorder.await_status("Connecting", "Up")
        second.cut()
        recorder.await_status("Connecting", "Up")
        activation.stop()
    assert sum("Connected to stomp" in text for text in records) > 1
    assert any("lost its connection" in text or "attempt 1 failed" in text for text in records)
    assert_no_form(secret, *records, repr(activation))


@every_password
@pytest.mark.parametrize("mechanism", ["PLAIN", "ANONYMOUS"])
def test_login_over_amqp_logs_no_password(records, secret, mechanism):
    peer = AMQPPeer(Broker(mechanisms=(mechanism,)))
    factory = ConnectionFactory(url_of("amqp", peer.address, secret))
    try:
        with factory.create_connection() as connection:
            texts = [repr(connection), repr(connection.metadata)]
        assert mechanism == "PLAIN"
    except JMSSecurityError as error:
        assert mechanism == "ANONYMOUS"
        texts = shown(error)
    finally:
        peer.close()
    assert_no_form(secret, *records, *texts)


@every_password
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_overloaded_user_name_is_not_shown(records, scheme, secret):
    url = f"{scheme}://{closed_hosts(2)}?allow_insecure_login=true&username=joe&password={quote(secret, safe='')}"
    factory = ConnectionFactory("embedded://secrets")
    pool = ConnectionPool(factory)
    for opening in (factory.create_connection, factory.create_context, pool.get_connection):
        with pytest.raises(ConnectionLostError, match="No host") as raised:
            opening(user_name=url)
        assert_no_form(secret, *shown(raised.value))
    pool.close()
    assert_no_form(secret, *records, repr(factory), repr(pool), repr(pool.get_stats()))


def report(error):
    """Return a traceback with the variables of all frames but that of the test, as services for errors collect it."""
    inner = error.__traceback__.tb_next
    return "".join(traceback.TracebackException(type(error), error, inner, capture_locals=True).format())


@every_password
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
@pytest.mark.parametrize("secure", ["allow_insecure_login=true", ""], ids=["lost", "refused"])
def test_variables_in_a_traceback_of_a_failed_login_hide_the_password(scheme, secure, secret):
    host = closed_hosts(1)
    factories = [
        ConnectionFactory(url_of(scheme, host, secret, secure)),
        ConnectionFactory(f"{scheme}://{host}?{secure}", user_name="joe", password=secret),
        ConnectionFactory(f"{scheme}://{host}?{secure}", credentials=lambda: ("joe", f"{secret}")),
    ]
    for factory in factories:
        with pytest.raises((ConnectionLostError, JMSSecurityError)) as raised:
            factory.create_connection()
        text = report(raised.value)
        assert "settings = " in text
        assert_no_form(secret, text)


@every_password
def test_variables_in_a_traceback_of_a_login_that_the_broker_refuses_hide_the_password(secret):
    peer = AMQPPeer(Broker(mechanisms=("ANONYMOUS",)))
    try:
        with pytest.raises(JMSSecurityError) as raised:
            ConnectionFactory(url_of("amqp", peer.address, secret)).create_connection()
    finally:
        peer.close()
    assert_no_form(secret, report(raised.value))


@every_password
@pytest.mark.parametrize("kind", ["env", "file", "function"])
def test_referenced_credentials_are_not_shown(records, monkeypatch, tmp_path, kind, secret):
    text = secret if kind == "env" else secret.rstrip("\r\n")
    monkeypatch.setenv("HUSH", f"joe:{text}")
    (tmp_path / "login").write_text(f"joe:{text}", "utf-8")
    source = {"env": "env:HUSH", "file": f"file:{tmp_path}/login", "function": lambda: ("joe", text)}[kind]
    assert resolve_source(source).password is not None
    factory = ConnectionFactory(f"stomp://{closed_hosts(2)}?allow_insecure_login=true", credentials=source)
    with pytest.raises(ConnectionLostError) as raised:
        factory.create_connection()
    texts = [repr(each) for each in (factory, factory.login, resolve_source(source))]
    assert_no_form(text, *records, *texts, *shown(raised.value))


@pytest.mark.parametrize("kind", ["env", "file"])
def test_referenced_password_without_a_user_name_is_not_taken_for_one(monkeypatch, tmp_path, kind):
    monkeypatch.setenv("HUSH", "hush-4711")
    (tmp_path / "login").write_text("hush-4711")
    source = {"env": "env:HUSH", "file": f"file:{tmp_path}/login"}[kind]
    with pytest.raises(ConfigurationError, match="user:password") as raised:
        resolve_source(source)
    assert_unseen("hush-4711", *shown(raised.value))
    assert resolve_source(source, "joe") == Credentials("joe", "hush-4711")


@every_password
def test_pools_and_their_connections_hide_the_password(records, jms_broker_url, secret):
    pool = ConnectionPool(ConnectionFactory(jms_broker_url, user_name="joe", password=secret), max_size=2)
    with pool, pool.connection() as own, pool.connection("ann", secret) as other:
        texts = [repr(each) for each in (pool, own, other, pool.get_stats())]
        with pytest.raises(PoolTimeoutError) as raised:
            pool.get_connection("bob", secret, timeout=0)
    assert_no_form(secret, *records, *texts, *shown(raised.value), repr(pool))


@every_password
def test_asyncio_hides_the_password(records, jms_broker_url, secret):
    async def use():
        texts = []
        factory = ConnectionFactory(jms_broker_url, user_name="joe", password=secret)
        async with aio.connect(factory) as connection, connection.create_session() as session:
            texts += map(repr, (connection, session))
        async with aio.ConnectionPool(ConnectionPool(factory, max_size=1)) as pool, pool.connection() as borrowed:
            texts += map(repr, (pool, borrowed, pool.get_stats()))
        with pytest.raises(ConnectionLostError) as raised:
            await aio.connect(ConnectionFactory(url_of("stomp", closed_hosts(2), secret)))
        return [*texts, *shown(raised.value)]

    assert_no_form(secret, *asyncio.run(use(), debug=True), *records)
