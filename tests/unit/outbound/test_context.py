"""The simplified API: JMSContext (JMS 3.1, sections 2.8, 6.1 and 7)."""

import pytest

from jmsjca import AcknowledgeMode, ConnectionFactory, Topic
from jmsjca.errors import IllegalStateError, InvalidDestinationError, NotSupportedError
from tests.unit.outbound.queues import QUEUE, left, take


def body(context, kind=str):
    with context.create_consumer(QUEUE) as consumer:
        return consumer.receive_body(kind, 0)


def test_first_consumer_starts_the_connection(context):
    """It is started automatically when the first consumer is created (6.1.4)."""
    context.create_producer().send(QUEUE, "a")
    assert context.create_consumer(QUEUE).receive(0).body == "a"


def test_connection_is_started_by_hand(context):
    """Applications may disable this (6.1.4)."""
    context.auto_start = False
    context.create_producer().send(QUEUE, "a")
    consumer = context.create_consumer(QUEUE)
    assert consumer.receive(0) is None
    context.start()
    assert consumer.receive(0).body == "a"


def test_stopped_context_waits(context):
    """8.4."""
    consumer = context.create_consumer(QUEUE)
    context.create_producer().send(QUEUE, "a")
    context.stop()
    assert consumer.receive(0) is None
    context.start()
    assert consumer.receive(0).body == "a"


def test_transacted_context(jms_connection_factory):
    """6.2.7."""
    with jms_connection_factory.create_context(transacted=True) as context:
        producer = context.create_producer()
        producer.send(QUEUE, "never")
        context.rollback()
        producer.send(QUEUE, "a")
        context.commit()
        with context.transaction():
            producer.send(QUEUE, "b")
        assert context.transacted
    with jms_connection_factory.create_context() as context:
        assert left(context.create_consumer(QUEUE)) == [("a", 1), ("b", 1)]


def test_client_acknowledges_and_recovers(jms_connection_factory):
    """The session's modes are the context's (6.2.10)."""
    with jms_connection_factory.create_context(AcknowledgeMode.CLIENT) as context:
        context.create_producer().send(QUEUE, "a").send(QUEUE, "b").send(QUEUE, "c")
        consumer = context.create_consumer(QUEUE)
        assert take(consumer, 1) == ["a"]
        context.acknowledge()
        assert take(consumer, 1) == ["b"]
        context.recover()
        assert left(consumer) == [("b", 2), ("c", 1)]
        assert context.session_mode is AcknowledgeMode.CLIENT


def test_commit_is_for_transactions(context):
    """IllegalStateException must be thrown (10.3)."""
    with pytest.raises(IllegalStateError, match="not transacted"):
        context.commit()


def test_contexts_share_a_connection(jms_connection_factory):
    """It is closed with the last of them (6.1.8): temporary destinations show how long it lives."""
    first = jms_connection_factory.create_context()
    second = first.create_context(transacted=True)
    queue = first.create_temporary_queue()
    first.close()
    first.close()
    with pytest.raises(IllegalStateError, match="closed"):
        first.create_context()
    assert second.create_consumer(queue).receive(0) is None
    second.close()
    with jms_connection_factory.create_context() as other, pytest.raises(InvalidDestinationError):
        other.create_producer().send(queue, "gone")


def test_closed_context_refuses(context):
    """6.1.8."""
    producer, consumer = context.create_producer(), context.create_consumer(QUEUE)
    context.close()
    for use in (
        context.create_context,
        context.create_producer,
        context.create_text_message,
        context.recover,
        context.acknowledge,
        context.start,
        context.stop,
        lambda: context.create_consumer(QUEUE),
        lambda: producer.send(QUEUE, "a"),
        lambda: consumer.receive(0),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            use()


def test_context_is_refused_where_there_are_no_transactions(jms_broker_url, lacking):
    """And neither closes the connection of others nor leaves one of its own, which would keep the client id."""
    lacking("atomic")
    factory = ConnectionFactory(jms_broker_url, client_id="me")
    with pytest.raises(NotSupportedError, match="atomic"):
        factory.create_context(transacted=True)
    with factory.create_context() as context:
        with pytest.raises(NotSupportedError, match="atomic"):
            context.create_context(transacted=True)
        context.create_producer().send(QUEUE, "a")
        assert body(context) == "a"


def test_context_tells_of_its_connection(jms_broker_url):
    """6.1."""
    with ConnectionFactory(jms_broker_url, client_id="me").create_context() as context:
        context.exception_listener = print
        assert (context.client_id, context.metadata.protocol, context.exception_listener) == ("me", "embedded", print)
        assert context.capabilities.browse
        assert context.admin.destinations() == []


def test_context_has_subscriptions(jms_broker_url):
    """8.3."""
    topic = Topic("t")
    with ConnectionFactory(jms_broker_url, client_id="me").create_context() as context:
        consumers = [
            context.create_consumer(topic),
            context.create_durable_consumer(topic, "d"),
            context.create_shared_consumer(topic, "s"),
            context.create_shared_durable_consumer(topic, "sd"),
        ]
        context.create_producer().send(topic, "a")
        assert [take(consumer, 1) for consumer in consumers] == [["a"]] * 4
        consumers[1].close()
        context.unsubscribe(topic, "d")


def test_unsent_transaction_of_a_context_is_rolled_back(jms_connection_factory):
    """6.2.15."""
    with jms_connection_factory.create_context(transacted=True) as context:
        context.create_producer().send(QUEUE, "never")
    with jms_connection_factory.create_context() as context:
        assert body(context) is None
