"""Adapters from configuration files, their naming contexts, and the factories that they create."""

import pickle
import queue
import sys
import types

import pytest

from jmsjca import ActivationSpec, ConnectionFactory, Queue, ResourceAdapter, TextMessage, Topic
from jmsjca.config import ConnectionURL, Credentials
from jmsjca.config.naming import NamingContext
from jmsjca.descriptors import read
from jmsjca.errors import (
    ActivationFailedError,
    ConfigurationError,
    IllegalStateError,
    InvalidActivationSpecError,
    InvalidDestinationError,
    NameNotFoundError,
    UnknownSchemeError,
)
from jmsjca.outbound import QueueConnectionFactory, TopicConnectionFactory
from tests.unit.descriptors.test_deployment import ejb, ra
from tests.unit.inbound.listeners import Inbox


@pytest.fixture
def adapter():
    return ResourceAdapter("embedded://naming")


def send(factory, name, body):
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(session.create_queue(name)).send(TextMessage(body))


def received(factory, queue):
    with factory.create_connection() as connection, connection.create_session() as session:
        message = session.create_consumer(Queue(queue)).receive(timeout=0)
        return message and message.body


@pytest.mark.parametrize(("client_id", "told"), [("me", "me"), (None, None)])
def test_a_moved_copy_has_the_client_id_of_the_spec_and_the_brokers_name_of_the_destination(adapter, client_id, told):
    adapter.naming.bind("jms/news", Topic("news1"))
    dead = queue.Queue()

    def handler(_message):
        raise ValueError

    spec = ActivationSpec(
        destination="lookup://jms/news",
        destination_type="topic",
        subscription_durability="Durable",
        subscription_name="s",
        client_id=client_id,
        redelivery_handling="1:move(queue:dlq)",
    )
    adapter.activate(spec, handler)
    adapter.activate(ActivationSpec(destination="dlq"), lambda message: dead.put(dict(message.properties)))
    adapter.start(wait=60)
    adapter.send(Topic("news1"), "poison")
    properties = dead.get(timeout=60)
    adapter.stop()
    for prefix in ("JMS_Sun_JMSJCA_", "_JMSJCA_"):
        assert properties.get(f"{prefix}OriginalClientID") == told
        assert properties[f"{prefix}OriginalDestinationName"] == "news1"
        assert properties[f"{prefix}SubscriberName"] == "s"


def test_destinations_are_looked_up_in_every_place(adapter):
    adapter.naming.bind("jms/in", Queue("in1"))
    adapter.naming.bind("jms/dlq.in", Queue("dead1"))
    inbox = Inbox()

    def handler(message):
        inbox(message)
        raise ValueError

    spec = ActivationSpec(destination="lookup://jms/in", redelivery_handling="2:move(queue:dlq.$)")
    adapter.naming.bind("jms/dlq.jms/in", Queue("unused"))
    adapter.activate(spec, handler)
    send(adapter.connection_factory(), "lookup://jms/in", "poison")
    with adapter:
        inbox.take(2)
        with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
            assert session.create_consumer(Queue("dead1")).receive(timeout=30).body == "poison"
            browser = session.create_browser(Queue("lookup://jms/in"))
            assert [message.body for message in browser] == []
            assert session.create_producer(Queue("lookup://jms/in")).destination == Queue("in1")


def test_handlers_session_looks_up_in_the_adapters_context(adapter):
    adapter.naming.bind("out", Queue("out1"))
    adapter.naming.bind("heard", Topic("heard1"))

    @adapter.listener("in2")
    def handle(message, session):
        assert session.create_topic("lookup://heard") == Topic("heard1")
        out = session.create_queue("lookup://out")
        assert out == Queue("out1")
        session.create_producer(out).send(message)

    send(adapter.connection_factory(), "in2", "x")
    with (
        adapter,
        adapter.connection_factory().create_connection() as connection,
        connection.create_session() as session,
    ):
        assert session.create_consumer(Queue("out1")).receive(timeout=30).body == "x"


