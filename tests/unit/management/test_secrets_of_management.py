"""Awkward passwords appear in no metric, in no attribute of a bean, and in no result of an operation."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from jmsjca import ActivationSpec, ConnectionFactory, ResourceAdapter
from jmsjca.management.beans import MBeanServer
from jmsjca.management.metrics import Metrics
from tests.unit.awkward_passwords import assert_unseen, every_secret
from tests.unit.inbound.listeners import Inbox

READS = ("getRAInfo", "getConnectionFactoriesInfo", "getProperties", "getStatus", "getJMSServerType")


@pytest.fixture
def registry():
    return CollectorRegistry()


@every_secret
def test_metrics_and_beans_hide_the_password(registry, jms_broker_url, secret):
    if secret.startswith("__:ENC:08:"):
        pytest.skip("It is no valid encoding, and refused.")
    metrics, inbox = Metrics(registry), Inbox()
    domain = f"domain of {jms_broker_url}"
    adapter = ResourceAdapter(jms_broker_url, "joe", secret, mbean_object_name="ra", mbean_server_domain=domain)
    metrics.watch(adapter)
    adapter.naming.bind("CF", ConnectionFactory(jms_broker_url, user_name="joe", password=secret))
    spec = ActivationSpec(
        destination="q", connection_url="lookup://CF", user_name="joe", password=secret, mbean_name="activation"
    )
    adapter.activate(spec, inbox)
    kept = adapter.connection_factory(password=secret)
    with adapter:
        adapter.send("q", "a")
        kept.send("q", "b")
        inbox.take(2)
        server = MBeanServer(domain)
        beans = [server.lookup(name) for name in server.names()]
        texts = [str(value) for bean in beans for value in (bean, *bean.get_attributes().values())]
        texts += [str(bean.invoke(name)) for bean in beans for name in READS if name in bean.operation_names]
        texts.append(generate_latest(registry).decode())
    kept.close()
    assert len(texts) > len(beans)
    assert_unseen(secret, *texts)
