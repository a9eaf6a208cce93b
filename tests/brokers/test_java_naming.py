"""Factories and destinations of JNDI, factories by their class, and unknown clients, on real brokers."""

import uuid
from contextlib import closing
from urllib.parse import urlencode

import pytest
from brokers import BROKERS, JAVA_PAIRS
from jms_java.program import FILES, bind_in_folder

from jmsjca import ConnectionFactory, Queue, TextMessage, Topic
from jmsjca.config import ConnectionURL
from jmsjca.errors import ConfigurationError
from jmsjca.providers.java.clients import ACTIVEMQ, ARTEMIS

PATIENCE = 30
CONTEXTS = {
    "artemis-java": ("org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory", "connectionFactory.CF", "tcp"),
    "activemq-java": ("org.apache.activemq.jndi.ActiveMQInitialContextFactory", "java.naming.provider.url", "tcp"),
    "qpid-java": ("org.apache.qpid.jms.jndi.JmsInitialContextFactory", "connectionfactory.CF", "amqp"),
}
CLASSES = {
    "artemis-java": ("org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory", "brokerURL"),
    "activemq-java": ("org.apache.activemq.ActiveMQConnectionFactory", "brokerURL"),
    "qpid-java": ("org.apache.qpid.jms.JmsConnectionFactory", "remoteURI"),
}
KNOWN = {"artemis-java": ARTEMIS, "activemq-java": ACTIVEMQ}


@pytest.fixture(params=JAVA_PAIRS)
def pair(request):
    return request.param


@pytest.fixture
def direct(pair, broker_url):
    """Return the URL by which jmsjca makes the factory itself."""
    return broker_url(pair)


def unique_name():
    return f"q{uuid.uuid4().hex}"


def looked_up(pair, direct, name="CF", **more):
    parsed = ConnectionURL.parse(direct)
    initial, location, scheme = CONTEXTS[pair]
    environment = {
        "java.naming.factory.initial": initial,
        location: f"{scheme}://{parsed.host}:{parsed.port}",
        "connectionFactoryNames": "CF",  # of ActiveMQ
        "class_path": parsed.query["class_path"],
    }
    return f"jndi://{name}?{urlencode(environment | more)}"


def made_of_class(pair, direct, **beans):
    parsed = ConnectionURL.parse(direct)
    factory, address = CLASSES[pair]
    scheme = CONTEXTS[pair][2]
    beans = {address: f"{scheme}://{parsed.host}:{parsed.port}", "class_path": parsed.query["class_path"]} | beans
    return f"java://{factory}?{urlencode(beans)}"


def connect(url):
    return ConnectionFactory(url).create_connection()


def received(session, source):
    with closing(session.create_consumer(source)) as consumer:
        message = consumer.receive(PATIENCE)
        session.commit()
        return message


def test_factory_and_destinations_are_looked_up_where_the_url_says_so(pair, direct):
    name = unique_name()
    url = looked_up(pair, direct, **{"queue.bound": name, "lookup.queue.orders": "bound"})
    with connect(url) as here, connect(direct) as there:
        ours, theirs = here.create_session(transacted=True), there.create_session(transacted=True)
        with closing(ours.create_producer(Queue("orders"))) as producer:
            producer.send(TextMessage("by JNDI", reply_to=Queue("orders")))
        ours.commit()
        message = received(theirs, Queue(name))
        assert (message.body, message.reply_to) == ("by JNDI", Queue(name))
        with closing(theirs.create_producer(Queue(name))) as producer:
            producer.send(TextMessage("back", reply_to=Queue(name)))
        theirs.commit()
        message = received(ours, Queue("orders"))
        assert (message.body, message.destination, message.reply_to) == ("back", Queue("orders"), Queue("orders"))


def test_reply_to_of_a_message_is_not_looked_up(pair, direct):
    """The name in the message is one of JNDI as well, but the URL does not mention it."""
    bound, other = unique_name(), unique_name()
    url = looked_up(pair, direct, **{f"queue.{bound}": other})
    with connect(url) as here, connect(direct) as there:
        ours, theirs = here.create_session(transacted=True), there.create_session(transacted=True)
        with closing(theirs.create_producer(Queue(other + "in"))) as producer:
            producer.send(TextMessage("answer me", reply_to=Queue(bound)))
        theirs.commit()
        request = received(ours, Queue(other + "in"))
        with closing(ours.create_producer(request.reply_to)) as producer:
            producer.send(TextMessage("reply"))
        ours.commit()
        assert received(theirs, Queue(bound)).body == "reply"


@pytest.mark.parametrize("make", [looked_up, made_of_class])
def test_a_known_factory_has_the_capabilities_and_settings_of_its_client(pair, direct, make):
    """ActiveMQ's client would redeliver after a second, and prefetch 1000 messages."""
    with connect(make(pair, direct)) as connection, connect(direct) as other:
        if pair in KNOWN:
            assert connection.capabilities == KNOWN[pair].profile.capabilities
        name = Queue(unique_name())
        session = connection.create_session(transacted=True)
        with closing(session.create_producer(name)) as producer:
            for body in "ab":
                producer.send(TextMessage(body))
        session.commit()
        with closing(session.create_consumer(name)) as consumer:
            assert consumer.receive(PATIENCE).body == "a"
            assert received(other.create_session(transacted=True), name).body == "b"  # which was not prefetched
            session.rollback()
            again = consumer.receive(PATIENCE)
            assert (again.body, again.delivery_count) == ("a", 2)
            session.commit()


