"""The relay of an outbox over brokers on a network, killed between the broker's confirmation and its own record."""

import logging

import pytest
import sqlalchemy as sa

from jmsjca import ConnectionFactory, Queue
from jmsjca.transactions import Outbox, Relay

PATIENCE = 60
LEASE = 30.0


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp", "rabbitmq4-amqp"])
def test_what_a_relay_sent_before_its_death_arrives_once_where_duplicates_are_detected(
    pair, broker_url, tmp_path, caplog
):
    caplog.set_level(logging.INFO, "jmsjca.transactions")
    engine = sa.create_engine(f"sqlite:///{tmp_path}/application.db")
    metadata = sa.MetaData()
    outbox = Outbox(metadata, engine=engine)
    metadata.create_all(engine)
    factory, queue = ConnectionFactory(broker_url(pair)), Queue(f"outbox.{pair}")
    bodies = [f"{number:02}" for number in range(20)]
    with engine.begin() as connection:
        for body in bodies:
            outbox.add(connection, queue, body, key="k")
    dying = Relay(outbox, factory, clock=lambda: 0.0, lease=LEASE, batch_size=10)
    dying._record = lambda sending: None
    assert dying.run_once() == 10
    living = Relay(outbox, factory, clock=lambda: LEASE + 1, lease=LEASE)
    while living.run_once():
        pass
    assert living.get_stats().depth == 0
    with factory.create_connection() as connection, connection.create_session() as session:
        detects = connection.capabilities.duplicate_detection
        assert any("may arrive twice" in record.getMessage() for record in caplog.records) == (not detects)
        consumer = session.create_consumer(queue)
        expected = bodies if detects else [*bodies[:10], *bodies]
        assert [consumer.receive(timeout=PATIENCE).body for _ in expected] == expected
        assert consumer.receive(timeout=0) is None
    for relay in (dying, living):
        relay.close()
    engine.dispose()