def test_name_that_is_not_bound_is_refused_at_once(adapter):
    with pytest.raises(NameNotFoundError, match="'jms/none'"):
        adapter.activate(ActivationSpec(destination="lookup://jms/none"), print)
    with pytest.raises(NameNotFoundError, match="'jms/dlq'"):
        adapter.activate(ActivationSpec(destination="q", redelivery_handling="2:move(queue:lookup://jms/dlq)"), print)
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        with pytest.raises(NameNotFoundError, match="'jms/none'"):
            session.create_queue("lookup://jms/none")
        with pytest.raises(NameNotFoundError, match="'jms/none'"):
            session.create_topic("lookup://jms/none")
        adapter.naming.bind("a topic", Topic("t"))
        with pytest.raises(InvalidDestinationError, match="is the topic:t, but a queue is needed"):
            session.create_consumer(Queue("lookup://a topic"))


def test_url_of_a_spec_is_that_of_a_bound_factory(adapter):
    bound = ConnectionFactory(
        "embedded://other?JMSJCA.selector=a%3D1", user_name="u", options={"JMSJCA.concurrencymode": "cc"}
    )
    adapter.naming.bind("CF", bound)
    activation = adapter.activate(ActivationSpec(destination="q", connection_url="lookup://CF"), print)
    assert activation.spec.connection_url.startswith("embedded://other")
    assert activation.spec.concurrency_mode == "cc"
    own = ActivationSpec(destination="q", connection_url="lookup://CF", options={"JMSJCA.concurrencymode": "sync"})
    assert adapter.activate(own, print).spec.concurrency_mode == "sync"
    adapter.naming.bind("no factory", 1)
    with pytest.raises(ConfigurationError, match="is a int: a ConnectionFactory is needed"):
        adapter.activate(ActivationSpec(destination="q", connection_url="lookup://no factory"), print)


@pytest.mark.parametrize(
    ("spec_user", "expected"), [(None, ("factory", "f")), ("spec", ("spec", "s"))], ids=["factory's", "spec's"]
)
def test_credentials_of_a_bound_factory_fill_in(adapter, spec_user, expected):
    bound = ConnectionFactory("embedded://other", user_name="factory", password="f")  # noqa: S106  # no secret
    adapter.naming.bind("CF", bound)
    spec = ActivationSpec(
        destination="q", connection_url="lookup://CF", user_name=spec_user, password="s" if spec_user else None
    )
    settings = adapter.activate(spec, print)._settings
    assert (settings.user_name, settings.password) == expected


def test_factory_of_an_adapter_overrides_its_values():
    adapter = ResourceAdapter("embedded://naming", "a", "pa", options={"JMSJCA.poolmaxsize": "3", "x": "y"})
    plain = adapter.connection_factory()
    assert (plain.login.user_name, plain.login.password, plain.options.pool_max_size) == ("a", "pa", 3)
    other = adapter.connection_factory("embedded://other", "b", "pb", {"JMSJCA.poolmaxsize": "4"})
    assert (other.login.url, other.login.user_name, other.options.pool_max_size) == ("embedded://other", "b", 4)
    in_url = adapter.connection_factory("embedded://u:p@other?JMSJCA.poolmaxsize=5")
    assert (in_url.login.user_name, in_url.options.pool_max_size) == (None, 5)
    with pytest.raises(InvalidActivationSpecError, match="No connection_url"):
        ResourceAdapter().connection_factory()


def test_url_as_user_name_selects_broker_and_credentials():
    factory = ConnectionFactory("embedded://one", user_name="f", password="pf")  # noqa: S106  # no secret
    send(factory, "q", "in one")
    with factory.create_connection("embedded://two?username=u&password=p") as connection:
        session = connection.create_session()
        assert session.create_consumer(Queue("q")).receive(timeout=0) is None
        session.create_producer(Queue("q")).send(TextMessage("in two"))
    assert received(ConnectionFactory("embedded://two"), "q") == "in two"
    assert received(factory, "q") == "in one"
    with factory.create_context(user_name="embedded://two") as context:
        context.create_producer().send(Queue("q"), "again")
    assert received(ConnectionFactory("ignored://x", user_name="embedded://two"), "q") == "again"


