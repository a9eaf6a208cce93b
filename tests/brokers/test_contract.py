"""Every broker keeps the provider contract over every protocol that it speaks."""

from functools import partial

import pytest
from brokers import PAIRS
from poisoning import poison_amqp, poison_stomp

from jmsjca.destinations import Queue
from jmsjca.testing.contract import *  # noqa: F403  # every case of the suite
from jmsjca.testing.contract.messages import TestPoison  # noqa: F401
from jmsjca.testing.contract.network import *  # noqa: F403

# A queue that nobody may send to. RabbitMQ keeps names of this kind to itself; the others are configured so.
REFUSED = dict.fromkeys(("rabbitmq", "rabbitmq4"), Queue("amq.refused"))


@pytest.fixture(scope="module", params=PAIRS)
def pair(request):
    return request.param


@pytest.fixture(scope="module")
def jms_broker_url(pair, broker_url):
    return broker_url(pair)


@pytest.fixture
def jms_refused_destination(pair):
    return REFUSED.get(pair.partition("-")[0], Queue("refused.queue"))


@pytest.fixture
def jms_poison(pair, jms_broker_url):
    broker, protocol = pair.split("-")
    return partial(_poison_amqp if protocol == "amqp" else _poison_stomp, broker, jms_broker_url)


def _poison_amqp(broker, url, queue):
    path = f"/queue/{queue.name}"
    address = {"rabbitmq": path, "rabbitmq4": path, "activemq": f"queue://{queue.name}"}.get(broker, queue.name)
    depth = {"qpid": 40}.get(broker, 3_000)  # Broker-J refuses what is deeper than 50
    poison_amqp(url, address, capability="queue" if broker == "artemis" else None, depth=depth)


def _poison_stomp(broker, url, queue):
    if broker == "artemis":
        poison_stomp(url, {"destination": queue.name, "destination-type": "ANYCAST"})
    else:
        poison_stomp(url, {"destination": f"/queue/{queue.name}"})
