"""RabbitMQ with its management over HTTP keeps the contract of administration, both releases over both protocols."""

import json
import uuid

import pytest
from brokers import registry
from brokers.rabbitmq_managed import ManagedRabbitMQ, ManagedRabbitMQ4

from jmsjca import ConnectionFactory, TextMessage
from jmsjca.__main__ import run
from jmsjca.config import Credentials
from jmsjca.destinations import Queue
from jmsjca.errors import InvalidDestinationError, JMSError, JMSSecurityError, NotSupportedError
from jmsjca.management.insight import Insight
from jmsjca.providers.brokers.management import HTTPManagement
from jmsjca.providers.common.network import NetworkOptions
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spi import Depth
from jmsjca.testing.contract import administration
from jmsjca.testing.contract.administration import TestCreating  # noqa: F401  # cases of the suite
from tests.brokers.conftest import demand
from tests.unit.inbound.deliveries import until

RELEASES = {"rabbitmq": ManagedRabbitMQ, "rabbitmq4": ManagedRabbitMQ4}
PAIRS = ["rabbitmq-amqp", "rabbitmq-stomp", "rabbitmq4-amqp", "rabbitmq4-stomp"]
ADDED = {"admin", "counts_held", "lists_destinations", "creates_queues", "counts_consumers", "counts_traffic"}
OF_RABBITMQ4 = {"counts_held", "lists_destinations"}  # what its management over AMQP lacks
COUNTING_PAIRS = [pair for pair in PAIRS if pair != "rabbitmq4-amqp"]


@pytest.fixture(scope="module")
def managed():
    """Return a function that returns the broker of a release, with its plug-in, and starts it if need be."""
    brokers = {name: release() for name, release in RELEASES.items()}
    yield lambda name: demand(brokers[name].start)
    for broker in brokers.values():
        registry.discard(broker)


@pytest.fixture(scope="module", params=PAIRS)
def jms_broker_url(request, managed):
    name, protocol = request.param.split("-")
    return url_of(managed(name), protocol)


def url_of(broker, protocol, login="jmsjca:jmsjca@"):
    kind, address = broker.url(protocol).split("://")
    return f"{kind}://{login}{address}?management_url={broker.url('management')}&allow_insecure_login=true"


class TestAdmin(administration.TestAdmin):
    """As the contract has it, but for numbers that the broker measures later."""

    def test_depth_of_a_durable_subscription(self, harness, admin):
        harness.require("durable")
        subscription = harness.subscription()
        harness.connect(subscription.client_id).consumer(subscription).close()
        harness.send(subscription.topic, *"ab")
        until(lambda: admin.depth(subscription).ready == 2)

    def test_purge_removes_what_waits(self, harness, admin):
        queue = harness.queue()
        harness.send(queue, *"abc")
        held = harness.gather(harness.connection.consumer(queue, window=0), 1)
        assert admin.purge(queue) == 2
        harness.settle(held)
        until(lambda: admin.depth(queue).total == 0)

    def test_depth_tells_ready_and_held(self, harness, admin):
        queue = harness.queue()
        harness.send(queue, *"abc")
        harness.gather(harness.connection.consumer(queue, window=0), 1)
        until(lambda: admin.depth(queue) == Depth(ready=2, held=1, scheduled=0))


class TestRemoving(administration.TestRemoving):
    """As the contract has it, but for numbers that the broker measures later."""

    def test_purge_of_a_subscription_leaves_the_others(self, harness, admin):
        harness.require("durable")
        topic = harness.topic()
        purged, other = harness.subscription(topic), harness.subscription(topic)
        for subscription in (purged, other):
            harness.connect(subscription.client_id).consumer(subscription).close()
        harness.send(topic, *"ab")
        assert admin.purge(purged) == 2
        until(lambda: (admin.depth(purged).total, admin.depth(other).total) == (0, 2))

    def test_depth_of_a_shared_subscription(self, harness, admin):
        harness.require("shared")
        topic = harness.topic()
        subscription = harness.subscription(topic)
        consumer = harness.connect(subscription.client_id).consumer(subscription, window=0)
        harness.send(topic, *"ab")
        harness.gather(consumer, 1)
        until(lambda: admin.depth(subscription) == Depth(ready=1, held=1, scheduled=0))


class TestActivity(administration.TestActivity):
    """As the contract has it, but for numbers that the broker measures later."""

    def test_consumers_are_counted(self, harness, admin):
        queue = harness.queue()
        harness.send(queue, "a")
        until(lambda: admin.activity(queue).consumers == 0)
        consumers = [harness.connect().consumer(queue) for _ in range(2)]
        until(lambda: admin.activity(queue).consumers == 2)
        consumers[0].close()
        until(lambda: admin.activity(queue).consumers == 1)

    def test_messages_that_came_and_went_are_counted(self, harness, admin):
        harness.require("counts_traffic")
        queue = harness.queue()
        harness.send(queue, *"abcd")
        harness.settle(harness.gather(harness.connection.consumer(queue, window=0), 2))
        until(lambda: (admin.activity(queue).added, admin.activity(queue).settled) == (4, 2))