@pytest.mark.parametrize(
    ("user_name", "password", "expected"),
    [
        ("embedded://b?username=u&password=p", None, ("embedded://b", "u", "p")),
        ("embedded://b?username=u&password=p&k=v", "given", ("embedded://b?k=v", "u", "p")),
        ("embedded://b?username=u", "given", ("embedded://b", "u", "given")),
        ("embedded://b", "dropped", ("embedded://b", "f", "pf")),
        ("u", "given", ("embedded://a", "u", "given")),
        ("", "dropped", ("embedded://a", "f", "pf")),
    ],
)
def test_credentials_of_an_overloaded_user_name(user_name, password, expected):
    factory = ConnectionFactory("embedded://a", user_name="f", password="pf")  # noqa: S106  # no secret
    login = factory.login.override(user_name, password)
    assert (login.url, login.user_name, login.password) == expected
    assert "pf" not in f"{login!r}{factory!r}"


def test_unknown_scheme_as_user_name_is_refused_and_never_sent():
    with pytest.raises(UnknownSchemeError):
        ConnectionFactory("embedded://a").create_connection("ampq://h?password=geheim")
    listening = ResourceAdapter("embedded://a", "amqp://h?password=geheim")
    activation = listening.activate(ActivationSpec(destination="q"), print)
    with pytest.raises(ActivationFailedError, match="The user name is a URL"):
        listening.start(wait=30)
    listening.stop()
    assert "geheim" not in str(activation.failure)


def test_credentials_are_asked_at_each_connection(tmp_path, monkeypatch):
    asked = []

    def source():
        asked.append(1)
        return "u", f"p{len(asked)}"

    factory = ConnectionFactory("embedded://a", credentials=source)
    factory.create_connection().close()
    factory.create_connection().close()
    assert len(asked) == 2
    (tmp_path / "secret").write_text("from file\n")
    monkeypatch.setenv("LOGIN", "user:from env")
    for reference, user in ((f"file:{tmp_path}/secret", "u"), ("env:LOGIN", None)):
        factory = ConnectionFactory("embedded://a", user_name=user, credentials=reference)
        assert b"from " not in pickle.dumps(factory)
        factory.create_connection().close()


def test_connections_of_one_domain_refuse_the_other():
    adapter = ResourceAdapter("embedded://naming")
    queues, topics = (adapter.connection_factory(kind=kind) for kind in ("queue", "topic"))
    assert (type(queues), type(topics)) == (QueueConnectionFactory, TopicConnectionFactory)
    with queues.create_queue_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("x"))
        session.create_temporary_queue()
        for refused in (
            lambda: session.create_topic("t"),
            lambda: session.create_consumer(Topic("t")),
            lambda: session.create_producer(Topic("t")),
            lambda: session.create_shared_consumer(Topic("t"), "s"),
            session.create_temporary_topic,
        ):
            with pytest.raises(IllegalStateError, match="the connection is for queues only"):
                refused()
    with topics.create_topic_connection() as connection, connection.create_session() as session:
        session.create_consumer(Topic("t"))
        with pytest.raises(IllegalStateError, match="the connection is for topics only"):
            session.create_browser(Queue("q"))


def test_ignore_tx_makes_each_session_transacted():
    factory = ConnectionFactory("embedded://naming?JMSJCA.IgnoreTx=true")
    with factory.create_connection() as connection, connection.create_session() as session:
        assert session.transacted
        session.create_producer(Queue("ignored")).send(TextMessage("x"))
    assert received(factory, "ignored") is None
    with pytest.raises(ConfigurationError, match=r"JMSJCA\.ACC must be true or false"):
        ConnectionFactory("embedded://naming?JMSJCA.ACC=1")


