"""Sessions under a transaction manager, over brokers on a network: closed in their transaction, which ends later."""

import uuid

import pytest
from transaction import TransactionManager

from jmsjca import ConnectionFactory, Queue, TextMessage

PATIENCE = 60


@pytest.mark.parametrize("pair", ["artemis-amqp", "activemq-stomp", "activemq-amqp"])
def test_a_connection_closed_in_its_transaction_commits_and_rolls_back(pair, broker_url):
    name = f"managed.{uuid.uuid4().hex}"
    source, target = Queue(name), Queue(f"{name}.out")
    manager = TransactionManager(explicit=True)
    factory = ConnectionFactory(broker_url(pair), transaction_locator=lambda: manager)
    with factory.create_connection() as connection:
        connection.create_session().create_producer(source).send(TextMessage("a"))
    for end in (manager.abort, manager.commit):
        manager.begin()
        with factory.create_connection() as connection:
            session = connection.create_session()
            received = session.create_consumer(source).receive(PATIENCE)
            session.create_producer(target).send(TextMessage("sent"))
        with factory.create_connection() as connection:
            connection.create_session().create_producer(target).send(TextMessage("sent too"))
        end()
        assert received is not None
    with factory.create_connection() as connection:
        session = connection.create_session()
        consumer = session.create_consumer(target)
        assert [consumer.receive(PATIENCE).body for _ in range(2)] == ["sent", "sent too"]
        assert consumer.receive(0.5) is None
        assert session.create_consumer(source).receive(0.5) is None
