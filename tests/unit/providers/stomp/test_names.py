"""Names that cannot be encoded are refused before a request is sent."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, InvalidSelectorError
from jmsjca.messages import TextMessage

HALF = "half a pair: \ud800"
GOOD = Queue("q")
BAD = {HALF: r"\\ud800.* holds half of a surrogate pair", "q\0other": r"\\x00other.* holds NUL .*leave it out"}

pytestmark = pytest.mark.parametrize("name", BAD, ids=ascii)


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda connection, name: connection.consumer(Queue(name)),
        lambda connection, name: connection.consumer(Topic(name)),
        lambda connection, name: connection.check(Queue(name)),
        lambda connection, name: connection.unit(atomic=False).send(TextMessage("a"), Queue(name)),
    ],
)
def test_a_name_that_cannot_be_written_is_refused(line, server, ask, name):
    _is_refused(line(server), ask, name, InvalidDestinationError)


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda connection, name: connection.consumer(Subscription(Topic("t"), name, "c")),
        lambda connection, name: connection.remove(Subscription(Topic("t"), name, "c")),
    ],
)
def test_so_is_the_name_of_a_subscription(line, server, ask, name):
    _is_refused(line(server, "c"), ask, name, InvalidDestinationError)


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2"])
def test_so_is_a_selector(line, server, name):
    def ask(connection, name):
        connection.consumer(GOOD, selector=f"a = '{name}'")

    _is_refused(line(server), ask, name, InvalidSelectorError)


def _is_refused(line, ask, name, error):
    with pytest.raises(error, match=BAD[name]):
        ask(line.connection, name)
    assert not line.channel.written
    line.connection.consumer(GOOD)
