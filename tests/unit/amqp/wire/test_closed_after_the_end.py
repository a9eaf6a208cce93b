"""A consumer that is closed after the broker has ended its link: nothing of it stays behind."""

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Attach, Error

from jmsjca.destinations import Subscription, Topic
from jmsjca.errors import JMSError
from tests.unit.amqp.wire.account import encoded

SUBSCRIPTION = Subscription(Topic("t"), "s")


@pytest.fixture
def connection(stage):
    """A connection to a topic that has two messages for a subscriber; `end` ends the subscriber's link."""
    broker, attached = Broker(), []
    broker.instead[Attach] = lambda service, frame: (service.carry_out(frame), attached.append((service, frame)))
    for body in "ab":
        broker.store.put("t", encoded(body))
    connection = stage(broker).connect(client_id="me")
    connection.end = lambda: attached[0][0].detach(attached[0][1], Error(condition="amqp:link:detach-forced"))
    return connection


@pytest.fixture
def consumer(connection):
    return connection.consumer(SUBSCRIPTION)


@pytest.fixture
def received(consumer):
    received = []
    while len(received) < 2:
        received += consumer.receive(2, SECONDS)
    return received


def end(connection, consumer):
    connection.end()
    with pytest.raises(JMSError, match="detach-forced"):
        consumer.receive(1, SECONDS)


def test_its_subscription_can_be_used_again(connection, consumer, received):
    end(connection, consumer)
    consumer.close()
    assert consumer.is_finished
    connection.consumer(SUBSCRIPTION).close()


def test_a_unit_that_holds_a_message_of_it_has_it_to_its_end(connection, consumer, received):
    unit = connection.unit()
    unit.take(received[:1])
    end(connection, consumer)
    consumer.close()
    assert not consumer.is_finished
    unit.rollback()
    assert consumer.is_finished