def test_factory_with_a_lookup_url_is_that_of_the_bound_one():
    bound = ConnectionFactory("embedded://bound", user_name="u", password="p")  # noqa: S106  # no secret
    NamingContext.default().rebind("test/CF", bound)
    try:
        factory = ConnectionFactory("lookup://test/CF")
        assert (factory.login.url, factory.login.user_name) == ("embedded://bound", "u")
        assert pickle.loads(pickle.dumps(factory)).login == factory.login  # noqa: S301  # our own
    finally:
        NamingContext.default().unbind("test/CF")


CONFIGURED = """
[adapters.shop]
connection_url = "embedded://configured"
[adapters.other]
connection_url = "embedded://configured-2"
[listeners.orders]
adapter = "shop"
handler = "configured_handlers:on_order"
destination = "lookup://jms/orders"
[factories."jms/CF"]
adapter = "shop"
kind = "queue"
[factories."jms/alias"]
adapter = "shop"
connection_url = "lookup://jms/CF"
[destinations]
"jms/orders" = { queue = "orders" }
"""


def test_configured_adapter_receives_and_sends(tmp_path, monkeypatch):
    inbox, module = Inbox(), types.ModuleType("configured_handlers")
    module.on_order = inbox
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / "jmsjca.toml").write_text(CONFIGURED)
    with ResourceAdapter.from_config(tmp_path / "jmsjca.toml", "shop") as adapter:
        factory = adapter.naming.lookup("jms/alias")
        send(factory, "lookup://jms/orders", "one")
        inbox.take(1)
    assert isinstance(adapter.naming.lookup("jms/CF"), QueueConnectionFactory)


def test_descriptors_start_an_adapter_that_receives_and_sends(tmp_path):
    (tmp_path / "ra.xml").write_text(ra(options="JMSJCA.NoXA=true"))
    (tmp_path / "ejb-jar.xml").write_text(ejb(destination="Queue1", concurrencyMode="cc"))
    deployment, inbox = read(tmp_path / "ra.xml", tmp_path / "ejb-jar.xml"), Inbox()
    adapter = ResourceAdapter.from_configuration(deployment.configuration)
    adapter.activate(deployment.specs["orders"], inbox)
    with adapter:
        send(adapter.naming.lookup("jms/CF"), "Queue1", "one")
        inbox.take(1)


def test_producers_that_name_their_destination_in_each_send_look_it_up(adapter):
    adapter.naming.bind("jms/out", Queue("out3"))
    named, factory = Queue("lookup://jms/out"), adapter.connection_factory()
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer().send(TextMessage("classic"), named)
        session.create_producer().send_async(TextMessage("pipelined"), named).result(30)
    with factory.create_context() as context:
        context.create_producer().send(named, "simplified")
    assert [received(factory, "out3") for _ in range(3)] == ["classic", "pipelined", "simplified"]
    with adapter.connection_factory(kind="topic").create_connection() as connection:
        producer = connection.create_session().create_producer()
        with pytest.raises(IllegalStateError, match="the connection is for topics only"):
            producer.send(TextMessage("x"), Queue("q"))


def test_request_looks_its_destination_up(adapter):
    adapter.naming.bind("jms/quotes", Queue("quotes3"))

    @adapter.listener("quotes3")
    def quote(message):
        return f"one {message.body}"

    with adapter:
        assert adapter.request("lookup://jms/quotes", "pear", timeout=30).body == "one pear"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("a", "pa")),
        ({"user_name": "f"}, ("f", None)),
        ({"password": "pf"}, ("a", "pa")),
        ({"user_name": "f", "password": "pf"}, ("f", "pf")),
        ({"user_name": "", "password": ""}, ("a", "pa")),
    ],
)
def test_user_name_and_password_of_a_factory_travel_together(given, expected):
    adapter = ResourceAdapter("embedded://naming", "a", "pa")
    factory = adapter.connection_factory(**given)
    assert (factory.login.user_name, factory.login.password) == expected
    adapter.naming.bind("CF", factory)
    alias = adapter.connection_factory("lookup://CF", password="other")  # noqa: S106  # no secret
    assert (alias.login.user_name, alias.login.password) == expected


