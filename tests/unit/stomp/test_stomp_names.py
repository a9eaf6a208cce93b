"""Names that cannot be written are refused before anything is asked for, and the connection lives on."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, InvalidSelectorError
from jmsjca.messages import TextMessage

HALF = "half a pair: \ud800"
GOOD = Queue("q")
LASTING = Subscription(Topic("t"), HALF, "c")


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3", "Other/1"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: connection.consumer(Queue(HALF)),
        lambda connection: connection.consumer(Topic(HALF)),
        lambda connection: connection.check(Queue(HALF)),
        lambda connection: connection.unit(atomic=False).send(TextMessage("a"), Queue(HALF)),
    ],
)
def test_a_name_with_half_of_a_surrogate_pair_is_refused(line, server, ask):
    _is_refused(line(server), ask, InvalidDestinationError)


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2", "RabbitMQ/3"])
@pytest.mark.parametrize(
    "ask", [lambda connection: connection.consumer(LASTING), lambda connection: connection.remove(LASTING)]
)
def test_so_is_the_name_of_a_subscription(line, server, ask):
    _is_refused(line(server, "c"), ask, InvalidDestinationError)


@pytest.mark.parametrize("server", ["ActiveMQ/6.3.1", "ActiveMQ-Artemis/2"])
def test_so_is_a_selector(line, server):
    _is_refused(
        line(server), lambda connection: connection.consumer(GOOD, selector=f"a = '{HALF}'"), InvalidSelectorError
    )


def _is_refused(line, ask, error):
    with pytest.raises(error, match=r"\\ud800.* holds half of a surrogate pair"):
        ask(line.connection)
    assert not line.channel.written
    line.connection.consumer(GOOD)
