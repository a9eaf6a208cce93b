"""Guaranteed delivery over brokers on a network: container managed events, and elimination of duplicates."""

import uuid

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.connector import Connector, ConnectorConfig, ReturnCode
from jmsjca.errors import NotSupportedError

ORDER = '{"_type": "Order", "id": "%s"}'
PATIENCE = 60
POLLS = 200


@pytest.fixture
def prefix():
    return f"connector-{uuid.uuid4().hex}"


def put(url, queue, *ids):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        for each in ids:
            session.create_producer(Queue(queue)).send(ORDER % each)


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp"])
def test_container_managed_events_move_once(pair, broker_url, prefix):
    url = broker_url(pair)
    put(url, f"{prefix}-source", "a", "b")
    config = ConnectorConfig(
        connection_url=url,
        receive_timeout=0.2,
        container_managed_events=True,
        source_queue=f"{prefix}-source",
        delivery_queue=f"{prefix}-out",
        fault_queue=f"{prefix}-faults",
    )
    put(url, f"{prefix}-source", "c")
    bodies = []
    with Connector(config) as moving, ConnectionFactory(url).create_connection() as connection:
        consumer = connection.create_session().create_consumer(Queue(f"{prefix}-out"))
        for _ in range(POLLS):
            assert moving.transfer_events() is ReturnCode.SUCCEED
            bodies += [each.body for each in iter(lambda: consumer.receive(0.1), None)]
            if len(bodies) >= 3:
                break
    assert [each.count(f'"{name}"') for each, name in zip(bodies, "abc", strict=True)] == [1, 1, 1]


def poll_until(connector, done):
    for _ in range(POLLS):
        assert connector.poll_for_events() is ReturnCode.SUCCEED
        if done():
            return


def elimination(url, prefix, collaboration):
    config = ConnectorConfig(
        connection_url=url,
        input_destination=f"{prefix}-in",
        receive_timeout=0.2,
        poll_quantity=5,
        monitor_queue=f"{prefix}-monitor",
        duplicate_event_elimination=True,
    )
    return Connector(config, collaboration)


def test_an_interrupted_event_is_in_doubt_and_a_delivered_one_a_duplicate(broker_url, prefix):
    url, orders = broker_url("artemis-amqp"), []

    def interrupted(order):
        orders.append(order.get("id"))
        raise KeyboardInterrupt

    put(url, f"{prefix}-in", "a", "b")
    with elimination(url, prefix, interrupted) as polling, pytest.raises(KeyboardInterrupt):
        poll_until(polling, lambda: False)
    with elimination(url, prefix, lambda order: orders.append(order.get("id"))) as polling:
        poll_until(polling, lambda: orders[-1] == "b")
    assert orders == ["a", "a", "b"]
    with ConnectionFactory(url).create_connection() as connection:
        states = list(connection.create_session().create_browser(Queue(f"{prefix}-monitor")))
    assert len(states) == 1


def test_elimination_needs_a_broker_that_can_browse(broker_url, prefix):
    with elimination(broker_url("activemq-stomp"), prefix, print) as polling, pytest.raises(NotSupportedError):
        polling.poll_for_events()
