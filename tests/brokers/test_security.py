"""Logging in to real brokers over AMQP: by PLAIN with the right password only, and in the clear only where allowed."""

import logging
import uuid
from contextlib import closing

import pytest
from brokers import BROKERS, PAIRS, registry
from brokers.pairs import variable_of

from jmsjca.config import Limits
from jmsjca.destinations import Queue
from jmsjca.errors import JMSSecurityError, ResourceAllocationError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare

ALLOWED = "?allow_insecure_login=true"
WRONG = "wr0ng-secret"
SECONDS = 30


@pytest.fixture(params=[name for name in BROKERS if f"{name}-amqp" in PAIRS])
def login_url(request, broker_url, monkeypatch):
    """The port for users of a broker that the tests started: a password that is given must be right there."""
    monkeypatch.delenv(variable_of(f"{request.param}-amqp"), raising=False)
    broker_url(f"{request.param}-amqp")
    broker = registry.shared(request.param)
    return broker.url("amqp-plain" if "amqp-plain" in broker.ports else "amqp")


def login(url, password="jmsjca", user="jmsjca"):  # noqa: S107
    return connect(ConnectionSettings(url, user_name=user, password=password))


def test_right_password_in_the_clear_is_accepted_where_that_is_allowed(login_url):
    connection = login(login_url + ALLOWED)
    queue = Queue("security.login")
    unit = connection.unit(atomic=False)
    unit.send(prepare(TextMessage("x"), queue), queue)
    unit.commit()
    connection.close()


def test_right_password_in_the_url(login_url):
    login_url = login_url.replace("://", "://jmsjca:jmsjca@")
    connect(ConnectionSettings(login_url + ALLOWED)).close()


@pytest.mark.parametrize("option", ["", "?allow_insecure_login=false"])
def test_password_is_not_sent_in_the_clear(login_url, option):
    with pytest.raises(JMSSecurityError, match="in the clear"):
        login(login_url + option)


@pytest.mark.parametrize(("user", "password"), [("jmsjca", WRONG), ("jmsjca", ""), ("nobody", "jmsjca")])
def test_wrong_login_is_refused_and_shown_nowhere(login_url, caplog, user, password):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(JMSSecurityError) as told:
        login(login_url + ALLOWED, password, user)
    assert WRONG not in f"{caplog.text} {told.value!r} {told.value.__cause__!r} {told.value.__context__!r}"


def test_a_message_over_the_limit_stays_with_the_broker(login_url):
    """It is refused while it arrives; who takes larger ones gets it."""
    queue, url = Queue(f"security.large.{uuid.uuid4().hex}"), login_url + ALLOWED
    with closing(login(url)) as sender:
        unit = sender.unit(atomic=False)
        unit.send(prepare(TextMessage("x" * 500_000), queue), queue)
        unit.commit()
    small = ConnectionSettings(url, "jmsjca", "jmsjca", limits=Limits(message_bytes=100_000))
    with closing(connect(small)) as connection, pytest.raises(ResourceAllocationError, match="raise Limits"):
        connection.consumer(queue).receive(1, SECONDS)
    with closing(login(url)) as connection:
        (delivery,) = connection.consumer(queue).receive(1, SECONDS)
        assert len(delivery.message.body) == 500_000
        unit = connection.unit(atomic=False)
        unit.take([delivery])
        unit.commit()
