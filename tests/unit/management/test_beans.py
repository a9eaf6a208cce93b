"""Management beans: the manual's attributes and operations, found by name in the registry of a domain."""

import gc
import threading

import pytest

from jmsjca import ActivationSpec, Message, ResourceAdapter, Topic
from jmsjca.errors import ConfigurationError, NameNotFoundError, NotSupportedError
from jmsjca.management.beans import ActivationBean, AdapterBean, MBeanServer, ServerBean, _python_name
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import PATIENCE, Inbox, send

NAME = "jmsjca:name=orders"


@pytest.fixture
def adapter(jms_broker_url):
    adapter = ResourceAdapter(
        jms_broker_url, mbean_object_name="jmsjca:name=ra", mbean_server_domain=f"domain of {jms_broker_url}"
    )
    yield adapter
    adapter.stop()


@pytest.fixture
def server(adapter):
    return MBeanServer(adapter.mbean_server_domain)


@pytest.fixture
def bean(adapter, server):
    """Activate a listener; return its bean."""

    def make(handler=None, **fields):
        spec = ActivationSpec(destination="orders", mbean_name=NAME, **{"concurrency_mode": "cc", **fields})
        adapter.activate(spec, handler or Inbox())
        return server.lookup(NAME)

    return make


def test_beans_are_found_by_name_in_their_domain(adapter, server, bean):
    assert isinstance(bean(), ActivationBean)
    assert server.names() == [f"{NAME}", f"{NAME},servermgt=true", "jmsjca:name=ra", "jmsjca:name=ra,servermgt=true"]
    assert isinstance(server.lookup("jmsjca:name=ra"), AdapterBean)
    for other in (MBeanServer.default(), MBeanServer("another")):
        assert NAME not in other.names()
        with pytest.raises(NameNotFoundError, match="no bean 'jmsjca:name=orders'"):
            other.lookup(NAME)
    with pytest.raises(NameNotFoundError, match="did you mean jmsjca:name=orders"):
        server.lookup("jmsjca:name=order")


def test_an_adapter_without_domain_has_beans_in_the_default_registry(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url, mbean_object_name=jms_broker_url)
    assert jms_broker_url in MBeanServer.default().names()
    assert MBeanServer.default().lookup(jms_broker_url).get_attribute("Activations") == []
    del adapter
    gc.collect()
    assert jms_broker_url not in MBeanServer.default().names()


def test_a_listener_without_a_name_has_no_bean(adapter, server):
    adapter.activate(ActivationSpec(destination="q"), Inbox())
    assert server.names() == ["jmsjca:name=ra", "jmsjca:name=ra,servermgt=true"]


def test_two_beans_of_one_name_are_refused(bean):
    bean()
    with pytest.raises(ConfigurationError, match="2 beans have the name"):
        bean()


def test_the_numbers_of_endpoints(adapter, bean):
    entered, released = threading.Semaphore(0), threading.Event()

    def hold(message: Message) -> None:
        entered.release()
        released.wait(PATIENCE)

    found = bean(hold, endpoint_pool_max_size=5)
    numbers = ["NActiveEndpoints", "NConfiguredEndpoints", "NHighestActiveEndpoints", "NMessages", "NTotalEndpoints"]

    def values():
        return [found.get_attribute(name) for name in numbers]

    assert values() == [0, -1, 0, 0, 0]
    adapter.start(wait=PATIENCE)
    assert values() == [0, 5, 0, 0, 0]
    send(adapter, "a", "b", to="orders")
    for _ in range(2):
        assert entered.acquire(timeout=PATIENCE)
    assert values() == [2, 5, 2, 2, 2]
    released.set()
    until(lambda: values() == [0, 5, 2, 2, 0])
    assert found.get_attribute("Stats").startswith("nMessages=2; t(1)=")
    found.invoke("resetStats")
    assert values() == [0, 5, 0, 0, 0]


