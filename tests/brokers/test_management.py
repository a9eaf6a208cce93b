"""The operator's view over AMQP: what it refuses, and to whom."""

import uuid

import pytest

from jmsjca import ResourceAdapter
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import IllegalStateError, JMSSecurityError, NotSupportedError
from jmsjca.messages import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from tests.unit.inbound.deliveries import until
from tests.unit.inbound.listeners import Recorder


@pytest.fixture
def connection(broker_url):
    opened = []

    def to(broker, **settings):
        opened.append(connect(ConnectionSettings(broker_url(f"{broker}-amqp"), **settings)))
        return opened[-1]

    yield to
    for each in opened:
        each.close()


def test_artemis_tells_nothing_to_a_user_without_permission(broker_url, connection):
    url = f"{broker_url('artemis-amqp')}?allow_insecure_login=true"
    limited = connect(ConnectionSettings(url, "limited", "limited"))
    with pytest.raises(JMSSecurityError, match="permission"):
        limited.admin().destinations()
    limited.check(Queue("orders"))  # which is another matter
    limited.close()
    assert isinstance(connection("artemis").admin().destinations(), list)


def test_messages_of_a_subscription_are_not_taken_from_who_holds_them(connection):
    topic, client = Topic(uuid.uuid4().hex), uuid.uuid4().hex
    subscription = Subscription(topic, "s", client)
    holder = connection("qpid", client_id=client)
    consumer = holder.consumer(subscription)
    unit = holder.unit()
    for body in "ab":
        unit.send(TextMessage(body), topic)
    unit.commit()
    held = consumer.receive(1, 30)
    admin = connection("qpid").admin()
    with pytest.raises(IllegalStateError, match="in use"):
        admin.purge(subscription)
    unit = holder.unit()
    unit.take(held)
    unit.commit()
    assert held[0].message.body == "a"


@pytest.mark.parametrize("broker", ["artemis", "qpid"])
def test_settings_are_the_brokers_own(connection, broker):
    with pytest.raises(NotSupportedError, match="configuration"):
        connection(broker).admin().configure(None, DestinationSettings())


def test_qpid_does_not_tell_them(connection):
    with pytest.raises(NotSupportedError, match="configuration"):
        connection("qpid").admin().settings(Queue("orders"))


def test_artemis_tells_them(connection):
    settings = connection("artemis").admin().settings
    limited = DestinationSettings(max_deliveries=3, dead_letter=Queue("limited.dead"), expiry=Queue("limited.expired"))
    assert settings(Queue("limited.orders")) == settings(Topic("limited.news")) == limited
    assert settings(Queue("orders")) == settings(None) == DestinationSettings()


def test_a_limit_of_artemis_below_the_redelivery_handling_is_told(broker_url, caplog):
    recorder = Recorder()
    adapter = ResourceAdapter(broker_url("artemis-amqp"), hooks=[recorder])
    adapter.listener(f"limited.{uuid.uuid4().hex}", redelivery_handling="3:move(queue:aside)")(print)
    with adapter:
        recorder.await_status("Connecting", "Up")
        until(lambda: "3 times at most: set max_deliveries to 4 at least" in caplog.text)


@pytest.mark.parametrize("broker", ["activemq", "rabbitmq"])
def test_brokers_without_management_give_no_admin(connection, broker):
    assert connection(broker).admin() is None
    with pytest.raises(NotSupportedError):
        connection(broker).remove(Queue("orders"))