@pytest.mark.parametrize(
    ("factory", "spec", "expected"),
    [
        ({}, {}, ("a", "pa")),
        ({}, {"user_name": "s"}, ("s", None)),
        ({}, {"password": "ps"}, ("a", "pa")),
        ({"user_name": "f"}, {}, ("f", None)),
        ({"user_name": "f"}, {"password": "ps"}, ("f", None)),
        ({"user_name": "f", "password": "pf"}, {"user_name": "s"}, ("s", None)),
        ({"user_name": "f", "password": "pf"}, {"user_name": "s", "password": "ps"}, ("s", "ps")),
    ],
)
def test_user_name_and_password_of_a_spec_travel_together(factory, spec, expected):
    adapter = ResourceAdapter("embedded://naming", "a", "pa")
    adapter.naming.bind("CF", ConnectionFactory("embedded://other", **factory))
    url = "lookup://CF" if factory else None
    activation = adapter.activate(ActivationSpec(destination="q", connection_url=url, **spec), print)
    assert activation._settings.credentials(ConnectionURL.parse("embedded://other")) == Credentials(*expected)


@pytest.mark.parametrize(
    ("url", "password", "expected"),
    [
        ("amqp://u@h", "given", Credentials("u", None)),
        ("amqp://u:own@h", None, Credentials("u", "own")),
        ("amqp://u:own@h", "given", Credentials("u", "own")),
        ("amqp://h", "given", None),
    ],
)
def test_password_without_a_user_name_is_not_used(url, password, expected):
    factory = ConnectionFactory(url, password=password)
    assert factory._settings_for(None, None).credentials(ConnectionURL.parse(url)) == expected
    listener = ResourceAdapter("amqp://adapter", "a", "pa")
    spec = ActivationSpec(destination="q", connection_url=url, password=password)
    found = listener.activate(spec, print)._settings.credentials(ConnectionURL.parse(url))
    assert found == (expected or Credentials("a", "pa"))


def test_source_of_credentials_is_not_mixed_with_user_name_and_password():
    adapter = ResourceAdapter("embedded://naming", credentials=("a", "pa"))
    assert adapter.connection_factory(password="dropped").login.source == ("a", "pa")  # noqa: S106  # no secret
    named = adapter.connection_factory(user_name="f").login
    assert (named.user_name, named.password, named.source) == ("f", None, None)


def test_second_use_of_a_name_has_the_cached_destination(adapter):
    adapter.naming.bind("jms/orders", Queue("q1234"))
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        first = session.create_queue("lookup://jms/orders")
        assert session.create_queue("lookup://jms/orders") is first
        assert session.create_producer(Queue("lookup://jms/orders")).destination is first


def test_bound_factory_is_looked_up_for_each_connection_without_a_cache(adapter):
    adapter.naming.bind("CF", ConnectionFactory("embedded://one", user_name="u1"))
    cached = adapter.connection_factory("lookup://CF")
    fresh = adapter.connection_factory("lookup://CF", options={"JMSJCA.nocfcache": "true"})
    adapter.naming.rebind("CF", ConnectionFactory("embedded://two", user_name="u2", options={"k": "v"}))
    settings = cached._settings_for(None, None)
    assert (settings.url, settings.user_name) == ("embedded://one", "u1")
    settings = fresh._settings_for(None, None)
    assert (settings.url, settings.user_name) == ("embedded://two?k=v", "u2")
    adapter.naming.rebind("CF", ConnectionFactory("embedded://two"))
    send(fresh, "q", "to the new one")
    assert received(ConnectionFactory("embedded://two"), "q") == "to the new one"
    adapter.naming.unbind("CF")
    with pytest.raises(NameNotFoundError):
        fresh.create_connection()
    assert pickle.loads(pickle.dumps(fresh)).login.url == "embedded://one"  # noqa: S301  # our own
