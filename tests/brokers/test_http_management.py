"""ActiveMQ with its management over Jolokia keeps the contract of administration, over both protocols."""

import pytest
from brokers import registry

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, InvalidOptionError, JMSSecurityError, NotSupportedError
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract import administration
from jmsjca.testing.contract.administration import TestActivity, TestAdmin, TestCreating  # noqa: F401  # cases of the suite

PAIRS = ["activemq-amqp", "activemq-stomp"]


@pytest.fixture(scope="module")
def management_url(broker_url):
    broker_url("activemq-amqp")
    return registry.shared("activemq").url("jolokia")


@pytest.fixture(scope="module", params=PAIRS)
def jms_broker_url(request, broker_url, management_url):
    return f"{broker_url(request.param)}?management_url={management_url}"


class TestRemoving(administration.TestRemoving):
    """As the contract has it, but for one thing that the broker does not offer."""

    def test_purge_of_a_subscription_leaves_the_others(self, harness, admin):
        with pytest.raises(NotSupportedError, match="does not purge"):
            admin.purge(harness.subscription())


def capabilities(url, *credentials):
    connection = connect(ConnectionSettings(url, *credentials))
    try:
        return connection.capabilities
    finally:
        connection.close()


def test_the_option_adds_capabilities_and_takes_none_away(jms_broker_url):
    without, having = capabilities(jms_broker_url.partition("?")[0]), capabilities(jms_broker_url)
    gained = {name for name in having.__slots__ if getattr(having, name) != getattr(without, name)}
    assert gained == {
        *("admin", "counts_held", "lists_destinations"),
        *("creates_queues", "counts_consumers", "counts_traffic"),
    }


@pytest.mark.parametrize("pair", ["artemis-amqp", "artemis-stomp"])
def test_other_brokers_refuse_it(broker_url, management_url, pair):
    with pytest.raises(InvalidOptionError, match="is for ActiveMQ Classic and RabbitMQ"):
        capabilities(f"{broker_url(pair)}?management_url={management_url}")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http:///x", "http://ann:hush@127.0.0.1/x"])
def test_only_a_url_of_http_is_taken(broker_url, url):
    with pytest.raises(InvalidOptionError, match="management_url is http://HOST") as caught:
        capabilities(f"{broker_url('activemq-amqp')}?management_url={url}")
    assert "hush" not in str(caught.value)


def test_a_password_is_not_sent_in_the_clear(broker_url, management_url):
    url = f"{broker_url('activemq-amqp')}?management_url={management_url}"
    with pytest.raises(JMSSecurityError, match="in the clear"):
        capabilities(url, "jmsjca", "jmsjca")
    assert capabilities(f"{url}&allow_insecure_login=true", "jmsjca", "jmsjca").admin


def test_a_management_that_is_not_there_is_told(broker_url):
    connection = connect(ConnectionSettings(f"{broker_url('activemq-amqp')}?management_url=http://127.0.0.1:1/jolokia"))
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1:1/jolokia cannot be reached"):
        connection.admin().destinations()
    connection.close()


def test_settings_are_policies_of_the_broker(jms_broker_url):
    connection = connect(ConnectionSettings(jms_broker_url))
    with pytest.raises(NotSupportedError, match="configuration"):
        connection.admin().settings(Queue("orders"))
    connection.close()
