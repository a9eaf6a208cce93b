"""Listeners keep the inbound contract on every broker over every protocol that it speaks."""

import pytest
from brokers import PAIRS

from jmsjca.testing.inbound import *  # noqa: F403  # every case of the suite

# The others run with `make torture`: their engine is the same, and what they lack is in the capability table.
IN_EVERY_RUN = {"artemis-amqp", "qpid-amqp", "rabbitmq4-amqp", "activemq-stomp"}
EVERY_BROKER = [pytest.param(p, marks=[] if p in IN_EVERY_RUN else [pytest.mark.torture]) for p in PAIRS]


@pytest.fixture(scope="module", params=EVERY_BROKER)
def jms_broker_url(request, broker_url):
    return broker_url(request.param)


@pytest.fixture(autouse=True)
def chance(request):
    if "test_so_many_handlers" in request.node.name and "openmq-stomp-sync" in request.node.name:
        pytest.skip("Open MQ's bridge spreads messages over receivers by chance, and bounds none of them")


@pytest.fixture
def jms_message_count():
    return 50