def test_a_fail_over_of_the_client_is_refused(broker_url):
    direct = broker_url("activemq-java")
    parsed = ConnectionURL.parse(direct)
    address = f"failover:(tcp://{parsed.host}:{parsed.port})"
    for url in (
        looked_up("activemq-java", direct, **{"java.naming.provider.url": address}),
        made_of_class("activemq-java", direct, brokerURL=address),
    ):
        with pytest.raises(ConfigurationError, match="the client's own fail-over"):
            connect(url)


def test_what_jndi_does_not_have_is_told(pair, direct):
    with pytest.raises(ConfigurationError, match="nowhere"):
        connect(looked_up(pair, direct, "nowhere"))
    with pytest.raises(ConfigurationError, match=r"stands for .* and a .*ConnectionFactory is needed"):
        connect(looked_up(pair, direct, "bound", **{"queue.bound": "x"}))
    with pytest.raises(ConfigurationError, match="nowhere"):
        connect(looked_up(pair, direct, **{"lookup.topic.x": "nowhere"}))


def test_a_property_that_does_not_exist_or_fit_is_told_without_its_value(pair, direct):
    with pytest.raises(ConfigurationError, match="has no property nonsense"):
        connect(made_of_class(pair, direct, nonsense="hush-4711"))
    with pytest.raises(ConfigurationError, match="has no property class"):
        connect(made_of_class(pair, direct, **{"class.name": "hush-4711"}))
    number = {"artemis-java": "callTimeout", "activemq-java": "closeTimeout", "qpid-java": "requestTimeout"}[pair]
    with pytest.raises(ConfigurationError, match=number) as caught:
        connect(made_of_class(pair, direct, **{number: "hush-4711"}))
    assert "hush-4711" not in str(caught.value)


def test_a_folder_of_bindings_has_the_objects_of_an_administrator(supply, broker_url, tmp_path):
    parsed = ConnectionURL.parse(broker_url("activemq-java"))
    jars = f"{parsed.query['class_path']}:{BROKERS['openmq']().install()}/lib/fscontext.jar"
    folder, name = tmp_path.as_uri(), unique_name()
    supply(
        bind_in_folder, jars, folder, "CF", "org.apache.activemq.ActiveMQConnectionFactory",
        f"BrokerURL=tcp://{parsed.host}:{parsed.port}", ".",
        "orders", "org.apache.activemq.command.ActiveMQQueue", f"PhysicalName={name}", ".",
        "news", "org.apache.activemq.command.ActiveMQTopic", f"PhysicalName={name}", ".",
    )  # fmt: skip
    options = {"java.naming.factory.initial": FILES, "java.naming.provider.url": folder, "class_path": jars}
    options |= {"lookup.queue.orders": "orders", "lookup.topic.news": "news"}
    with connect(f"jndi://CF?{urlencode(options)}") as connection:
        session = connection.create_session(transacted=True)
        for place in (Queue("orders"), Topic("news")):
            with closing(session.create_consumer(place)) as consumer, closing(session.create_producer(place)) as to:
                to.send(TextMessage(place.kind))
                session.commit()
                message = consumer.receive(PATIENCE)
                assert (message.body, message.destination) == (place.kind, place)
                session.commit()


class TestUnknownClient:
    """Open MQ's own client, of which jmsjca knows nothing but the name of its class."""

    @pytest.fixture
    def url(self, broker_url):
        broker_url("openmq-stomp")
        from brokers import registry

        broker = registry.shared("openmq")
        jars = [f"{broker.install()}/lib/{name}.jar" for name in ("imq", "jms")]
        options = {
            "class_path": ",".join(jars),
            "imqAddressList": f"mq://127.0.0.1:{broker.ports['portmapper']}",
            "imqReconnectEnabled": "false",
            "allow_insecure_login": "true",
        }
        return f"java://jmsjca:jmsjca@com.sun.messaging.ConnectionFactory?{urlencode(options)}"

    def test_units_selectors_browsers_and_subscriptions(self, url):
        queue = Queue(unique_name())
        with ConnectionFactory(url, client_id=unique_name()).create_connection() as connection:
            session = connection.create_session(transacted=True)
            with closing(session.create_producer(queue)) as producer:
                for number in range(3):
                    producer.send(TextMessage(str(number), properties={"number": number}))
            session.commit()
            with closing(session.create_consumer(queue, "number = 1")) as consumer:
                assert consumer.receive(PATIENCE).body == "1"
                session.rollback()
                assert consumer.receive(PATIENCE).redelivered
                session.commit()
            with closing(session.create_browser(queue)) as browser:
                assert [message.body for message in browser] == ["0", "2"]
