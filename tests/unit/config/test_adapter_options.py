"""Options as they reach endpoints and providers through the resource adapter."""

from urllib.parse import quote_plus

import pytest

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import InvalidActivationSpecError, InvalidOptionError, InvalidSelectorError
from tests.unit.inbound import Inbox


def send_regions(adapter, *regions):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("q"))
        for region in regions:
            producer.send(TextMessage(region, properties={"region": region, "n": 1}))


def with_selector(url, selector):
    return f"{url}?JMSJCA.selector={quote_plus(selector)}"


def test_selector_of_the_url_selects(jms_broker_url):
    adapter, inbox = ResourceAdapter(with_selector(jms_broker_url, "region = 'EU' ${andselector}")), Inbox()
    adapter.listener("q", selector="n = 1")(inbox)
    assert adapter.activations[0].spec.selector == "region = 'EU' and (n = 1)"
    with adapter:
        send_regions(adapter, "US", "EU")
        assert inbox.take(1) == [("EU", 1)]


def test_selector_of_the_adapters_options_selects_unless_the_spec_has_one(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url, options="JMSJCA.sep=,JMSJCA.selector=region = 'EU'")
    europe, america = Inbox(), Inbox()
    adapter.listener("q")(europe)
    adapter.listener("q", options={"JMSJCA.selector": "region = 'US'"})(america)
    with adapter:
        send_regions(adapter, "US", "EU")
        assert (europe.take(1), america.take(1)) == ([("EU", 1)], [("US", 1)])


def test_no_provider_sees_own_options(jms_broker_url):
    url = f"{jms_broker_url}?JMSJCA.NoXA=true&jmsjca.STRICT=false"
    with ConnectionFactory(url).create_connection() as connection:
        assert connection.create_session() is not None


def test_unknown_own_option_of_a_factorys_url_is_refused(jms_broker_url):
    with pytest.raises(InvalidOptionError, match=r"did you mean JMSJCA\.NoXA"):
        ConnectionFactory(f"{jms_broker_url}?JMSJCA.NoX=true").create_connection()


@pytest.mark.parametrize("url", ["amqp://localhost:1", "amqp://localhost:1?heartbeat=5&JMSJCA.NoXA=true"])
def test_providers_options_reach_it(url):
    adapter = ResourceAdapter(url, options={"reply_timeout": "never", "JMSJCA.NoXA": "true"})
    with pytest.raises(InvalidOptionError, match=r"reply_timeout .* 'never'"):
        adapter.connection_factory().create_connection()


def test_wrong_options_are_refused_at_once(jms_broker_url):
    with pytest.raises(InvalidOptionError, match=r"JMSJCA\.colour"):
        ResourceAdapter(jms_broker_url, options="JMSJCA.colour=red")
    adapter = ResourceAdapter(jms_broker_url, options={"JMSJCA.concurrencymode": "parallel"})
    with pytest.raises(InvalidActivationSpecError, match=r"JMSJCA\.concurrencymode"):
        adapter.listener("q")(Inbox())
    adapter = ResourceAdapter(with_selector(jms_broker_url, "a = '${b'"))
    with pytest.raises(InvalidSelectorError):
        adapter.listener("q")(Inbox())
    assert adapter.activations == ()