def test_n_messages_counts_calls_of_the_handler(adapter, bean):
    """Two failures and a success are three calls; the message that is moved afterwards is none."""
    inbox = Inbox(*[ValueError()] * 9)
    found = bean(inbox, redelivery_handling="3:move(queue:dlq)", concurrency_mode="serial")
    adapter.start(wait=PATIENCE)
    send(adapter, "a", to="orders")
    until(lambda: adapter.activations[0].stats.n_bypass_commits == 1)
    assert (found.get_attribute("NMessages"), len(inbox.take(3))) == (3, 3)


def test_status_and_operations(adapter, bean):
    found = bean()
    assert (found.invoke("getStatus"), found.get_attribute("Suspended")) == ("Down", True)
    for start, stop in (("start", "stop"), ("startService", "stopService")):
        found.invoke(start)
        assert found.invoke("getStatus") in {"Connecting", "Up"}
        until(lambda: found.invoke("getStatus") == "Up")
        assert found.get_attribute("Suspended") is False
        found.invoke(stop)
        assert found.invoke("getStatus") == "Down"
    found.invoke("restart")
    assert found.invoke("getStatus") in {"Connecting", "Up"}
    until(lambda: found.invoke("getStatus") == "Up")
    assert [found.invoke(name) for name in ("isStartable", "isRestartable", "isStoppable")] == [True] * 3
    found.invoke("pause")
    assert found.get_attribute("Paused") is True
    found.invoke("resume")
    assert found.get_attribute("Paused") is False
    found.invoke("resize", 7)
    until(lambda: found.get_attribute("NConfiguredEndpoints") == 7)


def test_a_delivery_that_a_message_stopped_is_resumed_by_the_bean(adapter, bean):
    seen = []

    def stop(message: Message) -> None:
        seen.append(message.body)
        if message.body == "a":
            message.stop_message_delivery("closed for today")

    found = bean(stop, concurrency_mode="serial")
    adapter.start(wait=PATIENCE)
    send(adapter, "a", "b", to="orders")
    until(lambda: found.invoke("getStatus") == "Down")
    assert seen == ["a"]
    found.invoke("start")
    until(lambda: seen == ["a", "b"])


def test_the_specification_and_its_properties(server, adapter, bean):
    found = bean(
        destination_type="topic",
        selector="a = 1",
        subscription_durability="Durable",
        subscription_name="s",
        client_id="c",
        connection_url="amqp://ann:hush@host",
    )
    assert "hush" not in found.get_attribute("ActivationSpec")
    assert found.get_attribute("ActivationSpec").startswith("ActivationSpec:\n\tDestinationType = javax.jms.Topic")
    assert found.invoke("getProperties").splitlines() == [
        "destination.type=topic",
        "destination.name=orders",
        "subscriber.name=s",
        "subscriber.durability=Durable",
        "concurrency=cc",
        "url=amqp://ann@host",
        "selector=a = 1",
        "server=host",
    ]
    assert found.get_attribute("DeliveryMode") == "cc"
    assert found.get_attribute("ResourceAdapter") == "jmsjca:name=ra"
    assert found.invoke("getJMSServerType") == "amqp"


def test_the_bean_of_the_server_lists_destinations(adapter, server, bean):
    found = bean()
    send(adapter, "a", to="orders")
    for name in (found.invoke("getJMSServerMBean"), server.lookup("jmsjca:name=ra").invoke("getJMSServerMBean")):
        management = server.lookup(name)
        assert isinstance(management, ServerBean)
        assert management.get_attribute("Destinations") == management.invoke("getDestinations") == ["queue:orders"]
        assert [message.body for message in management.insight.messages("orders")] == ["a"]
    assert found.invoke("getJMSServerType") == "embedded"