def capabilities(url):
    connection = connect(ConnectionSettings(url))
    try:
        return connection.capabilities
    finally:
        connection.close()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_option_adds_capabilities_and_takes_none_away(managed, pair):
    name, protocol = pair.split("-")
    broker = managed(name)
    without, having = capabilities(broker.url(protocol)), capabilities(url_of(broker, protocol))
    gained = {each for each in having.__slots__ if getattr(having, each) != getattr(without, each)}
    assert gained == (OF_RABBITMQ4 if pair == "rabbitmq4-amqp" else ADDED)


def test_destinations_are_listed_with_depths_and_found_by_name(jms_broker_url):
    name = f"shop.{uuid.uuid4().hex}"
    insight = Insight(jms_broker_url)
    insight.create(Queue(name))
    with ConnectionFactory(jms_broker_url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(name))
        for body in "abc":
            producer.send(TextMessage(body))
    until(lambda: [each.depth.ready for each in insight.find_destinations(name.upper())[0]] == [3])
    assert insight.purge(name) == 3
    insight.remove(Queue(name))
    assert insight.find_destinations(name) == ([], 0)


def test_a_measurement_leaves_no_queue(jms_broker_url, capsys):
    assert run(["bench", jms_broker_url, "--messages", "5", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) >= 2
    assert Insight(jms_broker_url).find_destinations("jmsjca.bench.") == ([], 0)


@pytest.mark.parametrize("pair", COUNTING_PAIRS)
def test_rates_are_those_of_the_messages_that_came(managed, pair):
    name, protocol = pair.split("-")
    url, queue = url_of(managed(name), protocol), Queue(f"shop.{uuid.uuid4().hex}")
    insight = Insight(url)
    insight.create(queue)

    def work(seconds):
        with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
            for _ in range(20):
                session.create_producer(queue).send(TextMessage("x"))
        until(lambda: insight.queue_info(queue.name).activity.added == 20)

    [found] = [each for each in insight.destination_rates(pause=work) if each.destination == queue]
    assert found.added_per_second > 0
    assert found.settled_per_second == 0


@pytest.mark.parametrize("name", ["a/b", "ä%2", "*", "a b?c&d=e#f", ".."])
def test_a_name_is_taken_literally(managed, name):
    """It is a segment of the path of a request, whatever characters it has."""
    unique = f"{name}{uuid.uuid4().hex}"
    for pair in ("rabbitmq-stomp", "rabbitmq4-amqp"):
        insight = Insight(url_of(managed(pair.split("-")[0]), pair.split("-")[1]))
        try:
            insight.create(Queue(unique))
        except InvalidDestinationError:
            assert pair == "rabbitmq-stomp"  # over STOMP the broker would interpret it
            continue
        assert [each.destination.name for each in insight.find_destinations(unique)[0]] == [unique]
        insight.remove(Queue(unique))


def test_a_wrong_password_is_told_without_it(managed):
    broker = managed("rabbitmq")
    url = url_of(broker, "amqp", "jmsjca:hush-4711@")
    with pytest.raises(JMSSecurityError) as caught:
        Insight(url).destinations()
    assert "hush" not in str(caught.value)


def test_a_url_that_is_not_that_of_the_api_is_told(managed):
    url = url_of(managed("rabbitmq"), "amqp").replace("/api&", "/&")
    with pytest.raises(JMSError, match="status 400"):
        Insight(url).destinations()


def test_browsing_is_refused(jms_broker_url):
    """The API would requeue what it shows, and the broker would count a delivery of it."""
    with pytest.raises(NotSupportedError, match="browse"):
        Insight(jms_broker_url).messages("orders")


def set_policy(broker, pattern, **definition):
    """Set a policy for queues, as an operator does."""
    options = NetworkOptions(management_url=broker.url("management"), allow_insecure_login=True)
    management = HTTPManagement(options, Credentials("jmsjca", "jmsjca"))
    body = {"pattern": pattern, "definition": definition, "apply-to": "queues"}
    management.request("PUT", f"/policies/%2F/{pattern}", body, expected=(201, 204))


@pytest.mark.parametrize(("policy", "limited"), [(5, True), (-1, False)])
def test_a_delivery_limit_of_a_policy_is_known(managed, caplog, capsys, policy, limited):
    """The queue was declared by this client, with a limit that is never reached."""
    broker, name = managed("rabbitmq4"), f"limited.{uuid.uuid4().hex}"
    set_policy(broker, name, **{"delivery-limit": policy})
    url = url_of(broker, "amqp")
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue(name)).send(TextMessage("a"))
        until(lambda: connection.admin.delivery_limit(Queue(name)) == (policy if limited else 1_000_000_000))
        assert session.create_consumer(Queue(name)).receive(timeout=60).body == "a"
    assert (name in caplog.text) is limited
    run(["doctor", url, "--json"])
    [found] = [each for each in json.loads(capsys.readouterr().out) if each["check"] == "delivery limits"]
    assert (f"{name} ({policy})" in found["detail"]) is limited
