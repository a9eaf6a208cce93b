"""Consumers that several threads use: what one takes back does not starve another that waits."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.performatives import Flow

from jmsjca.destinations import Queue
from jmsjca.spi import Order
from tests.unit.amqp.wire.account import encoded


@pytest.fixture
def asked():
    """Set when somebody asks for messages."""
    return threading.Event()


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("product", ["apache-activemq-artemis", "Apache Qpid Broker-J Core"])
def test_what_is_rolled_back_reaches_who_waits(stage, asked, product, order):
    """To roll back in order drains the credit of the thread that waits."""
    broker = Broker(product)
    broker.store.put("in", encoded("x"))
    connection = stage(broker).connect()
    consumer = connection.consumer(Queue("in"), window=0, order=order)
    unit = connection.unit()
    unit.take(consumer.receive(1, SECONDS))

    def notice(service, frame):
        service.carry_out(frame)
        asked.set()

    broker.instead[Flow] = notice
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(consumer.receive, 5, SECONDS)
        assert asked.wait(SECONDS)
        unit.rollback()
        assert [delivery.message.body for delivery in waiting.result()] == ["x"]