def test_the_bean_of_an_adapter(adapter, server):
    found = server.lookup("jmsjca:name=ra")
    assert found.invoke("getRAInfo") == found.get_attribute("RAInfo")
    assert "with 0 activations" in found.invoke("getRAInfo")
    assert (found.invoke("getStatus"), found.invoke("getProperties")) == ("Up", "")
    for name in ("start", "stop", "restart"):
        with pytest.raises(NotSupportedError, match="use its activations"):
            found.invoke(name)
    assert [found.invoke(name) for name in ("isStartable", "isRestartable", "isStoppable")] == [False] * 3
    assert found.invoke("getConnectionFactoriesInfo") == ""
    adapter.send("q", "a")
    assert "pool_size=1" in found.get_attribute("ConnectionFactoriesInfo")
    assert found.invoke("getJMSServerType") == "embedded"


def test_the_bean_of_an_adapter_lists_its_activations(adapter, server, bean):
    bean()
    adapter.listener("invoices", concurrency_mode="serial")(print)  # it has no bean of its own, and is listed as well
    listed = server.lookup("jmsjca:name=ra").get_attribute("Activations")
    assert listed == [each.name for each in adapter.activations]
    assert [name.partition(" ")[0] for name in listed] == ["cc-QueueReceiver(orders)", "serial-QueueReceiver(invoices)"]


def test_all_attributes_can_be_read_and_others_are_refused(server, bean):
    bean()
    for name in server.names():
        found = server.lookup(name)
        assert list(found.get_attributes()) == list(found.attribute_names)
        for operation in found.operation_names:
            assert callable(getattr(found, _python_name(operation)))
    with pytest.raises(NameNotFoundError, match=r"did you mean NMessages\?"):
        server.lookup(NAME).get_attribute("NMessage")
    with pytest.raises(NameNotFoundError, match=r"did you mean getStatus\?"):
        server.lookup(NAME).invoke("getstatus")


def test_each_side_of_a_distributed_subscription_has_a_bean(adapter, server):
    spec = ActivationSpec(
        destination=Topic("news"),
        subscription_durability="Durable",
        subscription_name="jmsjca://?distribution=1&subscribername=s",
        client_id="c",
        mbean_name=NAME,
    )
    adapter.activate(spec, Inbox())
    assert server.lookup(f"{NAME}-LOADBALQ").properties["destination.type"] == "topic"
    assert server.lookup(NAME).properties["destination.type"] == "queue"


def test_names_in_a_configuration_file_are_those_of_the_adapter(tmp_path):
    path = tmp_path / "jmsjca.toml"
    path.write_text(
        '[adapters.shop]\nconnection_url = "embedded://"\n'
        'mbean_object_name = "a:name=shop"\nmbean_server_domain = "d"\n'
    )
    adapter = ResourceAdapter.from_config(path)
    assert adapter.mbean_object_name in MBeanServer("d").names()


def test_bean_tells_of_each_connection_factory_and_its_pool(adapter, server, jms_broker_url):
    found = server.lookup("jmsjca:name=ra")
    secrets = {"password": "hush", "options": {"JMSJCA.producerpooling": "true"}}
    orders = adapter.connection_factory(kind="queue", user_name="ann", **secrets)
    assert found.get_attribute("ConnectionFactoriesInfo") == (
        f"<QueueConnectionFactory {jms_broker_url}>: user_name=ann; producer_pooling=True; idle_timeout=30.0"
    )
    topics = adapter.connection_factory("embedded://other", "embedded://x?password=hush", kind="topic", client_id="c")
    orders.send("q", "a")
    lines = found.invoke("getConnectionFactoriesInfo").splitlines()
    assert len(lines) == 2
    assert "hush" not in f"{lines}"
    assert "connections_num=1; " in lines[0]
    assert "requests_num=1; " in lines[0]
    assert lines[1] == "<TopicConnectionFactory embedded://x>: client_id=c; producer_pooling=False; idle_timeout=30.0"
    orders.close()
    del orders, topics
    gc.collect()
    assert adapter.connection_factories == ()
