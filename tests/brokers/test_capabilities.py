"""A connection to each real broker can do exactly what is said of that broker, in the release that is named."""

import re

import pytest
from brokers import PAIRS, registry
from brokers.registry import variable_of
from capability_table import PROTOCOLS
from raw_amqp import RawAMQP
from raw_stomp import RawSTOMP

from jmsjca.reconnection import ConnectionSettings, connect

# The brokers as the tests name them, and a word that only one of the brokers has in its name.
WORDS = {
    "openmq": "OpenMQ",
    "artemis": "Artemis",
    "activemq": r"ActiveMQ(?!-Artemis)",
    "qpid": "Qpid",
    "rabbitmq": r"RabbitMQ\Z",
    "rabbitmq4": "RabbitMQ 4",
}


def told(pair):
    """What is said of a pair."""
    name, protocol = pair.split("-")
    brokers = PROTOCOLS["AMQP 1.0" if protocol == "amqp" else "STOMP"]
    (broker,) = [b for b in brokers if re.search(WORDS[name], b.name)]
    return broker


def announced(pair, url):
    """The release that the broker announces on the wire; Open MQ in its log only."""
    if pair == "openmq-stomp":
        return re.search(r"\|FORCE\|([\d.]+)\|", registry.shared("openmq").log.read_text())[1]
    if pair.endswith("stomp"):
        with RawSTOMP(url) as connection:
            return re.search(r"/([\d.]+)", connection.connected["server"])[1]
    with RawAMQP(url) as raw:
        return raw.connection.conn.remote_properties["version"]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_connection_can_do_what_is_said(pair, broker_url):
    connection = connect(ConnectionSettings(broker_url(pair)))
    assert connection.capabilities == told(pair).capabilities
    connection.close()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_release_is_the_one_that_is_named(pair, broker_url, monkeypatch):
    monkeypatch.delenv(variable_of(pair), raising=False)  # ours, not the user's own
    assert announced(pair, broker_url(pair)) == told(pair).release
