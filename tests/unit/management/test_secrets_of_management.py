"""Awkward passwords appear in no metric, in no bean, and in nothing that a command writes."""

import sys
from urllib.parse import quote

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from jmsjca import ActivationSpec, ConnectionFactory, ResourceAdapter
from jmsjca.__main__ import run
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


COMMANDS = {
    **{name: [name, "orders"] for name in ("browse", "create", "remove", "receive")},
    **{f"dlq {name}": ["dlq", name, "orders"] for name in ("list", "export", "replay")},
    **{name: [name, "env:BROKER"] for name in ("capabilities", "doctor", "bench")},
    "queues": ["queues"],
    "view": ["view", "orders", "ID:1"],
    "edit": ["edit", "orders", "ID:1", "--body", "x"],
    "copy": ["copy", "orders", "audit"],
    "move": ["move", "orders", "audit"],
    "purge": ["purge", "orders", "--all"],
    "send": ["send", "orders", "x"],
    "dlq show": ["dlq", "show", "orders", "ID:1"],
    "dlq edit": ["dlq", "edit", "orders", "ID:1", "--body", "x"],
    "dlq drop": ["dlq", "drop", "orders", "--all"],
    "dlq import": ["dlq", "import", "orders", "letters"],
    "relay": ["relay", "--database", "env:DATABASE", "--once"],
    "check": ["check", "secret_shop:adapter"],
    "docs": ["docs", "secret_shop:adapter"],
    "explain": ["explain", "--adapter", "secret_shop:adapter"],
}
SHOP = """
import os
from jmsjca import ResourceAdapter
adapter = ResourceAdapter(os.environ["BROKER"], password=os.environ["PASSWORD"], user_name="joe")
adapter.listener("orders")(print)
"""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("secret", ["hu%sh-4711", 'hu"sh ${env:X}-4711'])
def test_no_command_shows_the_password_of_its_url(monkeypatch, tmp_path, capfd, command, secret):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROKER", f"stomp://joe:{quote(secret, safe='')}@127.0.0.1:1?allow_insecure_login=true")
    monkeypatch.setenv("DATABASE", f"postgresql+psycopg://joe:{quote(secret, safe='')}@127.0.0.1:1/x")
    monkeypatch.setenv("JMSJCA_URL", "env:BROKER")
    monkeypatch.setenv("PASSWORD", secret)
    (tmp_path / "letters").touch()
    (tmp_path / "secret_shop.py").write_text(SHOP)
    try:
        run(COMMANDS[command])
    finally:
        sys.modules.pop("secret_shop", None)
    written = capfd.readouterr()
    assert written.out + written.err
    for form in (secret, quote(secret, safe="")):
        assert_unseen(form, written.out, written.err)
