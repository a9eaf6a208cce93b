"""ConnectionFactory: opens nothing, can be pickled, shows no password."""

import asyncio
import pickle
from pathlib import Path

import pytest

from jmsjca import ConnectionFactory, Limits, Queue, ResourceAdapter, TextMessage
from jmsjca.errors import ConfigurationError, InvalidClientIDError, InvalidURLError, JMSError, ReplyTimeoutError

HIDDEN = "s3cr3t"


def test_making_a_factory_opens_nothing(tmp_path: Path):
    ConnectionFactory(f"embedded://{tmp_path}/broker.db")
    ResourceAdapter(f"embedded://{tmp_path}/broker.db").connection_factory()
    assert list(tmp_path.iterdir()) == []


def test_factory_survives_pickling(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, client_id="me", limits=Limits(prefetch_messages=3))
    copy = pickle.loads(pickle.dumps(factory))  # noqa: S301  # our own
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a"))
    with copy.create_connection() as connection, connection.create_session() as session:
        assert session.create_consumer(Queue("q")).receive(0).body == "a"
        assert (connection.client_id, connection._context.limits.prefetch_messages) == ("me", 3)


def test_factory_tells_what_it_was_given():
    """An option of JMSJCA overrides the parameter of that name."""
    url, options = "embedded://x?JMSJCA.idletimeout=7000", {"JMSJCA.producerpooling": "true", "z": "1"}
    factory = ConnectionFactory(url, user_name="ann", client_id="me", options=options, idle_timeout=5.0)
    assert (factory.login.url, factory.login.user_name, factory.client_id) == (url, "ann", "me")
    assert factory.own_options == options
    assert (factory.options.producer_pooling, factory.options.idle_timeout) == (True, 7.0)
    assert (factory.producer_pooling, factory.idle_timeout) == (True, 7.0)
    plain = ConnectionFactory("embedded://x", producer_pooling=True, idle_timeout=5.0)
    assert (plain.producer_pooling, plain.idle_timeout) == (True, 5.0)


def test_client_id_of_a_factory_is_that_of_its_connections(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    with factory.create_connection() as connection:
        assert connection.client_id == "me"
        with pytest.raises(InvalidClientIDError):
            factory.create_connection()


def test_factory_shows_no_password():
    factory = ConnectionFactory(f"amqp://ann:{HIDDEN}@host", user_name="bob", password=HIDDEN)
    assert HIDDEN not in f"{factory} {factory!r} {vars(factory)!r}"
    assert "amqp://ann@host" in repr(factory)


def test_bad_url_is_found_at_once():
    with pytest.raises(InvalidURLError):
        ConnectionFactory("no url")


def test_a_limit_below_zero_is_refused():
    with pytest.raises(ConfigurationError, match="prefetch_messages is -1"):
        Limits(prefetch_messages=-1)


@pytest.mark.parametrize(
    ("name", "most"),
    [("prefetch_messages", 2**31 - 1), ("duplicate_history", 2**63 - 1), ("lock_timeout", 2_147_483)],
)
def test_the_largest_limits_are_usable_and_larger_ones_refused(tmp_path, name, most):
    factory = ConnectionFactory(f"embedded://{tmp_path}/broker.db", limits=Limits(**{name: most}))
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a", properties={"_AMQ_DUPL_ID": "1"}))
        assert session.create_consumer(Queue("q")).receive(0).body == "a"
    for value in (most + 1, 10**400):
        with pytest.raises(ConfigurationError, match=rf"{name} must be a (whole )?number from 0 to {most}, not \d+ "):
            Limits(**{name: value})


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_consumer_that_takes_nothing_ahead_receives(jms_broker_url, ahead):
    factory = ConnectionFactory(jms_broker_url, limits=Limits(prefetch_messages=ahead))
    with factory.create_connection() as connection, connection.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a"))
        consumer = session.create_consumer(Queue("q"))
        assert consumer.receive(0).body == "a"
        assert consumer.receive(0) is None


def test_connections_of_a_factory_are_independent(jms_connection_factory):
    first, second = jms_connection_factory.create_connection(), jms_connection_factory.create_connection()
    first.close()
    with second, second.create_session() as session:
        session.create_producer(Queue("q")).send(TextMessage("a"))
        assert second.admin.depth(Queue("q")).ready == 1


def test_factory_sends_over_a_pool_of_its_own(jms_connection_factory):
    factory = jms_connection_factory
    factory.send("q", "a", priority=7)
    factory.send_many(Queue("q"), ["b", "c"])
    asyncio.run(factory.send_async("q", "d"))
    with factory.create_connection() as connection, connection.create_session() as session:
        messages = list(session.create_browser(Queue("q")))
    assert [(message.body, message.priority) for message in messages] == [("a", 7), ("b", 4), ("c", 4), ("d", 4)]
    factory.close()


def test_closed_factory_opens_another_pool(jms_connection_factory):
    sender = jms_connection_factory.sender
    assert jms_connection_factory.sender is sender
    jms_connection_factory.close()
    with pytest.raises(JMSError, match="closed"):
        sender.send("q", "a")
    assert jms_connection_factory.sender is not sender
    jms_connection_factory.close()
    jms_connection_factory.close()


def test_factory_requests_a_reply(jms_connection_factory, jms_adapter):
    @jms_adapter.listener("q")
    def answer(body: str) -> str:
        return body.upper()

    assert jms_connection_factory.request("q", "a", timeout=30).body == "A"
    with pytest.raises(ReplyTimeoutError):
        jms_connection_factory.request("nobody", "a", timeout=0.01)
    jms_connection_factory.close()
