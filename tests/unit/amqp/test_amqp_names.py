"""Names that cannot be written are refused before anything is asked for, and the connection lives on."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import InvalidDestinationError, InvalidSelectorError

HALF = "half a pair: \ud800"
GOOD = Queue("q")


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda connection: connection.consumer(Queue(HALF)), InvalidDestinationError),
        (lambda connection: connection.consumer(Subscription(Topic("t"), HALF)), InvalidDestinationError),
        (lambda connection: connection.consumer(GOOD, selector=f"a = '{HALF}'"), InvalidSelectorError),
        (lambda connection: connection.remove(Subscription(Topic("t"), HALF)), InvalidDestinationError),
        (lambda connection: connection.check(Queue(HALF)), InvalidDestinationError),
        (lambda connection: list(connection.browse(Queue(HALF))), InvalidDestinationError),
    ],
)
def test_a_name_with_half_of_a_surrogate_pair_is_refused(line, ask, error):
    line = line()
    line.open(client_id="c")
    with pytest.raises(error, match=r"\\ud800.* holds half of a surrogate pair"):
        ask(line.connection)
    assert "begin" not in line.peer.order
    line.connection.check(GOOD)
