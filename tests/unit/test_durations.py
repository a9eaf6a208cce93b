"""A timedelta is accepted wherever the public interface takes seconds."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from jmsjca import ActivationSpec, ConnectionFactory, Queue, ResourceAdapter, Retry
from jmsjca.connector import ConnectorConfig
from jmsjca.errors import ArgumentTypeError, InvalidActivationSpecError, InvalidArgumentError, MessageFormatError
from jmsjca.outbound.pool import ConnectionPool
from jmsjca.transactions import Outbox, Relay, SqlInbox

NOW, SOON, MINUTE = timedelta(), timedelta(milliseconds=10), timedelta(minutes=1)


@pytest.fixture
def adapter(jms_broker_url):
    with ResourceAdapter(jms_broker_url, retry_timeout=SOON) as made:
        yield made


def test_sends_and_receives(adapter):
    adapter.send("orders", "a pear", time_to_live=MINUTE, delivery_delay=SOON)
    message = adapter.receive("orders", MINUTE)
    assert (message.expiration - message.timestamp).total_seconds() == 60
    assert adapter.receive("orders", timeout=NOW) is None
    with adapter.receive_many("orders", 5, SOON) as messages:
        assert messages == []
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("orders"))
        producer.time_to_live = MINUTE
        producer.send("a fig")
        consumer = session.create_consumer(Queue("orders"))
        assert consumer.receive(MINUTE).expiration is not None
        assert consumer.receive_body(str, SOON) is None


def test_listeners_requests_and_stops(adapter):
    @adapter.listener("quotes")
    def quote(body: str) -> str:
        return f"{body} costs 1"

    adapter.start(wait=MINUTE)
    assert adapter.request("quotes", "a pear", timeout=MINUTE).body == "a pear costs 1"
    assert adapter.health(MINUTE)
    [listener] = adapter.activations
    assert listener.stop(MINUTE)
    assert adapter.stop(MINUTE)


def test_specs_retries_and_connectors():
    assert (
        ActivationSpec(
            destination="q", concurrency_mode="cc", hold_until_ack=True, acknowledgement_timeout=MINUTE
        ).acknowledgement_timeout
        == 60
    )
    assert Retry(delay=MINUTE).delay == 60
    config = ConnectorConfig(connection_url="embedded://x", receive_timeout=SOON, poll_frequency=MINUTE)
    assert (config.receive_timeout, config.poll_frequency) == (0.01, 60)


def test_waits_of_tests(jms_adapter, jms_calls, jms_clock):
    @jms_adapter.listener("orders")
    def take(body: str): ...

    jms_adapter.send("orders", "a pear")
    [call] = jms_calls.wait_for("orders", timeout=MINUTE)
    jms_clock.advance_until(lambda: call.body == "a pear", SOON, MINUTE)


def test_its_range_is_checked(adapter):
    with pytest.raises(InvalidArgumentError, match="timeout must be seconds"):
        adapter.receive("orders", -MINUTE)
    with pytest.raises(MessageFormatError, match="time_to_live"):
        adapter.send("orders", "a pear", time_to_live=-MINUTE)
    with pytest.raises(ArgumentTypeError, match="timeout must be seconds"):
        adapter.stop("soon")
    with pytest.raises(InvalidActivationSpecError):
        ActivationSpec(destination="q", concurrency_mode="cc", hold_until_ack=True, acknowledgement_timeout=-MINUTE)


def test_factories_pools_inboxes_and_relays(jms_broker_url):
    factory = ConnectionFactory(jms_broker_url, idle_timeout=MINUTE, retry_timeout=SOON)
    assert factory.idle_timeout == 60
    factory.sender.send("orders", "a pear")
    times = {"timeout": SOON, "max_idle": MINUTE, "max_lifetime": timedelta(hours=1)}
    with ConnectionPool(factory, min_size=1, **times) as pool, pool.session() as session:
        pool.wait(MINUTE)
        assert session.create_consumer(Queue("orders")).receive_body(str, MINUTE) == "a pear"
    engine, metadata = sa.create_engine("sqlite://"), sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    SqlInbox(engine, keep=timedelta(days=1))
    metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.add(connection, "orders", "a fig", time_to_live=MINUTE, delivery_delay=NOW)
    Relay(outbox, factory, poll_interval=SOON, lease=MINUTE).run_once()
    with factory.create_context() as context:
        assert context.create_consumer(Queue("orders")).receive(MINUTE).expiration is not None
    engine.dispose()
