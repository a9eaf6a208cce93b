"""RabbitMQ 3.10 takes the bytes of an address for Latin-1, and ends the connection over what that does not have."""

import pytest
from amqp_peer import Broker

from jmsjca.destinations import Queue, Topic
from jmsjca.errors import InvalidDestinationError


@pytest.mark.parametrize("name", ["über", "日本"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda connection, name: connection.consumer(Queue(name)),
        lambda connection, name: connection.consumer(Topic(name)),
        lambda connection, name: connection.check(Queue(name)),
    ],
    ids=["consume", "topic", "send"],
)
def test_a_name_that_would_be_another_one_is_refused(stage, ask, name):
    connection = stage(Broker("RabbitMQ")).connect()
    with pytest.raises(InvalidDestinationError, match=f"{ascii(name)[1:-1]}.*ASCII".replace("\\", r"\\")):
        ask(connection, name)
    connection.check(Queue("uber"))


def test_other_brokers_take_them(stage):
    stage(Broker()).connect().check(Queue("über"))
